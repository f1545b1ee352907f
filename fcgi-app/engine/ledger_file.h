#ifndef RUNNEL_ENGINE_LEDGER_FILE_H
#define RUNNEL_ENGINE_LEDGER_FILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/ledger.h"

/*
 * The ledger's file from the inside: its layout and its two sequence locks, one a row and one a
 * record of the ring. For ledger.c and ledger_file.c alone.
 *
 * Every shared field is a lock-free atomic. A writer makes the sequence odd, stores the fields
 * with release order, and makes it even again; a reader that saw one new field must then also
 * see the odd sequence, and reads again. There is no fence to get wrong, and on x86 each store
 * is a plain move.
 */

enum {
    LEDGER_VERSION =
        1, /* of the file's layout: raise it with every change of the structs below */
    ID_WORDS = (LEDGER_ID_MAX_BYTES + 8) / 8,
};

/* The counters of a row, in the order of the file. */
enum counter {
    COUNT_ACCEPTED,
    COUNT_QUEUED,
    COUNT_RUNNING,
    COUNT_GENERATED,
    COUNT_DELIVERED,
    COUNT_DISCARDED,
    COUNT_SLOTS,
    COUNT_ENDED, /* LEDGER_ROUTES x LEDGER_OUTCOMES of them */
    /* of each histogram its buckets, then its sum */
    COUNT_HISTOGRAMS = COUNT_ENDED + LEDGER_ROUTES * LEDGER_OUTCOMES,
    HISTOGRAM_COUNTERS = HISTOGRAM_BUCKETS + 1,
    COUNTERS = COUNT_HISTOGRAMS + LEDGER_HISTOGRAMS * HISTOGRAM_COUNTERS,
};

struct row {
    _Alignas(64) _Atomic uint64_t sequence; /* odd while its writer is inside */
    _Atomic int32_t pid;                    /* 0: free */
    _Atomic uint64_t pid_started;           /* the kernel's start time: pids are used again */
    _Atomic uint64_t counters[COUNTERS];
};

enum field {
    FIELD_ROUTE,
    FIELD_OUTCOME,
    FIELD_PHASE,
    FIELD_DETECTOR,
    FIELD_REQUESTED,
    FIELD_GENERATED,
    FIELD_DELIVERED,
    FIELD_DISCARDED,
    FIELD_ACCEPTED_WALL,
    FIELD_TTFT,
    FIELD_DURATION,
    FIELD_PACE_ERROR,
    FIELD_PID,
    FIELDS,
};

struct record {
    _Alignas(64) _Atomic uint64_t lock; /* odd while a writer is inside */
    _Atomic uint64_t owner;             /* the sequence of the request that has the place */
    _Atomic uint64_t id[ID_WORDS];
    _Atomic uint64_t fields[FIELDS];
};

struct file {
    char magic[8];
    uint32_t version, rows, ring, file_bytes;
    _Alignas(64) _Atomic uint64_t last_sequence;
    struct row row[LEDGER_ROWS];
    struct record record[LEDGER_RING];
};

struct ledger {
    struct file *file;
    struct row *row; /* ours */
    int fd;          /* -1: memory only */
};

static inline unsigned ledger_ended_index(enum ledger_route route, enum ledger_outcome outcome)
{
    return COUNT_ENDED + (unsigned)route * LEDGER_OUTCOMES + (unsigned)outcome;
}

static inline unsigned ledger_histogram_index(enum ledger_histogram histogram)
{
    return COUNT_HISTOGRAMS + (unsigned)histogram * HISTOGRAM_COUNTERS;
}

/* --- rows --- */

void ledger_row_begin(struct row *row);
void ledger_row_commit(struct row *row);
void ledger_row_add(struct row *row, unsigned counter, uint64_t add); /* between the two */

/* A consistent copy; of a dead process's row, with its books closed. */
void ledger_row_read(struct row *row, uint64_t counters[COUNTERS]);

/* It was claimed by a process that is no more. */
bool ledger_row_is_dead(struct row *row);

/*
 * Close the books of a process that died: what was live is failed, what was held is discarded.
 * It may have died between two stores, so nothing but the identities themselves is trusted.
 */
void ledger_settle_counters(uint64_t counters[COUNTERS]);

/* --- records --- */

struct record *ledger_record_of(struct ledger *ledger, uint64_t sequence);

/* Write the whole record: on acceptance, on each change of phase, and at the end. */
void ledger_record_publish(struct ledger *ledger, const struct ledger_request *request);

/* A consistent copy of the record of request `sequence`; false when the place is another's. */
bool ledger_record_read(struct ledger *ledger, uint64_t sequence,
                        struct ledger_request *request);

/* One field of a record, as the seqlock needs it stored. */
static inline void ledger_record_set(struct record *record, enum field field, uint64_t value)
{
    atomic_store_explicit(&record->fields[field], value, memory_order_release);
}

#endif

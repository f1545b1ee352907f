#ifndef RUNNEL_ENGINE_LEDGER_H
#define RUNNEL_ENGINE_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/histogram.h"

/*
 * The ledger: what became of every request and every token.
 *
 * It is a mapped file (or anonymous memory) with one row of counters for each process and one
 * ring of the last LEDGER_RING requests, so that any process answers for all of them, and
 * totals survive a crash. It reconciles, at any moment:
 *
 *     accepted  = done + cancelled + failed + shed + stalled + drained + queued + running
 *     generated = delivered + discarded + held
 *
 * `held` are tokens of live replies that go out in one piece, or that an encoder keeps back; it
 * is 0 when no such reply is live.
 *
 * Each row has one writer, the engine thread of the process that claimed it, and is published
 * by a sequence lock: a reader sees all of a transition or nothing of it, and the writer never
 * waits. The row of a dead process is settled by the next reader or the next process: what it
 * had live is failed, and what it held is discarded.
 */

enum { LEDGER_RING = 4096, LEDGER_ROWS = 64, LEDGER_ID_MAX_BYTES = 64 };

enum ledger_route {
    LEDGER_STREAM,
    LEDGER_GENERATE,
    LEDGER_COMPLETIONS,
    LEDGER_CHAT,
    LEDGER_ROUTES,
};

enum ledger_outcome {
    LEDGER_LIVE, /* not yet ended */
    LEDGER_DONE,
    LEDGER_CANCELLED, /* the client left */
    LEDGER_FAILED,    /* our own fault, or that of a fault asked for */
    LEDGER_SHED,      /* refused: no slot and no place in the queue, or draining */
    LEDGER_STALLED,   /* the client did not read for too long */
    LEDGER_DRAINED,   /* cut by the end of the drain */
    LEDGER_OUTCOMES,
};

enum ledger_phase { LEDGER_QUEUED, LEDGER_PREFILL, LEDGER_DECODE, LEDGER_PHASES };

/* What noticed that the client had left. */
enum ledger_detector {
    LEDGER_NOT_DETECTED,
    LEDGER_BY_HANGUP, /* the connection closed */
    LEDGER_BY_WRITE,  /* a write failed */
    LEDGER_BY_ABORT,  /* FCGI_ABORT_REQUEST */
    LEDGER_DETECTORS,
};

/* What is measured; buckets as in base/histogram.h. */
enum ledger_histogram {
    LEDGER_TTFT,           /* acceptance to first token */
    LEDGER_ITL,            /* between two events of tokens */
    LEDGER_PACE_ERROR,     /* an event, later than it was due */
    LEDGER_QUEUE_TIME,     /* acceptance to slot */
    LEDGER_CANCEL_LATENCY, /* the close is visible to us, to slot free */
    LEDGER_HISTOGRAMS,
};

const char *ledger_route_name(enum ledger_route route);
const char *ledger_outcome_name(enum ledger_outcome outcome);
const char *ledger_phase_name(enum ledger_phase phase);
const char *ledger_detector_name(enum ledger_detector detector);

/* One request, as the ring tells it. */
struct ledger_request {
    uint64_t sequence; /* order of acceptance, from 1, over all processes and restarts */
    uint64_t requested, generated, delivered, discarded; /* tokens */
    int64_t ttft_us;         /* acceptance to first token; -1 before it */
    enum ledger_phase phase; /* now, or at its end */
    enum ledger_outcome outcome;
    enum ledger_route route;
    enum ledger_detector detected_by;
    int64_t accepted_wall_us;
    int64_t duration_us;       /* acceptance to end; -1 while live */
    int64_t pace_error_p99_us; /* upper bound of its bucket; -1: no token, or not yet ended */
    int32_t pid;
    char id[LEDGER_ID_MAX_BYTES + 1];
};

struct ledger_histogram_totals {
    uint64_t buckets[HISTOGRAM_BUCKETS]; /* not cumulative */
    uint64_t sum_us;
};

/* Sums over all rows: this and earlier processes. */
struct ledger_totals {
    uint64_t processes, slots; /* of the processes that live */
    uint64_t accepted;
    uint64_t ended[LEDGER_ROUTES][LEDGER_OUTCOMES]; /* [..][LEDGER_LIVE] stays 0 */
    uint64_t queued, running;
    uint64_t generated, delivered, discarded, held;
    struct ledger_histogram_totals histograms[LEDGER_HISTOGRAMS];
};

struct ledger;

enum { LEDGER_ERROR_MAX_BYTES = 300 };

/*
 * Open or make the file at `path` (NULL or "": memory of this process alone) and claim a row in
 * it. Returns NULL with a sentence in `error`. Blocks on the file's lock for a moment; start-up
 * only.
 */
struct ledger *ledger_open(const char *path, char error[LEDGER_ERROR_MAX_BYTES]);

/* Give the row back and unmap. Nothing of this process may be live. */
void ledger_close(struct ledger *ledger);

/* --- the writing side: the engine thread of this process only --- */

/* The request enters as queued: fills in sequence, outcome, phase and pid, and counts it. */
void ledger_accept(struct ledger *ledger, struct ledger_request *request);

/* It gets a slot, `queue_time_us` after acceptance: queued -> prefill. */
void ledger_start(struct ledger *ledger, struct ledger_request *request, int64_t queue_time_us);

enum ledger_fate { LEDGER_TOKENS_HELD, LEDGER_TOKENS_DELIVERED, LEDGER_TOKENS_DISCARDED };

/* Tokens that were generated together, and what became of them. */
struct ledger_tokens {
    uint64_t count;
    enum ledger_fate fate;
    int64_t gap_us; /* since the tokens before; -1: these are the first */
    int64_t pace_error_us;
};

/* request->ttft_us is set by the caller before the first ones. */
void ledger_tokens(struct ledger *ledger, struct ledger_request *request,
                   const struct ledger_tokens *tokens);

/* What it holds, but for the last `kept` tokens, was delivered, or was not. */
void ledger_settle_held(struct ledger *ledger, struct ledger_request *request, uint64_t kept,
                        bool delivered);

/* It ends. What it still holds is discarded. duration_us and pace_error_p99_us are set by the
 * caller before. */
void ledger_end(struct ledger *ledger, struct ledger_request *request,
                enum ledger_outcome outcome, enum ledger_detector detected_by);

/* How many slots this process has; for ledger_totals. */
void ledger_set_slots(struct ledger *ledger, uint64_t slots);

/* One duration; TTFT, gap, pace error and queue time are counted by the functions above. */
void ledger_observe(struct ledger *ledger, enum ledger_histogram histogram,
                    int64_t duration_us);

/* --- the reading side: any thread of any process --- */

void ledger_read_totals(struct ledger *ledger, struct ledger_totals *totals);

/* The request with this id that was accepted last. false: not among the last LEDGER_RING. */
bool ledger_find(struct ledger *ledger, const char *id, struct ledger_request *request);

/* The request of this route that was accepted last. false: none among the last LEDGER_RING. */
bool ledger_last(struct ledger *ledger, enum ledger_route route,
                 struct ledger_request *request);

#endif

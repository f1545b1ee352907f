/* Counting and reading; ledger_file.c holds how the counts are kept. */

#include "engine/ledger.h"

#include <stdatomic.h>
#include <string.h>

#include "engine/ledger_file.h"

static const char *const route_names[] = {"stream", "generate", "completions", "chat"};
static const char *const outcome_names[] = {"live", "done",    "cancelled", "failed",
                                            "shed", "stalled", "drained"};
static const char *const phase_names[] = {"queued", "prefill", "decode"};
static const char *const detector_names[] = {"", "hangup", "write", "abort"};

/* The file may hold anything: an index from it is checked before it is a name. */
static const char *name_of(const char *const *names, unsigned count, unsigned index)
{
    return index < count ? names[index] : "unknown";
}

const char *ledger_route_name(enum ledger_route route)
{
    return name_of(route_names, LEDGER_ROUTES, route);
}

const char *ledger_outcome_name(enum ledger_outcome outcome)
{
    return name_of(outcome_names, LEDGER_OUTCOMES, outcome);
}

const char *ledger_phase_name(enum ledger_phase phase)
{
    return name_of(phase_names, LEDGER_PHASES, phase);
}

const char *ledger_detector_name(enum ledger_detector detector)
{
    return name_of(detector_names, LEDGER_DETECTORS, detector);
}

/* The request's process may have died: nobody else will end it. */
static void settle_request(struct ledger *ledger, struct ledger_request *request)
{
    if (request->outcome != LEDGER_LIVE)
        return;
    for (unsigned i = 0; i < LEDGER_ROWS; i++) {
        struct row *row = &ledger->file->row[i];
        if (atomic_load(&row->pid) == request->pid && !ledger_row_is_dead(row))
            return;
    }
    request->outcome = LEDGER_FAILED;
    request->discarded = request->generated - request->delivered;
}

/* --- writing --- */

void ledger_accept(struct ledger *ledger, struct ledger_request *request)
{
    request->sequence = atomic_fetch_add(&ledger->file->last_sequence, 1) + 1;
    request->outcome = LEDGER_LIVE;
    request->phase = LEDGER_QUEUED;
    request->detected_by = LEDGER_NOT_DETECTED;
    request->generated = request->delivered = request->discarded = 0;
    request->ttft_us = request->duration_us = request->pace_error_p99_us = -1;
    request->pid = atomic_load_explicit(&ledger->row->pid, memory_order_relaxed);
    ledger_row_begin(ledger->row);
    ledger_row_add(ledger->row, COUNT_ACCEPTED, 1);
    ledger_row_add(ledger->row, COUNT_QUEUED, 1);
    ledger_row_commit(ledger->row);
    ledger_record_publish(ledger, request);
}

/* Between row_begin and row_commit. */
static void observe(struct ledger *ledger, enum ledger_histogram histogram, int64_t duration_us)
{
    unsigned index = ledger_histogram_index(histogram);
    int64_t counted_us = duration_us > 0 ? duration_us : 0;

    ledger_row_add(ledger->row, index + histogram_bucket(counted_us), 1);
    ledger_row_add(ledger->row, index + HISTOGRAM_BUCKETS, (uint64_t)counted_us);
}

void ledger_observe(struct ledger *ledger, enum ledger_histogram histogram, int64_t duration_us)
{
    ledger_row_begin(ledger->row);
    observe(ledger, histogram, duration_us);
    ledger_row_commit(ledger->row);
}

void ledger_set_slots(struct ledger *ledger, uint64_t slots)
{
    ledger_row_begin(ledger->row);
    atomic_store_explicit(&ledger->row->counters[COUNT_SLOTS], slots, memory_order_release);
    ledger_row_commit(ledger->row);
}

void ledger_start(struct ledger *ledger, struct ledger_request *request, int64_t queue_time_us)
{
    request->phase = LEDGER_PREFILL;
    ledger_row_begin(ledger->row);
    ledger_row_add(ledger->row, COUNT_QUEUED, (uint64_t)-1);
    ledger_row_add(ledger->row, COUNT_RUNNING, 1);
    observe(ledger, LEDGER_QUEUE_TIME, queue_time_us);
    ledger_row_commit(ledger->row);
    ledger_record_publish(ledger, request);
}

/* The token counts of a live request, without the record's lock: they are absolute figures of
 * one writer, so the worst that a reader meets is the figure of a microsecond ago. */
static void publish_tokens(struct ledger *ledger, const struct ledger_request *request)
{
    struct record *record = ledger_record_of(ledger, request->sequence);

    if (atomic_load_explicit(&record->owner, memory_order_relaxed) != request->sequence)
        return;
    ledger_record_set(record, FIELD_GENERATED, request->generated);
    ledger_record_set(record, FIELD_DELIVERED, request->delivered);
    ledger_record_set(record, FIELD_DISCARDED, request->discarded);
}

void ledger_tokens(struct ledger *ledger, struct ledger_request *request,
                   const struct ledger_tokens *tokens)
{
    bool first = request->generated == 0;

    request->generated += tokens->count;
    ledger_row_begin(ledger->row);
    ledger_row_add(ledger->row, COUNT_GENERATED, tokens->count);
    if (tokens->fate == LEDGER_TOKENS_DELIVERED) {
        request->delivered += tokens->count;
        ledger_row_add(ledger->row, COUNT_DELIVERED, tokens->count);
    } else if (tokens->fate == LEDGER_TOKENS_DISCARDED) {
        request->discarded += tokens->count;
        ledger_row_add(ledger->row, COUNT_DISCARDED, tokens->count);
    }
    observe(ledger, first ? LEDGER_TTFT : LEDGER_ITL,
            first ? request->ttft_us : tokens->gap_us);
    observe(ledger, LEDGER_PACE_ERROR, tokens->pace_error_us);
    ledger_row_commit(ledger->row);
    if (first) {
        request->phase = LEDGER_DECODE;
        ledger_record_publish(ledger, request);
    } else {
        publish_tokens(ledger, request);
    }
}

void ledger_settle_held(struct ledger *ledger, struct ledger_request *request, uint64_t kept,
                        bool delivered)
{
    uint64_t held = request->generated - request->delivered - request->discarded;

    if (held <= kept)
        return;
    held -= kept;
    *(delivered ? &request->delivered : &request->discarded) += held;
    ledger_row_begin(ledger->row);
    ledger_row_add(ledger->row, delivered ? COUNT_DELIVERED : COUNT_DISCARDED, held);
    ledger_row_commit(ledger->row);
    publish_tokens(ledger, request);
}

void ledger_end(struct ledger *ledger, struct ledger_request *request,
                enum ledger_outcome outcome, enum ledger_detector detected_by)
{
    unsigned gauge = request->phase == LEDGER_QUEUED ? COUNT_QUEUED : COUNT_RUNNING;

    ledger_settle_held(ledger, request, 0, false);
    request->outcome = outcome;
    request->detected_by = detected_by;
    ledger_row_begin(ledger->row);
    ledger_row_add(ledger->row, gauge, (uint64_t)-1);
    ledger_row_add(ledger->row, ledger_ended_index(request->route, outcome), 1);
    ledger_row_commit(ledger->row);
    ledger_record_publish(ledger, request);
}

/* --- reading --- */

static void add_histograms(struct ledger_totals *totals, const uint64_t counters[COUNTERS])
{
    for (unsigned i = 0; i < LEDGER_HISTOGRAMS; i++) {
        const uint64_t *from = &counters[ledger_histogram_index(i)];
        for (unsigned bucket = 0; bucket < HISTOGRAM_BUCKETS; bucket++)
            totals->histograms[i].buckets[bucket] += from[bucket];
        totals->histograms[i].sum_us += from[HISTOGRAM_BUCKETS];
    }
}

void ledger_read_totals(struct ledger *ledger, struct ledger_totals *totals)
{
    memset(totals, 0, sizeof(*totals));
    for (unsigned i = 0; i < LEDGER_ROWS; i++) {
        struct row *row = &ledger->file->row[i];
        uint64_t counters[COUNTERS];
        if (atomic_load_explicit(&row->sequence, memory_order_acquire) == 0)
            continue; /* never written to */
        ledger_row_read(row, counters);
        totals->processes += counters[COUNT_SLOTS] > 0;
        totals->slots += counters[COUNT_SLOTS];
        totals->accepted += counters[COUNT_ACCEPTED];
        totals->queued += counters[COUNT_QUEUED];
        totals->running += counters[COUNT_RUNNING];
        totals->generated += counters[COUNT_GENERATED];
        totals->delivered += counters[COUNT_DELIVERED];
        totals->discarded += counters[COUNT_DISCARDED];
        for (unsigned route = 0; route < LEDGER_ROUTES; route++) {
            for (unsigned outcome = 0; outcome < LEDGER_OUTCOMES; outcome++)
                totals->ended[route][outcome] += counters[ledger_ended_index(route, outcome)];
        }
        add_histograms(totals, counters);
    }
    totals->held = totals->generated - totals->delivered - totals->discarded;
}

bool ledger_find(struct ledger *ledger, const char *id, struct ledger_request *request)
{
    uint64_t last = atomic_load(&ledger->file->last_sequence);

    for (uint64_t back = 0; back < LEDGER_RING && back < last; back++) {
        if (ledger_record_read(ledger, last - back, request) && strcmp(request->id, id) == 0) {
            settle_request(ledger, request);
            return true;
        }
    }
    return false;
}

bool ledger_last(struct ledger *ledger, enum ledger_route route, struct ledger_request *request)
{
    uint64_t last = atomic_load(&ledger->file->last_sequence);

    for (uint64_t back = 0; back < LEDGER_RING && back < last; back++) {
        if (ledger_record_read(ledger, last - back, request) && request->route == route) {
            settle_request(ledger, request);
            return true;
        }
    }
    return false;
}

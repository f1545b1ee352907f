#ifndef RUNNEL_LOAD_FIGURES_H
#define RUNNEL_LOAD_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

#include "gen/load/distribution.h"
#include "gen/load/options.h"
#include "gen/load/verification.h"

/*
 * What a run has counted and measured. The memory does not depend on how long it runs or how
 * many tokens come.
 *
 * Counts are of all requests. Distributions are in microseconds, of the window alone: from the
 * end of the warm-up to the end of --duration. ttft, tpot and total are of what should have
 * started in it, the others of what came in it. Slow readers are left out: they make their own
 * delays.
 *
 * - ttft: the first token, since the request should have started
 * - ttft_sent: the first token, since it was sent
 * - itl: between a token and the one before it, by the reads that completed them; 0 when they
 *   came together
 * - tpot: (last token - first token) / (tokens - 1), of complete streams
 * - total: [DONE], since the request should have started, of complete streams
 * - lateness: how much longer a gap was than itl_ms (signed); only when itl_ms is known, and
 *   without jitter
 * - pace: sent - due by the server's stamps (stamps=1): the server's own part
 * - path: arrival - sent: the path's and this client's part. The clocks' offset is taken out by
 *   the smallest difference of the run, so the quickest token has 0
 * - due: arrival - due: the two together
 * - turn: for each read, how long the loop was at work in this turn and the one before: by so
 *   much at most is its time later than its bytes
 * - start: how late a request started, by this client's doing (or --streams')
 */

enum failure {
    FAILURE_CONNECT,
    FAILURE_HTTP,       /* a status that is not 200 */
    FAILURE_NOT_STREAM, /* 200, but no text/event-stream */
    FAILURE_TRUNCATED,  /* ended without [DONE] */
    FAILURE_CUT,        /* the connection broke */
    FAILURE_ERROR,      /* an error event */
    FAILURE_BAD_JSON,
    FAILURE_WRONG_TOKEN, /* --verify, or something after [DONE] */
    FAILURE_TIMEOUT,
    FAILURE_TOO_LONG, /* an event above READER_EVENT_MAX_BYTES */
    FAILURE_OTHER,
    FAILURES,
};

enum { EXAMPLES = 8, EXAMPLE_MAX_BYTES = 320, HTTP_STATUSES = 600 };

/* One of the first requests that failed. */
struct example {
    uint64_t number;
    char id[80];
    enum failure failure;
    char why[EXAMPLE_MAX_BYTES];
};

struct figures {
    int64_t began_us, ended_us;
    int64_t window_start_us, window_end_us; /* what is measured lies between them */

    /* requests; started = completed + aborted + interrupted + failed + open */
    uint64_t started, completed, aborted, interrupted, failed;
    uint64_t failed_by[FAILURES];
    uint64_t wrong_by[VERIFICATION_SHORT + 1];
    uint64_t http_status[HTTP_STATUSES];
    uint64_t open, open_max;
    uint64_t slow;    /* of the started */
    uint64_t delayed; /* starts that --streams put off, in the open loop */
    uint64_t verified;

    /* what came */
    uint64_t tokens, token_events, reads, bytes;
    uint64_t gap_events; /* token events after the first of their stream, as measured in itl */
    uint64_t coalesced;  /* those of them that came in the same read as the one before */

    /* in the window */
    uint64_t window_tokens, window_completed, window_good;

    struct distribution of[FIGURES];
    bool has_path_base;
    int64_t path_base_us;  /* the first difference of clocks; the others are relative to it */
    int64_t asked_ttft_us; /* what all requests asked for; -1: nothing, or different things */
    bool has_asked_ttft;

    struct example examples[EXAMPLES];
    unsigned example_count;

    /* This process, in the window: from its first turn to its last. `wait` is for a processor;
     * -1: the kernel does not tell. */
    struct process_time {
        int64_t at_us, user_us, system_us, wait_us;
        uint64_t tokens; /* all that had come by then */
    } cpu_first, cpu_last;
    uint64_t memory_max_kib;
    bool was_interrupted;
};

/* 0, or -1 when there is no memory. */
int figures_init(struct figures *figures);
void figures_free(struct figures *figures);

void figures_start(struct figures *figures, const struct options *options, int64_t now_us);

/* To be called in each turn of the loop: marks where the window begins and ends. */
void figures_turn(struct figures *figures, int64_t now_us);

/* Stop the clocks. */
void figures_stop(struct figures *figures, int64_t now_us);

/* What this process used in the window; all 0 when there was none. */
struct process_time figures_used(const struct figures *figures);

void figures_fail(struct figures *figures, enum failure failure, uint64_t number,
                  const char *id, const char *why);

/* The two clocks of a stamped event; see path and due above. */
void figures_add_stamps(struct figures *figures, int64_t arrived_us, int64_t sent_us,
                        int64_t due_us);

/* What is taken off the values of a distribution: the clocks' offset, for path and due; else 0.
 */
int64_t figures_offset_us(const struct figures *figures, enum figure figure);

/* "connect", "http", .. as the JSON report names them. */
const char *failure_name(enum failure failure);

#endif

#ifndef RUNNEL_ENGINE_GENERATION_H
#define RUNNEL_ENGINE_GENERATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "engine/fault.h"
#include "engine/ledger.h"
#include "engine/timing.h"

/*
 * One request on its way through the engine:
 *
 *     queued -> prefill -> decode -> done | cancelled | failed | shed | stalled | drained
 *
 * A generation knows neither HTTP nor libfcgi. It asks an encoder for bytes and gives them to a
 * sink; both are tables of functions, so it runs the same under a test's fake ones. Every
 * transition is told to the ledger here and nowhere else. Engine thread only.
 */

enum sink_peer { SINK_PRESENT, SINK_HUNG_UP, SINK_ABORTED };

/* Where the bytes go. The functions never block, whatever the peer does. */
struct sink_ops {
    /* Buffer some bytes, at most SINK_WRITE_MAX_BYTES between two flushes. 0 or -1. */
    int (*write)(void *context, const char *bytes, size_t len);
    /* Hand what is buffered to the kernel. 0, or -1: final, and so is every later call. */
    int (*flush)(void *context);
    /* Whether a write of SINK_WRITE_MAX_BYTES and its flush would go through at once. */
    bool (*writable)(void *context);
    /* It will be written to in a moment: memory may be brought near. */
    void (*soon)(const void *context);
    /* Whether the peer has left or asked to stop. */
    enum sink_peer (*peer)(void *context);
    /* The reply is complete: flush it with its end. 0 or -1. */
    int (*end)(void *context);
    /* Free the sink. Before `end` it cuts the reply off. */
    void (*release)(void *context);
    /* For epoll; -1 where there is none. */
    int (*descriptor)(void *context);
};

enum { SINK_WRITE_MAX_BYTES = 8000 };

struct sink {
    const struct sink_ops *ops;
    void *context; /* owned by the generation until release */
};

/* Tokens that are generated together, in one event. */
struct token_span {
    uint64_t first; /* index of the first, from 0 over all connections of a resumed stream */
    uint64_t count;
    int64_t due_us, now_us; /* monotonic */

    /* The encoder's answer. Left as it is: all were taken, and nothing is kept back. */
    bool stops;    /* the reply ends with the last of these; `count` may have been lowered */
    uint64_t kept; /* tokens, the latest, that no byte was appended for, nor will be for now */
};

/*
 * What the bytes are. Each appends to `out` and returns 0, or -1 when it cannot, which fails
 * the request. A reply in one piece appends nothing before `end`; what it keeps meanwhile is
 * its own. A stream may keep tokens back until it knows more (a stop sequence may be
 * beginning).
 */
struct encoder_ops {
    /* Sent when the request has been accepted. */
    int (*head)(void *context, struct buffer *out);
    int (*tokens)(void *context, struct buffer *out, struct token_span *span);
    /* A sign of life that carries nothing; NULL where there is none. */
    int (*ping)(void *context, struct buffer *out);
    /* The last bytes of the reply, for each outcome that still has somebody to tell. */
    int (*end)(void *context, struct buffer *out, enum ledger_outcome outcome);
    void (*free)(void *context);
};

struct encoder {
    const struct encoder_ops *ops;
    void *context; /* owned by the generation */
};

/* What one request wants of the engine, beside its encoder and sink. */
struct generation_plan {
    struct timing timing;
    uint64_t first;     /* index of the first token: above 0 when a stream is resumed */
    uint64_t chunk;     /* tokens an event, at least 1 */
    struct fault fault; /* in the same indexes */
    int64_t ping_us;    /* a ping when nothing was sent for so long; 0: none */
    size_t piece_bytes; /* most bytes a write; 0: SINK_WRITE_MAX_BYTES */
};

/* In the order of use, not of meaning: a token touches the first six cache lines and one of the
 * histogram, and each has been out of the cache since the token before. */
struct generation {
    /* the pacer's own */
    int64_t wake_us;
    uint64_t order; /* first come, first served among equal wake times */
    int64_t blocked_since_us;
    uint32_t heap_ticket;
    bool in_heap, in_queue, has_slot, is_watched, is_blocked;

    /* the engine's own */
    bool is_head_pending; /* `pending` begins with the head, which is not cut into pieces */
    bool lost;    /* the client has gone, but cancel handling is off: generate for nobody */
    bool stopped; /* the encoder has said that no token follows */
    enum ledger_outcome ending; /* set once `pending` holds the reply's last bytes */
    uint64_t kept;              /* tokens that the encoder keeps back */
    int64_t due_us;             /* of the next token; CLOCK_NEVER while queued */
    int64_t last_sent_us;       /* anything */
    int64_t last_tokens_us;     /* tokens */
    struct buffer pending; /* bytes that the sink has not taken; empty but for slow readers */

    /* set by whoever submits it, with ledger.id, .route, .requested and .accepted_wall_us */
    struct encoder encoder;
    struct sink sink;
    struct generation_plan plan;
    struct ledger_request ledger;
    int64_t accepted_us; /* monotonic: when the request was complete */

    uint32_t pace_errors[HISTOGRAM_BUCKETS];
    struct generation *next, *previous; /* in the queue */
};

struct generation_context {
    struct ledger *ledger;
    struct buffer *scratch; /* of the engine thread: a token's bytes while they are sent */
    bool ignore_cancel;
    size_t running; /* generations that have a slot, this one among them */
};

/* What comes next for a generation that was stepped. */
enum generation_step {
    STEP_WAIT,     /* nothing to do before generation_wake_us */
    STEP_BLOCKED,  /* the sink takes no more at the moment */
    STEP_SLOTLESS, /* generated to its end; its last bytes wait for the sink */
    STEP_ENDED,    /* told to the ledger; destroy it */
};

/* Accept it, as queued: counts it and sends the head. */
enum generation_step generation_accept(struct generation *generation,
                                       const struct generation_context *context);

/* Refuse it, before or after the wait, with outcome shed. */
void generation_refuse(struct generation *generation, const struct generation_context *context);

/* It has a slot from now on. */
void generation_start(struct generation *generation, const struct generation_context *context,
                      int64_t now_us);

/* Send what is pending, then at most one event that is due. */
enum generation_step generation_step(struct generation *generation,
                                     const struct generation_context *context, int64_t now_us);

/* When it next has something to send; CLOCK_NEVER: queued, and without pings. */
int64_t generation_wake_us(const struct generation *generation);

/* End it now with an outcome that the client may still be told (drained), or cut it off. */
void generation_stop(struct generation *generation, const struct generation_context *context,
                     enum ledger_outcome outcome, enum ledger_detector detected_by,
                     int64_t now_us);

/* Free it, its encoder and its sink; a reply that has not ended is cut off. */
void generation_destroy(struct generation *generation);

/* A new one with nothing in it; NULL without memory. */
struct generation *generation_create(void);

#endif

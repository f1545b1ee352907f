/*
 * Slots, queue, deadlines and back-pressure; the header says what is fair. A live generation is
 * in the queue while it has no slot, and in the heap when something is due at wake_us (a token,
 * a ping, the stall timeout): in one or both, and in neither only while it is being stepped.
 */

#include "engine/pacer.h"

#include <stdlib.h>

#include "engine/heap.h"

enum {
    SCRATCH_MAX_BYTES = 1 << 20, /* one event, its tokens escaped */
    /* Generations a turn: about a millisecond of work between two looks at the descriptors. */
    TURN_MAX_STEPS = 512,
    /* Generations that fit the nearest cache together, and the parts of one that a token uses.
     */
    FETCH_COUNT = 8,
    CACHE_LINE_BYTES = 64,
    FETCH_BYTES = 6 * CACHE_LINE_BYTES,
    FETCH_CONTEXT_BYTES = 2 * CACHE_LINE_BYTES,
};

struct pacer {
    struct pacer_options options;
    struct generation_context context;
    struct buffer scratch;
    struct heap heap;
    struct generation *queue_first, *queue_last;
    size_t queue_count;
    size_t live_count, slots_used;
    uint64_t next_order;
    bool draining;
    struct generation *due[TURN_MAX_STEPS]; /* of this turn */
};

struct pacer *pacer_create(const struct pacer_options *options)
{
    struct pacer *pacer = calloc(1, sizeof(*pacer));

    if (pacer == NULL)
        return NULL;
    pacer->options = *options;
    buffer_init(&pacer->scratch, SCRATCH_MAX_BYTES);
    pacer->context = (struct generation_context){
        .ledger = options->ledger,
        .scratch = &pacer->scratch,
        .ignore_cancel = options->ignore_cancel,
    };
    ledger_set_slots(options->ledger, options->slots);
    return pacer;
}

void pacer_destroy(struct pacer *pacer)
{
    if (pacer == NULL)
        return;
    pacer_stop(pacer);
    heap_free(&pacer->heap);
    buffer_free(&pacer->scratch);
    free(pacer);
}

size_t pacer_live(const struct pacer *pacer)
{
    return pacer->live_count;
}

static int64_t now_us(const struct pacer *pacer)
{
    return clock_now_us(&pacer->options.clock);
}

/* --- the queue --- */

static void enqueue(struct pacer *pacer, struct generation *generation)
{
    generation->next = NULL;
    generation->previous = pacer->queue_last;
    if (pacer->queue_last != NULL)
        pacer->queue_last->next = generation;
    else
        pacer->queue_first = generation;
    pacer->queue_last = generation;
    pacer->queue_count++;
    generation->in_queue = true;
}

static void dequeue(struct pacer *pacer, struct generation *generation)
{
    if (generation->previous != NULL)
        generation->previous->next = generation->next;
    else
        pacer->queue_first = generation->next;
    if (generation->next != NULL)
        generation->next->previous = generation->previous;
    else
        pacer->queue_last = generation->previous;
    pacer->queue_count--;
    generation->in_queue = false;
}

/* --- one generation --- */

static void start(struct pacer *pacer, struct generation *generation, int64_t at_us)
{
    pacer->slots_used++;
    pacer->context.running = pacer->slots_used;
    generation->has_slot = true;
    generation_start(generation, &pacer->context, at_us);
}

static void wake_at(struct pacer *pacer, struct generation *generation, int64_t at_us)
{
    generation->wake_us = at_us;
    generation->order = pacer->next_order++;
    heap_push(&pacer->heap, generation); /* room was reserved by pacer_submit */
}

/* Its slot goes to the one that has waited longest. */
static void give_slot_back(struct pacer *pacer, struct generation *generation)
{
    if (!generation->has_slot)
        return;
    generation->has_slot = false;
    pacer->slots_used--;
    pacer->context.running = pacer->slots_used;

    struct generation *next = pacer->queue_first;
    if (next == NULL)
        return;
    int64_t now = now_us(pacer);
    dequeue(pacer, next);
    if (next->in_heap)
        heap_remove(&pacer->heap, next);
    start(pacer, next, now);
    wake_at(pacer, next, now);
}

/* It has ended, and the ledger knows. */
static void forget(struct pacer *pacer, struct generation *generation)
{
    if (generation->in_queue)
        dequeue(pacer, generation);
    if (generation->in_heap)
        heap_remove(&pacer->heap, generation);
    if (generation->is_watched)
        pacer->options.watcher.remove(pacer->options.watcher.context, generation);
    give_slot_back(pacer, generation);
    if (pacer->options.on_end != NULL)
        pacer->options.on_end(&generation->ledger);
    pacer->live_count--;
    generation_destroy(generation);
}

static void stop(struct pacer *pacer, struct generation *generation,
                 enum ledger_outcome outcome, enum ledger_detector detected_by)
{
    generation_stop(generation, &pacer->context, outcome, detected_by, now_us(pacer));
    forget(pacer, generation);
}

static void want_writable(struct pacer *pacer, struct generation *generation, bool wanted)
{
    if (generation->is_watched)
        pacer->options.watcher.want_writable(pacer->options.watcher.context, generation,
                                             wanted);
}

/* The sink takes no more: wait for it, but not for ever. */
static void block(struct pacer *pacer, struct generation *generation, int64_t now)
{
    if (!generation->is_blocked) {
        generation->is_blocked = true;
        generation->blocked_since_us = now;
        want_writable(pacer, generation, true);
    }
    /* As long as some of it is taken, nobody refuses to read. */
    int64_t since_us = generation->blocked_since_us;
    if (since_us < generation->last_sent_us)
        since_us = generation->last_sent_us;
    int64_t stalled_at_us = since_us + pacer->options.stall_timeout_us;
    if (now >= stalled_at_us)
        stop(pacer, generation, LEDGER_STALLED, LEDGER_NOT_DETECTED);
    else
        wake_at(pacer, generation, stalled_at_us);
}

static void unblock(struct pacer *pacer, struct generation *generation)
{
    if (!generation->is_blocked)
        return;
    generation->is_blocked = false;
    want_writable(pacer, generation, false);
}

/* Give it its turn. */
static void run(struct pacer *pacer, struct generation *generation)
{
    int64_t now = now_us(pacer);
    enum generation_step step;

    /* Queued, taken out for a ping, and given a slot by one that ended in the same turn. */
    if (generation->in_heap)
        heap_remove(&pacer->heap, generation);
    while ((step = generation_step(generation, &pacer->context, now)) == STEP_SLOTLESS)
        give_slot_back(pacer, generation);
    switch (step) {
    case STEP_ENDED:
        forget(pacer, generation);
        break;
    case STEP_BLOCKED:
        block(pacer, generation, now);
        break;
    default:
        unblock(pacer, generation);
        int64_t wake_us = generation_wake_us(generation);
        if (wake_us != CLOCK_NEVER)
            wake_at(pacer, generation, wake_us > now ? wake_us : now);
    }
}

static void fetch(const void *memory, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += CACHE_LINE_BYTES)
        __builtin_prefetch((const char *)memory + at, 1);
}

/*
 * Have the processor bring what some generations need while it does something else. Among a
 * thousand streams each token finds its twenty cache lines cold; waiting for them one after the
 * other was a twelfth of this thread's time a token (docs/performance.md).
 */
static void fetch_all(struct generation *const *due, size_t count)
{
    for (size_t i = 0; i < count; i++)
        fetch(due[i], FETCH_BYTES);
    for (size_t i = 0; i < count; i++) {
        fetch(due[i]->encoder.context, FETCH_CONTEXT_BYTES);
        fetch(due[i]->sink.context, FETCH_CONTEXT_BYTES);
    }
    for (size_t i = 0; i < count; i++)
        due[i]->sink.ops->soon(due[i]->sink.context);
}

/* --- what the loop calls --- */

static void refuse(struct pacer *pacer, struct generation *generation)
{
    generation_refuse(generation, &pacer->context);
    forget(pacer, generation);
}

void pacer_submit(struct pacer *pacer, struct generation *generation)
{
    const struct pacer_watcher *watcher = &pacer->options.watcher;
    bool has_slot = pacer->slots_used < pacer->options.slots;

    pacer->live_count++;
    if (pacer->draining || (!has_slot && pacer->queue_count >= pacer->options.queue) ||
        heap_reserve(&pacer->heap, pacer->live_count) != 0 ||
        watcher->add(watcher->context, generation) != 0) {
        refuse(pacer, generation);
        return;
    }
    generation->is_watched = true;
    if (generation_accept(generation, &pacer->context) == STEP_ENDED) {
        forget(pacer, generation);
        return;
    }
    /* It may have left while it waited to be taken in: such a client costs no slot. */
    enum sink_peer peer = generation->sink.ops->peer(generation->sink.context);
    if (peer != SINK_PRESENT && !pacer->options.ignore_cancel) {
        stop(pacer, generation, LEDGER_CANCELLED,
             peer == SINK_ABORTED ? LEDGER_BY_ABORT : LEDGER_BY_HANGUP);
        return;
    }
    if (has_slot)
        start(pacer, generation, generation->accepted_us);
    else
        enqueue(pacer, generation);
    run(pacer, generation); /* sends the head */
}

int64_t pacer_turn(struct pacer *pacer)
{
    int64_t now = now_us(pacer);
    size_t count = 0;

    /* Taken out first: whoever queues up again during the turn waits for the next one. */
    while (count < TURN_MAX_STEPS && heap_first_us(&pacer->heap) <= now) {
        struct generation *first = heap_first(&pacer->heap);
        heap_remove(&pacer->heap, first);
        pacer->due[count++] = first;
    }
    for (size_t i = 0; i < count; i++) {
        if (i % FETCH_COUNT == 0)
            fetch_all(&pacer->due[i], count - i < FETCH_COUNT ? count - i : FETCH_COUNT);
        run(pacer, pacer->due[i]);
    }
    return heap_first_us(&pacer->heap);
}

void pacer_peer_left(struct pacer *pacer, struct generation *generation,
                     enum ledger_detector detected_by, int64_t seen_us)
{
    if (pacer->options.ignore_cancel)
        return;
    stop(pacer, generation, LEDGER_CANCELLED, detected_by);
    ledger_observe(pacer->options.ledger, LEDGER_CANCEL_LATENCY, now_us(pacer) - seen_us);
}

void pacer_writable(struct pacer *pacer, struct generation *generation)
{
    if (generation->is_blocked)
        run(pacer, generation);
}

void pacer_drain(struct pacer *pacer)
{
    pacer->draining = true;
}

void pacer_stop(struct pacer *pacer)
{
    pacer->draining = true;
    while (pacer->queue_first != NULL)
        stop(pacer, pacer->queue_first, LEDGER_DRAINED, LEDGER_NOT_DETECTED);
    while (pacer->heap.count > 0)
        stop(pacer, heap_first(&pacer->heap), LEDGER_DRAINED, LEDGER_NOT_DETECTED);
}

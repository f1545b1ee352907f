#ifndef RUNNEL_ENGINE_HEAP_H
#define RUNNEL_ENGINE_HEAP_H

#include <stddef.h>
#include <stdint.h>

#include "engine/generation.h"

/*
 * A heap of generations by wake_us, then by order. One that leaves early costs no search. The
 * heap does not own them.
 *
 * Each item has four children, keys stand in the heap's own array, and where an item stands is
 * in another: moving items reads and writes nothing of their generations, which lie all over
 * the memory and have been out of the cache since their last token.
 */

struct heap_item {
    int64_t wake_us;
    uint64_t order;
    struct generation *generation;
    uint32_t ticket; /* of generation->heap_ticket */
};

struct heap {
    struct heap_item *items;
    uint32_t *places; /* by ticket: the index in `items`, or the next ticket that is free */
    uint32_t free_ticket;
    size_t count, cap;
};

enum { HEAP_MAX_COUNT = 1 << 30 };

/* Room for `count` in all, so that heap_push cannot fail. 0 or -1 without memory. */
int heap_reserve(struct heap *heap, size_t count);

/* Room must have been reserved; wake_us and order stay as they are while it is inside. */
void heap_push(struct heap *heap, struct generation *generation);

/* The first one to wake, still inside; NULL when there is none. */
struct generation *heap_first(const struct heap *heap);

/* When that one wakes; CLOCK_NEVER when there is none. */
int64_t heap_first_us(const struct heap *heap);

void heap_remove(struct heap *heap, struct generation *generation);

void heap_free(struct heap *heap);

#endif

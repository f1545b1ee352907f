#ifndef RUNNEL_ENGINE_HEAP_H
#define RUNNEL_ENGINE_HEAP_H

#include <stddef.h>

#include "engine/generation.h"

/*
 * A binary heap of generations by wake_us, then by order. Each knows its place (heap_index), so
 * one that leaves early costs no search. The heap does not own them.
 */

struct heap {
    struct generation **items;
    size_t count, cap;
};

/* Room for `count` in all, so that heap_push cannot fail. 0 or -1 without memory. */
int heap_reserve(struct heap *heap, size_t count);

/* Room must have been reserved. */
void heap_push(struct heap *heap, struct generation *generation);

/* The first one to wake, still inside; NULL when there is none. */
struct generation *heap_first(const struct heap *heap);

void heap_remove(struct heap *heap, struct generation *generation);

void heap_free(struct heap *heap);

#endif

/* A binary heap of generations, ordered by deadline. */

#include "engine/heap.h"

#include <stdint.h>
#include <stdlib.h>

static bool wakes_before(const struct generation *a, const struct generation *b)
{
    return a->wake_us != b->wake_us ? a->wake_us < b->wake_us : a->order < b->order;
}

static void place(struct heap *heap, size_t index, struct generation *generation)
{
    heap->items[index] = generation;
    generation->heap_index = index;
}

static void sift_up(struct heap *heap, size_t index)
{
    struct generation *moving = heap->items[index];

    while (index > 0 && wakes_before(moving, heap->items[(index - 1) / 2])) {
        place(heap, index, heap->items[(index - 1) / 2]);
        index = (index - 1) / 2;
    }
    place(heap, index, moving);
}

static void sift_down(struct heap *heap, size_t index)
{
    struct generation *moving = heap->items[index];

    for (;;) {
        size_t child = 2 * index + 1;
        if (child >= heap->count)
            break;
        if (child + 1 < heap->count && wakes_before(heap->items[child + 1], heap->items[child]))
            child++;
        if (!wakes_before(heap->items[child], moving))
            break;
        place(heap, index, heap->items[child]);
        index = child;
    }
    place(heap, index, moving);
}

int heap_reserve(struct heap *heap, size_t count)
{
    if (count <= heap->cap)
        return 0;
    size_t cap = heap->cap > 0 ? heap->cap : 64;
    while (cap < count)
        cap *= 2;
    struct generation **grown = reallocarray(heap->items, cap, sizeof(struct generation *));
    if (grown == NULL)
        return -1;
    heap->items = grown;
    heap->cap = cap;
    return 0;
}

void heap_push(struct heap *heap, struct generation *generation)
{
    heap->items[heap->count] = generation;
    heap->count++;
    sift_up(heap, heap->count - 1);
    generation->in_heap = true;
}

struct generation *heap_first(const struct heap *heap)
{
    return heap->count > 0 ? heap->items[0] : NULL;
}

void heap_remove(struct heap *heap, struct generation *generation)
{
    size_t index = generation->heap_index;
    struct generation *last = heap->items[heap->count - 1];

    heap->count--;
    generation->in_heap = false;
    if (last == generation)
        return;
    place(heap, index, last);
    sift_up(heap, index);
    sift_down(heap, last->heap_index);
}

void heap_free(struct heap *heap)
{
    free(heap->items);
    *heap = (struct heap){0};
}

/* A four-ary heap of deadlines; the header says why it keeps away from the generations. */

#include "engine/heap.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/clock.h"

enum { CHILDREN = 4, FIRST_CAPACITY = 64 };

static bool wakes_before(const struct heap_item *a, const struct heap_item *b)
{
    return a->wake_us != b->wake_us ? a->wake_us < b->wake_us : a->order < b->order;
}

static void place(struct heap *heap, size_t index, struct heap_item item)
{
    heap->items[index] = item;
    heap->places[item.ticket] = (uint32_t)index;
}

static void sift_up(struct heap *heap, size_t index)
{
    struct heap_item moving = heap->items[index];

    while (index > 0) {
        size_t parent = (index - 1) / CHILDREN;
        if (!wakes_before(&moving, &heap->items[parent]))
            break;
        place(heap, index, heap->items[parent]);
        index = parent;
    }
    place(heap, index, moving);
}

static void sift_down(struct heap *heap, size_t index)
{
    struct heap_item moving = heap->items[index];

    for (;;) {
        size_t child = CHILDREN * index + 1;
        size_t end = child + CHILDREN < heap->count ? child + CHILDREN : heap->count;
        size_t earliest = child;
        if (child >= heap->count)
            break;
        while (++child < end) {
            if (wakes_before(&heap->items[child], &heap->items[earliest]))
                earliest = child;
        }
        if (!wakes_before(&heap->items[earliest], &moving))
            break;
        place(heap, index, heap->items[earliest]);
        index = earliest;
    }
    place(heap, index, moving);
}

int heap_reserve(struct heap *heap, size_t count)
{
    size_t cap = heap->cap > 0 ? heap->cap : FIRST_CAPACITY;

    if (count <= heap->cap)
        return 0;
    if (count > HEAP_MAX_COUNT)
        return -1;
    while (cap < count)
        cap *= 2;
    struct heap_item *items = reallocarray(heap->items, cap, sizeof(*items));
    if (items == NULL)
        return -1;
    heap->items = items;
    uint32_t *places = reallocarray(heap->places, cap, sizeof(*places));
    if (places == NULL)
        return -1;
    heap->places = places;
    /* The new tickets before those that were free. */
    for (size_t ticket = heap->cap; ticket < cap; ticket++)
        places[ticket] = ticket + 1 < cap ? (uint32_t)ticket + 1 : heap->free_ticket;
    heap->free_ticket = (uint32_t)heap->cap;
    heap->cap = cap;
    return 0;
}

void heap_push(struct heap *heap, struct generation *generation)
{
    uint32_t ticket = heap->free_ticket;

    heap->free_ticket = heap->places[ticket];
    generation->heap_ticket = ticket;
    generation->in_heap = true;
    heap->items[heap->count] = (struct heap_item){.wake_us = generation->wake_us,
                                                  .order = generation->order,
                                                  .generation = generation,
                                                  .ticket = ticket};
    heap->count++;
    sift_up(heap, heap->count - 1);
}

struct generation *heap_first(const struct heap *heap)
{
    return heap->count > 0 ? heap->items[0].generation : NULL;
}

int64_t heap_first_us(const struct heap *heap)
{
    return heap->count > 0 ? heap->items[0].wake_us : CLOCK_NEVER;
}

void heap_remove(struct heap *heap, struct generation *generation)
{
    uint32_t ticket = generation->heap_ticket;
    size_t index = heap->places[ticket];
    struct heap_item last = heap->items[heap->count - 1];

    heap->places[ticket] = heap->free_ticket;
    heap->free_ticket = ticket;
    heap->count--;
    generation->in_heap = false;
    if (last.ticket == ticket)
        return;
    place(heap, index, last);
    sift_up(heap, index);
    sift_down(heap, heap->places[last.ticket]);
}

void heap_free(struct heap *heap)
{
    free(heap->items);
    free(heap->places);
    *heap = (struct heap){0};
}

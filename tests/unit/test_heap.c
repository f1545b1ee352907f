/*
 * heap: against a plain sorted order, under many random pushes and removals.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/heap.h"

enum { GENERATIONS = 300 };

static uint64_t next_random(uint64_t *random)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *random >> 33;
}

/* The one that must come first, by looking at all. */
static struct generation *first_of(struct generation *all, size_t count)
{
    struct generation *first = NULL;

    for (size_t i = 0; i < count; i++) {
        struct generation *one = &all[i];
        if (one->in_heap && (first == NULL || one->wake_us < first->wake_us ||
                             (one->wake_us == first->wake_us && one->order < first->order)))
            first = one;
    }
    return first;
}

static void check_places(const struct heap *heap)
{
    for (size_t i = 0; i < heap->count; i++) {
        const struct generation *generation = heap->items[i].generation;
        assert_true(generation->in_heap);
        assert_int_equal(heap->items[i].ticket, generation->heap_ticket);
        assert_int_equal(heap->places[generation->heap_ticket], i);
        assert_int_equal(heap->items[i].wake_us, generation->wake_us);
    }
}

static void test_random_operations(void **state)
{
    struct generation *all = calloc(GENERATIONS, sizeof(*all));
    struct heap heap = {0};
    uint64_t random = 7;
    uint64_t order = 0;
    size_t inside = 0;

    (void)state;
    assert_non_null(all);
    assert_int_equal(heap_reserve(&heap, GENERATIONS), 0);
    assert_null(heap_first(&heap));
    for (int round = 0; round < 100000; round++) {
        struct generation *one = &all[next_random(&random) % GENERATIONS];
        /* Long phases of growing and of shrinking. */
        bool grow = next_random(&random) % 8 < ((round / 2000) % 2 == 0 ? 6 : 2);

        if (one->in_heap && !grow) {
            heap_remove(&heap, one);
            assert_false(one->in_heap);
            inside--;
        } else if (!one->in_heap && grow) {
            one->wake_us = (int64_t)(next_random(&random) % 50); /* many are equal */
            one->order = order++;
            heap_push(&heap, one);
            inside++;
        }
        assert_int_equal(heap.count, inside);
        assert_ptr_equal(heap_first(&heap), first_of(all, GENERATIONS));
        if (round % 100 == 0)
            check_places(&heap);
    }
    check_places(&heap);
    heap_free(&heap);
    free(all);
}

/* Equal wake times: first come, first served; else by time. */
static void test_comes_out_in_order(void **state)
{
    static const int64_t wakes[] = {5, 3, 5, 1, 3, 3, 9, 1, 5, INT64_MAX, 0, -7, 3};
    enum { COUNT = sizeof(wakes) / sizeof(wakes[0]) };
    struct generation *all = calloc(COUNT, sizeof(*all));
    struct heap heap = {0};
    const struct generation *previous = NULL;

    (void)state;
    assert_non_null(all);
    assert_int_equal(heap_reserve(&heap, COUNT), 0);
    for (size_t i = 0; i < COUNT; i++) {
        all[i].wake_us = wakes[i];
        all[i].order = i;
        heap_push(&heap, &all[i]);
    }
    for (size_t i = 0; i < COUNT; i++) {
        struct generation *first = heap_first(&heap);
        assert_non_null(first);
        heap_remove(&heap, first);
        if (previous != NULL)
            assert_true(
                previous->wake_us < first->wake_us ||
                (previous->wake_us == first->wake_us && previous->order < first->order));
        previous = first;
    }
    assert_null(heap_first(&heap));
    heap_free(&heap);
    free(all);
}

/* Growing moves the array, not its order. */
static void test_reserve_keeps_what_is_inside(void **state)
{
    enum { COUNT = 1000 };
    struct generation *all = calloc(COUNT, sizeof(*all));
    struct heap heap = {0};

    (void)state;
    assert_non_null(all);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(heap_reserve(&heap, i + 1), 0);
        assert_true(heap.cap >= i + 1);
        all[i].wake_us = (int64_t)(COUNT - i);
        heap_push(&heap, &all[i]);
        assert_ptr_equal(heap_first(&heap), &all[i]);
    }
    check_places(&heap);
    assert_int_equal(heap_reserve(&heap, 1), 0); /* never shrinks */
    assert_int_equal(heap.count, COUNT);
    heap_free(&heap);
    assert_null(heap_first(&heap));
    heap_free(&heap);
    free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_operations),
        cmocka_unit_test(test_comes_out_in_order),
        cmocka_unit_test(test_reserve_keeps_what_is_inside),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * prometheus: the text format, byte for byte.
 */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "wire/prometheus.h"

static void assert_text(struct buffer *out, const char *wanted)
{
    assert_false(out->failed);
    assert_int_equal(out->len, strlen(wanted));
    assert_memory_equal(out->data, wanted, out->len);
    buffer_free(out);
}

static void test_samples(void **state)
{
    struct buffer out;

    (void)state;
    buffer_init(&out, 4096);
    prometheus_append_metric(&out, "a_total", "counter", "What a is.", UINT64_MAX);
    prometheus_append_sample(&out, "b", "route=\"x\",outcome=\"y\"", 0);
    assert_text(&out, "# HELP a_total What a is.\n# TYPE a_total counter\n"
                      "a_total 18446744073709551615\nb{route=\"x\",outcome=\"y\"} 0\n");
}

/* Buckets come one by one and are written as sums; seconds are exact. */
static void test_histogram(void **state)
{
    static const int64_t bounds_us[] = {10, 1500, 2000000, 600000000};
    static const uint64_t buckets[] = {1, 2, 0, 3, 4};
    struct buffer out;

    (void)state;
    buffer_init(&out, 4096);
    prometheus_append_histogram(&out, "h", "H.", bounds_us, buckets, 4, 1000001);
    assert_text(&out, "# HELP h H.\n# TYPE h histogram\n"
                      "h_bucket{le=\"0.00001\"} 1\n"
                      "h_bucket{le=\"0.0015\"} 3\n"
                      "h_bucket{le=\"2\"} 3\n"
                      "h_bucket{le=\"600\"} 6\n"
                      "h_bucket{le=\"+Inf\"} 10\n"
                      "h_sum 1.000001\nh_count 10\n");
}

static void test_ceiling(void **state)
{
    struct buffer out;

    (void)state;
    buffer_init(&out, 20);
    assert_int_equal(prometheus_append_metric(&out, "a_total", "counter", "Too long.", 1), -1);
    buffer_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_histogram),
        cmocka_unit_test(test_ceiling),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * buffer: the ceiling holds to the byte, a failure is latched, and what was appended comes out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static void assert_holds(const struct buffer *buffer, const char *text)
{
    assert_false(buffer->failed);
    assert_int_equal(buffer->len, strlen(text));
    if (buffer->len > 0)
        assert_memory_equal(buffer->data, text, buffer->len);
}

static void assert_failed_and_empty(const struct buffer *buffer)
{
    assert_true(buffer->failed);
    assert_int_equal(buffer->len, 0);
}

static void test_appends_in_order(void **state)
{
    struct buffer buffer;

    (void)state;
    buffer_init(&buffer, 1000);
    assert_null(buffer.data);
    assert_int_equal(buffer_append(&buffer, NULL, 0), 0);
    assert_int_equal(buffer_append(&buffer, "a\0b", 3), 0);
    assert_memory_equal(buffer.data, "a\0b", 3);
    buffer_reset(&buffer);
    assert_int_equal(buffer_append_text(&buffer, "one "), 0);
    assert_int_equal(buffer_append_text(&buffer, ""), 0);
    assert_int_equal(buffer_append_char(&buffer, '2'), 0);
    assert_int_equal(buffer_append_u64(&buffer, 0), 0);
    assert_int_equal(buffer_append_u64(&buffer, UINT64_MAX), 0);
    assert_int_equal(buffer_printf(&buffer, " %s%d", "x", -3), 0);
    assert_int_equal(buffer_printf(&buffer, "%s", ""), 0);
    assert_holds(&buffer, "one 2018446744073709551615 x-3");
    buffer_free(&buffer);
}

/* Ways to append n bytes. */
static int by_append(struct buffer *buffer, size_t n)
{
    static const char bytes[4096];

    return buffer_append(buffer, bytes, n);
}

static int by_text(struct buffer *buffer, size_t n)
{
    char text[4097];

    memset(text, 'x', n);
    text[n] = '\0';
    return buffer_append_text(buffer, text);
}

static int by_chars(struct buffer *buffer, size_t n)
{
    int result = 0;

    for (size_t i = 0; i < n; i++)
        result |= buffer_append_char(buffer, 'x');
    return result;
}

static int by_printf(struct buffer *buffer, size_t n)
{
    return buffer_printf(buffer, "%*s", (int)n, "x");
}

static int by_reserve(struct buffer *buffer, size_t n)
{
    char *room = buffer_reserve(buffer, n);

    if (room == NULL)
        return -1;
    memset(room, 'x', n); /* all of it is ours: the sanitizer looks */
    buffer->len += n;
    return 0;
}

/* To the ceiling and not a byte beyond, whatever was there before. */
static void check_ceiling(int (*way)(struct buffer *, size_t))
{
    static const size_t ceilings[] = {1, 2, 5, 255, 256, 257, 1000, 4096};

    for (size_t row = 0; row < COUNT_OF(ceilings); row++) {
        for (size_t before = 0; before < ceilings[row]; before += 1 + ceilings[row] / 3) {
            struct buffer buffer;

            buffer_init(&buffer, ceilings[row]);
            assert_int_equal(by_append(&buffer, before), 0);
            if (way(&buffer, ceilings[row] - before) != 0) {
                buffer_free(&buffer);
                fail_msg("%zu + %zu bytes do not fit a ceiling of %zu", before,
                         ceilings[row] - before, ceilings[row]);
            }
            assert_int_equal(buffer.len, ceilings[row]);
            assert_int_equal(way(&buffer, 1), -1);
            assert_failed_and_empty(&buffer);
            buffer_free(&buffer);
        }
    }
}

static void test_ceiling_of_append(void **state)
{
    (void)state;
    check_ceiling(by_append);
}

static void test_ceiling_of_text(void **state)
{
    (void)state;
    check_ceiling(by_text);
}

static void test_ceiling_of_chars(void **state)
{
    (void)state;
    check_ceiling(by_chars);
}

static void test_ceiling_of_printf(void **state)
{
    (void)state;
    check_ceiling(by_printf);
}

static void test_ceiling_of_reserve(void **state)
{
    (void)state;
    check_ceiling(by_reserve);
}

static void test_a_failure_is_latched(void **state)
{
    struct buffer buffer;

    (void)state;
    buffer_init(&buffer, 4);
    assert_int_equal(buffer_append_text(&buffer, "abcde"), -1);
    assert_failed_and_empty(&buffer);
    /* What would fit now must not look like the whole. */
    assert_int_equal(buffer_append(&buffer, "a", 1), -1);
    assert_int_equal(buffer_append(&buffer, "", 0), -1);
    assert_int_equal(buffer_append_text(&buffer, "a"), -1);
    assert_int_equal(buffer_append_char(&buffer, 'a'), -1);
    assert_int_equal(buffer_append_u64(&buffer, 1), -1);
    assert_int_equal(buffer_printf(&buffer, "a"), -1);
    assert_null(buffer_reserve(&buffer, 0));
    assert_failed_and_empty(&buffer);
    buffer_consume(&buffer, 1);
    assert_failed_and_empty(&buffer);

    buffer_reset(&buffer);
    assert_int_equal(buffer_append_text(&buffer, "abcd"), 0);
    assert_holds(&buffer, "abcd");
    assert_int_equal(buffer_append_char(&buffer, 'e'), -1);
    buffer_free(&buffer);
    assert_int_equal(buffer_append_text(&buffer, "new"), 0);
    assert_holds(&buffer, "new");
    buffer_free(&buffer);
}

static void test_sizes_that_would_wrap_around(void **state)
{
    static const size_t rows[] = {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX / 2 + 1, 1001};

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct buffer buffer;

        buffer_init(&buffer, 1000);
        assert_int_equal(buffer_append_text(&buffer, "abc"), 0);
        assert_null(buffer_reserve(&buffer, rows[row]));
        assert_failed_and_empty(&buffer);
        buffer_free(&buffer);
    }
}

static void test_no_ceiling_but_memory(void **state)
{
    struct buffer buffer;

    (void)state;
    buffer_init(&buffer, SIZE_MAX);
    assert_int_equal(buffer_append_text(&buffer, "abc"), 0);
    for (int i = 0; i < 10000; i++)
        assert_int_equal(buffer_append(&buffer, "0123456789", 10), 0);
    assert_int_equal(buffer.len, 100003);
    buffer_free(&buffer);
}

static void test_reset_keeps_the_memory(void **state)
{
    struct buffer buffer;

    (void)state;
    buffer_init(&buffer, 1000);
    assert_int_equal(buffer_append_text(&buffer, "abc"), 0);
    const char *data = buffer.data;
    buffer_reset(&buffer);
    assert_int_equal(buffer.len, 0);
    assert_int_equal(buffer_append_text(&buffer, "de"), 0);
    assert_ptr_equal(buffer.data, data);
    assert_holds(&buffer, "de");
    buffer_free(&buffer);
    assert_null(buffer.data);
    buffer_free(&buffer);
}

static void test_consume(void **state)
{
    static const struct {
        const char *text;
        size_t count;
        const char *left;
    } rows[] = {
        {"abcdef", 0, "abcdef"},
        {"abcdef", 1, "bcdef"},
        {"abcdef", 5, "f"},
        {"abcdef", 6, ""},
        {"abcdef", 7, ""},
        {"abcdef", SIZE_MAX, ""},
        {"", 0, ""},
        {"", 3, ""},
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct buffer buffer;

        buffer_init(&buffer, 1000);
        buffer_append_text(&buffer, rows[row].text);
        buffer_consume(&buffer, rows[row].count);
        assert_holds(&buffer, rows[row].left);
        assert_int_equal(buffer_append_text(&buffer, "X"), 0); /* goes behind what is left */
        assert_int_equal(buffer.data[buffer.len - 1], 'X');
        buffer_free(&buffer);
    }
}

/* What is consumed gives its room back: a ceiling is on what is held, not on what went through.
 */
static void test_consume_makes_room(void **state)
{
    struct buffer buffer;

    (void)state;
    buffer_init(&buffer, 8);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(buffer_append_text(&buffer, "1234"), 0);
        assert_int_equal(buffer_append_text(&buffer, "5678"), 0);
        buffer_consume(&buffer, 4);
        assert_holds(&buffer, "5678");
        buffer_consume(&buffer, 4);
    }
    buffer_free(&buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_appends_in_order),
        cmocka_unit_test(test_ceiling_of_append),
        cmocka_unit_test(test_ceiling_of_text),
        cmocka_unit_test(test_ceiling_of_chars),
        cmocka_unit_test(test_ceiling_of_printf),
        cmocka_unit_test(test_ceiling_of_reserve),
        cmocka_unit_test(test_a_failure_is_latched),
        cmocka_unit_test(test_sizes_that_would_wrap_around),
        cmocka_unit_test(test_no_ceiling_but_memory),
        cmocka_unit_test(test_reset_keeps_the_memory),
        cmocka_unit_test(test_consume),
        cmocka_unit_test(test_consume_makes_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

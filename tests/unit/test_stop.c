/*
 * stop: the first sequence that is complete, wherever the pieces of the text end; and never a
 * byte shown that belongs to it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "wire/stop.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* What is shown of `text` when it is read in pieces of `piece` bytes; -1: no sequence is met.
 */
static long shown(const struct stop_sequences *sequences, const char *text, size_t piece,
                  size_t *read_all)
{
    struct stop_search search = {{0}};
    size_t len = strlen(text);
    size_t most_shown = 0;
    size_t found = 0;

    for (size_t at = 0; at < len; at += piece) {
        size_t left = len - at < piece ? len - at : piece;
        size_t read = stop_read(&search, sequences, text + at, left, &found);
        if (read > 0) {
            *read_all = at + read;
            /* what may have been shown before was no part of the sequence */
            assert_true(most_shown <= at + read - found);
            return (long)(at + read - found);
        }
        most_shown = at + left - stop_pending(&search);
    }
    return -1;
}

static void test_found(void **state)
{
    static const struct {
        const char *stops[STOP_SEQUENCES_MAX];
        const char *text;
        long shown;
        size_t read;
    } rows[] = {
        {{"x"}, "abxcd", 2, 3},
        {{"x"}, "abcd", -1, 0},
        {{"ab"}, "abcd", 0, 2},     /* at the start */
        {{"abcd"}, "abcd", 0, 4},   /* all of it */
        {{"abcde"}, "abcd", -1, 0}, /* not all of it */
        {{"aab"}, "aaaab", 2, 5},   /* begins again within itself */
        {{"abab"}, "abaabab", 3, 7},
        {{"abcabd"}, "abcabcabd", 3, 9},
        {{"aaaa"}, "aaabaaaa", 4, 8},
        {{"b", "abc"}, "xabc", 2, 3},  /* the first that is complete */
        {{"bc", "abc"}, "xabc", 1, 4}, /* at the same byte: the longer */
        {{"abc", "bc"}, "xabc", 1, 4},
        {{"c", "bc", "abc", "xabc"}, "xabc", 0, 4},
        {{"xyz", "abc"}, "xyabxyz", 4, 7},
        {{"abcd", "bcx"}, "abcx", 1, 4}, /* one gives way to another */
        {{"\n\n"}, "a\n b\n\nc", 4, 6},
        {{u8"\u65e5\u672c"}, u8"\u65e5\u65e5\u672c", 3, 9},
        {{u8"\U0001f600"}, u8"\U0001f601\U0001f600", 4, 8}, /* three bytes are the same */
        {{"a", "a"}, "ba", 1, 2},                           /* the same twice */
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct stop_sequences sequences = {.count = 0};
        for (size_t i = 0; i < STOP_SEQUENCES_MAX && rows[row].stops[i] != NULL; i++)
            assert_int_equal(
                stop_add(&sequences, rows[row].stops[i], strlen(rows[row].stops[i])),
                STOP_ADDED);
        for (size_t piece = 1; piece <= 10; piece++) {
            size_t read = 0;
            long got = shown(&sequences, rows[row].text, piece, &read);
            if (got != rows[row].shown || (got >= 0 && read != rows[row].read))
                fail_msg("row %zu, pieces of %zu: %ld, %zu read", row, piece, got, read);
        }
    }
}

static void test_pending(void **state)
{
    static const struct {
        const char *text;
        size_t pending; /* of "abcab" or "cc" */
    } rows[] = {
        {"", 0},     {"x", 0},      {"a", 1},     {"ab", 2},      {"abc", 3},
        {"abca", 4}, {"abcb", 0},   {"abcaa", 1}, {"abcac", 1},   {"xc", 1},
        {"bc", 1},   {"abcabc", 0}, {"aab", 2},   {"abcaabc", 3},
    };
    struct stop_sequences sequences = {.count = 0};

    (void)state;
    stop_add(&sequences, "abcab", 5);
    stop_add(&sequences, "cc", 2);
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct stop_search search = {{0}};
        size_t found;
        if (stop_read(&search, &sequences, rows[row].text, strlen(rows[row].text), &found) > 0)
            continue; /* "abcabc" has one */
        if (stop_pending(&search) != rows[row].pending)
            fail_msg("row %zu, %s: %zu", row, rows[row].text, stop_pending(&search));
    }
}

static void test_limits(void **state)
{
    struct stop_sequences sequences = {.count = 0};
    struct stop_search search = {{0}};
    char longest[STOP_SEQUENCE_MAX_BYTES + 1];
    size_t found;

    (void)state;
    memset(longest, 'a', sizeof(longest));
    assert_int_equal(stop_add(&sequences, "", 0), STOP_EMPTY);
    assert_int_equal(stop_add(&sequences, longest, sizeof(longest)), STOP_TOO_LONG);
    for (int i = 0; i < STOP_SEQUENCES_MAX; i++)
        assert_int_equal(stop_add(&sequences, longest, STOP_SEQUENCE_MAX_BYTES), STOP_ADDED);
    assert_int_equal(stop_add(&sequences, "a", 1), STOP_TOO_MANY);
    assert_int_equal(
        stop_read(&search, &sequences, longest, STOP_SEQUENCE_MAX_BYTES - 1, &found), 0);
    assert_int_equal(stop_pending(&search), STOP_SEQUENCE_MAX_BYTES - 1);
    assert_int_equal(stop_read(&search, &sequences, longest, 5, &found), 1);
    assert_int_equal(found, STOP_SEQUENCE_MAX_BYTES);
}

/* --- against a search that looks at everything again for each byte --- */

static bool ends_with(const char *text, size_t len, const struct stop_sequence *sequence)
{
    return len >= sequence->len &&
           memcmp(text + len - sequence->len, sequence->text, sequence->len) == 0;
}

static size_t naive_found(const struct stop_sequences *sequences, const char *text, size_t len)
{
    size_t longest = 0;

    for (size_t i = 0; i < sequences->count; i++) {
        if (ends_with(text, len, &sequences->sequence[i]) &&
            sequences->sequence[i].len > longest)
            longest = sequences->sequence[i].len;
    }
    return longest;
}

static size_t naive_pending(const struct stop_sequences *sequences, const char *text,
                            size_t len)
{
    size_t most = 0;

    for (size_t i = 0; i < sequences->count; i++) {
        const struct stop_sequence *sequence = &sequences->sequence[i];
        for (size_t part = 1; part < sequence->len && part <= len; part++) {
            if (memcmp(text + len - part, sequence->text, part) == 0 && part > most)
                most = part;
        }
    }
    return most;
}

static void test_against_a_naive_search(void **state)
{
    uint64_t draw = 0;

    (void)state;
    for (int round = 0; round < 20000; round++) {
        struct stop_sequences sequences = {.count = 0};
        struct stop_search search = {{0}};
        char text[60];
        unsigned letters = 1 + (unsigned)(random_at(7, draw++) % 3);
        size_t count = 1 + random_at(7, draw++) % STOP_SEQUENCES_MAX;

        for (size_t i = 0; i < count; i++) {
            char sequence[12];
            size_t len = 1 + random_at(7, draw++) % sizeof(sequence);
            for (size_t at = 0; at < len; at++)
                sequence[at] = (char)('a' + random_at(7, draw++) % letters);
            stop_add(&sequences, sequence, len);
        }
        for (size_t len = 1; len <= sizeof(text); len++) {
            size_t found = 0;
            text[len - 1] = (char)('a' + random_at(7, draw++) % letters);
            size_t read = stop_read(&search, &sequences, text + len - 1, 1, &found);
            assert_int_equal(read > 0 ? found : 0, naive_found(&sequences, text, len));
            if (read > 0)
                break;
            assert_int_equal(stop_pending(&search), naive_pending(&sequences, text, len));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_found),
        cmocka_unit_test(test_pending),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_against_a_naive_search),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * framing: the ends of bodies, cut into reads at every place, and what is no framing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gen/load/framing.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

struct notes {
    char body[256];
    size_t len;
    size_t stop_at; /* so many bytes and no more; 0: all */
};

static int take(void *context, const char *bytes, size_t len)
{
    struct notes *notes = context;

    assert_true(len > 0 && notes->len + len < sizeof(notes->body));
    memcpy(notes->body + notes->len, bytes, len);
    notes->len += len;
    notes->body[notes->len] = '\0';
    return notes->stop_at > 0 && notes->len >= notes->stop_at;
}

/* A copy of its own, for the sanitizer to guard. */
static enum framing_status feed(struct framing *framing, const char *bytes, size_t len,
                                struct notes *notes)
{
    char *copy = malloc(len > 0 ? len : 1);

    assert_non_null(copy);
    memcpy(copy, bytes, len);
    enum framing_status status = framing_feed(framing, copy, len, take, notes);
    free(copy);
    return status;
}

static void start(struct framing *framing, const char *head)
{
    framing_start(framing);
    for (const char *line = head; *line != '\0'; line += strcspn(line, "\n") + 1)
        framing_header(framing, line, strcspn(line, "\n") + 1);
}

static void test_heads(void **state)
{
    static const struct {
        const char *head;
        enum framing_kind kind;
        uint64_t left;
    } rows[] = {
        {"Content-Type: text/event-stream\r\n", FRAMING_CLOSE, 0},
        {"Content-Length: 12\r\n", FRAMING_LENGTH, 12},
        {"content-length:0\r\n", FRAMING_LENGTH, 0},
        {"Content-Length: \t12 \t\r\n", FRAMING_LENGTH, 12},
        {"Content-Length: 1x\r\n", FRAMING_CLOSE, 0},
        {"Content-Length-Not: 12\r\n", FRAMING_CLOSE, 0},
        {"Transfer-Encoding: chunked\r\n", FRAMING_CHUNKED, 0},
        {"TRANSFER-ENCODING:Chunked\r\n", FRAMING_CHUNKED, 0},
        {"Transfer-Encoding: gzip, chunked\r\n", FRAMING_CHUNKED, 0},
        {"Transfer-Encoding: identity\r\n", FRAMING_CLOSE, 0},
        {"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", FRAMING_CHUNKED, 0},
        {"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", FRAMING_CHUNKED, 0},
        {"X: Transfer-Encoding: chunked\r\n", FRAMING_CLOSE, 0},
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct framing framing;
        start(&framing, rows[row].head);
        assert_int_equal(framing.kind, rows[row].kind);
        if (framing.kind == FRAMING_LENGTH)
            assert_int_equal(framing.left, rows[row].left);
    }
}

static const char chunked[] = "Transfer-Encoding: chunked\r\n";

static const struct {
    const char *head, *bytes, *body;
    enum framing_status status;
    bool is_whole; /* if the connection were closed then */
} rows[] = {
    {"", "abc", "abc", FRAMING_MORE, true},
    {"Content-Length: 3\r\n", "ab", "ab", FRAMING_MORE, false},
    {"Content-Length: 3\r\n", "abc", "abc", FRAMING_ENDED, true},
    {"Content-Length: 3\r\n", "abcde", "abc", FRAMING_ENDED, true},
    {chunked, "3\r\nabc\r\n0\r\n\r\n", "abc", FRAMING_ENDED, true},
    {chunked, "3\r\nabc\r\n0\r\n\r\nHTTP/1.1", "abc", FRAMING_ENDED, true},
    {chunked, "0\r\n\r\n", "", FRAMING_ENDED, true},
    {chunked, "1\r\na\r\nA\r\n0123456789\r\n0a\r\nABCDEFGHIJ\r\n0\r\n\r\n",
     "a0123456789ABCDEFGHIJ", FRAMING_ENDED, true},
    {chunked, "1;x=\"y\"\r\na\r\n2 \r\nbc\r\n0;z\r\n\r\n", "abc", FRAMING_ENDED, true},
    {chunked, "1\r\na\r\n0\r\nTrailer: x\r\nOther: y\r\n\r\n", "a", FRAMING_ENDED, true},
    {chunked, "5\r\n\r\n0\r\n\r\n0\r\n\r\n", "\r\n0\r\n", FRAMING_ENDED, true},
    {chunked, "3\r\nabc\r\n", "abc", FRAMING_MORE, false},
    {chunked, "3\r\nab", "ab", FRAMING_MORE, false},
    {chunked, "3\r\nabc\r\n0\r\n", "abc", FRAMING_MORE, false},
    {chunked, "", "", FRAMING_MORE, false},
    {chunked, "x\r\n", "", FRAMING_MALFORMED, false},
    {chunked, "\r\n", "", FRAMING_MALFORMED, false},
    {chunked, "-1\r\n", "", FRAMING_MALFORMED, false},
    {chunked, "3\nabc", "", FRAMING_MALFORMED, false},
    {chunked, "3;x\nabc", "", FRAMING_MALFORMED, false},
    {chunked, "3\r\nabcd\r\n", "abc", FRAMING_MALFORMED, false},
    {chunked, "3\r\nabc\rx", "abc", FRAMING_MALFORMED, false},
    {chunked, "3\rx", "", FRAMING_MALFORMED, false},
    {chunked, "0000000000000003\r\n", "", FRAMING_MALFORMED, false},
    {chunked, "ffffffffffffffff\r\n", "", FRAMING_MALFORMED, false},
    {chunked, "0\r\n\rx", "", FRAMING_MALFORMED, false},
};

static void test_every_split(void **state)
{
    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        size_t len = strlen(rows[row].bytes);
        for (size_t first = 0; first <= len; first++) {
            for (size_t second = first; second <= len; second++) {
                const size_t cuts[] = {0, first, second, len};
                struct notes notes = {.body = ""};
                struct framing framing;
                enum framing_status status = FRAMING_MORE;
                start(&framing, rows[row].head);
                for (int i = 0; i < 3 && status == FRAMING_MORE; i++)
                    status = feed(&framing, rows[row].bytes + cuts[i], cuts[i + 1] - cuts[i],
                                  &notes);
                assert_int_equal(status, rows[row].status);
                assert_string_equal(notes.body, rows[row].body);
                if (status != FRAMING_MALFORMED)
                    assert_int_equal(framing_is_whole_at_close(&framing), rows[row].is_whole);
            }
        }
    }
}

static void test_stops(void **state)
{
    static const char *const heads[] = {"", "Content-Length: 6\r\n", chunked};
    static const char *const bodies[] = {"abcdef", "abcdef",
                                         "3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(heads); i++) {
        struct notes notes = {.stop_at = 2};
        struct framing framing;
        start(&framing, heads[i]);
        assert_int_equal(feed(&framing, bodies[i], strlen(bodies[i]), &notes), FRAMING_STOPPED);
    }
}

/* Another reply on the same struct knows nothing of the one before. */
static void test_starts_anew(void **state)
{
    struct notes notes = {.body = ""};
    struct framing framing;

    (void)state;
    start(&framing, chunked);
    assert_int_equal(feed(&framing, "a\r\nabc", 6, &notes), FRAMING_MORE);
    notes.len = 0;
    start(&framing, chunked);
    assert_int_equal(feed(&framing, "1\r\nx\r\n0\r\n\r\n", 11, &notes), FRAMING_ENDED);
    assert_string_equal(notes.body, "x");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_heads),
        cmocka_unit_test(test_every_split),
        cmocka_unit_test(test_stops),
        cmocka_unit_test(test_starts_anew),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

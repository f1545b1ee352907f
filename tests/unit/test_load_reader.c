/*
 * reader: every spelling of an event stream, cut into reads at every place, and what is too
 * long.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gen/load/reader.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Events as `name|data;`, a newline in the data as a slash. */
struct notes {
    char text[1024];
    size_t len;
    int stop_at; /* the event at which take says 7 */
    int events;
};

static int take(void *context, const struct reader_event *event)
{
    struct notes *notes = context;

    notes->len += (size_t)snprintf(notes->text + notes->len, sizeof(notes->text) - notes->len,
                                   "%s|", event->name);
    for (size_t i = 0; i < event->data_len && notes->len < sizeof(notes->text) - 2; i++)
        notes->text[notes->len++] = event->data[i] == '\n' ? '/' : event->data[i];
    notes->text[notes->len++] = ';';
    notes->text[notes->len] = '\0';
    return ++notes->events == notes->stop_at ? 7 : 0;
}

/* Each read is a copy of its own that is gone after it: the sanitizer finds what was kept. */
static int feed(struct reader *reader, const char *bytes, size_t len)
{
    char *copy = malloc(len > 0 ? len : 1);

    assert_non_null(copy);
    memcpy(copy, bytes, len);
    int status = reader_feed(reader, copy, len);
    memset(copy, 'X', len);
    free(copy);
    return status;
}

static const struct {
    const char *stream;
    const char *events;
} rows[] = {
    {"", ""},
    {"data: a\n\n", "|a;"},
    {"data:a\n\n", "|a;"},
    {"data:  a\n\n", "| a;"},
    {"data: a\r\n\r\ndata: b\r\n\r\n", "|a;|b;"},
    {"data: a\r\rdata: b\r\r", "|a;|b;"},
    {"data: a\r\n\ndata: b\n\r\n", "|a;|b;"},
    {"data: a\n\r\ndata: b\r\r\n", "|a;|b;"},
    {"\xef\xbb\xbf"
     "data: a\n\n",
     "|a;"},
    {"\xef\xbb\xbf\ndata: a\n\n", "|a;"},
    {"data: \xef\xbb\xbf\n\n", "|\xef\xbb\xbf;"},
    {"\n\xef\xbb\xbf"
     "data: a\n\n",
     ""}, /* not at the start: a field of another name */
    {"data: a\ndata: b\ndata: c\n\n", "|a/b/c;"},
    {"data: a\ndata\ndata:\n\n", "|a//;"},
    {"data\n\n", "|;"},
    {"data:\n\n", "|;"},
    {"\n\n\ndata: a\n\n\n\n", "|a;"},
    {": comment\ndata: a\n:data: no\n\n", "|a;"},
    {":\n\n: x\n\ndata: a\n\n", "|a;"},
    {"event: error\ndata: a\n\ndata: b\n\n", "error|a;|b;"},
    {"data: a\nevent: error\n\n", "error|a;"},
    {"event: one\nevent: two\ndata: a\n\n", "two|a;"},
    {"event: error\n\ndata: b\n\n", "|b;"}, /* an event without data is none, and forgotten */
    {"event: 0123456789012345678901234567890123456789\ndata: a\n\n",
     "01234567890123456789012345678901|a;"},
    {"id: 7\nretry: 100\ndata: a\nfoo: bar\nfoo\n\n", "|a;"},
    {"database: a\nDATA: b\n data: c\n\n", ""},
    {"data: a\n\ndata: never ended\n", "|a;"},
    {"data: a\n\ndata: never ended", "|a;"},
    {"data: {\"token\":\ndata: \"a\"}\n\n", "|{\"token\":/\"a\"};"},
};

static void run(const char *stream, const size_t *cuts, size_t cut_count, const char *events)
{
    struct notes notes = {.text = ""};
    struct reader reader;
    size_t at = 0;

    reader_init(&reader, take, &notes);
    for (size_t i = 0; i < cut_count; i++) {
        assert_int_equal(feed(&reader, stream + at, cuts[i] - at), 0);
        at = cuts[i];
    }
    assert_int_equal(feed(&reader, stream + at, strlen(stream) - at), 0);
    assert_string_equal(notes.text, events);
    reader_free(&reader);
}

static void test_whole(void **state)
{
    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++)
        run(rows[row].stream, NULL, 0, rows[row].events);
}

static void test_every_split(void **state)
{
    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        size_t len = strlen(rows[row].stream);
        for (size_t first = 0; first <= len; first++) {
            for (size_t second = first; second <= len; second++)
                run(rows[row].stream, (const size_t[]){first, second}, 2, rows[row].events);
        }
    }
}

static void test_byte_by_byte(void **state)
{
    size_t cuts[256];

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        size_t len = strlen(rows[row].stream);
        for (size_t i = 0; i < len; i++)
            cuts[i] = i;
        run(rows[row].stream, cuts, len, rows[row].events);
    }
}

/* With LF, CRLF and CR mixed at will the events are the same as with LF. */
static void test_line_ends(void **state)
{
    static const char *const ends[] = {"\n", "\r\n", "\r"};
    static const char *const lines[] = {"event: e", "data: a", "data: b", "",
                                        "data: c",  "",        ": x"};
    enum { LINES = COUNT_OF(lines), WAYS = 3 * 3 * 3 * 3 * 3 * 3 * 3 };

    (void)state;
    for (int way = 0; way < WAYS; way++) {
        char stream[256] = "";
        int digits = way;
        bool is_one = false; /* CR and then LF is one end of a line, and not two */
        for (size_t i = 0; i < LINES; i++, digits /= 3) {
            if (i > 0 && lines[i][0] == '\0' && stream[strlen(stream) - 1] == '\r' &&
                digits % 3 == 0)
                is_one = true;
            strcat(stream, lines[i]);
            strcat(stream, ends[digits % 3]);
        }
        if (!is_one)
            run(stream, (const size_t[]){7, 16}, 2, "e|a/b;|c;");
    }
}

static void test_take_stops_it(void **state)
{
    struct notes notes = {.stop_at = 2};
    struct reader reader;
    static const char stream[] = "data: a\n\ndata: b\n\ndata: c\n\n";

    (void)state;
    reader_init(&reader, take, &notes);
    assert_int_equal(feed(&reader, stream, strlen(stream)), 7);
    assert_string_equal(notes.text, "|a;|b;");
    reader_free(&reader);
}

static void test_restart(void **state)
{
    struct notes notes = {.text = ""};
    struct reader reader;

    (void)state;
    reader_init(&reader, take, &notes);
    assert_int_equal(feed(&reader, "event: e\ndata: a\r", 17), 0);
    assert_true(reader_is_inside(&reader));
    reader_restart(&reader);
    assert_false(reader_is_inside(&reader));
    assert_int_equal(feed(&reader, "\n\xef\xbb", 3), 0); /* no LF that belongs to that CR */
    reader_restart(&reader);
    assert_int_equal(feed(&reader,
                          "\xef\xbb\xbf"
                          "data: b\n\n",
                          12),
                     0);
    assert_string_equal(notes.text, "|b;");
    assert_false(reader_is_inside(&reader));
    assert_int_equal(feed(&reader, ": begun", 7), 0);
    assert_true(reader_is_inside(&reader));
    reader_free(&reader);
}

/* A line and an event have a ceiling, however they are cut; an event below it goes through. */
static void test_too_long(void **state)
{
    enum { PIECE = 4096 };
    static char piece[PIECE];
    struct notes notes = {.text = ""};
    struct reader reader;
    int status = 0;

    (void)state;
    memset(piece, 'a', sizeof(piece));
    reader_init(&reader, take, &notes);
    size_t sent = 0;
    for (; status == 0 && sent < 2 * READER_EVENT_MAX_BYTES; sent += PIECE)
        status = feed(&reader, piece, PIECE);
    assert_int_equal(status, READER_TOO_LONG);
    assert_true(sent >= READER_EVENT_MAX_BYTES);

    reader_restart(&reader);
    status = 0;
    memcpy(piece, "data: ", 6);
    piece[PIECE - 1] = '\n';
    for (sent = 0; status == 0 && sent < 2 * READER_EVENT_MAX_BYTES; sent += PIECE)
        status = feed(&reader, piece, PIECE);
    assert_int_equal(status, READER_TOO_LONG);
    reader_restart(&reader);
    assert_int_equal(feed(&reader, "data: a\n\n", 9), 0);
    assert_string_equal(notes.text, "|a;");
    reader_free(&reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),         cmocka_unit_test(test_every_split),
        cmocka_unit_test(test_byte_by_byte),  cmocka_unit_test(test_line_ends),
        cmocka_unit_test(test_take_stops_it), cmocka_unit_test(test_restart),
        cmocka_unit_test(test_too_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

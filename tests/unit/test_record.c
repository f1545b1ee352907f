/*
 * record: FastCGI framing, whole and in any pieces, within its limits and against nonsense.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fastcgi/record.h"
#include "tests/unit/captured_nginx.h"
#include "tests/unit/fake_peer.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static const struct record_limits limits = {.params_max_bytes = 1000, .body_max_bytes = 2000};

static void init_bytes(struct buffer *bytes)
{
    buffer_init(bytes, 16 << 20);
}

/* What came of some bytes: the events, and the requests that were taken. */
struct outcome {
    enum record_event events[64];
    size_t count;
    struct buffer taken; /* as libfcgi gets them */
    struct buffer bodies;
    unsigned asked_values, unknown_type, other_id, aborted_id;
    bool body_too_large;
    bool midway;
};

static void note_event(struct outcome *outcome, struct record_parser *parser,
                       enum record_event event)
{
    struct buffer body;

    assert_true(outcome->count < COUNT_OF(outcome->events));
    outcome->events[outcome->count++] = event;
    if (event == RECORD_GET_VALUES)
        outcome->asked_values = parser->asked_values;
    if (event == RECORD_UNKNOWN_TYPE)
        outcome->unknown_type = parser->unknown_type;
    if (event == RECORD_CANNOT_MULTIPLEX)
        outcome->other_id = parser->other_id;
    if (event == RECORD_ABORTED)
        outcome->aborted_id = parser->request_id;
    if (event != RECORD_REQUEST)
        return;
    outcome->body_too_large = parser->body_too_large;
    assert_int_equal(record_take(parser, &outcome->taken, &body), 0);
    buffer_append(&outcome->bodies, body.data, body.len);
    buffer_append_char(&outcome->bodies, '|');
    buffer_free(&body);
}

/* Feed pieces: `first` bytes, then the rest; or all by single bytes when first is 0. Each from
 * a copy of its own size, for the sanitizer to guard. */
static void feed(struct outcome *outcome, const char *bytes, size_t len, size_t first)
{
    struct record_parser parser;
    bool bad = false;

    memset(outcome, 0, sizeof(*outcome));
    init_bytes(&outcome->taken);
    init_bytes(&outcome->bodies);
    record_init(&parser, &limits);
    for (size_t at = 0; at < len && !bad;) {
        size_t piece = first == 0 ? 1 : at == 0 && first < len ? first : len - at;
        char *exact = malloc(piece);
        assert_non_null(exact);
        memcpy(exact, bytes + at, piece);
        for (size_t done = 0; done < piece && !bad;) {
            size_t used = 4711;
            enum record_event event = record_parse(&parser, exact + done, piece - done, &used);
            assert_true(used <= piece - done);
            if (event == RECORD_NEED_MORE)
                assert_int_equal(used, piece - done);
            else
                note_event(outcome, &parser, event);
            bad = event == RECORD_BAD;
            done += used;
        }
        free(exact);
        at += piece;
    }
    outcome->midway = record_is_midway(&parser);
    record_free(&parser);
}

static void free_outcome(struct outcome *outcome)
{
    buffer_free(&outcome->taken);
    buffer_free(&outcome->bodies);
}

static void assert_same(const struct outcome *a, const struct outcome *b)
{
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++)
        assert_int_equal(a->events[i], b->events[i]);
    assert_int_equal(a->taken.len, b->taken.len);
    if (a->taken.len > 0)
        assert_memory_equal(a->taken.data, b->taken.data, a->taken.len);
    assert_int_equal(a->bodies.len, b->bodies.len);
    if (a->bodies.len > 0)
        assert_memory_equal(a->bodies.data, b->bodies.data, a->bodies.len);
    assert_int_equal(a->asked_values, b->asked_values);
    assert_int_equal(a->unknown_type, b->unknown_type);
    assert_int_equal(a->other_id, b->other_id);
    assert_int_equal(a->body_too_large, b->body_too_large);
    assert_int_equal(a->midway, b->midway);
}

/* However the bytes are cut, the same comes of them. Returns it, of the whole. */
static struct outcome feed_every_way(const char *bytes, size_t len)
{
    struct outcome whole;
    struct outcome pieces;

    feed(&whole, bytes, len, len);
    for (size_t first = 0; first < len; first++) {
        feed(&pieces, bytes, len, first);
        assert_same(&whole, &pieces);
        free_outcome(&pieces);
    }
    return whole;
}

static void assert_events(const struct outcome *outcome, const enum record_event *wanted,
                          size_t count)
{
    assert_int_equal(outcome->count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(outcome->events[i], wanted[i]);
}

#define ASSERT_EVENTS(outcome, ...)                                                            \
    assert_events(outcome, (const enum record_event[]){__VA_ARGS__},                           \
                  COUNT_OF(((const enum record_event[]){__VA_ARGS__})))

static void assert_bodies(const struct outcome *outcome, const char *wanted)
{
    assert_int_equal(outcome->bodies.len, strlen(wanted));
    assert_memory_equal(outcome->bodies.data, wanted, outcome->bodies.len);
}

/* --- whole requests --- */

static void test_requests_of_nginx(void **state)
{
    (void)state;
    struct outcome get = feed_every_way((const char *)captured_get, sizeof(captured_get));
    ASSERT_EVENTS(&get, RECORD_REQUEST);
    assert_bodies(&get, "|");
    assert_false(get.body_too_large);
    assert_false(get.midway);
    /* What libfcgi gets is what nginx sent without its padding: 7 bytes here. */
    struct buffer wanted;
    init_bytes(&wanted);
    buffer_append(&wanted, captured_get, 22);
    buffer_append_char(&wanted, 0); /* of the padding's length */
    buffer_append_char(&wanted, 0);
    buffer_append(&wanted, captured_get + 24, 0xf1);
    buffer_append(&wanted, captured_get + 24 + 0xf1 + 7, 16);
    assert_int_equal(get.taken.len, wanted.len);
    assert_memory_equal(get.taken.data, wanted.data, wanted.len);
    buffer_free(&wanted);
    free_outcome(&get);

    struct outcome post = feed_every_way((const char *)captured_post, sizeof(captured_post));
    ASSERT_EVENTS(&post, RECORD_REQUEST);
    assert_bodies(&post, "{\"prompt\":\"hello\",\"max_tokens\":20}|");
    free_outcome(&post);
}

static void test_keep_flag_and_id(void **state)
{
    static const struct {
        unsigned id, flags;
        bool keep;
    } rows[] = {
        {1, 0, false}, {1, 1, true}, {256, 1, true}, {65535, 0xff, true}, {2, 0xfe, false}};

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct buffer bytes;
        struct record_parser parser;
        size_t used;

        init_bytes(&bytes);
        peer_request(&bytes, rows[row].id, rows[row].flags, "/", "", NULL);
        record_init(&parser, &limits);
        assert_int_equal(record_parse(&parser, bytes.data, bytes.len, &used), RECORD_REQUEST);
        assert_int_equal(used, bytes.len);
        assert_int_equal(parser.request_id, rows[row].id);
        assert_int_equal(parser.keep_connection, rows[row].keep);
        record_free(&parser);
        buffer_free(&bytes);
    }
}

/* Streams in small pieces, each with another padding, are the stream in one. */
static void test_streams_in_pieces(void **state)
{
    static const char params[] = "\1\1Ab\2\3AAbbb";
    static const char body[] = "{\"prompt\":\"hello\"}";
    static const size_t pieces[] = {1, 2, 7, 100};
    static const size_t paddings[] = {0, 1, 7, 255};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(pieces); i++) {
        for (size_t j = 0; j < COUNT_OF(paddings); j++) {
            struct buffer bytes;
            struct buffer wanted;
            struct outcome outcome;

            init_bytes(&bytes);
            peer_begin(&bytes, 3, 1, 1);
            peer_stream(&bytes, PEER_PARAMS, 3, params, sizeof(params) - 1, pieces[i],
                        paddings[j]);
            peer_stream(&bytes, PEER_STDIN, 3, body, sizeof(body) - 1, pieces[i], paddings[j]);
            init_bytes(&wanted);
            peer_begin(&wanted, 3, 1, 1);
            peer_stream(&wanted, PEER_PARAMS, 3, params, sizeof(params) - 1, 65535, 0);
            peer_record(&wanted, PEER_STDIN, 3, "", 0, 0);
            for (int by_bytes = 0; by_bytes < 2; by_bytes++) {
                feed(&outcome, bytes.data, bytes.len, by_bytes ? 0 : bytes.len);
                ASSERT_EVENTS(&outcome, RECORD_REQUEST);
                assert_bodies(&outcome, "{\"prompt\":\"hello\"}|");
                assert_int_equal(outcome.taken.len, wanted.len);
                assert_memory_equal(outcome.taken.data, wanted.data, wanted.len);
                free_outcome(&outcome);
            }
            buffer_free(&bytes);
            buffer_free(&wanted);
        }
    }
}

static void test_padding_of_empty_records(void **state)
{
    struct buffer bytes;

    (void)state;
    init_bytes(&bytes);
    peer_begin(&bytes, 1, 1, 0);
    peer_record(&bytes, PEER_PARAMS, 1, "\1\1Ab", 4, 4);
    peer_record(&bytes, PEER_PARAMS, 1, "", 0, 9);
    peer_record(&bytes, PEER_STDIN, 1, "x", 1, 255);
    peer_record(&bytes, PEER_STDIN, 1, "", 0, 8);
    struct outcome outcome = feed_every_way(bytes.data, bytes.len);
    ASSERT_EVENTS(&outcome, RECORD_REQUEST);
    assert_bodies(&outcome, "x|");
    assert_false(outcome.midway);
    free_outcome(&outcome);
    buffer_free(&bytes);
}

static void test_pipelined_requests(void **state)
{
    struct buffer bytes;

    (void)state;
    init_bytes(&bytes);
    peer_request(&bytes, 1, 1, "/a", "", "first");
    peer_request(&bytes, 1, 1, "/b", "", NULL);
    peer_request(&bytes, 2, 0, "/c", "", "third");
    struct outcome outcome = feed_every_way(bytes.data, bytes.len);
    ASSERT_EVENTS(&outcome, RECORD_REQUEST, RECORD_REQUEST, RECORD_REQUEST);
    assert_bodies(&outcome, "first||third|");
    free_outcome(&outcome);
    buffer_free(&bytes);
}

/* Longer than one record can be: cut anew. */
static void test_params_beyond_one_record(void **state)
{
    static const struct record_limits large = {.params_max_bytes = 200000,
                                               .body_max_bytes = 200000};
    static char long_text[150001];
    struct record_parser parser;
    struct buffer bytes;
    struct buffer params;
    struct buffer taken;
    struct buffer body;
    size_t used;

    (void)state;
    memset(long_text, 'x', sizeof(long_text) - 1);
    init_bytes(&bytes);
    init_bytes(&params);
    init_bytes(&taken);
    peer_pair(&params, "QUERY_STRING", long_text);
    peer_begin(&bytes, 1, 1, 0);
    peer_stream(&bytes, PEER_PARAMS, 1, params.data, params.len, 1000, 3);
    peer_stream(&bytes, PEER_STDIN, 1, long_text, 150000, 65535, 0);
    record_init(&parser, &large);
    assert_int_equal(record_parse(&parser, bytes.data, bytes.len, &used), RECORD_REQUEST);
    assert_int_equal(record_take(&parser, &taken, &body), 0);
    assert_int_equal(body.len, 150000);
    bytes.len = 0;
    peer_begin(&bytes, 1, 1, 0);
    peer_stream(&bytes, PEER_PARAMS, 1, params.data, params.len, 65535, 0);
    peer_record(&bytes, PEER_STDIN, 1, "", 0, 0);
    assert_int_equal(taken.len, bytes.len);
    assert_memory_equal(taken.data, bytes.data, bytes.len);
    record_free(&parser);
    buffer_free(&body);
    buffer_free(&taken);
    buffer_free(&params);
    buffer_free(&bytes);
}

static void test_take_without_room(void **state)
{
    struct record_parser parser;
    struct buffer taken;
    struct buffer body;
    size_t used;

    (void)state;
    record_init(&parser, &limits);
    assert_int_equal(
        record_parse(&parser, (const char *)captured_post, sizeof(captured_post), &used),
        RECORD_REQUEST);
    buffer_init(&taken, 100);
    assert_int_equal(record_take(&parser, &taken, &body), -1);
    assert_false(record_is_midway(&parser));
    buffer_free(&body);
    buffer_free(&taken);
    record_free(&parser);
}

/* --- limits --- */

/* Params of exactly `len` bytes: one pair, or none. */
static void append_pair_of(struct buffer *out, size_t len)
{
    static char value[65536];
    size_t lengths = len < 3 + 0x80 ? 3 : 6; /* with the name, `A` */

    if (len == 0)
        return;
    memset(value, 'x', len - lengths);
    value[len - lengths] = '\0';
    peer_pair(out, "A", value);
}

static void test_limits(void **state)
{
    static const struct {
        size_t params, body;
        enum record_event event;
        bool too_large;
    } rows[] = {
        {1000, 2000, RECORD_REQUEST, false}, {1001, 0, RECORD_BAD, false},
        {5000, 0, RECORD_BAD, false},        {10, 2001, RECORD_REQUEST, true},
        {10, 50000, RECORD_REQUEST, true},   {0, 0, RECORD_REQUEST, false},
    };
    static char text[50000];

    (void)state;
    memset(text, 'x', sizeof(text));
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        for (size_t piece = 1; piece < 5000; piece = piece * 9 + 4) {
            struct buffer bytes;
            struct buffer params;
            struct outcome outcome;

            init_bytes(&bytes);
            init_bytes(&params);
            append_pair_of(&params, rows[row].params);
            assert_int_equal(params.len, rows[row].params);
            peer_begin(&bytes, 1, 1, 1);
            peer_stream(&bytes, PEER_PARAMS, 1, params.data, params.len, piece, 1);
            buffer_free(&params);
            peer_stream(&bytes, PEER_STDIN, 1, text, rows[row].body, piece, 1);
            if (rows[row].event == RECORD_REQUEST) /* the next one is served as ever */
                peer_request(&bytes, 2, 0, "/", "", "next");
            feed(&outcome, bytes.data, bytes.len, bytes.len);
            assert_int_equal(outcome.events[0], rows[row].event);
            if (rows[row].event == RECORD_REQUEST) {
                assert_int_equal(outcome.count, 2);
                assert_int_equal(outcome.events[1], RECORD_REQUEST);
                assert_false(outcome.body_too_large); /* of the second */
                size_t kept = rows[row].too_large ? 0 : rows[row].body;
                assert_int_equal(outcome.bodies.len, kept + 6);
                assert_memory_equal(outcome.bodies.data + kept, "|next|", 6);
            }
            free_outcome(&outcome);
            buffer_free(&bytes);
        }
    }
}

/* Drained and flagged, and what it takes meanwhile is no more than the limit. */
static void test_a_body_too_large_is_flagged(void **state)
{
    static char text[50000];
    struct record_parser parser;
    struct buffer bytes;
    size_t used;

    (void)state;
    init_bytes(&bytes);
    peer_begin(&bytes, 1, 1, 1);
    peer_record(&bytes, PEER_PARAMS, 1, "", 0, 0);
    peer_record(&bytes, PEER_STDIN, 1, text, 2000, 0);
    record_init(&parser, &limits);
    assert_int_equal(record_parse(&parser, bytes.data, bytes.len, &used), RECORD_NEED_MORE);
    assert_false(parser.body_too_large);
    bytes.len = 0;
    peer_record(&bytes, PEER_STDIN, 1, text, sizeof(text), 0);
    assert_int_equal(record_parse(&parser, bytes.data, bytes.len, &used), RECORD_NEED_MORE);
    assert_true(parser.body_too_large);
    assert_int_equal(parser.body.cap, 0);
    peer_record(&bytes, PEER_STDIN, 1, "", 0, 0);
    assert_int_equal(record_parse(&parser, bytes.data, bytes.len, &used), RECORD_REQUEST);
    assert_true(parser.body_too_large);
    record_free(&parser);
    buffer_free(&bytes);
}

/* --- management records --- */

static void append_get_values(struct buffer *out, const char *const *names, size_t count)
{
    struct buffer content;

    init_bytes(&content);
    for (size_t i = 0; i < count; i++)
        peer_pair(&content, names[i], "");
    peer_record(out, PEER_GET_VALUES, 0, content.data, content.len, (8 - content.len % 8) % 8);
    buffer_free(&content);
}

#define CONNS "FCGI_MAX_CONNS"
#define REQS  "FCGI_MAX_REQS"
#define MPXS  "FCGI_MPXS_CONNS"

static void test_get_values(void **state)
{
    static const struct {
        const char *names[24];
        unsigned asked;
    } rows[] = {
        {{CONNS}, 1},
        {{REQS}, 2},
        {{MPXS}, 4},
        {{CONNS, REQS, MPXS}, 7},
        {{MPXS, CONNS}, 5},
        {{NULL}, 0},
        {{"FCGI_MAX_CONN"}, 0},
        {{"FCGI_MAX_CONNSX"}, 0},
        {{"UNKNOWN", CONNS}, 1},
        {{MPXS, MPXS, MPXS, MPXS, MPXS, MPXS, MPXS, MPXS, MPXS, MPXS,
          MPXS, MPXS, MPXS, MPXS, MPXS, MPXS, MPXS, MPXS, MPXS, MPXS},
         4},
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct buffer bytes;
        size_t count = 0;

        while (rows[row].names[count] != NULL)
            count++;
        init_bytes(&bytes);
        append_get_values(&bytes, rows[row].names, count);
        struct outcome outcome = feed_every_way(bytes.data, bytes.len);
        ASSERT_EVENTS(&outcome, RECORD_GET_VALUES);
        if (outcome.asked_values != rows[row].asked)
            fail_msg("row %zu: asked %u", row, outcome.asked_values);
        assert_false(outcome.midway);
        free_outcome(&outcome);
        buffer_free(&bytes);
    }
}

/* Names that we do not know, or repeated ones, before those that we do. */
static void test_get_values_behind_other_names(void **state)
{
    static const char *const rows[][6] = {
        {"SOME_VARIABLE_OF_ANOTHER_SERVER", CONNS, REQS, MPXS},
        {CONNS, CONNS, CONNS, CONNS, REQS, MPXS},
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct buffer bytes;
        struct outcome outcome;
        size_t count = row == 0 ? 4 : 6;

        init_bytes(&bytes);
        append_get_values(&bytes, rows[row], count);
        feed(&outcome, bytes.data, bytes.len, bytes.len);
        ASSERT_EVENTS(&outcome, RECORD_GET_VALUES);
        unsigned asked = outcome.asked_values;
        free_outcome(&outcome);
        buffer_free(&bytes);
        if (asked != 7)
            fail_msg("row %zu: asked %u", row, asked);
    }
}

/* Lengths that point beyond the content, in both spellings. */
static void test_get_values_malformed(void **state)
{
    static const struct {
        const char *content;
        size_t len;
        unsigned asked;
    } rows[] = {
        {"\x0e", 1, 0},
        {"\x0e\x00", 2, 0},
        {"\x0e\x00" CONNS, 16, 1},
        {"\x0e\x00" CONNS, 15, 0},
        {"\x0e\x05" CONNS, 16, 1}, /* the value is cut: the name was asked for all the same */
        {"\x80", 1, 0},
        {"\x80\x00\x00", 3, 0},
        {"\x80\x00\x00\x0e\x00" CONNS, 19, 1},
        {"\x80\x00\x00\x0e\x80\x00\x00\x00" CONNS, 22, 1},
        {"\xff\xff\xff\xff\xff\xff\xff\xff", 8, 0},
        {"\x0e\xff\xff\xff\xff" CONNS, 19, 1},
        {"\x00\x00", 2, 0},
        {"\x00\x03zzz\x0e\x00" CONNS, 21, 1},
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct buffer bytes;

        init_bytes(&bytes);
        peer_record(&bytes, PEER_GET_VALUES, 0, rows[row].content, rows[row].len, 0);
        struct outcome outcome = feed_every_way(bytes.data, bytes.len);
        ASSERT_EVENTS(&outcome, RECORD_GET_VALUES);
        if (outcome.asked_values != rows[row].asked)
            fail_msg("row %zu: asked %u", row, outcome.asked_values);
        free_outcome(&outcome);
        buffer_free(&bytes);
    }
}

/* Management records between any two records of a request change nothing about it. */
static void test_management_inside_a_request(void **state)
{
    static const char *const names[20] = {REQS, REQS, REQS, REQS, REQS, REQS, REQS,
                                          REQS, REQS, REQS, REQS, REQS, REQS, REQS,
                                          REQS, REQS, REQS, REQS, REQS, REQS};
    struct buffer bytes;

    (void)state;
    init_bytes(&bytes);
    peer_begin(&bytes, 1, 1, 0);
    append_get_values(&bytes, names, 20);
    peer_record(&bytes, PEER_PARAMS, 1, "\1\1A", 3, 5);
    append_get_values(&bytes, names, 20);
    peer_record(&bytes, PEER_PARAMS, 1, "b", 1, 0);
    peer_record(&bytes, PEER_PARAMS, 1, "", 0, 0);
    peer_record(&bytes, PEER_STDIN, 1, "bo", 2, 0);
    append_get_values(&bytes, names, 1);
    peer_record(&bytes, 200, 0, "what", 4, 4);
    peer_record(&bytes, PEER_STDIN, 1, "dy", 2, 0);
    peer_record(&bytes, PEER_STDIN, 1, "", 0, 0);
    struct outcome outcome;
    feed(&outcome, bytes.data, bytes.len, bytes.len);
    ASSERT_EVENTS(&outcome, RECORD_GET_VALUES, RECORD_GET_VALUES, RECORD_GET_VALUES,
                  RECORD_UNKNOWN_TYPE, RECORD_REQUEST);
    assert_int_equal(outcome.asked_values, 2);
    assert_int_equal(outcome.unknown_type, 200);
    assert_bodies(&outcome, "body|");
    /* 16 BEGIN, 8 + 4 PARAMS, 8, 8 */
    assert_int_equal(outcome.taken.len, 44);
    assert_memory_equal(outcome.taken.data + 24, "\1\1Ab", 4);
    free_outcome(&outcome);
    outcome = feed_every_way(bytes.data, bytes.len);
    free_outcome(&outcome);
    buffer_free(&bytes);
}

static void test_unknown_management_types(void **state)
{
    static const unsigned types[] = {0,           PEER_ABORT,   PEER_END, PEER_PARAMS,
                                     PEER_STDIN,  PEER_STDOUT,  7,        8,
                                     PEER_VALUES, PEER_UNKNOWN, 12,       255};

    (void)state;
    for (size_t row = 0; row < COUNT_OF(types); row++) {
        struct buffer bytes;

        init_bytes(&bytes);
        peer_record(&bytes, types[row], 0, "some content", 12, 4);
        peer_request(&bytes, 1, 0, "/", "", NULL);
        struct outcome outcome = feed_every_way(bytes.data, bytes.len);
        ASSERT_EVENTS(&outcome, RECORD_UNKNOWN_TYPE, RECORD_REQUEST);
        assert_int_equal(outcome.unknown_type, types[row]);
        free_outcome(&outcome);
        buffer_free(&bytes);
    }
}

/* --- records of a request in the wrong place --- */

static void test_abort(void **state)
{
    struct buffer bytes;

    (void)state;
    init_bytes(&bytes);
    peer_begin(&bytes, 7, 1, 1); /* in mid-head */
    peer_record(&bytes, PEER_PARAMS, 7, "\1\1Ab", 4, 0);
    peer_record(&bytes, PEER_ABORT, 7, "", 0, 0);
    peer_begin(&bytes, 8, 1, 1); /* in mid-body */
    peer_record(&bytes, PEER_PARAMS, 8, "", 0, 0);
    peer_record(&bytes, PEER_STDIN, 8, "abc", 3, 0);
    peer_record(&bytes, PEER_ABORT, 9, "", 0, 0); /* another's */
    peer_record(&bytes, PEER_ABORT, 8, "", 0, 0);
    peer_record(&bytes, PEER_ABORT, 8, "", 0, 0); /* of none: ignored */
    peer_request(&bytes, 8, 0, "/", "", "clean");
    struct outcome outcome = feed_every_way(bytes.data, bytes.len);
    ASSERT_EVENTS(&outcome, RECORD_ABORTED, RECORD_ABORTED, RECORD_REQUEST);
    assert_int_equal(outcome.aborted_id, 8);
    assert_bodies(&outcome, "clean|");
    free_outcome(&outcome);
    buffer_free(&bytes);
}

static void test_a_second_request_inside(void **state)
{
    struct buffer bytes;

    (void)state;
    init_bytes(&bytes);
    peer_begin(&bytes, 1, 1, 1);
    peer_record(&bytes, PEER_PARAMS, 1, "\1\1Ab", 4, 0);
    peer_request(&bytes, 2, 1, "/other", "", "other body");
    peer_record(&bytes, PEER_PARAMS, 1, "", 0, 0);
    peer_begin(&bytes, 513, 1, 1);
    peer_record(&bytes, PEER_STDIN, 1, "mine", 4, 0);
    peer_record(&bytes, PEER_STDIN, 513, "not mine", 8, 0);
    peer_record(&bytes, PEER_STDIN, 1, "", 0, 0);
    struct outcome outcome = feed_every_way(bytes.data, bytes.len);
    ASSERT_EVENTS(&outcome, RECORD_CANNOT_MULTIPLEX, RECORD_CANNOT_MULTIPLEX, RECORD_REQUEST);
    assert_int_equal(outcome.other_id, 513);
    assert_bodies(&outcome, "mine|");
    assert_int_equal(outcome.taken.len, 44);
    free_outcome(&outcome);
    buffer_free(&bytes);
}

static void test_records_of_other_ids_are_skipped(void **state)
{
    struct buffer bytes;

    (void)state;
    init_bytes(&bytes);
    peer_record(&bytes, PEER_STDIN, 5, "late", 4, 4); /* before any request */
    peer_record(&bytes, PEER_ABORT, 5, "", 0, 0);
    peer_record(&bytes, PEER_PARAMS, 5, "\1\1Zz", 4, 0);
    peer_begin(&bytes, 1, 1, 0);
    peer_record(&bytes, PEER_PARAMS, 5, "\1\1Zz", 4, 0);
    peer_record(&bytes, PEER_STDIN, 5, "late", 4, 0);
    peer_record(&bytes, PEER_PARAMS, 1, "", 0, 0);
    peer_record(&bytes, 77, 1, "a type we do not know", 21, 3);
    peer_record(&bytes, PEER_STDIN, 5, "", 0, 0);
    peer_record(&bytes, PEER_STDIN, 1, "", 0, 0);
    struct outcome outcome = feed_every_way(bytes.data, bytes.len);
    ASSERT_EVENTS(&outcome, RECORD_REQUEST);
    assert_bodies(&outcome, "|");
    assert_int_equal(outcome.taken.len, 32);
    free_outcome(&outcome);
    buffer_free(&bytes);
}

/* --- nonsense --- */

static void append_header(struct buffer *out, unsigned version, unsigned type, unsigned id,
                          unsigned content)
{
    unsigned char header[8] = {(unsigned char)version,        (unsigned char)type,
                               (unsigned char)(id >> 8),      (unsigned char)id,
                               (unsigned char)(content >> 8), (unsigned char)content};

    buffer_append(out, header, sizeof(header));
}

static void test_bad_headers(void **state)
{
    static const struct {
        bool begun; /* request 1 has begun */
        unsigned version, type, id, content;
    } rows[] = {
        {false, 0, PEER_BEGIN, 1, 8},      {false, 2, PEER_BEGIN, 1, 8},
        {false, 255, PEER_BEGIN, 1, 8},    {true, 2, PEER_PARAMS, 1, 8},
        {false, 2, PEER_GET_VALUES, 0, 8}, {false, 1, PEER_BEGIN, 0, 8},
        {false, 1, PEER_BEGIN, 1, 0},      {false, 1, PEER_BEGIN, 1, 7},
        {false, 1, PEER_BEGIN, 1, 9},      {false, 1, PEER_BEGIN, 1, 65535},
        {true, 1, PEER_STDIN, 1, 8}, /* before the head is complete */
        {true, 1, PEER_STDIN, 1, 0},       {false, 1, PEER_GET_VALUES, 1, 0},
        {true, 1, PEER_GET_VALUES, 1, 0},  {false, 1, PEER_GET_VALUES, 0, 65535},
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct buffer bytes;

        init_bytes(&bytes);
        if (rows[row].begun)
            peer_begin(&bytes, 1, 1, 0);
        append_header(&bytes, rows[row].version, rows[row].type, rows[row].id,
                      rows[row].content);
        struct outcome outcome = feed_every_way(bytes.data, bytes.len);
        if (outcome.count != 1 || outcome.events[0] != RECORD_BAD)
            fail_msg("row %zu: taken", row);
        free_outcome(&outcome);
        buffer_free(&bytes);
    }
}

static void test_bad_sequences(void **state)
{
    struct buffer bytes;

    (void)state;
    for (int row = 0; row < 5; row++) {
        init_bytes(&bytes);
        switch (row) {
        case 0: /* PARAMS after its end */
            peer_begin(&bytes, 1, 1, 0);
            peer_record(&bytes, PEER_PARAMS, 1, "", 0, 0);
            peer_record(&bytes, PEER_PARAMS, 1, "\1\1Ab", 4, 0);
            break;
        case 1: /* the same id begun twice */
            peer_begin(&bytes, 1, 1, 0);
            peer_begin(&bytes, 1, 1, 0);
            break;
        case 2: /* an authorizer */
            peer_begin(&bytes, 1, 2, 0);
            break;
        case 3: /* a filter */
            peer_begin(&bytes, 1, 3, 0);
            break;
        default: /* no role there is */
            peer_begin(&bytes, 1, 0x0100, 0);
        }
        struct outcome outcome = feed_every_way(bytes.data, bytes.len);
        if (outcome.count != 1 || outcome.events[0] != RECORD_BAD)
            fail_msg("row %d: taken", row);
        free_outcome(&outcome);
        buffer_free(&bytes);
    }
}

static void test_other_protocols(void **state)
{
    static const char *const rows[] = {
        "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "\x16\x03\x01\x02\x01\x01\x01\xfc\x03\x03\x01\x02", /* TLS */
        "SSH-2.0-OpenSSH_9.2\r\n",
        "PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\n",
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct outcome outcome = feed_every_way(rows[row], strlen(rows[row]));
        ASSERT_EVENTS(&outcome, RECORD_BAD);
        free_outcome(&outcome);
    }
}

static void test_midway(void **state)
{
    static const struct {
        size_t bytes; /* of the captured POST */
        bool midway;
    } rows[] = {{0, false}, {1, true},   {7, true},  {8, true},
                {16, true}, {100, true}, {303, true}};
    struct record_parser parser;
    size_t used;

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        assert_true(rows[row].bytes < sizeof(captured_post));
        record_init(&parser, &limits);
        assert_int_equal(
            record_parse(&parser, (const char *)captured_post, rows[row].bytes, &used),
            RECORD_NEED_MORE);
        assert_int_equal(record_is_midway(&parser), rows[row].midway);
        record_free(&parser);
    }
}

static uint64_t next_random(uint64_t *random)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *random >> 33;
}

/* Two requests and some management, damaged in one to eight places: any events, no crash, and
 * never more memory than the limits allow. */
static void test_damaged_requests(void **state)
{
    static const char *const names[] = {CONNS, REQS, MPXS};
    struct buffer bytes;
    uint64_t random = 20240601;
    size_t events = 0;

    (void)state;
    init_bytes(&bytes);
    append_get_values(&bytes, names, 3);
    buffer_append(&bytes, captured_post, sizeof(captured_post));
    peer_record(&bytes, 99, 0, "abc", 3, 5);
    buffer_append(&bytes, captured_get, sizeof(captured_get));
    char *damaged = malloc(bytes.len);
    assert_non_null(damaged);
    for (int round = 0; round < 60000; round++) {
        struct record_parser parser;
        size_t len = bytes.len;

        memcpy(damaged, bytes.data, len);
        for (uint64_t i = next_random(&random) % 8 + 1; i > 0; i--)
            damaged[next_random(&random) % len] = (char)next_random(&random);
        if (next_random(&random) % 4 == 0)
            len = next_random(&random) % len;
        record_init(&parser, &limits);
        for (size_t at = 0; at < len;) {
            size_t piece = next_random(&random) % 300 + 1;
            size_t used;
            piece = piece < len - at ? piece : len - at;
            enum record_event event = record_parse(&parser, damaged + at, piece, &used);
            assert_true(used <= piece);
            assert_true(parser.params.len <= limits.params_max_bytes);
            assert_true(parser.body.len <= limits.body_max_bytes);
            if (event == RECORD_BAD)
                break;
            if (event == RECORD_REQUEST) {
                struct buffer taken;
                struct buffer body;
                init_bytes(&taken);
                assert_int_equal(record_take(&parser, &taken, &body), 0);
                buffer_free(&taken);
                buffer_free(&body);
                events++;
            }
            at += used;
        }
        record_free(&parser);
    }
    assert_true(events > 1000); /* the damage was not so heavy that nothing was looked at */
    free(damaged);
    buffer_free(&bytes);
}

/* --- answers --- */

static void test_is_abort(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        uint16_t id;
        bool abort;
    } rows[] = {
        {"\1\2\0\1\0\0\0\0", 8, 1, true},   {"\1\2\0\1\0\0\0\0more", 12, 1, true},
        {"\1\2\1\2\0\0\0\0", 8, 258, true}, {"\1\2\0\1\0\0\0\0", 8, 2, false},
        {"\1\2\0\1\0\0\0", 7, 1, false},    {"", 0, 1, false},
        {"\2\2\0\1\0\0\0\0", 8, 1, false},  {"\1\5\0\1\0\0\0\0", 8, 1, false},
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++)
        assert_int_equal(record_is_abort(rows[row].bytes, rows[row].len, rows[row].id),
                         rows[row].abort);
    assert_false(record_is_abort(NULL, 0, 1));
}

static void assert_bytes(struct buffer *out, const char *wanted, size_t len)
{
    assert_int_equal(out->len, len);
    assert_memory_equal(out->data, wanted, len);
    buffer_reset(out);
}

static void test_answers(void **state)
{
    struct buffer out;

    (void)state;
    init_bytes(&out);
    assert_int_equal(record_append_end_request(&out, 258, RECORD_REQUEST_COMPLETE), 0);
    assert_bytes(&out, "\1\3\1\2\0\10\0\0\0\0\0\0\0\0\0\0", 16);
    assert_int_equal(record_append_end_request(&out, 1, RECORD_CANT_MPX_CONN), 0);
    assert_bytes(&out, "\1\3\0\1\0\10\0\0\0\0\0\0\1\0\0\0", 16);
    assert_int_equal(record_append_unknown_type(&out, 200), 0);
    assert_bytes(&out, "\1\13\0\0\0\10\0\0\310\0\0\0\0\0\0\0", 16);
    assert_int_equal(record_append_values(&out, 0), 0);
    assert_bytes(&out, "\1\12\0\0\0\0\0\0", 8);
    assert_int_equal(record_append_values(&out, 4), 0);
    assert_bytes(&out, "\1\12\0\0\0\22\0\0\17\1" MPXS "0", 26);
    assert_int_equal(record_append_values(&out, 7), 0);
    assert_int_equal(out.len, 8 + (size_t)(out.data[4] << 8 | out.data[5]));
    buffer_free(&out);
    buffer_init(&out, 20);
    assert_int_equal(record_append_values(&out, 7), -1);
    buffer_reset(&out);
    assert_int_equal(record_append_end_request(&out, 1, RECORD_REQUEST_COMPLETE), 0);
    assert_int_equal(record_append_end_request(&out, 1, RECORD_REQUEST_COMPLETE), -1);
    buffer_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests_of_nginx),
        cmocka_unit_test(test_keep_flag_and_id),
        cmocka_unit_test(test_streams_in_pieces),
        cmocka_unit_test(test_padding_of_empty_records),
        cmocka_unit_test(test_pipelined_requests),
        cmocka_unit_test(test_params_beyond_one_record),
        cmocka_unit_test(test_take_without_room),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_a_body_too_large_is_flagged),
        cmocka_unit_test(test_get_values),
        cmocka_unit_test(test_get_values_behind_other_names),
        cmocka_unit_test(test_get_values_malformed),
        cmocka_unit_test(test_management_inside_a_request),
        cmocka_unit_test(test_unknown_management_types),
        cmocka_unit_test(test_abort),
        cmocka_unit_test(test_a_second_request_inside),
        cmocka_unit_test(test_records_of_other_ids_are_skipped),
        cmocka_unit_test(test_bad_headers),
        cmocka_unit_test(test_bad_sequences),
        cmocka_unit_test(test_other_protocols),
        cmocka_unit_test(test_midway),
        cmocka_unit_test(test_damaged_requests),
        cmocka_unit_test(test_is_abort),
        cmocka_unit_test(test_answers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

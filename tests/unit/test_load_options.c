/*
 * options: what each takes and refuses, that a refusal names its option, and what follows from
 * what.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gen/load/options.h"
#include "scratch.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

enum { ARGS_MAX = 150 };

static enum options_status parse(struct options *options, const char *const *args)
{
    static char name[] = "load";
    static char *argv[ARGS_MAX + 2];
    int argc = 1;

    argv[0] = name;
    for (; args[argc - 1] != NULL; argc++)
        argv[argc] = (char *)(uintptr_t)args[argc - 1];
    argv[argc] = NULL;
    return options_parse(options, argc, argv);
}

static void test_defaults(void **state)
{
    struct options options;

    (void)state;
    unsetenv("RUNNEL_PORT");
    assert_int_equal(parse(&options, (const char *const[]){NULL}), OPTIONS_RUN);
    assert_string_equal(options.url, "http://127.0.0.1:8170/stream");
    assert_string_equal(options.prompt, "hello");
    assert_int_equal(options.tokens, 128);
    assert_int_equal(options.streams, 1);
    assert_int_equal(options.requests, 1);
    assert_int_equal(options.duration_us, 0);
    assert_int_equal(options.ramp_us, 1000);
    assert_int_equal(options.timeout_us, 120000000);
    assert_int_equal(options.abort_milli, 0);
    assert_int_equal(options.slow_milli, 0);
    assert_int_equal(options.prompts, 1);
    assert_int_equal(options.format, PAYLOAD_AUTO);
    options_free(&options);
}

/* A URL of one's own is asked for as it stands. */
static void test_url(void **state)
{
    struct options options;

    (void)state;
    assert_int_equal(parse(&options, (const char *const[]){"http://h/x", NULL}), OPTIONS_RUN);
    assert_string_equal(options.url, "http://h/x");
    assert_null(options.prompt);
    assert_int_equal(options.tokens, 0);
    options_free(&options);
    assert_int_equal(
        parse(&options, (const char *const[]){"--url", "http://h/x", "http://h/y", NULL}),
        OPTIONS_USAGE);
    assert_non_null(strstr(options.why, "http://h/y"));
    options_free(&options);

    setenv("RUNNEL_PORT", "18551", 1);
    assert_int_equal(parse(&options, (const char *const[]){NULL}), OPTIONS_RUN);
    assert_string_equal(options.url, "http://127.0.0.1:18551/stream");
    options_free(&options);
    setenv("RUNNEL_PORT", "port", 1);
    assert_int_equal(parse(&options, (const char *const[]){NULL}), OPTIONS_USAGE);
    assert_non_null(strstr(options.why, "RUNNEL_PORT"));
    options_free(&options);
    unsetenv("RUNNEL_PORT");
}

static void test_values(void **state)
{
    static const char *const args[] = {"--streams",
                                       "12",
                                       "--requests",
                                       "34",
                                       "--duration",
                                       "5.5",
                                       "--warmup",
                                       "0.25",
                                       "--ramp",
                                       "2",
                                       "--rate",
                                       "0.5",
                                       "--arrivals",
                                       "poisson",
                                       "--timeout",
                                       "7",
                                       "--abort-rate",
                                       "12.5",
                                       "--abort-after",
                                       "3..9",
                                       "--slow-readers",
                                       "1",
                                       "--slow-pause",
                                       "0.5",
                                       "--seed",
                                       "18446744073709551615",
                                       "--tokens",
                                       "10",
                                       "--prompt",
                                       "p",
                                       "--prompts",
                                       "4",
                                       "--control",
                                       "itl_ms=20",
                                       "--control",
                                       "x=",
                                       "--format",
                                       "openai",
                                       "--verify",
                                       "--keepalive",
                                       "--insecure",
                                       "--goodput",
                                       "ttft:500,itl:50.5",
                                       "--json",
                                       "j",
                                       "--hdr",
                                       "h",
                                       "--hdr",
                                       "ttft:t",
                                       "--events",
                                       "e",
                                       "--events-streams",
                                       "3",
                                       "-q",
                                       "-X",
                                       "PUT",
                                       "-H",
                                       "A: b",
                                       "-H",
                                       "C:d",
                                       "-d",
                                       "body",
                                       "--unix-socket",
                                       "s",
                                       "http://h/",
                                       NULL};
    struct options options;

    (void)state;
    assert_int_equal(parse(&options, args), OPTIONS_RUN);
    assert_int_equal(options.streams, 12);
    assert_int_equal(options.requests, 34);
    assert_int_equal(options.duration_us, 5500000);
    assert_int_equal(options.warmup_us, 250000);
    assert_int_equal(options.ramp_us, 2000000);
    assert_int_equal(options.rate_milli, 500);
    assert_int_equal(options.arrivals, ARRIVALS_POISSON);
    assert_int_equal(options.timeout_us, 7000000);
    assert_int_equal(options.abort_milli, 12500);
    assert_int_equal(options.abort_min, 3);
    assert_int_equal(options.abort_max, 9);
    assert_int_equal(options.slow_milli, 1000);
    assert_int_equal(options.slow_pause_us, 500);
    assert_true(options.seed == UINT64_MAX);
    assert_int_equal(options.tokens, 10);
    assert_string_equal(options.prompt, "p");
    assert_int_equal(options.prompts, 4);
    assert_int_equal(options.control_count, 2);
    assert_string_equal(options.controls[1], "x=");
    assert_int_equal(options.format, PAYLOAD_OPENAI);
    assert_true(options.verify && options.keepalive && options.insecure && options.quiet);
    assert_true(options.goodput.wanted);
    assert_int_equal(options.goodput.ttft_us, 500000);
    assert_int_equal(options.goodput.itl_us, 50500);
    assert_int_equal(options.goodput.tpot_us, 0);
    assert_string_equal(options.json_path, "j");
    assert_int_equal(options.hdr_count, 2);
    assert_int_equal(options.hdr[0].figure, FIGURE_ITL);
    assert_string_equal(options.hdr[0].path, "h");
    assert_int_equal(options.hdr[1].figure, FIGURE_TTFT);
    assert_string_equal(options.hdr[1].path, "t");
    assert_string_equal(options.events_path, "e");
    assert_int_equal(options.events_streams, 3);
    assert_string_equal(options.method, "PUT");
    assert_int_equal(options.header_count, 2);
    assert_string_equal(options.headers[0], "A: b");
    assert_string_equal(options.body, "body");
    assert_string_equal(options.unix_socket, "s");
    assert_string_equal(options.url, "http://h/");
    options_free(&options);
}

static void test_refusals(void **state)
{
    static const struct {
        const char *args[4];
        const char *named; /* what the sentence must name */
    } rows[] = {
        {{"--streams", "0"}, "--streams"},
        {{"--streams", "1e3"}, "1e3"},
        {{"--streams", "1000001"}, "1000000"},
        {{"--streams", ""}, "--streams"},
        {{"--requests", "-1"}, "--requests"},
        {{"--duration", "0"}, "--duration"},
        {{"--duration", "1.2345"}, "--duration"},
        {{"--warmup", "x"}, "--warmup"},
        {{"--rate", "0"}, "--rate"},
        {{"--rate", "5"}, "--duration"}, /* when is it over? */
        {{"--arrivals", "Poisson"}, "poisson"},
        {{"--timeout", "0"}, "--timeout"},
        {{"--abort-rate", "100.001"}, "--abort-rate"},
        {{"--abort-rate", "30%"}, "30%"},
        {{"--abort-after", "0"}, "--abort-after"},
        {{"--abort-after", "5..3"}, "5..3"},
        {{"--abort-after", "5.."}, "--abort-after"},
        {{"--abort-after", "..5"}, "--abort-after"},
        {{"--abort-after", "1..2..3"}, "--abort-after"},
        {{"--slow-readers", "-1"}, "--slow-readers"},
        {{"--slow-pause", "0"}, "--slow-pause"},
        {{"--seed", "0x10"}, "--seed"},
        {{"--tokens", "0"}, "--tokens"},
        {{"--prompt", ""}, "--prompt"},
        {{"--prompts", "2", "http://h/"}, "--prompts"},
        {{"--control", "itl_ms"}, "NAME=VALUE"},
        {{"--control", "=5"}, "--control"},
        {{"--control", "a b=5"}, "NAME"},
        {{"--format", "json"}, "--format"},
        {{"--goodput", ""}, "--goodput"},
        {{"--goodput", "ttft"}, "--goodput"},
        {{"--goodput", "ttft:"}, "--goodput"},
        {{"--goodput", "ttft:5,"}, "--goodput"},
        {{"--goodput", "ttft:5,foo:6"}, "--goodput"},
        {{"--goodput", "ttft:0"}, "--goodput"},
        {{"--hdr", "ttft:"}, "--hdr"},
        {{"--events-streams", "0"}, "--events-streams"},
        {{"-X", "get"}, "--request"},
        {{"-X", "GE T"}, "--request"},
        {{"-H", "no colon"}, "--header"},
        {{"-H", ": x"}, "--header"},
        {{"-H", "A: b\r\nC: d"}, "--header"},
        {{"-H", "@/nonexistent/file"}, "/nonexistent/file"},
        {{"-d", "x"}, "URL"},
        {{"-d", "@/nonexistent/file", "http://h/"}, "/nonexistent/file"},
        {{"--duration", "1", "--warmup"}, "--warmup"},
        {{"--warmup", "1", "--duration=1"}, "--warmup"},
        {{"--streams"}, "--streams"},
        {{"--verify=yes"}, "--verify=yes"},
        {{"--nonsense"}, "--nonsense"},
        {{"http://a/", "http://b/"}, "http://b/"},
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct options options;
        assert_int_equal(parse(&options, rows[row].args), OPTIONS_USAGE);
        if (strstr(options.why, rows[row].named) == NULL)
            fail_msg("`%s` does not name %s", options.why, rows[row].named);
        assert_null(strchr(options.why, '\n'));
        options_free(&options);
    }
}

/* A value that plays with the terminal is shown harmlessly. */
static void test_shown_values(void **state)
{
    struct options options;
    char value[400] = "\033[31m\n";

    (void)state;
    memset(value + 6, 'x', sizeof(value) - 7);
    assert_int_equal(parse(&options, (const char *const[]){"--streams", value, NULL}),
                     OPTIONS_USAGE);
    assert_null(strchr(options.why, '\033'));
    assert_non_null(strstr(options.why, "..."));
    assert_non_null(strstr(options.why, "is allowed"));
    options_free(&options);
}

static void test_what_follows(void **state)
{
    struct options options;

    (void)state;
    parse(&options, (const char *const[]){"--streams", "50", NULL});
    assert_int_equal(options.requests, 50);
    assert_int_equal(options.ramp_us, 50000);
    options_free(&options);
    parse(&options, (const char *const[]){"--streams", "50", "--duration", "5", NULL});
    assert_int_equal(options.requests, 0);
    options_free(&options);
    parse(&options, (const char *const[]){"--rate", "5", "--requests", "7", NULL});
    assert_int_equal(options.streams, 10000);
    assert_int_equal(options.requests, 7);
    options_free(&options);
    parse(&options, (const char *const[]){"--abort-after", "5", NULL});
    assert_int_equal(options.abort_milli, 100000);
    assert_int_equal(options.abort_min, 5);
    assert_int_equal(options.abort_max, 5);
    options_free(&options);
    parse(&options, (const char *const[]){"--abort-after", "5", "--abort-rate", "0", NULL});
    assert_int_equal(options.abort_milli, 0);
    options_free(&options);
    parse(&options, (const char *const[]){"--ramp", "0", "--streams", "9", NULL});
    assert_int_equal(options.ramp_us, 0);
    options_free(&options);
}

static void test_files(void **state)
{
    struct scratch folder;
    struct options options;
    char headers[200];
    char body[200];

    (void)state;
    scratch_open(&folder);
    snprintf(headers, sizeof(headers), "@%s", scratch_file(&folder, "headers"));
    scratch_write(headers + 1, "A: 1\r\n\nB: 2\nC: 3", 16);
    snprintf(body, sizeof(body), "@%s", scratch_file(&folder, "body"));
    scratch_write(body + 1, "a\0b\n", 4);
    assert_int_equal(
        parse(&options, (const char *const[]){"-H", headers, "-d", body, "http://h/", NULL}),
        OPTIONS_RUN);
    assert_int_equal(options.header_count, 3);
    assert_string_equal(options.headers[0], "A: 1");
    assert_string_equal(options.headers[2], "C: 3");
    assert_int_equal(options.body_len, 4);
    assert_memory_equal(options.body, "a\0b\n", 4);
    options_free(&options);

    scratch_write(headers + 1, "A: 1\nno header\n", 15);
    assert_int_equal(parse(&options, (const char *const[]){"-H", headers, NULL}),
                     OPTIONS_USAGE);
    assert_non_null(strstr(options.why, "no header"));
    options_free(&options);
    scratch_write(headers + 1, "A: 1\0\nB: 2\n", 11);
    assert_int_equal(parse(&options, (const char *const[]){"-H", headers, NULL}),
                     OPTIONS_USAGE);
    options_free(&options);
    scratch_close(&folder);
}

static void test_too_many(void **state)
{
    const char *args[2 * OPTIONS_HEADERS_MAX + 4] = {NULL};
    struct options options;

    (void)state;
    for (int i = 0; i <= OPTIONS_CONTROLS_MAX; i++) {
        args[2 * i] = "--control";
        args[2 * i + 1] = "a=b";
    }
    assert_int_equal(parse(&options, args), OPTIONS_USAGE);
    assert_non_null(strstr(options.why, "--control"));
    options_free(&options);
    for (int i = 0; i <= OPTIONS_HEADERS_MAX; i++) {
        args[2 * i] = "-H";
        args[2 * i + 1] = "a: b";
    }
    assert_int_equal(parse(&options, args), OPTIONS_USAGE);
    assert_non_null(strstr(options.why, "--header"));
    options_free(&options);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),     cmocka_unit_test(test_url),
        cmocka_unit_test(test_values),       cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_shown_values), cmocka_unit_test(test_what_follows),
        cmocka_unit_test(test_files),        cmocka_unit_test(test_too_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

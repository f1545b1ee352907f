/*
 * report: the JSON is JSON and has the figures, no percentile is told that its sample does not
 * carry, the HdrHistogram table adds up, and doubts are told.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cjson/cJSON.h>

#include "gen/load/report.h"

enum { BEGAN = 5000000 };

static const struct options plain = {.url = "http://h/\"q\\\"", .streams = 3};

static void open_figures(struct figures *figures, const struct options *options)
{
    assert_int_equal(figures_init(figures), 0);
    figures_start(figures, options, BEGAN);
}

static void close_figures(struct figures *figures)
{
    figures_stop(figures, BEGAN + 2000000);
}

/* To be freed. */
static char *text_of(const struct figures *figures, const struct options *options)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    report_text(out, options, figures);
    fclose(out);
    return text;
}

static cJSON *json_of(const struct figures *figures, const struct options *options)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    report_json(out, options, figures);
    fclose(out);
    cJSON *json = cJSON_ParseWithOpts(text, NULL, 1);
    assert_non_null(json);
    free(text);
    return json;
}

/* `a.b.c`; NULL when it is not there. */
static const cJSON *at(const cJSON *json, const char *path)
{
    char name[64];

    while (json != NULL && *path != '\0') {
        size_t len = strcspn(path, ".");
        snprintf(name, sizeof(name), "%.*s", (int)len, path);
        json = cJSON_GetObjectItemCaseSensitive(json, name);
        path += len + (path[len] == '.');
    }
    return json;
}

static double number_at(const cJSON *json, const char *path)
{
    const cJSON *found = at(json, path);

    if (!cJSON_IsNumber(found))
        fail_msg("%s is no number", path);
    return found->valuedouble;
}

static void test_nothing(void **state)
{
    struct figures figures;

    (void)state;
    open_figures(&figures, &plain);
    close_figures(&figures);
    cJSON *json = json_of(&figures, &plain);
    assert_string_equal(at(json, "url")->valuestring, plain.url);
    assert_true(number_at(json, "requests.started") == 0);
    assert_true(cJSON_IsNull(at(json, "ms.ttft")));
    assert_true(cJSON_IsNull(at(json, "goodput")));
    assert_true(cJSON_IsNull(at(json, "client.cpu_us_per_token")));
    cJSON_Delete(json);
    free(text_of(&figures, &plain));
    figures_free(&figures);
}

static void test_percentiles_need_a_sample(void **state)
{
    static const struct {
        uint64_t count;
        const char *carried, *not_carried;
    } rows[] = {
        {1, "max", "p50"},     {2, "p50", "p90"},         {9, "p50", "p90"},
        {10, "p90", "p99"},    {99, "p90", "p99"},        {100, "p99", "p99_9"},
        {999, "p99", "p99_9"}, {1000, "p99_9", "p99_99"}, {10000, "p99_99", NULL},
    };

    (void)state;
    for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
        struct figures figures;
        char path[32];
        open_figures(&figures, &plain);
        distribution_add(&figures.of[FIGURE_TTFT], 1500, rows[row].count);
        close_figures(&figures);
        cJSON *json = json_of(&figures, &plain);
        assert_true(number_at(json, "ms.ttft.count") == (double)rows[row].count);
        snprintf(path, sizeof(path), "ms.ttft.%s", rows[row].carried);
        assert_true(number_at(json, path) == 1.5);
        if (rows[row].not_carried != NULL) {
            snprintf(path, sizeof(path), "ms.ttft.%s", rows[row].not_carried);
            assert_true(cJSON_IsNull(at(json, path)));
        }
        cJSON_Delete(json);
        char *text = text_of(&figures, &plain);
        if (rows[row].count < 100)
            assert_non_null(strstr(text, " -"));
        free(text);
        figures_free(&figures);
    }
}

static void test_figures(void **state)
{
    struct options options = plain;
    struct figures figures;

    (void)state;
    options.goodput = (struct goodput){.wanted = true, .ttft_us = 500000};
    options.rate_milli = 2500;
    open_figures(&figures, &options);
    figures.started = 10;
    figures.completed = 6;
    figures.aborted = 2;
    figures.http_status[200] = 8;
    figures.http_status[503] = 1;
    figures_fail(&figures, FAILURE_HTTP, 4, "id-4", "HTTP 503: a \"quoted\" \\ text");
    figures_fail(&figures, FAILURE_CONNECT, 5, "id-5", "refused");
    figures.window_tokens = 100;
    figures.tokens = 100;
    figures.window_completed = 6;
    figures.window_good = 4;
    figures.wrong_by[VERIFICATION_LOST] = 3;
    figures_add_stamps(&figures, 900, 1000000, 999990);
    figures_add_stamps(&figures, 1950, 1002000, 1001990);
    close_figures(&figures);
    cJSON *json = json_of(&figures, &options);
    assert_string_equal(at(json, "loop")->valuestring, "open");
    assert_true(number_at(json, "rate") == 2.5);
    assert_true(number_at(json, "requests.failed") == 2);
    assert_true(number_at(json, "failures.http") == 1);
    assert_true(number_at(json, "failures.connect") == 1);
    assert_true(number_at(json, "wrong_tokens.lost") == 3);
    assert_true(number_at(json, "http_status.503") == 1);
    assert_true(number_at(json, "window.seconds") == 2);
    assert_true(number_at(json, "window.tokens_per_s") == 50);
    assert_true(number_at(json, "goodput.good_per_s") == 2);
    assert_true(number_at(json, "ms.path.min") == 0);
    assert_true(number_at(json, "ms.path.max") == 0.95);
    assert_true(number_at(json, "ms.due.min") == 0.01);
    const cJSON *example = cJSON_GetArrayItem(at(json, "examples"), 0);
    assert_string_equal(at(example, "why")->valuestring, "HTTP 503: a \"quoted\" \\ text");
    assert_true(number_at(example, "request") == 4);
    cJSON_Delete(json);

    char *text = text_of(&figures, &options);
    assert_non_null(strstr(text, "10 started = 6 complete + 2 aborted by us + 2 failed"));
    assert_non_null(strstr(text, "50.0 tokens/s"));
    assert_non_null(strstr(text, "2.00 complete streams/s (4 of 6) kept ttft <= 500 ms"));
    assert_non_null(strstr(text, "connect 1"));
    assert_non_null(strstr(text, "id-4"));
    free(text);
    figures_free(&figures);
}

static void test_hdr(void **state)
{
    struct figures figures;
    char *text = NULL;
    size_t len = 0;
    double value, percentile, before = -1;
    unsigned long count, counted = 0;
    unsigned rows = 0;
    char line[128];

    (void)state;
    open_figures(&figures, &plain);
    for (int64_t us = 1; us <= 5000; us++)
        distribution_add(&figures.of[FIGURE_ITL], us * 7, 2);
    FILE *out = open_memstream(&text, &len);
    report_hdr(out, &figures, FIGURE_ITL);
    fclose(out);
    FILE *in = fmemopen(text, len, "r");
    while (fgets(line, sizeof(line), in) != NULL) {
        if (sscanf(line, "%lf %lf %lu", &value, &percentile, &count) != 3)
            continue;
        assert_true(value > before && count > counted);
        assert_true(percentile > (double)count / 10000 - 1e-9 &&
                    percentile < (double)count / 10000 + 1e-9);
        before = value;
        counted = count;
        rows++;
    }
    fclose(in);
    assert_int_equal(counted, 10000);
    assert_true(percentile == 1 && value == 35);
    assert_true(rows > 1000);
    assert_non_null(strstr(text, "#[Max     =       35.000, Total count    =        10000]"));
    free(text);
    figures_free(&figures);
}

static void test_doubts(void **state)
{
    struct figures figures;

    (void)state;
    open_figures(&figures, &plain);
    distribution_add(&figures.of[FIGURE_TURN], 50000, 1000);
    distribution_add(&figures.of[FIGURE_START], 30000, 1000);
    figures.delayed = 3;
    close_figures(&figures);
    figures.cpu_first = (struct process_time){.at_us = 1, .wait_us = 0};
    figures.cpu_last = (struct process_time){.at_us = 1000001,
                                             .user_us = 400000,
                                             .system_us = 300000,
                                             .wait_us = 100000,
                                             .tokens = 1000};
    char *text = text_of(&figures, &plain);
    assert_non_null(strstr(text, "used 70 % of the one processor"));
    assert_non_null(strstr(text, "waited for a processor 10 %"));
    assert_non_null(strstr(text, "50.0 ms or more for this client (turn)"));
    assert_non_null(strstr(text, "started 30.0 ms late"));
    assert_non_null(strstr(text, "3 starts had to wait"));
    assert_non_null(strstr(text, "700.00 us a token"));
    free(text);
    cJSON *json = json_of(&figures, &plain);
    assert_int_equal(cJSON_GetArraySize(at(json, "warnings")), 5);
    assert_true(number_at(json, "client.load") == 0.7);
    cJSON_Delete(json);
    figures_free(&figures);

    open_figures(&figures, &plain); /* a calm one has none */
    close_figures(&figures);
    figures.cpu_first = (struct process_time){.at_us = 1, .wait_us = -1};
    figures.cpu_last =
        (struct process_time){.at_us = 1000001, .user_us = 100000, .wait_us = -1};
    text = text_of(&figures, &plain);
    assert_null(strstr(text, "warning"));
    free(text);
    json = json_of(&figures, &plain);
    assert_true(cJSON_IsNull(at(json, "client.waited_s")));
    cJSON_Delete(json);
    figures_free(&figures);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing), cmocka_unit_test(test_percentiles_need_a_sample),
        cmocka_unit_test(test_figures), cmocka_unit_test(test_hdr),
        cmocka_unit_test(test_doubts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

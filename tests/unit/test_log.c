/*
 * log: what a line looks like, that no message makes a second one, and that a slow file costs
 * lines and never a caller. One log a process: the tests share its file.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "tests/unit/scratch.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static struct scratch scratch;
static char path[128];

static int open_log(void **state)
{
    (void)state;
    scratch_open(&scratch);
    snprintf(path, sizeof(path), "%s", scratch_file(&scratch, "log"));
    return log_open(path, LOG_INFO, LOG_TEXT);
}

static int remove_log(void **state)
{
    (void)state;
    scratch_close(&scratch);
    return 0;
}

static int empty_log(void **state)
{
    (void)state;
    return truncate(path, 0);
}

/* The line after "2026-01-31T12:00:00.123Z level ", whose form is checked; NUL in place of LF.
 */
static char *message_of(char *line, const char *level)
{
    static const char form[] = "dddd-dd-ddTdd:dd:dd.dddZ ";
    char prefix[16];

    for (size_t i = 0; form[i] != '\0'; i++) {
        if (form[i] == 'd')
            assert_in_range(line[i], '0', '9');
        else
            assert_int_equal(line[i], form[i]);
    }
    line += sizeof(form) - 1;
    snprintf(prefix, sizeof(prefix), "%s ", level);
    assert_memory_equal(line, prefix, strlen(prefix));
    char *end = strchr(line, '\n');
    assert_non_null(end);
    *end = '\0';
    return line + strlen(prefix);
}

static size_t count_lines(const char *text)
{
    size_t lines = 0;

    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    return lines;
}

static void test_lines_and_levels(void **state)
{
    (void)state;
    log_debug("too little for this level");
    log_info("one %d %s", 1, "two");
    log_warn("careful");
    log_error("100 %%");
    char *text = scratch_read(path, NULL);
    assert_int_equal(count_lines(text), 3);
    char *at = text;
    static const char *const wanted[][2] = {
        {"info", "one 1 two"}, {"warn", "careful"}, {"error", "100 %"}};
    for (size_t i = 0; i < COUNT_OF(wanted); i++) {
        char *message = message_of(at, wanted[i][0]);
        assert_string_equal(message, wanted[i][1]);
        at = message + strlen(message) + 1;
    }
    assert_int_equal(*at, '\0');
    free(text);
}

static void test_no_message_is_two_lines(void **state)
{
    static const struct {
        const char *message;
        const char *written;
    } rows[] = {
        {"a\nb", "a?b"},
        {"a\r\n2026-01-01T00:00:00.000Z error forged",
         "a??2026-01-01T00:00:00.000Z error forged"},
        {"\x01\x1f\x7f\t\x1b[2J", "?????[2J"},
        {"trailing\n", "trailing?"},
        {"", ""},
        {" ~", " ~"},
        {u8"\u4f60\u597d", u8"\u4f60\u597d"},
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        assert_int_equal(truncate(path, 0), 0);
        log_info("%s", rows[row].message);
        char *text = scratch_read(path, NULL);
        assert_int_equal(count_lines(text), 1);
        assert_string_equal(message_of(text, "info"), rows[row].written);
        free(text);
    }
}

/* To the last byte that fits, and cut from there on. */
static void test_a_long_line_is_cut(void **state)
{
    char message[3 * LOG_LINE_MAX_BYTES];
    size_t longest = 0;

    (void)state;
    for (size_t len = LOG_LINE_MAX_BYTES - 60; len < sizeof(message); len++) {
        size_t size;

        memset(message, 'x', len);
        message[len] = '\0';
        assert_int_equal(truncate(path, 0), 0);
        log_info("%s", message);
        char *text = scratch_read(path, &size);
        assert_in_range(size, 1, LOG_LINE_MAX_BYTES);
        assert_int_equal(count_lines(text), 1);
        assert_int_equal(text[size - 1], '\n');
        assert_int_equal(text[size - 2], 'x');
        free(text);
        assert_true(size >= longest);
        longest = size;
    }
    assert_in_range(longest, LOG_LINE_MAX_BYTES - 2, LOG_LINE_MAX_BYTES);
}

static void test_the_thread_writes_in_order(void **state)
{
    enum { LINES = 1500 }; /* fewer than the queue holds */

    (void)state;
    assert_int_equal(log_start(), 0);
    for (int i = 0; i < LINES; i++)
        log_info("line %d", i);
    log_stop(); /* writes what is queued */
    char *text = scratch_read(path, NULL);
    assert_int_equal(count_lines(text), LINES);
    char *at = text;
    for (int i = 0; i < LINES; i++) {
        char wanted[32];
        char *message = message_of(at, "info");
        snprintf(wanted, sizeof(wanted), "line %d", i);
        assert_string_equal(message, wanted);
        at = message + strlen(message) + 1;
    }
    free(text);
    log_stop(); /* harmless */
    log_info("directly again");
    text = scratch_read(path, NULL);
    assert_int_equal(count_lines(text), LINES + 1);
    free(text);
}

enum { WRITERS = 4, LINES_EACH = 300 };

static void *write_lines(void *context)
{
    for (int i = 0; i < LINES_EACH; i++)
        log_info("writer %d line %d", *(const int *)context, i);
    return NULL;
}

/* Whole lines, each writer's in its order, from any number of threads. */
static void test_many_threads(void **state)
{
    pthread_t threads[WRITERS];
    int numbers[WRITERS];
    int next[WRITERS] = {0};

    (void)state;
    assert_int_equal(log_start(), 0);
    for (int i = 0; i < WRITERS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, write_lines, &numbers[i]), 0);
    }
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    log_stop();
    char *text = scratch_read(path, NULL);
    char *at = text;
    for (int i = 0; i < WRITERS * LINES_EACH; i++) {
        int writer;
        int line;
        char *message = message_of(at, "info");
        assert_int_equal(sscanf(message, "writer %d line %d", &writer, &line), 2);
        assert_in_range(writer, 0, WRITERS - 1);
        assert_int_equal(line, next[writer]++);
        at = message + strlen(message) + 1;
    }
    assert_int_equal(*at, '\0');
    free(text);
}

static void test_reopen_follows_a_rotation(void **state)
{
    char moved[128];

    (void)state;
    snprintf(moved, sizeof(moved), "%s", scratch_file(&scratch, "log.1"));
    for (int with_thread = 0; with_thread < 2; with_thread++) {
        assert_int_equal(truncate(path, 0), 0);
        if (with_thread)
            assert_int_equal(log_start(), 0);
        log_info("before");
        if (with_thread) {
            log_stop();
            assert_int_equal(log_start(), 0);
        }
        assert_int_equal(rename(path, moved), 0);
        assert_int_equal(log_reopen(), 0);
        log_info("after");
        if (with_thread)
            log_stop();
        char *old = scratch_read(moved, NULL);
        char *new = scratch_read(path, NULL);
        assert_int_equal(count_lines(old), 1);
        assert_int_equal(count_lines(new), 1);
        assert_string_equal(message_of(old, "info"), "before");
        assert_string_equal(message_of(new, "info"), "after");
        free(old);
        free(new);
    }
}

/* A folder in the file's place: the old file goes on. */
static void test_reopen_that_fails_keeps_the_file(void **state)
{
    char moved[128];

    (void)state;
    snprintf(moved, sizeof(moved), "%s", scratch_file(&scratch, "log.1"));
    assert_int_equal(rename(path, moved), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(log_reopen(), -1);
    log_info("still here");
    char *text = scratch_read(moved, NULL);
    assert_string_equal(message_of(text, "info"), "still here");
    free(text);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rename(moved, path), 0);
}

/* What a text tells of the numbered lines: how many came, in order, and how many did not. */
static size_t account(const char *text, size_t *written)
{
    static const char numbered[] = " info line ";
    static const char notice[] = " lines dropped";
    size_t dropped = 0;
    int previous = -1;
    const char *end;

    *written = 0;
    for (const char *line = text; (end = strchrnul(line, '\n'))[0] != '\0'; line = end + 1) {
        size_t len = (size_t)(end - line);
        const char *at = memmem(line, len, numbered, sizeof(numbered) - 1);
        if (at != NULL) {
            int number = atoi(at + sizeof(numbered) - 1);
            assert_true(number > previous);
            previous = number;
            (*written)++;
        }
        at = memmem(line, len, notice, sizeof(notice) - 1);
        if (at != NULL) {
            while (at > line && at[-1] >= '0' && at[-1] <= '9')
                at--;
            dropped += strtoul(at, NULL, 10);
        }
    }
    return dropped;
}

/* Read on, by whole lines, until all `lines` are accounted for or the last line has come. */
static size_t read_until(int fd, char *text, size_t cap, size_t len, size_t lines)
{
    size_t written = 0;
    size_t dropped = 0;

    do {
        struct pollfd in = {.fd = fd, .events = POLLIN};
        if (poll(&in, 1, 20000) != 1)
            fail_msg("%zu lines were written and %zu told as dropped, of %zu", written, dropped,
                     lines);
        ssize_t got = read(fd, text + len, cap - len - 1);
        assert_true(got > 0);
        len += (size_t)got;
        text[len] = '\0';
        dropped = account(text, &written);
    } while (text[len - 1] != '\n' || written + dropped < lines);
    assert_int_equal(written + dropped, lines);
    assert_true(dropped > 0);
    return len;
}

/* A pipe that nobody reads takes 64 KiB; the queue takes what comes then; the rest is dropped,
 * no caller waits, and lines written and lines dropped are the lines logged. */
static void test_a_stopped_file_drops_lines_and_counts_them(void **state)
{
    enum { LINES = 6000, CAP = 8 << 20 };
    char *text = malloc(CAP);
    char moved[128];
    static char tail[400];

    (void)state;
    assert_non_null(text);
    snprintf(moved, sizeof(moved), "%s", scratch_file(&scratch, "log.1"));
    memset(tail, 'x', sizeof(tail) - 1);
    assert_int_equal(rename(path, moved), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    int fifo = open(path, O_RDWR | O_CLOEXEC); /* a reader, so that opening does not block */
    assert_true(fifo >= 0);
    assert_int_equal(log_reopen(), 0);
    assert_int_equal(log_start(), 0);
    for (int i = 0; i < LINES; i++)
        log_info("line %d %s", i, tail);
    size_t len = read_until(fifo, text, CAP, 0, LINES);

    log_info("line %d", LINES); /* there is room again */
    read_until(fifo, text, CAP, len, LINES + 1);
    log_stop();
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rename(moved, path), 0);
    assert_int_equal(log_reopen(), 0);
    close(fifo);

    /* The notice is a line like all others: time, level, message. */
    char *notice = strstr(text, " lines dropped");
    while (notice > text && notice[-1] != '\n')
        notice--;
    char line[200];
    snprintf(line, sizeof(line), "%.*s\n", (int)strcspn(notice, "\n"), notice);
    free(text);
    assert_non_null(strstr(message_of(line, "warn"), "lines dropped"));
}

struct drain {
    int fd;
    char *text;
    size_t cap, len;
    atomic_size_t produced; /* lines that were logged */
    atomic_bool is_over;    /* and no more will be */
};

/* A fifth of what is logged, so that the queue stays full, until the last line has come. */
static void *drain_slowly(void *context)
{
    struct drain *drain = context;

    while (drain->len + 1 < drain->cap) {
        size_t left = drain->cap - drain->len - 1;
        while (!atomic_load(&drain->is_over) &&
               drain->len / 400 > atomic_load(&drain->produced) / 5)
            sched_yield();
        ssize_t got = read(drain->fd, drain->text + drain->len, left < 2000 ? left : 2000);
        if (got <= 0)
            break;
        size_t from = drain->len > 20 ? drain->len - 20 : 0;
        drain->len += (size_t)got;
        drain->text[drain->len] = '\0';
        if (strstr(drain->text + from, "the very last\n") != NULL)
            break;
    }
    return NULL;
}

/* The queue has no room for the notice either, and yet no count gets lost. */
static void test_drops_are_counted_while_the_queue_stays_full(void **state)
{
    enum { LINES = 30000, CAP = 32 << 20 };
    struct drain drain = {.text = malloc(CAP), .cap = CAP};
    pthread_t thread;
    char moved[128];
    static char tail[400];
    size_t written;

    (void)state;
    assert_non_null(drain.text);
    snprintf(moved, sizeof(moved), "%s", scratch_file(&scratch, "log.1"));
    memset(tail, 'x', sizeof(tail) - 1);
    assert_int_equal(rename(path, moved), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    drain.fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(drain.fd >= 0);
    assert_int_equal(log_reopen(), 0);
    assert_int_equal(log_start(), 0);
    assert_int_equal(pthread_create(&thread, NULL, drain_slowly, &drain), 0);
    for (int i = 0; i < LINES; i++) {
        log_info("line %d %s", i, tail);
        atomic_fetch_add(&drain.produced, 1);
    }
    atomic_store(&drain.is_over, true);
    log_stop();
    log_error("the very last");
    pthread_join(thread, NULL);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rename(moved, path), 0);
    assert_int_equal(log_reopen(), 0);
    close(drain.fd);
    size_t dropped = account(drain.text, &written);
    free(drain.text);
    assert_true(dropped > 0);
    assert_int_equal(written + dropped, LINES);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, empty_log)
    const struct CMUnitTest tests[] = {
        TEST(test_lines_and_levels),
        TEST(test_no_message_is_two_lines),
        TEST(test_a_long_line_is_cut),
        TEST(test_the_thread_writes_in_order),
        TEST(test_many_threads),
        TEST(test_reopen_follows_a_rotation),
        TEST(test_reopen_that_fails_keeps_the_file),
        TEST(test_a_stopped_file_drops_lines_and_counts_them),
        TEST(test_drops_are_counted_while_the_queue_stays_full),
    };
#undef TEST

    return cmocka_run_group_tests(tests, open_log, remove_log);
}

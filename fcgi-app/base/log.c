/* The log and its writing thread; the header says what is promised to the callers. */

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { QUEUE_LINES = 2048 };

struct line {
    size_t len;
    char text[LOG_LINE_MAX_BYTES];
};

static struct {
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t filled;
    pthread_t thread;
    bool running;
    bool stopping;
    struct line *lines; /* ring of QUEUE_LINES, from log_start on */
    size_t first, count;
    unsigned long dropped;
    int fd;
    char *path; /* NULL: standard error */
    enum log_level least;
    enum log_format format;
} state = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .filled = PTHREAD_COND_INITIALIZER,
    .fd = STDERR_FILENO,
    .least = LOG_INFO,
};

static const char *const level_names[] = {"debug", "info", "warn", "error"};

/* 0, or -1 when the line is lost, on a full disk for one: the server goes on. */
static int write_all(int fd, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t wrote = write(fd, text, len);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return -1;
        text += wrote;
        len -= (size_t)wrote;
    }
    return 0;
}

/* Append to a line, cut at `max`. */
static size_t append(char *text, size_t len, size_t max, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static size_t append_va(char *text, size_t len, size_t max, const char *format, va_list args)
{
    int wrote = vsnprintf(text + len, max - len, format, args);

    if (wrote < 0)
        return len;
    return (size_t)wrote < max - len ? len + (size_t)wrote : max - 1;
}

static size_t append(char *text, size_t len, size_t max, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    len = append_va(text, len, max, format, args);
    va_end(args);
    return len;
}

/* Control characters, quotes and backslashes would make a line, or a member, of their own. */
static void neutralise(char *text, size_t from, size_t len, bool quotes_too)
{
    for (size_t i = from; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < 0x20 || c == 0x7f)
            text[i] = '?';
        else if (quotes_too && (c == '"' || c == '\\'))
            text[i] = '\'';
    }
}

static void format_line(struct line *line, enum log_level level, bool is_members,
                        const char *format, va_list args)
{
    struct timespec now;
    struct tm utc;
    char time[24];
    char *text = line->text;
    bool json = state.format == LOG_JSON;
    const char *tail = !json ? "\n" : is_members ? "}\n" : "\"}\n";
    size_t max = sizeof(line->text) - strlen(tail);

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(time, sizeof(time), "%Y-%m-%dT%H:%M:%S", &utc);
    size_t len = append(text, 0, max,
                        json ? "{\"time\":\"%s.%03ldZ\",\"level\":\"%s\"," : "%s.%03ldZ %s ",
                        time, now.tv_nsec / 1000000, level_names[level]);
    if (json && !is_members)
        len = append(text, len, max, "\"message\":\"");
    size_t start = len;
    len = append_va(text, len, max, format, args);
    neutralise(text, start, len, json && !is_members);
    memcpy(text + len, tail, strlen(tail));
    line->len = len + strlen(tail);
}

/* The lock is held. */
static void enqueue(const struct line *line)
{
    if (state.count == QUEUE_LINES) {
        state.dropped++;
        return;
    }
    struct line *slot = &state.lines[(state.first + state.count) % QUEUE_LINES];
    slot->len = line->len;
    memcpy(slot->text, line->text, line->len);
    state.count++;
    pthread_cond_signal(&state.filled);
}

static void write_line(enum log_level level, bool is_members, const char *format, va_list args)
{
    struct line line;

    if (level < state.least) /* set before any thread starts */
        return;
    format_line(&line, level, is_members, format, args);
    pthread_mutex_lock(&state.lock);
    if (state.running)
        enqueue(&line);
    else
        write_all(state.fd, line.text, line.len);
    pthread_mutex_unlock(&state.lock);
}

void log_write(enum log_level level, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    write_line(level, false, format, args);
    va_end(args);
}

void log_write_members(enum log_level level, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    write_line(level, true, format, args);
    va_end(args);
}

enum log_format log_format(void)
{
    return state.format;
}

static void *writer_main(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&state.lock);
    for (;;) {
        while (state.count == 0 && !state.stopping)
            pthread_cond_wait(&state.filled, &state.lock);
        if (state.count == 0)
            break;

        struct line line = state.lines[state.first];
        /* Told once there is room again: a line for each loss would make more losses. */
        unsigned long dropped = state.count < QUEUE_LINES / 2 ? state.dropped : 0;
        int fd = state.fd;
        state.first = (state.first + 1) % QUEUE_LINES;
        state.count--;
        state.dropped -= dropped;
        pthread_mutex_unlock(&state.lock);

        bool lost = write_all(fd, line.text, line.len) != 0;
        if (!lost && dropped > 0)
            log_warn("log: %lu lines dropped, the file was full or too slow", dropped);
        pthread_mutex_lock(&state.lock);
        if (lost)
            state.dropped += dropped + 1;
    }
    pthread_mutex_unlock(&state.lock);
    return NULL;
}

static int open_file(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
}

int log_open(const char *path, enum log_level least, enum log_format format)
{
    state.least = least;
    state.format = format;
    if (path == NULL)
        return 0;
    int fd = open_file(path);
    if (fd < 0)
        return -1;
    state.path = strdup(path);
    if (state.path == NULL) {
        close(fd);
        errno = ENOMEM;
        return -1;
    }
    state.fd = fd;
    return 0;
}

int log_reopen(void)
{
    if (state.path == NULL)
        return 0;
    int fd = open_file(state.path);
    if (fd < 0)
        return -1;
    /* dup2 keeps the number: the writer may be using it without the lock. */
    pthread_mutex_lock(&state.lock);
    int result = dup3(fd, state.fd, O_CLOEXEC);
    pthread_mutex_unlock(&state.lock);
    close(fd);
    return result < 0 ? -1 : 0;
}

int log_start(void)
{
    state.lines = calloc(QUEUE_LINES, sizeof(*state.lines));
    if (state.lines == NULL)
        return -1;
    state.running = true;
    if (pthread_create(&state.thread, NULL, writer_main, NULL) != 0) {
        state.running = false;
        return -1;
    }
    return 0;
}

void log_stop(void)
{
    if (!state.running)
        return;
    pthread_mutex_lock(&state.lock);
    state.stopping = true;
    pthread_cond_signal(&state.filled);
    pthread_mutex_unlock(&state.lock);
    pthread_join(state.thread, NULL);
    state.running = state.stopping = false;
    free(state.lines);
    state.lines = NULL;
}

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
} state = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .filled = PTHREAD_COND_INITIALIZER,
    .fd = STDERR_FILENO,
    .least = LOG_INFO,
};

static const char *const level_names[] = {"debug", "info", "warn", "error"};

static void write_all(int fd, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t wrote = write(fd, text, len);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return; /* a full disk: the line is lost, the server goes on */
        text += wrote;
        len -= (size_t)wrote;
    }
}

static void format_line(struct line *line, enum log_level level, const char *format,
                        va_list args)
{
    struct timespec now;
    struct tm utc;
    size_t max = sizeof(line->text) - 1; /* room for the newline */

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    size_t len = strftime(line->text, max, "%Y-%m-%dT%H:%M:%S", &utc);
    len += (size_t)snprintf(line->text + len, max - len, ".%03ldZ %s ", now.tv_nsec / 1000000,
                            level_names[level]);
    int wrote = vsnprintf(line->text + len, max - len, format, args);
    if (wrote > 0)
        len += (size_t)wrote < max - len ? (size_t)wrote : max - len - 1;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)line->text[i];
        if (c < 0x20 || c == 0x7f)
            line->text[i] = '?';
    }
    line->text[len++] = '\n';
    line->len = len;
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

void log_write(enum log_level level, const char *format, ...)
{
    struct line line;
    va_list args;

    if (level < state.least) /* set before any thread starts */
        return;
    va_start(args, format);
    format_line(&line, level, format, args);
    va_end(args);

    pthread_mutex_lock(&state.lock);
    if (state.running)
        enqueue(&line);
    else
        write_all(state.fd, line.text, line.len);
    pthread_mutex_unlock(&state.lock);
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
        unsigned long dropped = state.dropped;
        int fd = state.fd;
        state.first = (state.first + 1) % QUEUE_LINES;
        state.count--;
        state.dropped = 0;
        pthread_mutex_unlock(&state.lock);

        write_all(fd, line.text, line.len);
        if (dropped > 0)
            dprintf(fd, "log: %lu lines dropped, the file was too slow\n", dropped);
        pthread_mutex_lock(&state.lock);
    }
    pthread_mutex_unlock(&state.lock);
    return NULL;
}

static int open_file(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
}

int log_open(const char *path, enum log_level least)
{
    state.least = least;
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

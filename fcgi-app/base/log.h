#ifndef RUNNEL_BASE_LOG_H
#define RUNNEL_BASE_LOG_H

#include <stdarg.h>

/*
 * The log: one line an event, in a file or on the standard error: `time level message`, or one
 * JSON object `{"time":..,"level":..,"message":..}`.
 *
 * Before log_start, and after log_stop, a line is written by the caller. Between them it is
 * copied into a bounded queue and a thread of the log's own writes it, so that a full disk or a
 * stopped pipe delays no stream; a line that finds the queue full is dropped, and the number of
 * the dropped is logged when there is room again. Control characters in a message are replaced
 * by `?`: no peer can write a line of its own.
 */

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

enum log_format { LOG_TEXT, LOG_JSON };

enum { LOG_LINE_MAX_BYTES = 640 }; /* a longer line is cut */

/* Choose the file (NULL: standard error), the least level that is written and the format.
 * 0, or -1 with errno. Call before any thread starts. */
int log_open(const char *path, enum log_level least, enum log_format format);

enum log_format log_format(void);

/* Open the file anew, after a rotation. 0, or -1 with errno and the old file kept. Any thread.
 */
int log_reopen(void);

/* Start, and end, the writing thread. log_start: 0 or -1. log_stop writes what is queued. */
int log_start(void);
void log_stop(void);

/* Any thread; never blocks on the file once log_start has been called. */
void log_write(enum log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* In LOG_JSON only: members of the line's object (`"a":1,"b":"c"`) instead of a message; they
 * are the caller's to escape. */
void log_write_members(enum log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#define log_debug(...) log_write(LOG_DEBUG, __VA_ARGS__)
#define log_info(...)  log_write(LOG_INFO, __VA_ARGS__)
#define log_warn(...)  log_write(LOG_WARN, __VA_ARGS__)
#define log_error(...) log_write(LOG_ERROR, __VA_ARGS__)

#endif

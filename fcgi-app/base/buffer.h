#ifndef RUNNEL_BASE_BUFFER_H
#define RUNNEL_BASE_BUFFER_H

#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>

/*
 * A growing run of bytes with a ceiling that is set when it is made.
 *
 * The first append that would pass the ceiling, or for which there is no memory, empties the
 * buffer and latches `failed`: a caller may append many times and look once, and half a reply
 * can never be taken for a whole one. Not shared between threads; the owner frees it.
 */

struct buffer {
    char *data; /* not NUL-terminated; NULL while empty */
    size_t len;
    size_t cap;
    size_t max_bytes;
    bool failed;
};

/* No memory is taken before the first append. */
void buffer_init(struct buffer *buffer, size_t max_bytes);

/* Give the memory back; the buffer may be used again as after buffer_init. */
void buffer_free(struct buffer *buffer);

/* Empty it and clear `failed`, keeping the memory. */
void buffer_reset(struct buffer *buffer);

/* Each returns 0, or -1 when the buffer has failed, now or before. */
int buffer_append(struct buffer *buffer, const void *bytes, size_t len);
int buffer_append_text(struct buffer *buffer, const char *text);
int buffer_append_char(struct buffer *buffer, char c);
int buffer_append_u64(struct buffer *buffer, unsigned long long value);
int buffer_printf(struct buffer *buffer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int buffer_vprintf(struct buffer *buffer, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

/*
 * Make room for `len` more bytes and return where they go, or NULL as above. The caller writes
 * there and adds what it wrote to `len` itself.
 */
char *buffer_reserve(struct buffer *buffer, size_t len);

/* Remove the first `count` bytes (at most len). */
void buffer_consume(struct buffer *buffer, size_t count);

#endif

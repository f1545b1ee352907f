#ifndef RUNNEL_BASE_BUFFER_H
#define RUNNEL_BASE_BUFFER_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

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
static inline int buffer_append(struct buffer *buffer, const void *bytes, size_t len);
static inline int buffer_append_text(struct buffer *buffer, const char *text);
static inline int buffer_append_char(struct buffer *buffer, char c);
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

/* --- not to be called from outside --- */

/* buffer_append where there is no room yet, or nothing to append. */
int buffer_append_growing(struct buffer *buffer, const void *bytes, size_t len);

/* A token is made of fifteen short appends, which nearly always fit: they are not worth a call.
 */
static inline int buffer_append(struct buffer *buffer, const void *bytes, size_t len)
{
    if (len == 0 || len > buffer->cap - buffer->len || len > buffer->max_bytes - buffer->len ||
        buffer->failed)
        return buffer_append_growing(buffer, bytes, len);
    memcpy(buffer->data + buffer->len, bytes, len);
    buffer->len += len;
    return 0;
}

static inline int buffer_append_text(struct buffer *buffer, const char *text)
{
    return buffer_append(buffer, text, strlen(text));
}

static inline int buffer_append_char(struct buffer *buffer, char c)
{
    return buffer_append(buffer, &c, 1);
}

#endif

/* A growing run of bytes with a ceiling; see the header for what happens at the ceiling. */

#include "base/buffer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 256 };

void buffer_init(struct buffer *buffer, size_t max_bytes)
{
    *buffer = (struct buffer){.max_bytes = max_bytes};
}

void buffer_free(struct buffer *buffer)
{
    free(buffer->data);
    buffer_init(buffer, buffer->max_bytes);
}

void buffer_reset(struct buffer *buffer)
{
    buffer->len = 0;
    buffer->failed = false;
}

static char *fail(struct buffer *buffer)
{
    free(buffer->data);
    buffer_init(buffer, buffer->max_bytes);
    buffer->failed = true;
    return NULL;
}

/* Room for `len` bytes within the ceiling, and for `extra` that are not counted. */
static char *make_room(struct buffer *buffer, size_t len, size_t extra)
{
    if (buffer->failed)
        return NULL;
    if (len > buffer->max_bytes || buffer->len > buffer->max_bytes - len)
        return fail(buffer);
    size_t need = buffer->len + len + extra;
    if (need > buffer->cap || buffer->data == NULL) {
        size_t cap = buffer->cap > 0 ? buffer->cap : FIRST_CAPACITY;
        while (cap < need)
            cap = cap <= buffer->max_bytes / 2 ? cap * 2 : need;
        char *grown = realloc(buffer->data, cap);
        if (grown == NULL)
            return fail(buffer);
        buffer->data = grown;
        buffer->cap = cap;
    }
    return buffer->data + buffer->len;
}

char *buffer_reserve(struct buffer *buffer, size_t len)
{
    return make_room(buffer, len, 0);
}

int buffer_append_growing(struct buffer *buffer, const void *bytes, size_t len)
{
    char *room = buffer_reserve(buffer, len);

    if (room == NULL)
        return -1;
    if (len > 0)
        memcpy(room, bytes, len);
    buffer->len += len;
    return 0;
}

int buffer_append_u64(struct buffer *buffer, unsigned long long value)
{
    char digits[20];
    size_t at = sizeof(digits);

    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    return buffer_append(buffer, digits + at, sizeof(digits) - at);
}

int buffer_vprintf(struct buffer *buffer, const char *format, va_list args)
{
    va_list again;
    char *room = NULL;

    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, args);
    if (len >= 0)
        room = make_room(buffer, (size_t)len, 1); /* vsnprintf's NUL */
    if (room != NULL) {
        vsnprintf(room, (size_t)len + 1, format, again);
        buffer->len += (size_t)len;
    } else if (!buffer->failed) {
        fail(buffer);
    }
    va_end(again);
    return room != NULL ? 0 : -1;
}

int buffer_printf(struct buffer *buffer, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int result = buffer_vprintf(buffer, format, args);
    va_end(args);
    return result;
}

void buffer_consume(struct buffer *buffer, size_t count)
{
    if (count >= buffer->len) {
        buffer->len = 0;
        return;
    }
    memmove(buffer->data, buffer->data + count, buffer->len - count);
    buffer->len -= count;
}

/* The chunks are read byte by byte but for their data. */

#include "gen/load/framing.h"

#include <string.h>
#include <strings.h>

#include "base/number.h"

enum state {
    SIZE,      /* hexadecimal digits */
    EXTENSION, /* after a semicolon or a space, to the CR */
    SIZE_LF,
    DATA,
    DATA_CR,
    DATA_LF,
    TRAILER,      /* at the start of a line after the last chunk: an empty one is the end */
    TRAILER_LINE, /* within it */
    END_LF,
    ENDED,
};

enum { DIGITS_MAX = 15 }; /* what follows fits 64 bits */

void framing_start(struct framing *framing)
{
    *framing = (struct framing){.kind = FRAMING_CLOSE, .state = SIZE};
}

/* The value of a header line that has this name; NULL when it has another. */
static const char *value_of(const char *line, size_t *len, const char *name)
{
    size_t name_len = strlen(name);

    if (*len <= name_len || strncasecmp(line, name, name_len) != 0 || line[name_len] != ':')
        return NULL;
    const char *value = line + name_len + 1;
    *len -= name_len + 1;
    while (*len > 0 && (*value == ' ' || *value == '\t')) {
        value++;
        --*len;
    }
    while (*len > 0 && strchr(" \t\r\n", value[*len - 1]) != NULL)
        --*len;
    return value;
}

void framing_header(struct framing *framing, const char *line, size_t len)
{
    size_t value_len = len;
    const char *value = value_of(line, &value_len, "Transfer-Encoding");

    if (value != NULL) {
        /* The last coding is the framing, and we asked for no other. */
        if (value_len >= 7 && strncasecmp(value + value_len - 7, "chunked", 7) == 0)
            framing->kind = FRAMING_CHUNKED;
        return;
    }
    value_len = len;
    value = value_of(line, &value_len, "Content-Length");
    if (value != NULL && framing->kind != FRAMING_CHUNKED &&
        number_parse_u64(value, value_len, 0, UINT64_MAX, &framing->left) == NUMBER_OK)
        framing->kind = FRAMING_LENGTH;
}

/* As much of the chunk or length as there is. */
static size_t give(struct framing *framing, const char *bytes, size_t len, framing_take take,
                   void *context, bool *stopped)
{
    size_t part = len < framing->left ? len : (size_t)framing->left;

    *stopped = part > 0 && take(context, bytes, part) != 0;
    framing->left -= part;
    return part;
}

/* After the whole size line. */
static unsigned after_size(struct framing *framing)
{
    framing->digits = 0;
    return framing->left > 0 ? DATA : TRAILER;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
        return (c | 0x20) - 'a' + 10;
    return -1;
}

/* One byte that is no data: 0, or -1 when it may not stand there. */
static int step(struct framing *framing, char c)
{
    int digit = hex_value(c);

    switch (framing->state) {
    case SIZE:
        if (digit >= 0 && framing->digits < DIGITS_MAX) {
            framing->left = framing->left << 4 | (unsigned)digit;
            framing->digits++;
            return 0;
        }
        if (framing->digits == 0 || digit >= 0)
            return -1;
        framing->state = c == '\r' ? SIZE_LF : EXTENSION;
        return c == '\r' || c == ';' || c == ' ' || c == '\t' ? 0 : -1;
    case EXTENSION:
        if (c == '\r')
            framing->state = SIZE_LF;
        return c == '\n' ? -1 : 0;
    case SIZE_LF:
        framing->state = after_size(framing);
        return c == '\n' ? 0 : -1;
    case DATA_CR:
        framing->state = DATA_LF;
        return c == '\r' ? 0 : -1;
    case DATA_LF:
        framing->state = SIZE;
        return c == '\n' ? 0 : -1;
    case TRAILER:
        framing->state = c == '\r' ? END_LF : TRAILER_LINE;
        return 0;
    case TRAILER_LINE:
        if (c == '\n')
            framing->state = TRAILER;
        return 0;
    default: /* END_LF */
        framing->state = ENDED;
        return c == '\n' ? 0 : -1;
    }
}

static enum framing_status feed_chunks(struct framing *framing, const char *bytes, size_t len,
                                       framing_take take, void *context)
{
    const char *end = bytes + len;
    bool stopped;

    while (bytes < end && framing->state != ENDED) {
        if (framing->state == DATA) {
            bytes += give(framing, bytes, (size_t)(end - bytes), take, context, &stopped);
            if (stopped)
                return FRAMING_STOPPED;
            if (framing->left == 0)
                framing->state = DATA_CR;
        } else if (step(framing, *bytes++) != 0) {
            return FRAMING_MALFORMED;
        }
    }
    return framing->state == ENDED ? FRAMING_ENDED : FRAMING_MORE;
}

enum framing_status framing_feed(struct framing *framing, const char *bytes, size_t len,
                                 framing_take take, void *context)
{
    bool stopped = false;

    switch (framing->kind) {
    case FRAMING_CHUNKED:
        return feed_chunks(framing, bytes, len, take, context);
    case FRAMING_LENGTH:
        give(framing, bytes, len, take, context, &stopped);
        if (stopped)
            return FRAMING_STOPPED;
        return framing->left == 0 ? FRAMING_ENDED : FRAMING_MORE;
    default:
        return len > 0 && take(context, bytes, len) != 0 ? FRAMING_STOPPED : FRAMING_MORE;
    }
}

bool framing_is_whole_at_close(const struct framing *framing)
{
    switch (framing->kind) {
    case FRAMING_CHUNKED:
        return framing->state == ENDED;
    case FRAMING_LENGTH:
        return framing->left == 0;
    default:
        return true;
    }
}

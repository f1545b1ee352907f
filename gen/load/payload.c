/*
 * A recursive reader of JSON that knows where it is: in the object itself, in choices[0], in
 * its delta, in usage or in an error. What is elsewhere is checked and forgotten.
 */

#include "gen/load/payload.h"

#include <string.h>

#include "base/number.h"

/* Where a value stands. */
enum place { TOP, CHOICES, CHOICE, DELTA, USAGE, ERROR, ELSEWHERE };

struct text {
    bool is_there;
    size_t at, len; /* in scratch */
};

struct scan {
    const char *at, *end;
    struct buffer *scratch;
    struct payload *payload;
    struct text token, delta, message;
    bool has_error, has_count;
    unsigned depth;
};

static int read_value(struct scan *scan, enum place place, const char *key, size_t key_len);

int payload_format_parse(const char *name, enum payload_format *format)
{
    for (enum payload_format known = PAYLOAD_AUTO; known <= PAYLOAD_OPENAI; known++) {
        if (strcmp(name, payload_format_name(known)) == 0) {
            *format = known;
            return 0;
        }
    }
    return -1;
}

const char *payload_format_name(enum payload_format format)
{
    static const char *const names[] = {"auto", "token", "openai"};

    return names[format];
}

static void skip_space(struct scan *scan)
{
    while (scan->at < scan->end &&
           (*scan->at == ' ' || *scan->at == '\n' || *scan->at == '\r' || *scan->at == '\t'))
        scan->at++;
}

static bool take_char(struct scan *scan, char wanted)
{
    if (scan->at == scan->end || *scan->at != wanted)
        return false;
    scan->at++;
    return true;
}

/* --- strings --- */

static int hex_digits(struct scan *scan, unsigned *unit)
{
    *unit = 0;
    if (scan->end - scan->at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char c = *scan->at++;
        unsigned digit;

        if (c >= '0' && c <= '9')
            digit = (unsigned)(c - '0');
        else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
            digit = (unsigned)((c | 0x20) - 'a') + 10;
        else
            return -1;
        *unit = *unit << 4 | digit;
    }
    return 0;
}

/* After `\u`: the code point, of a surrogate pair too. Half a pair is no text. */
static int code_point(struct scan *scan, unsigned *point)
{
    unsigned low;

    if (hex_digits(scan, point) != 0)
        return -1;
    if (*point < 0xd800 || *point > 0xdfff)
        return 0;
    if (*point > 0xdbff || !take_char(scan, '\\') || !take_char(scan, 'u') ||
        hex_digits(scan, &low) != 0 || low < 0xdc00 || low > 0xdfff)
        return -1;
    *point = 0x10000 + ((*point - 0xd800) << 10 | (low - 0xdc00));
    return 0;
}

static size_t encode_utf8(unsigned point, char out[4])
{
    if (point < 0x80) {
        out[0] = (char)point;
        return 1;
    }
    if (point < 0x800) {
        out[0] = (char)(0xc0 | point >> 6);
        out[1] = (char)(0x80 | (point & 0x3f));
        return 2;
    }
    if (point < 0x10000) {
        out[0] = (char)(0xe0 | point >> 12);
        out[1] = (char)(0x80 | (point >> 6 & 0x3f));
        out[2] = (char)(0x80 | (point & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | point >> 18);
    out[1] = (char)(0x80 | (point >> 12 & 0x3f));
    out[2] = (char)(0x80 | (point >> 6 & 0x3f));
    out[3] = (char)(0x80 | (point & 0x3f));
    return 4;
}

static int read_escape(struct scan *scan, char out[4], size_t *len)
{
    static const char from[] = "\"\\/bfnrt";
    static const char to[] = "\"\\/\b\f\n\r\t";
    unsigned point;

    if (scan->at == scan->end)
        return -1;
    char c = *scan->at++;
    const char *known = c == '\0' ? NULL : strchr(from, c);
    if (known != NULL) {
        out[0] = to[known - from];
        *len = 1;
        return 0;
    }
    if (c != 'u' || code_point(scan, &point) != 0)
        return -1;
    *len = encode_utf8(point, out);
    return 0;
}

/* The string at the opening quote, decoded into scratch. */
static int read_string(struct scan *scan, struct text *text)
{
    char escaped[4];
    size_t len;

    if (!take_char(scan, '"'))
        return -1;
    text->is_there = true;
    text->at = scan->scratch->len;
    for (;;) {
        const char *plain = scan->at;
        while (scan->at < scan->end && *scan->at != '"' && *scan->at != '\\' &&
               (unsigned char)*scan->at >= 0x20)
            scan->at++;
        if (buffer_append(scan->scratch, plain, (size_t)(scan->at - plain)) != 0)
            return -1;
        if (take_char(scan, '"'))
            break;
        if (!take_char(scan, '\\') || read_escape(scan, escaped, &len) != 0 ||
            buffer_append(scan->scratch, escaped, len) != 0)
            return -1;
    }
    text->len = scan->scratch->len - text->at;
    return 0;
}

/* --- other values --- */

static size_t skip_digits(struct scan *scan)
{
    const char *start = scan->at;

    while (scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9')
        scan->at++;
    return (size_t)(scan->at - start);
}

/* *is_whole: it has no sign, fraction or exponent and fits; then *value is it. */
static int read_number(struct scan *scan, uint64_t *value, bool *is_whole)
{
    const char *start = scan->at;

    take_char(scan, '-');
    const char *digits = scan->at;
    size_t count = skip_digits(scan);
    if (count == 0 || (count > 1 && *digits == '0'))
        return -1;
    if (take_char(scan, '.') && skip_digits(scan) == 0)
        return -1;
    if (scan->at < scan->end && (*scan->at | 0x20) == 'e') {
        scan->at++;
        if (!take_char(scan, '+'))
            take_char(scan, '-');
        if (skip_digits(scan) == 0)
            return -1;
    }
    *is_whole =
        number_parse_u64(start, (size_t)(scan->at - start), 0, UINT64_MAX, value) == NUMBER_OK;
    return 0;
}

static int read_word(struct scan *scan, const char *word)
{
    size_t len = strlen(word);

    if ((size_t)(scan->end - scan->at) < len || memcmp(scan->at, word, len) != 0)
        return -1;
    scan->at += len;
    return 0;
}

/* --- which value is which --- */

static bool is(const char *key, size_t len, const char *name)
{
    return len == strlen(name) && memcmp(key, name, len) == 0;
}

static void take_text(struct scan *scan, enum place place, const char *key, size_t len,
                      const struct text *text)
{
    if (place == TOP && is(key, len, "token"))
        scan->token = *text;
    else if (place == ERROR && is(key, len, "message"))
        scan->message = *text;
    else if (text->len == 0)
        return; /* an empty delta beside one that is not */
    else if ((place == CHOICE && is(key, len, "text")) ||
             (place == DELTA && (is(key, len, "content") || is(key, len, "reasoning_content") ||
                                 is(key, len, "reasoning"))))
        scan->delta = *text;
}

static void take_number(struct scan *scan, enum place place, const char *key, size_t len,
                        uint64_t value)
{
    struct payload *payload = scan->payload;

    if (place == TOP && is(key, len, "n")) {
        payload->tokens = value;
        scan->has_count = true;
    } else if (place == TOP && is(key, len, "i")) {
        payload->index = value;
        payload->has_index = true;
    } else if (place == TOP && is(key, len, "t_us") && value <= INT64_MAX) {
        payload->sent_us = (int64_t)value;
    } else if (place == TOP && is(key, len, "due_us") && value <= INT64_MAX) {
        payload->due_us = (int64_t)value;
    } else if (place == USAGE && is(key, len, "completion_tokens")) {
        payload->completion_tokens = value;
        payload->has_usage = true;
    }
}

/* The place of what is inside the object or array that is the value of `key`. */
static enum place inside(enum place place, const char *key, size_t len)
{
    if (place == TOP && is(key, len, "choices"))
        return CHOICES;
    if (place == TOP && is(key, len, "usage"))
        return USAGE;
    if (place == TOP && is(key, len, "error"))
        return ERROR;
    if (place == CHOICE && is(key, len, "delta"))
        return DELTA;
    return ELSEWHERE;
}

static int read_object(struct scan *scan, enum place place)
{
    struct text key;

    scan->at++;
    skip_space(scan);
    if (take_char(scan, '}'))
        return 0;
    for (;;) {
        skip_space(scan);
        if (read_string(scan, &key) != 0)
            return -1;
        skip_space(scan);
        if (!take_char(scan, ':'))
            return -1;
        /* The key lies in scratch, which may move: it is looked at through its place there. */
        char name[24];
        size_t len = key.len < sizeof(name) ? key.len : 0;
        memcpy(name, scan->scratch->data + key.at, len);
        scan->scratch->len = key.at;
        if (read_value(scan, place, name, len) != 0)
            return -1;
        skip_space(scan);
        if (take_char(scan, '}'))
            return 0;
        if (!take_char(scan, ','))
            return -1;
    }
}

static int read_array(struct scan *scan, enum place place)
{
    enum place item = place == CHOICES ? CHOICE : ELSEWHERE;

    scan->at++;
    skip_space(scan);
    if (take_char(scan, ']'))
        return 0;
    for (;;) {
        if (read_value(scan, item, NULL, 0) != 0)
            return -1;
        item = ELSEWHERE; /* choices[0] alone */
        skip_space(scan);
        if (take_char(scan, ']'))
            return 0;
        if (!take_char(scan, ','))
            return -1;
    }
}

/* The value of member `key` of an object at `place`; an item of an array has no key, and its
 * place is its own. */
static int read_value(struct scan *scan, enum place place, const char *key, size_t key_len)
{
    enum place own = key == NULL ? place : inside(place, key, key_len);
    struct text text;
    uint64_t number;
    bool is_whole;
    int status;

    skip_space(scan);
    if (scan->at == scan->end)
        return -1;
    if (own == ERROR && *scan->at != 'n')
        scan->has_error = true;
    switch (*scan->at) {
    case '{':
    case '[':
        if (++scan->depth > PAYLOAD_DEPTH_MAX)
            return -1;
        status = *scan->at == '{' ? read_object(scan, own) : read_array(scan, own);
        scan->depth--;
        return status;
    case '"':
        if (read_string(scan, &text) != 0)
            return -1;
        if (own == ERROR && key != NULL)
            scan->message = text;
        else if (key != NULL)
            take_text(scan, place, key, key_len, &text);
        return 0;
    case 't':
        return read_word(scan, "true");
    case 'f':
        return read_word(scan, "false");
    case 'n':
        return read_word(scan, "null");
    default:
        if (read_number(scan, &number, &is_whole) != 0)
            return -1;
        if (is_whole && key != NULL)
            take_number(scan, place, key, key_len, number);
        return 0;
    }
}

/* --- what it is all together --- */

static void set_text(struct scan *scan, const struct text *text)
{
    if (!text->is_there)
        return;
    scan->payload->text = text->len > 0 ? scan->scratch->data + text->at : "";
    scan->payload->text_len = text->len;
}

static void judge(struct scan *scan, enum payload_format format, bool named_error)
{
    struct payload *payload = scan->payload;

    if (named_error || scan->has_error) {
        payload->kind = PAYLOAD_ERROR;
        set_text(scan, &scan->message);
    } else if (scan->token.is_there && format != PAYLOAD_OPENAI) {
        payload->kind = PAYLOAD_TOKEN;
        payload->tells_count = true;
        if (!scan->has_count)
            payload->tokens = 1;
        set_text(scan, &scan->token);
    } else if (scan->delta.is_there && format != PAYLOAD_TOKENS) {
        payload->kind = PAYLOAD_TOKEN;
        payload->tokens = 1;
        set_text(scan, &scan->delta);
    } else {
        payload->kind = PAYLOAD_OTHER;
    }
}

void payload_read(struct payload *payload, struct buffer *scratch, enum payload_format format,
                  const char *name, const char *data, size_t len)
{
    struct scan scan = {.at = data, .end = data + len, .scratch = scratch, .payload = payload};
    bool named_error = strcmp(name, "error") == 0;

    *payload = (struct payload){.kind = PAYLOAD_BAD, .text = "", .sent_us = -1, .due_us = -1};
    buffer_reset(scratch);
    if (len == 6 && memcmp(data, "[DONE]", 6) == 0 && !named_error) {
        payload->kind = PAYLOAD_DONE;
        return;
    }
    if (read_value(&scan, TOP, NULL, 0) == 0) {
        skip_space(&scan);
        if (scan.at == scan.end)
            judge(&scan, format, named_error);
    }
    if (payload->kind == PAYLOAD_BAD && named_error)
        payload->kind = PAYLOAD_ERROR;
    payload->has_stamps = payload->sent_us >= 0 && payload->due_us >= 0;
}

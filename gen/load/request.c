/*
 * Placeholders into bytes, and parameters out of them: of a query (form-encoded) or of a body's
 * JSON object.
 */

#include "gen/load/request.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <cjson/cJSON.h>

#include "base/number.h"

/* How a placeholder's text is written where it stands. */
enum spelling { PLAIN, IN_URL, IN_JSON };

/* Beyond it a double is no longer the number that was written. */
#define EXACT_DOUBLE 9007199254740992.0

struct blanks {
    uint64_t number;
    const char *id;
    const struct buffer *prompt; /* NULL: not known here */
    uint64_t tokens;             /* 0: not known here */
};

static bool has_header(const struct options *options, const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < options->header_count; i++) {
        if (strncasecmp(options->headers[i], name, len) == 0 && options->headers[i][len] == ':')
            return true;
    }
    return false;
}

void request_maker_init(struct request_maker *maker, const struct options *options,
                        uint32_t run)
{
    *maker = (struct request_maker){
        .options = options,
        .sends_id = !has_header(options, "X-Request-Id"),
        .sends_accept = !has_header(options, "Accept"),
        .sends_type = options->body != NULL && !has_header(options, "Content-Type"),
    };
    snprintf(maker->run, sizeof(maker->run), "load-%08" PRIx32, run);
}

void request_init(struct request *request)
{
    *request = (struct request){.id = ""};
    buffer_init(&request->url, REQUEST_MAX_BYTES);
    buffer_init(&request->body, REQUEST_MAX_BYTES);
    buffer_init(&request->headers, REQUEST_MAX_BYTES);
    buffer_init(&request->prompt, REQUEST_MAX_BYTES);
}

void request_free(struct request *request)
{
    buffer_free(&request->url);
    buffer_free(&request->body);
    buffer_free(&request->headers);
    buffer_free(&request->prompt);
}

/* --- writing --- */

static void append_in_url(struct buffer *out, const char *text, size_t len)
{
    static const char hex[] = "0123456789ABCDEF";

    for (size_t i = 0; i < len; i++) {
        unsigned char byte = (unsigned char)text[i];
        bool plain = (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
                     (byte >= 'A' && byte <= 'Z') || strchr("-._~", byte) != NULL;

        if (plain && byte != '\0') {
            buffer_append_char(out, text[i]);
        } else {
            char escape[3] = {'%', hex[byte >> 4], hex[byte & 15]};
            buffer_append(out, escape, sizeof(escape));
        }
    }
}

static void append_in_json(struct buffer *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char byte = (unsigned char)text[i];

        if (byte < 0x20)
            buffer_printf(out, "\\u%04x", (unsigned)byte);
        else if (byte == '"' || byte == '\\')
            buffer_printf(out, "\\%c", byte);
        else
            buffer_append_char(out, text[i]);
    }
}

static void append_spelled(struct buffer *out, enum spelling spelling, const char *text,
                           size_t len)
{
    if (spelling == IN_URL)
        append_in_url(out, text, len);
    else if (spelling == IN_JSON)
        append_in_json(out, text, len);
    else
        buffer_append(out, text, len);
}

static bool begins_with(const char *text, size_t len, const char *word)
{
    size_t word_len = strlen(word);

    return len >= word_len && memcmp(text, word, word_len) == 0;
}

/* The placeholder at the brace, if it is one: appended, and how long it was; else 0. */
static size_t append_blank(struct buffer *out, enum spelling spelling, const char *text,
                           size_t len, const struct blanks *blanks)
{
    if (begins_with(text, len, "{i}")) {
        buffer_append_u64(out, blanks->number);
        return 3;
    }
    if (begins_with(text, len, "{id}")) {
        append_spelled(out, spelling, blanks->id, strlen(blanks->id));
        return 4;
    }
    if (begins_with(text, len, "{prompt}") && blanks->prompt != NULL) {
        append_spelled(out, spelling, blanks->prompt->data, blanks->prompt->len);
        return 8;
    }
    if (begins_with(text, len, "{tokens}") && blanks->tokens > 0) {
        buffer_append_u64(out, blanks->tokens);
        return 8;
    }
    return 0;
}

static void append_expanded(struct buffer *out, enum spelling spelling, const char *text,
                            size_t len, const struct blanks *blanks)
{
    while (len > 0) {
        const char *brace = memchr(text, '{', len);
        size_t plain = brace != NULL ? (size_t)(brace - text) : len;
        buffer_append(out, text, plain);
        text += plain;
        len -= plain;
        if (len == 0)
            break;
        size_t used = append_blank(out, spelling, text, len, blanks);
        if (used == 0) {
            buffer_append_char(out, '{');
            used = 1;
        }
        text += used;
        len -= used;
    }
}

static void make_prompt(const struct options *options, struct request *request,
                        const struct blanks *blanks)
{
    buffer_reset(&request->prompt);
    append_expanded(&request->prompt, PLAIN, options->prompt, strlen(options->prompt), blanks);
    if (options->prompts > 1) {
        buffer_append_char(&request->prompt, ' ');
        buffer_append_u64(&request->prompt, blanks->number % options->prompts);
    }
}

static void append_parameter(struct buffer *url, const char *name, size_t name_len)
{
    bool has_query = url->len > 0 && memchr(url->data, '?', url->len) != NULL;
    char before = has_query ? '&' : '?';

    if (has_query && (url->data[url->len - 1] == '?' || url->data[url->len - 1] == '&'))
        before = '\0';
    if (before != '\0')
        buffer_append_char(url, before);
    buffer_append(url, name, name_len);
    buffer_append_char(url, '=');
}

/* What stands behind a # is not sent. Without a body, prompt and tokens are parameters. */
static void make_url(const struct options *options, struct request *request,
                     const struct blanks *blanks)
{
    struct buffer *url = &request->url;
    struct buffer value;

    buffer_reset(url);
    append_expanded(url, IN_URL, options->url, strcspn(options->url, "#"), blanks);
    if (url->failed)
        return;
    if (options->body == NULL && options->prompt != NULL) {
        append_parameter(url, "prompt", 6);
        append_in_url(url, request->prompt.data, request->prompt.len);
    }
    if (options->body == NULL && options->tokens > 0 && !url->failed) {
        append_parameter(url, "max_tokens", 10);
        buffer_append_u64(url, options->tokens);
    }
    buffer_init(&value, REQUEST_MAX_BYTES);
    for (size_t i = 0; i < options->control_count && !url->failed; i++) {
        const char *equals = strchr(options->controls[i], '=');
        append_parameter(url, options->controls[i], (size_t)(equals - options->controls[i]));
        buffer_reset(&value);
        append_expanded(&value, PLAIN, equals + 1, strlen(equals + 1), blanks);
        append_in_url(url, value.data, value.len);
    }
    buffer_free(&value);
    buffer_append_char(url, '\0');
}

static void make_headers(const struct request_maker *maker, struct request *request,
                         const struct blanks *blanks)
{
    static const char accept[] = "Accept: text/event-stream";
    static const char type[] = "Content-Type: application/json";
    const struct options *options = maker->options;
    struct buffer *headers = &request->headers;

    buffer_reset(headers);
    for (size_t i = 0; i < options->header_count; i++) {
        append_expanded(headers, PLAIN, options->headers[i], strlen(options->headers[i]),
                        blanks);
        buffer_append_char(headers, '\0');
    }
    if (maker->sends_id) {
        buffer_printf(headers, "X-Request-Id: %s", request->id);
        buffer_append_char(headers, '\0');
    }
    if (maker->sends_accept)
        buffer_append(headers, accept, sizeof(accept));
    if (maker->sends_type)
        buffer_append(headers, type, sizeof(type));
}

/* --- reading --- */

struct seen {
    struct asked *asked;
    uint64_t seed;
    enum tokgen_vocab vocab;
    bool is_inexact; /* the seed is a number that cannot be read exactly */
    const char *prompt;
    size_t prompt_len;
};

static void see_parameter(struct seen *seen, const char *name, const char *value, size_t len)
{
    struct asked *asked = seen->asked;

    if (strcmp(name, "prompt") == 0) {
        seen->prompt = value;
        seen->prompt_len = len;
    } else if (strcmp(name, "max_tokens") == 0 || strcmp(name, "max_completion_tokens") == 0)
        number_parse_u64(value, len, 1, UINT64_MAX, &asked->max_tokens);
    else if (strcmp(name, "seed") == 0)
        number_parse_u64(value, len, 0, UINT64_MAX, &seen->seed);
    else if (strcmp(name, "vocab") == 0)
        tokgen_vocab_parse(value, &seen->vocab);
    else if (strcmp(name, "chunk") == 0)
        number_parse_u64(value, len, 1, INT32_MAX, &asked->chunk);
    else if (strcmp(name, "itl_ms") == 0)
        number_parse_ms(value, len, 0, INT64_C(86400000000), &asked->itl_us);
    else if (strcmp(name, "ttft_ms") == 0)
        number_parse_ms(value, len, 0, INT64_C(86400000000), &asked->ttft_us);
    else if (strcmp(name, "jitter") == 0)
        asked->has_jitter = strcmp(value, "none") != 0;
}

static int hex_value(char c)
{
    const char *digits = "0123456789abcdef";
    const char *found = c == '\0' ? NULL : strchr(digits, c | 0x20);

    return found == NULL ? -1 : (int)(found - digits);
}

/* In place; a NUL behind it. Returns the new length. */
static size_t decode_form(char *text, size_t len)
{
    size_t out = 0;

    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (c == '+') {
            c = ' ';
        } else if (c == '%' && len - i > 2 && hex_value(text[i + 1]) >= 0 &&
                   hex_value(text[i + 2]) >= 0) {
            c = (char)(hex_value(text[i + 1]) << 4 | hex_value(text[i + 2]));
            i += 2;
        }
        text[out++] = c;
    }
    text[out] = '\0';
    return out;
}

/* `copy` has the query; its memory must outlive what is seen. */
static void see_query(struct seen *seen, char *copy)
{
    while (*copy != '\0') {
        size_t len = strcspn(copy, "&");
        bool is_last = copy[len] == '\0';
        char *equals = memchr(copy, '=', len);

        copy[len] = '\0';
        if (equals != NULL) {
            decode_form(copy, (size_t)(equals - copy));
            size_t value_len = decode_form(equals + 1, len - (size_t)(equals - copy) - 1);
            see_parameter(seen, copy, equals + 1, value_len);
        }
        if (is_last)
            return;
        copy += len + 1;
    }
}

/* cJSON keeps a number as a double. */
static void see_body(struct seen *seen, const cJSON *body)
{
    const cJSON *member;
    char text[32];

    cJSON_ArrayForEach(member, body)
    {
        if (member->string == NULL)
            continue;
        if (cJSON_IsString(member)) {
            see_parameter(seen, member->string, member->valuestring,
                          strlen(member->valuestring));
        } else if (cJSON_IsNumber(member) && fabs(member->valuedouble) <= EXACT_DOUBLE) {
            bool is_whole = member->valuedouble == (double)(int64_t)member->valuedouble;
            snprintf(text, sizeof(text), is_whole ? "%.0f" : "%.3f", member->valuedouble);
            see_parameter(seen, member->string, text, strlen(text));
        } else if (cJSON_IsNumber(member) && strcmp(member->string, "seed") == 0) {
            seen->is_inexact = true;
        }
    }
}

static int read_asked(const struct options *options, struct request *request)
{
    struct asked *asked = &request->asked;
    struct seen seen = {.asked = asked, .vocab = TOKGEN_WORDS};
    const char *query = strchr(request->url.data, '?');
    char *copy = strdup(query == NULL ? "" : query + 1);
    cJSON *body = NULL;

    if (copy == NULL)
        return -1;
    *asked =
        (struct asked){.chunk = 1, .itl_us = -1, .ttft_us = -1, .max_tokens = options->tokens};
    if (options->prompt != NULL) {
        seen.prompt = request->prompt.data;
        seen.prompt_len = request->prompt.len;
    }
    see_query(&seen, copy);
    if (options->body != NULL)
        body = cJSON_ParseWithLength(request->body.data, request->body.len);
    if (cJSON_IsObject(body))
        see_body(&seen, body);
    asked->has_prompt = seen.prompt != NULL && !seen.is_inexact;
    if (asked->has_prompt)
        asked->tokens = tokgen_init(seen.prompt, seen.prompt_len, seen.seed, seen.vocab);
    cJSON_Delete(body);
    free(copy);
    return 0;
}

int request_make(const struct request_maker *maker, struct request *request, uint64_t number)
{
    const struct options *options = maker->options;
    struct blanks blanks = {.number = number, .id = request->id};

    snprintf(request->id, sizeof(request->id), "%s-%" PRIu64, maker->run, number);
    if (options->prompt != NULL) {
        make_prompt(options, request, &blanks);
        if (request->prompt.failed)
            return -1;
        blanks.prompt = &request->prompt;
    }
    blanks.tokens = options->tokens;
    make_url(options, request, &blanks);
    make_headers(maker, request, &blanks);
    buffer_reset(&request->body);
    if (options->body != NULL)
        append_expanded(&request->body, IN_JSON, options->body, options->body_len, &blanks);
    if (request->url.failed || request->headers.failed || request->body.failed)
        return -1;
    return read_asked(options, request);
}

/* JSON bodies: cJSON parses, this file refuses what cJSON lets through. */

#include "wire/body.h"

#include <stdint.h>
#include <string.h>
#include <unistr.h>

/* cJSON turns the escape \u0000 into the end of the string. */
static bool has_nul(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\0')
            return true;
        if (text[i] != '\\')
            continue;
        if (len - i >= 6 && memcmp(text + i, "\\u0000", 6) == 0)
            return true;
        i++; /* the escaped character, which may be a backslash */
    }
    return false;
}

static size_t skip_digits(const char *text, size_t at, size_t len)
{
    while (at < len && text[at] >= '0' && text[at] <= '9')
        at++;
    return at;
}

/* The end of the number that begins at `at`, or `at` when it is none of JSON's. */
static size_t skip_number(const char *text, size_t at, size_t len)
{
    size_t start = at;

    if (text[at] == '-')
        at++;
    size_t digits = skip_digits(text, at, len) - at;
    if (digits == 0 || (digits > 1 && text[at] == '0'))
        return start;
    at += digits;
    if (at < len && text[at] == '.') {
        size_t end = skip_digits(text, at + 1, len);
        if (end == at + 1)
            return start;
        at = end;
    }
    if (at < len && (text[at] == 'e' || text[at] == 'E')) {
        at++;
        if (at < len && (text[at] == '+' || text[at] == '-'))
            at++;
        size_t end = skip_digits(text, at, len);
        return end == at ? start : end;
    }
    return at;
}

static bool is_unicode_escape(const char *text, size_t at, size_t len)
{
    for (size_t i = at + 2; i < at + 6; i++) {
        if (i >= len || strchr("0123456789abcdefABCDEF", text[i]) == NULL)
            return false;
    }
    return true;
}

/*
 * What RFC 8259 forbids and cJSON takes: numbers as strtod reads them (`01`, `1.`; section 6),
 * control characters and \\u without four digits in strings (section 7), and control characters
 * as white space (section 2). Where such a one is, or `len`.
 */
static size_t find_lax(const char *text, size_t len)
{
    bool in_string = false;

    for (size_t at = 0; at < len; at++) {
        if (text[at] == '"') {
            in_string = !in_string;
        } else if (in_string) {
            if ((unsigned char)text[at] < 0x20)
                return at;
            if (text[at] == '\\' && at + 1 < len) {
                if (text[at + 1] == 'u' && !is_unicode_escape(text, at, len))
                    return at;
                at++;
            }
        } else if ((unsigned char)text[at] <= 0x20 && strchr(" \t\r\n", text[at]) == NULL) {
            return at;
        } else if (text[at] == '-' || (text[at] >= '0' && text[at] <= '9')) {
            size_t end = skip_number(text, at, len);
            if (end == at)
                return at;
            at = end - 1;
        }
    }
    return len;
}

static size_t skip_space(const char *text, size_t at, size_t len)
{
    while (at < len && strchr(" \t\r\n", text[at]) != NULL && text[at] != '\0')
        at++;
    return at;
}

cJSON *body_parse(const char *text, size_t len, struct problem *problem)
{
    const char *end = text;

    if (skip_space(text, 0, len) == len) {
        problem_set(
            problem, 400, "empty_body", NULL,
            "the body is empty; a JSON object such as {\"prompt\":\"hello\"} is needed");
        return NULL;
    }
    if (u8_check((const uint8_t *)text, len) != NULL) {
        problem_set(problem, 400, "bad_utf8", NULL, "the body is not valid UTF-8");
        return NULL;
    }
    if (has_nul(text, len)) {
        problem_set(problem, 400, "nul_byte", NULL,
                    "the body has an embedded NUL; text without it is allowed");
        return NULL;
    }
    size_t lax = find_lax(text, len);
    if (lax < len) {
        problem_set(problem, 400, "bad_json", NULL,
                    "the body is not JSON: it goes wrong at byte %zu", lax);
        return NULL;
    }
    cJSON *json = cJSON_ParseWithLengthOpts(text, len, &end, 0);
    size_t stop = (size_t)(end - text);
    if (json == NULL || skip_space(text, stop, len) != len) {
        problem_set(problem, 400, "bad_json", NULL,
                    "the body is not JSON: it goes wrong at byte %zu",
                    json == NULL ? stop : skip_space(text, stop, len));
        cJSON_Delete(json);
        return NULL;
    }
    if (!cJSON_IsObject(json)) {
        problem_set(problem, 400, "not_an_object", NULL,
                    "the body is JSON, but not an object such as {\"prompt\":\"hello\"}");
        cJSON_Delete(json);
        return NULL;
    }
    return json;
}

/* --- members as they are written; the text is known to be an object --- */

/* Past the string that begins at `at`. */
static const char *skip_string(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++) {
        if (*at == '\\')
            at++;
    }
    return at < end ? at + 1 : end;
}

static const char *skip_value(const char *at, const char *end)
{
    size_t depth = 0;

    while (at < end) {
        if (*at == '"') {
            at = skip_string(at, end);
            continue;
        }
        if (depth == 0 && strchr(",} \t\r\n", *at) != NULL)
            break;
        if (*at == '{' || *at == '[')
            depth++;
        else if (*at == '}' || *at == ']')
            depth--;
        at++;
    }
    return at;
}

static const char *skip_any(const char *at, const char *end, const char *skipped)
{
    while (at < end && strchr(skipped, *at) != NULL)
        at++;
    return at;
}

struct body_members body_members(const cJSON *json, const char *text, size_t len)
{
    const char *end = text + len;
    const char *brace = memchr(text, '{', len);

    return (struct body_members){
        .next = json->child, .at = brace != NULL ? brace + 1 : end, .end = end};
}

bool body_next(struct body_members *members, struct body_value *value)
{
    if (members->next == NULL)
        return false;
    const char *name = skip_any(members->at, members->end, ", \t\r\n");
    value->json = members->next;
    value->text = skip_any(skip_string(name, members->end), members->end, ": \t\r\n");
    members->at = skip_value(value->text, members->end);
    members->next = value->json->next;
    value->len = (size_t)(members->at - value->text);
    return true;
}

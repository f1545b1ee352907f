/* Query strings; the header says what is refused. */

#include "wire/query.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistr.h>

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/*
 * Decode `len` bytes at `from` to `to` (never longer), NUL-terminate, and return the length;
 * or -1 with `problem` filled.
 */
static long decode(char *to, const char *from, size_t len, struct problem *problem)
{
    size_t out = 0;

    for (size_t i = 0; i < len; i++) {
        char c = from[i] == '+' ? ' ' : from[i];
        if (c == '%') {
            int high = i + 1 < len ? hex_digit(from[i + 1]) : -1;
            int low = i + 2 < len ? hex_digit(from[i + 2]) : -1;
            if (high < 0 || low < 0)
                return problem_set(
                    problem, 400, "bad_escape", NULL,
                    "the query has a `%%` at byte %zu of a name or value that two "
                    "hexadecimal digits do not follow; a percent sign itself is `%%25`",
                    i);
            c = (char)(high << 4 | low);
            i += 2;
        }
        if (c == '\0')
            return problem_set(problem, 400, "nul_byte", NULL,
                               "the query has an embedded NUL; text without it is allowed");
        to[out++] = c;
    }
    to[out] = '\0';
    if (u8_check((const uint8_t *)to, out) != NULL)
        return problem_set(
            problem, 400, "bad_utf8", NULL,
            "the query is not valid UTF-8 once decoded; names and values must be");
    return (long)out;
}

/* One `name=value` of `len` bytes into the next pair; `*room` moves past what it took. */
static int add_pair(struct query *query, char **room, const char *text, size_t len,
                    struct problem *problem)
{
    const char *equals = memchr(text, '=', len);
    size_t name_len = equals != NULL ? (size_t)(equals - text) : len;
    struct query_pair *pair = &query->pairs[query->count];

    if (query->count == QUERY_PAIRS_MAX)
        return problem_set(problem, 400, "too_many_parameters", NULL,
                           "the query has more than %d parameters", QUERY_PAIRS_MAX);
    pair->name = *room;
    long decoded = decode(*room, text, name_len, problem);
    if (decoded < 0)
        return -1;
    *room += decoded + 1;

    pair->value = *room;
    decoded = 0;
    (*room)[0] = '\0';
    if (equals != NULL)
        decoded = decode(*room, equals + 1, len - name_len - 1, problem);
    if (decoded < 0)
        return -1;
    pair->value_len = (size_t)decoded;
    *room += decoded + 1;
    query->count++;
    return 0;
}

int query_parse(struct query *query, const char *text, size_t len, struct problem *problem)
{
    /* A pair of n bytes decodes to at most n bytes and two NULs, and owns one byte of `&`. */
    query->count = 0;
    query->storage = malloc(len + QUERY_PAIRS_MAX + 2);
    if (query->storage == NULL)
        return problem_set(problem, 503, "no_memory", NULL, "no memory for the query");
    char *room = query->storage;

    for (size_t at = 0; at < len;) {
        const char *amp = memchr(text + at, '&', len - at);
        size_t pair_len = amp != NULL ? (size_t)(amp - text) - at : len - at;
        if (pair_len > 0 && add_pair(query, &room, text + at, pair_len, problem) != 0) {
            query_free(query);
            return -1;
        }
        at += pair_len + 1;
    }
    return 0;
}

void query_free(struct query *query)
{
    free(query->storage);
    query->storage = NULL;
    query->count = 0;
}

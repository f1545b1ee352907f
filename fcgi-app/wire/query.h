#ifndef RUNNEL_WIRE_QUERY_H
#define RUNNEL_WIRE_QUERY_H

#include <stddef.h>

#include "wire/problem.h"

/*
 * A query string as decoded pairs (WHATWG URL, application/x-www-form-urlencoded: `&` between
 * pairs, `+` is a space, `%XX` is a byte). Stricter than a browser: a bad escape, an embedded
 * NUL and malformed UTF-8 are errors, because a prompt that was silently changed gives other
 * tokens.
 */

enum { QUERY_PAIRS_MAX = 64 };

struct query_pair {
    const char *name; /* NUL-terminated */
    const char *value;
    size_t value_len; /* value is NUL-terminated too and has no NUL inside */
};

struct query {
    struct query_pair pairs[QUERY_PAIRS_MAX];
    size_t count;
    char *storage; /* owned; the pairs point into it */
};

/* 0, or -1 with `problem` filled and nothing to free. `len` is bounded by the caller. */
int query_parse(struct query *query, const char *text, size_t len, struct problem *problem);

void query_free(struct query *query);

#endif

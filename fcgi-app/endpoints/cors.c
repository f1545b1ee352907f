/* The list of origins, and the lines for each, made once. */

#include "endpoints/cors.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ORIGINS_MAX = 64, ORIGIN_MAX_BYTES = 255 };

#define VARY "Vary: Origin\r\n"

const char cors_vary[] = VARY;

struct origin {
    char name[ORIGIN_MAX_BYTES + 1]; /* "*": any */
    char lines[ORIGIN_MAX_BYTES + 160];
};

struct cors {
    size_t count;
    struct origin origins[ORIGINS_MAX];
};

static bool is_any(const struct origin *origin)
{
    return strcmp(origin->name, "*") == 0;
}

/* What is wrong with it, or NULL. */
static const char *judge(const char *name)
{
    static const char lower[] = "abcdefghijklmnopqrstuvwxyz0123456789+-.:[]_";
    const char *scheme_end = strstr(name, "://");

    if (strcmp(name, "*") == 0 || strcmp(name, "null") == 0)
        return NULL;
    if (scheme_end == NULL || scheme_end == name || scheme_end[3] == '\0')
        return "is no origin; `*`, or such as https://app.example or http://localhost:3000, is "
               "allowed";
    if (strspn(name, lower) != (size_t)(scheme_end - name) + 1 ||
        scheme_end[3 + strspn(scheme_end + 3, lower)] != '\0')
        return "is not as browsers send it: scheme, host and port in lower case, with nothing "
               "behind them, not even a slash";
    return NULL;
}

static int add(struct cors *cors, const char *text, size_t len,
               char error[CORS_ERROR_MAX_BYTES])
{
    struct origin *origin = &cors->origins[cors->count];
    char name[ORIGIN_MAX_BYTES + 1];

    if (cors->count == ORIGINS_MAX || len > ORIGIN_MAX_BYTES) {
        snprintf(error, CORS_ERROR_MAX_BYTES,
                 "--cors-origin: at most %d origins of %d bytes are allowed", ORIGINS_MAX,
                 ORIGIN_MAX_BYTES);
        return -1;
    }
    memcpy(name, text, len);
    name[len] = '\0';
    const char *wrong = judge(name);
    if (wrong != NULL) {
        snprintf(error, CORS_ERROR_MAX_BYTES, "--cors-origin: `%.60s` %s", name, wrong);
        return -1;
    }
    memcpy(origin->name, name, len + 1);
    snprintf(origin->lines, sizeof(origin->lines),
             "Access-Control-Allow-Origin: %s\r\n"
             "Access-Control-Expose-Headers: X-Request-Id, Retry-After\r\n" VARY,
             name);
    cors->count++;
    return 0;
}

static int add_all(struct cors *cors, const char *origins, char error[CORS_ERROR_MAX_BYTES])
{
    for (const char *at = origins;;) {
        at += strspn(at, " \t");
        size_t len = strcspn(at, ",");
        const char *next = at + len;
        while (len > 0 && (at[len - 1] == ' ' || at[len - 1] == '\t'))
            len--;
        if (add(cors, at, len, error) != 0)
            return -1;
        if (*next == '\0')
            break;
        at = next + 1;
    }
    for (size_t i = 0; i < cors->count; i++) {
        if (is_any(&cors->origins[i]) && cors->count > 1) {
            snprintf(error, CORS_ERROR_MAX_BYTES,
                     "--cors-origin: `*` is every origin, it is allowed alone");
            return -1;
        }
    }
    return 0;
}

struct cors *cors_create(const char *origins, char error[CORS_ERROR_MAX_BYTES])
{
    struct cors *cors = calloc(1, sizeof(*cors));

    if (cors == NULL) {
        snprintf(error, CORS_ERROR_MAX_BYTES, "--cors-origin: no memory");
        return NULL;
    }
    if (add_all(cors, origins, error) != 0) {
        free(cors);
        return NULL;
    }
    return cors;
}

const char *cors_lines(const struct cors *cors, const char *origin)
{
    if (origin[0] == '\0')
        return NULL;
    for (size_t i = 0; i < cors->count; i++) {
        if (is_any(&cors->origins[i]) || strcmp(cors->origins[i].name, origin) == 0)
            return cors->origins[i].lines;
    }
    return NULL;
}

void cors_free(struct cors *cors)
{
    free(cors);
}

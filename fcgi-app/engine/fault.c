/* How faults are spelled. */

#include "engine/fault.h"

#include <string.h>

#include "base/number.h"

enum {
    TOKEN_MAX = 100000000,
    STATUS_MIN = 400,
    STATUS_MAX = 599,
};

#define STALL_MAX_US INT64_C(86400000000)

const char fault_allowed[] = "error@K, reset@K, eof@K, stall@K:MS, status:CODE (400 to 599), "
                             "garble@K, dup@K or nodone is allowed, K the token counted from 0";

static const struct {
    const char *name;
    enum fault_kind kind;
    char separator; /* between the name and its number; 0: no number */
} spellings[] = {
    {"error", FAULT_ERROR, '@'}, {"reset", FAULT_RESET, '@'},   {"eof", FAULT_EOF, '@'},
    {"stall", FAULT_STALL, '@'}, {"status", FAULT_STATUS, ':'}, {"garble", FAULT_GARBLE, '@'},
    {"dup", FAULT_DUP, '@'},     {"nodone", FAULT_NODONE, 0},
};

static int parse_argument(struct fault *fault, const char *text, size_t len)
{
    const char *colon = memchr(text, ':', len);
    size_t token_len = colon != NULL ? (size_t)(colon - text) : len;
    uint64_t status;

    if (fault->kind == FAULT_STATUS) {
        if (number_parse_u64(text, len, STATUS_MIN, STATUS_MAX, &status) != NUMBER_OK)
            return -1;
        fault->status = (int)status;
        return 0;
    }
    if ((fault->kind == FAULT_STALL) != (colon != NULL))
        return -1;
    if (colon != NULL && number_parse_ms(colon + 1, len - token_len - 1, 0, STALL_MAX_US,
                                         &fault->stall_us) != NUMBER_OK)
        return -1;
    return number_parse_u64(text, token_len, 0, TOKEN_MAX, &fault->token) == NUMBER_OK ? 0 : -1;
}

int fault_parse(const char *text, size_t len, struct fault *fault)
{
    for (size_t i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++) {
        size_t name_len = strlen(spellings[i].name);
        bool has_argument = spellings[i].separator != 0;
        struct fault parsed = {.kind = spellings[i].kind};
        if (len < name_len || memcmp(text, spellings[i].name, name_len) != 0)
            continue;
        if (has_argument ? len == name_len || text[name_len] != spellings[i].separator
                         : len != name_len)
            return -1;
        if (has_argument &&
            parse_argument(&parsed, text + name_len + 1, len - name_len - 1) != 0)
            return -1;
        *fault = parsed;
        return 0;
    }
    return -1;
}

bool fault_hits(const struct fault *fault, enum fault_kind kind, uint64_t first, uint64_t count)
{
    return fault->kind == kind && fault->token >= first && fault->token - first < count;
}

/* The comparison with the generator, and what a difference looks like. */

#include "gen/load/verification.h"

#include <string.h>

enum {
    LOOK_AROUND = 8
}; /* tokens before and after, to tell what was lost from what is wrong */

static void expect(struct verification *verification, uint64_t token)
{
    verification->next = token;
    verification->offset = 0;
    verification->token_len = tokgen_token(&verification->tokens, token, verification->token,
                                           sizeof(verification->token));
}

void verification_start(struct verification *verification, const struct tokgen *tokens,
                        uint64_t wanted)
{
    verification->tokens = *tokens;
    verification->wanted = wanted;
    expect(verification, 0);
}

/* Whether the text begins with that token, or is the beginning of it. */
static bool looks_like(const struct verification *verification, uint64_t token,
                       const char *text, size_t len)
{
    char other[TOKGEN_TOKEN_MAX_BYTES];
    size_t other_len = tokgen_token(&verification->tokens, token, other, sizeof(other));

    return len > 0 && memcmp(text, other, len < other_len ? len : other_len) == 0;
}

/* What a text is that is not token `next`. */
static enum verification_status explain(const struct verification *verification,
                                        const char *text, size_t len)
{
    uint64_t next = verification->next;

    if (next > 0 && looks_like(verification, next - 1, text, len))
        return VERIFICATION_DOUBLED;
    for (uint64_t i = 1; i <= LOOK_AROUND; i++) {
        if (next + i < verification->wanted && looks_like(verification, next + i, text, len))
            return VERIFICATION_LOST;
    }
    for (uint64_t i = 2; i <= LOOK_AROUND && i <= next; i++) {
        if (looks_like(verification, next - i, text, len))
            return VERIFICATION_REORDERED;
    }
    return VERIFICATION_CHANGED;
}

enum verification_status verification_take(struct verification *verification, const char *text,
                                           size_t len, uint64_t count)
{
    uint64_t first = verification->next;

    while (len > 0) {
        size_t left = verification->token_len - verification->offset;
        size_t part = len < left ? len : left;

        if (verification->next >= verification->wanted)
            return VERIFICATION_EXCESS;
        if (memcmp(text, verification->token + verification->offset, part) != 0)
            return verification->offset == 0 ? explain(verification, text, len)
                                             : VERIFICATION_CHANGED;
        text += part;
        len -= part;
        verification->offset += part;
        if (verification->offset == verification->token_len)
            expect(verification, verification->next + 1);
    }
    if (count > 0 && (verification->offset != 0 || verification->next != first + count))
        return VERIFICATION_SPLIT;
    return VERIFICATION_OK;
}

enum verification_status verification_take_index(const struct verification *verification,
                                                 uint64_t index, uint64_t count)
{
    if (index == verification->next)
        return VERIFICATION_OK;
    if (index > verification->next)
        return VERIFICATION_LOST;
    return index + count == verification->next ? VERIFICATION_DOUBLED : VERIFICATION_REORDERED;
}

enum verification_status verification_end(const struct verification *verification)
{
    return verification->next == verification->wanted ? VERIFICATION_OK : VERIFICATION_SHORT;
}

const char *verification_name(enum verification_status status)
{
    static const char *const names[] = {"right",   "lost",  "doubled", "reordered",
                                        "changed", "split", "excess",  "short"};

    return names[status];
}

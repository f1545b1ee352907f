#ifndef RUNNEL_LOAD_VERIFICATION_H
#define RUNNEL_LOAD_VERIFICATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gen/tokgen.h"

/*
 * Whether the text that came is what the generator makes for this request: every byte, in
 * order, nothing lost, nothing twice. It holds one token at a time, so a stream of any length
 * costs the same.
 */

enum verification_status {
    VERIFICATION_OK,
    VERIFICATION_LOST,      /* a later token than the one that was next */
    VERIFICATION_DOUBLED,   /* the one before it again */
    VERIFICATION_REORDERED, /* one that has been before */
    VERIFICATION_CHANGED,   /* other bytes */
    VERIFICATION_SPLIT,  /* an event ends inside a token, or has more or fewer than it says */
    VERIFICATION_EXCESS, /* more tokens than were asked for */
    VERIFICATION_SHORT,  /* the end came before all were there */
};

struct verification {
    struct tokgen tokens;
    uint64_t wanted; /* how many the request asked for */
    uint64_t next;   /* the token of which `offset` bytes have come */
    size_t offset;
    char token[TOKGEN_TOKEN_MAX_BYTES]; /* token `next` */
    size_t token_len;
};

/* From here on the tokens of this request are expected, from the first. */
void verification_start(struct verification *verification, const struct tokgen *tokens,
                        uint64_t wanted);

/*
 * The text of one event. `count` is how many tokens it says it is made of, 0 when its format
 * does not tell: then a token may go on in the next event. After anything but OK the rest of
 * the stream cannot be judged.
 */
enum verification_status verification_take(struct verification *verification, const char *text,
                                           size_t len, uint64_t count);

/* The index that an event of `count` tokens gives for the first of them (stamps=1) tells what
 * became of the stream even where neighbours have the same text. Call it before
 * verification_take. */
enum verification_status verification_take_index(const struct verification *verification,
                                                 uint64_t index, uint64_t count);

/* At the end: are all there? */
enum verification_status verification_end(const struct verification *verification);

/* "lost", "doubled", .. */
const char *verification_name(enum verification_status status);

#endif

/*
 * tokgen: token i of a reply, from a seed and i alone.
 *
 * There is no state to carry: any token can be asked for in any order, from any thread. So a
 * stream resumes at token k without making k tokens first, a client verifies what it received
 * by making it again, and the first n tokens do not depend on how many were ordered:
 * generate(p, n) is a prefix of generate(p, m). Nothing here allocates, blocks, or can fail for
 * want of a resource.
 *
 * The sequences are frozen: a seed and an index give the same bytes on every machine and in
 * every version. What makes that true: the prompt is hashed by XXH3, whose output is fixed
 * since xxHash 0.8.0 and does not depend on byte order; everything after it is arithmetic on
 * uint64_t and uint32_t, which wraps the same everywhere; no integer is read from or written to
 * memory as bytes; no size_t or char takes part in a choice; the vocabularies are UTF-8 by
 * construction (u8 literals and ASCII); the locale is never read. Adding, removing or moving a
 * word, a template or a torture entry changes what users have recorded: the golden vectors of
 * tests/unit/test_tokgen.c say so.
 *
 * It refuses to judge a prompt: that it is valid UTF-8 and not too long is the caller's matter.
 */
#ifndef RUNNEL_TOKGEN_H
#define RUNNEL_TOKGEN_H

#include <stddef.h>
#include <stdint.h>

/* No token of any vocabulary is longer; the torture vocabulary has tokens of exactly this
 * length. */
#define TOKGEN_TOKEN_MAX_BYTES 64

/* Entries of the torture vocabulary. A prime, so that every stride visits all of them. */
#define TOKGEN_TORTURE_COUNT 89

enum tokgen_vocab {
    TOKGEN_WORDS,   /* plausible English sentences; the tokens carry the spaces */
    TOKGEN_TORTURE, /* all that breaks a naive encoder, splitter, terminal or browser */
};

/* A value: copy it, compare it, keep as many as there are requests. */
struct tokgen {
    uint64_t seed;
    enum tokgen_vocab vocab;
};

/*
 * The generator of a prompt: seed = XXH3_64bits_withSeed(prompt, prompt_len, user_seed). A
 * user_seed of 0 is the default, "derived from the prompt alone". The prompt is not kept.
 */
struct tokgen tokgen_init(const char *prompt, size_t prompt_len, uint64_t user_seed,
                          enum tokgen_vocab vocab);

/*
 * Writes token `index` into buf, as UTF-8 without a closing NUL, and returns its length in
 * bytes: 1..TOKGEN_TOKEN_MAX_BYTES. When cap is too small for the token it writes nothing and
 * returns 0; with cap >= TOKGEN_TOKEN_MAX_BYTES it never returns 0. No token contains a NUL
 * byte, and each is valid UTF-8 by itself. Any index is good, up to 2^64-1.
 */
size_t tokgen_token(const struct tokgen *generator, uint64_t index, char *buf, size_t cap);

/* "words" or "torture", exactly so spelled. Returns 0, or -1 and leaves *vocab alone. */
int tokgen_vocab_parse(const char *name, enum tokgen_vocab *vocab);

/* The name that tokgen_vocab_parse takes; NULL for a value that is none of the enum's. */
const char *tokgen_vocab_name(enum tokgen_vocab vocab);

/*
 * How many tokens a prompt is worth, by a rule that a reader can apply by hand: each run of
 * letters or digits (Unicode general categories L and Nd) counts one, and so does every other
 * visible code point. Combining marks (M) belong to what they follow: they neither count nor
 * end a run. Separators (Z), controls (Cc), format characters (Cf), surrogates (Cs) and
 * unassigned code points (Cn) are invisible: they count nothing and end a run. A malformed
 * sequence counts as U+FFFD, a visible one. The categories are those of the Unicode version
 * that libunistring knows, so a code point younger than the library counts as unassigned; the
 * token sequence is not touched by that.
 */
uint64_t tokgen_count_prompt_tokens(const char *utf8, size_t len);

/* What tokgen_token is made of: one function a vocabulary, with its contract. Both choose by
 * random_at of base/random.h. */
size_t tokgen_words_token(uint64_t seed, uint64_t index, char *buf, size_t cap);
size_t tokgen_torture_token(uint64_t seed, uint64_t index, char *buf, size_t cap);

#endif

/*
 * The parts of tokgen that no vocabulary owns: the seed, the mixer, the dispatch by vocabulary,
 * and the count of a prompt's tokens. The vocabularies are tokgen_words.c and tokgen_torture.c.
 */
#include "gen/tokgen.h"

#include <string.h>

#include <unictype.h>
#include <unistr.h>
#include <xxhash.h>

/* One row a vocabulary, in the order of the enum. */
static const struct {
    const char *name;
    size_t (*token)(uint64_t seed, uint64_t index, char *buf, size_t cap);
} vocabularies[] = {
    [TOKGEN_WORDS] = {"words", tokgen_words_token},
    [TOKGEN_TORTURE] = {"torture", tokgen_torture_token},
};

#define VOCABULARY_COUNT (sizeof vocabularies / sizeof vocabularies[0])

/* What a code point is to the count of a prompt; the rule is in tokgen.h. */
enum code_point_kind { KIND_RUN, KIND_MARK, KIND_INVISIBLE, KIND_VISIBLE };

static enum code_point_kind kind_of(ucs4_t code_point);

struct tokgen tokgen_init(const char *prompt, size_t prompt_len, uint64_t user_seed,
                          enum tokgen_vocab vocab)
{
    return (struct tokgen){
        .seed = XXH3_64bits_withSeed(prompt, prompt_len, user_seed),
        .vocab = vocab,
    };
}

size_t tokgen_token(const struct tokgen *generator, uint64_t index, char *buf, size_t cap)
{
    if ((size_t)generator->vocab >= VOCABULARY_COUNT)
        return 0;
    return vocabularies[generator->vocab].token(generator->seed, index, buf, cap);
}

int tokgen_vocab_parse(const char *name, enum tokgen_vocab *vocab)
{
    for (size_t i = 0; i < VOCABULARY_COUNT; i++) {
        if (strcmp(name, vocabularies[i].name) == 0) {
            *vocab = (enum tokgen_vocab)i;
            return 0;
        }
    }
    return -1;
}

const char *tokgen_vocab_name(enum tokgen_vocab vocab)
{
    return (size_t)vocab < VOCABULARY_COUNT ? vocabularies[vocab].name : NULL;
}

uint64_t tokgen_count_prompt_tokens(const char *utf8, size_t len)
{
    const uint8_t *at = (const uint8_t *)utf8;
    uint64_t count = 0;
    int in_run = 0;

    while (len > 0) {
        ucs4_t code_point;
        size_t used = (size_t)u8_mbtouc(&code_point, at, len);
        enum code_point_kind kind = kind_of(code_point);

        if (kind == KIND_VISIBLE || (kind == KIND_RUN && !in_run))
            count++;
        if (kind != KIND_MARK)
            in_run = kind == KIND_RUN;
        at += used;
        len -= used;
    }
    return count;
}

static enum code_point_kind kind_of(ucs4_t code_point)
{
    static const uint32_t invisible = UC_CATEGORY_MASK_Z | UC_CATEGORY_MASK_Cc |
                                      UC_CATEGORY_MASK_Cf | UC_CATEGORY_MASK_Cs |
                                      UC_CATEGORY_MASK_Cn;

    if (uc_is_general_category_withtable(code_point, UC_CATEGORY_MASK_L | UC_CATEGORY_MASK_Nd))
        return KIND_RUN;
    if (uc_is_general_category_withtable(code_point, invisible))
        return KIND_INVISIBLE;
    if (uc_is_general_category_withtable(code_point, UC_CATEGORY_MASK_M))
        return KIND_MARK;
    return KIND_VISIBLE;
}

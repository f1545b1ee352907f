/*
 * Frozen outputs of the token generator. A line that differs is a broken promise to everyone
 * who has recorded a stream: mend the generator, not this file. The digest is XXH3 over the
 * first 10000 tokens, each as one byte of length and then its bytes.
 */
#ifndef RUNNEL_TESTS_GOLDEN_TOKGEN_H
#define RUNNEL_TESTS_GOLDEN_TOKGEN_H

#include "gen/tokgen.h"

#define GOLDEN_TOKENS 18

static const uint64_t golden_indexes[GOLDEN_TOKENS] = {
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 1000, UINT64_C(4294967301)};

static const struct golden {
    const char *prompt;
    uint64_t user_seed;
    enum tokgen_vocab vocab;
    uint64_t seed;
    uint64_t digest;
    const char *tokens[GOLDEN_TOKENS];
} goldens[] = {
    {
        .prompt = "hello",
        .user_seed = 0,
        .vocab = TOKGEN_WORDS,
        .seed = UINT64_C(0x9555e8555c62dcfd),
        .digest = UINT64_C(0x9ead6d7daac6f136),
        .tokens = {"The", " sailor", " rested", " and", " the", " herons", " stood", ".",
                   " Carefully", ",", " the", " sailor", " wrapped", " the", " map", ",",
                   " One", " the"},
    },
    {
        .prompt = "hello",
        .user_seed = 0,
        .vocab = TOKGEN_TORTURE,
        .seed = UINT64_C(0x9555e8555c62dcfd),
        .digest = UINT64_C(0x608db7d5d0b95956),
        .tokens = {"\360\237\207\257\360\237\207\265", "\\ud83d",
                   " \327\251\327\234\327\225\327\235", "\"",
                   "\341\204\222\341\205\241\341\206\253", "\034\035\036\037",
                   "\001\002\003\004\001\002\003\004\001\002\003\004\001\002\003\004\001\002"
                   "\003\004\001\002\003\004\001\002\003\004\001\002\003\004\001\002\003\004"
                   "\001\002\003\004\001\002\003\004\001\002\003\004\001\002\003\004\001\002"
                   "\003\004\001\002\003\004\001\002\003\004",
                   "\n\n", " leading", "\342\200\215", "</script>", "e\314\201", "data: ",
                   "\360\237\221\250\342\200\215\360\237\221\251\342\200\215\360\237\221\247"
                   "\342\200\215\360\237\221\246",
                   "\\u0041", "\331\205\330\261\330\255\330\250\330\247", "   ",
                   "\342\235\244\357\270\217"},
    },
    {
        .prompt = "The quick brown fox jumps over the lazy dog, and then it tells a story of "
                  "more than two hundred and forty bytes, because XXH3 takes another path for "
                  "long inputs, and a path that no vector covers is a path that may change "
                  "without anyone noticing it at all.",
        .user_seed = 0,
        .vocab = TOKGEN_WORDS,
        .seed = UINT64_C(0x7a0d3e7f3eb50d9b),
        .digest = UINT64_C(0x918b6ce50ab7cb8a),
        .tokens = {"Some", " thin", " herons", " slept", " outside", " the", " village", ".",
                   " Behind", " the", " tower", ",", " a", " traveller", " stood", ".",
                   " while", " the"},
    },
    {
        .prompt = "The quick brown fox jumps over the lazy dog, and then it tells a story of "
                  "more than two hundred and forty bytes, because XXH3 takes another path for "
                  "long inputs, and a path that no vector covers is a path that may change "
                  "without anyone noticing it at all.",
        .user_seed = 0,
        .vocab = TOKGEN_TORTURE,
        .seed = UINT64_C(0x7a0d3e7f3eb50d9b),
        .digest = UINT64_C(0x9ad64167b3f4ffcf),
        .tokens = {"\340\270\252\340\270\247\340\270\261\340\270\252\340\270\224\340\270\265",
                   "\342\200\251", " ", "1\357\270\217\342\203\243", "\\\"",
                   "\343\202\253\343\202\277\343\202\253\343\203\212", "\n", "event: error\n",
                   "\360\237\230\200", "\177", "\357\277\277", "\314\210 x", "{",
                   "\360\257\240\232", "a\nb", "&amp;", " \327\251\327\234\327\225\327\235",
                   "\360\237\207\257\360\237\207\265"},
    },
    {
        .prompt = "caf\303\251 \346\235\261\344\272\254",
        .user_seed = 42,
        .vocab = TOKGEN_WORDS,
        .seed = UINT64_C(0x970babdddfc6a165),
        .digest = UINT64_C(0xe8252fcb980236a1),
        .tokens = {"A", " tailor", " danced", " proudly", " beyond", " the", " chapel", ".",
                   " It", " was", " a", " stormy", " day", " in", " autumn", ",", " The",
                   " walked"},
    },
    {
        .prompt = "caf\303\251 \346\235\261\344\272\254",
        .user_seed = 42,
        .vocab = TOKGEN_TORTURE,
        .seed = UINT64_C(0x970babdddfc6a165),
        .digest = UINT64_C(0x1206c9aa8c2f296c),
        .tokens = {" \327\251\327\234\327\225\327\235", "e\314\201", "\r", "\033[31m", "[",
                   "%00", "\346\235\261\344\272\254\351\203\275",
                   "\304\260\303\237\357\254\201", "\314\201", "\r\n\r\n", "\"",
                   "data: ", "   ", "\357\275\266\357\276\236",
                   "\360\237\221\215\360\237\217\275", "\302\240",
                   "\360\237\221\250\342\200\215\360\237\221\251\342\200\215\360\237\221\247"
                   "\342\200\215\360\237\221\246",
                   "\n\n"},
    },
};

#endif

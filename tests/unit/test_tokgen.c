/*
 * tokgen: that the frozen sequences are still those, that a token depends on seed and index
 * alone, and that each vocabulary keeps its own promises.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <unistr.h>
#include <xxhash.h>

#include "base/random.h"
#include "gen/tokgen.h"
#include "tests/unit/golden/tokgen.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define DIGEST_TOKENS   10000
#define SENTENCE_TOKENS 200000

struct token {
    char bytes[TOKGEN_TOKEN_MAX_BYTES + 1]; /* with a NUL, for the string functions */
    size_t len;
};

static const enum tokgen_vocab both_vocabs[] = {TOKGEN_WORDS, TOKGEN_TORTURE};

static struct tokgen generator_of(const char *prompt, enum tokgen_vocab vocab)
{
    return tokgen_init(prompt, strlen(prompt), 0, vocab);
}

static struct token token_at(const struct tokgen *generator, uint64_t index)
{
    struct token token;

    token.len = tokgen_token(generator, index, token.bytes, TOKGEN_TOKEN_MAX_BYTES);
    assert_in_range(token.len, 1, TOKGEN_TOKEN_MAX_BYTES);
    token.bytes[token.len] = '\0';
    return token;
}

static uint64_t digest_of(const struct tokgen *generator)
{
    XXH3_state_t *state = XXH3_createState();
    uint64_t digest;

    assert_non_null(state);
    XXH3_64bits_reset(state);
    for (uint64_t i = 0; i < DIGEST_TOKENS; i++) {
        struct token token = token_at(generator, i);
        unsigned char len = (unsigned char)token.len;

        XXH3_64bits_update(state, &len, 1);
        XXH3_64bits_update(state, token.bytes, token.len);
    }
    digest = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return digest;
}

static void test_golden_vectors(void **state)
{
    (void)state;
    for (size_t row = 0; row < COUNT_OF(goldens); row++) {
        const struct golden *golden = &goldens[row];
        struct tokgen generator = tokgen_init(golden->prompt, strlen(golden->prompt),
                                              golden->user_seed, golden->vocab);

        assert_int_equal(generator.seed, golden->seed);
        for (size_t i = 0; i < GOLDEN_TOKENS; i++)
            assert_string_equal(token_at(&generator, golden_indexes[i]).bytes,
                                golden->tokens[i]);
        assert_int_equal(digest_of(&generator), golden->digest);
    }
}

/* The mixer alone, against the published outputs of splitmix64 from state 0. */
static void test_mix_is_splitmix64(void **state)
{
    (void)state;
    assert_int_equal(random_at(0, 0), UINT64_C(0xe220a8397b1dcdaf));
    assert_int_equal(random_at(0, 1), UINT64_C(0x6e789e6aa1b965f4));
    assert_int_equal(random_at(0, 2), UINT64_C(0x06c45d188009454f));
}

static void test_seed_and_prompt_select_the_sequence(void **state)
{
    struct tokgen plain = generator_of("hello", TOKGEN_WORDS);
    struct tokgen seeded = tokgen_init("hello", 5, 1, TOKGEN_WORDS);
    struct tokgen other = generator_of("hello ", TOKGEN_WORDS);

    (void)state;
    assert_int_equal(plain.seed, XXH3_64bits("hello", 5));
    assert_int_not_equal(plain.seed, seeded.seed);
    assert_int_not_equal(plain.seed, other.seed);
    assert_int_not_equal(digest_of(&plain), digest_of(&seeded));
    assert_int_not_equal(digest_of(&plain), digest_of(&other));
}

static size_t generate(const char *prompt, enum tokgen_vocab vocab, uint64_t count, char *text)
{
    struct tokgen generator = generator_of(prompt, vocab);
    size_t len = 0;

    for (uint64_t i = 0; i < count; i++)
        len += tokgen_token(&generator, i, text + len, TOKGEN_TOKEN_MAX_BYTES);
    return len;
}

static void test_fewer_tokens_are_a_prefix_of_more(void **state)
{
    static char few[256 * TOKGEN_TOKEN_MAX_BYTES];
    static char many[256 * TOKGEN_TOKEN_MAX_BYTES];

    (void)state;
    for (size_t v = 0; v < COUNT_OF(both_vocabs); v++) {
        size_t many_len = generate("prefix", both_vocabs[v], 256, many);

        for (uint64_t n = 1; n < 256; n++) {
            size_t few_len = generate("prefix", both_vocabs[v], n, few);

            assert_true(few_len < many_len);
            assert_memory_equal(few, many, few_len);
        }
    }
}

static void test_any_order_equals_sequential(void **state)
{
    enum { N = 997, STRIDE = 614 }; /* N is a prime: the stride visits every index once */
    static struct token sequential[N];

    (void)state;
    for (size_t v = 0; v < COUNT_OF(both_vocabs); v++) {
        struct tokgen generator = generator_of("order", both_vocabs[v]);

        for (uint64_t i = 0; i < N; i++)
            sequential[i] = token_at(&generator, i);
        for (uint64_t i = 0; i < N; i++) {
            uint64_t index = i * STRIDE % N;

            assert_string_equal(token_at(&generator, index).bytes, sequential[index].bytes);
        }
        for (uint64_t i = N; i-- > 0;)
            assert_string_equal(token_at(&generator, i).bytes, sequential[i].bytes);
    }
}

static void test_every_token_is_valid_utf8_without_nul(void **state)
{
    (void)state;
    for (size_t v = 0; v < COUNT_OF(both_vocabs); v++) {
        struct tokgen generator = generator_of("utf-8", both_vocabs[v]);

        for (uint64_t i = 0; i < 20000; i++) {
            /* Indexes low, high, and up to the very last. */
            uint64_t index = i % 2 == 0 ? i : UINT64_MAX - i / 2;
            struct token token = token_at(&generator, index);

            assert_null(u8_check((const uint8_t *)token.bytes, token.len));
            assert_null(memchr(token.bytes, '\0', token.len));
        }
    }
}

static void test_a_small_buffer_is_refused_and_left_alone(void **state)
{
    (void)state;
    for (size_t v = 0; v < COUNT_OF(both_vocabs); v++) {
        struct tokgen generator = generator_of("cap", both_vocabs[v]);

        for (uint64_t i = 0; i < 1000; i++) {
            struct token whole = token_at(&generator, i);
            char *exact = malloc(whole.len); /* on the heap, for the sanitizer to guard */

            assert_non_null(exact);
            memset(exact, '#', whole.len);
            assert_int_equal(tokgen_token(&generator, i, exact, whole.len - 1), 0);
            assert_int_equal(tokgen_token(&generator, i, exact, 0), 0);
            for (size_t at = 0; at < whole.len; at++)
                assert_int_equal(exact[at], '#');
            assert_int_equal(tokgen_token(&generator, i, exact, whole.len), whole.len);
            assert_memory_equal(exact, whole.bytes, whole.len);
            free(exact);
        }
    }
}

static void test_vocab_names(void **state)
{
    static const char *const refused[] = {"", "word", "wordss", "Words", "words ", "torture\n"};
    enum tokgen_vocab vocab = TOKGEN_WORDS;
    struct tokgen bad = {.seed = 1, .vocab = (enum tokgen_vocab)7};
    char buf[TOKGEN_TOKEN_MAX_BYTES];

    (void)state;
    assert_int_equal(tokgen_vocab_parse("torture", &vocab), 0);
    assert_int_equal(vocab, TOKGEN_TORTURE);
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        assert_int_equal(tokgen_vocab_parse(refused[i], &vocab), -1);
        assert_int_equal(vocab, TOKGEN_TORTURE);
    }
    assert_int_equal(tokgen_vocab_parse("words", &vocab), 0);
    assert_int_equal(vocab, TOKGEN_WORDS);
    assert_string_equal(tokgen_vocab_name(TOKGEN_WORDS), "words");
    assert_string_equal(tokgen_vocab_name(TOKGEN_TORTURE), "torture");
    assert_null(tokgen_vocab_name(bad.vocab));
    assert_int_equal(tokgen_token(&bad, 0, buf, sizeof buf), 0);
}

/* -- words -- */

static bool is_punctuation(const struct token *token)
{
    return strcmp(token->bytes, ",") == 0 || strcmp(token->bytes, ".") == 0;
}

static bool is_word(const struct token *token, const char *word)
{
    const char *text = token->bytes + (token->bytes[0] == ' ');

    return (text[0] | 0x20) == word[0] && strcmp(text + 1, word + 1) == 0;
}

static void check_word(const struct token *token, bool first, bool sentence_start)
{
    const char *text = token->bytes;

    if (!first) {
        assert_int_equal(text[0], ' ');
        text++;
    }
    assert_in_range(text[0], sentence_start ? 'A' : 'a', sentence_start ? 'Z' : 'z');
    for (text++; *text != '\0'; text++)
        assert_true((*text >= 'a' && *text <= 'z') || *text == '-');
}

/* Capitals where sentences start and nowhere else, no two marks in a row, articles that agree.
 */
static void test_words_make_sentences(void **state)
{
    struct tokgen generator = generator_of("sentences", TOKGEN_WORDS);
    struct token previous = {".", 1};
    uint64_t in_sentence = 0;

    (void)state;
    for (uint64_t i = 0; i < SENTENCE_TOKENS; i++) {
        struct token token = token_at(&generator, i);

        if (is_punctuation(&token))
            assert_false(is_punctuation(&previous));
        else
            check_word(&token, i == 0, strcmp(previous.bytes, ".") == 0);
        if (is_word(&previous, "a"))
            assert_null(strchr("aeiou", token.bytes[1]));
        if (is_word(&previous, "an"))
            assert_non_null(strchr("aeiou", token.bytes[1]));
        in_sentence = strcmp(token.bytes, ".") == 0 ? 0 : in_sentence + 1;
        assert_true(in_sentence < 16);
        previous = token;
    }
}

/* -- torture -- */

static void test_torture_any_n_in_a_row_are_all_entries(void **state)
{
    (void)state;
    for (uint64_t user_seed = 0; user_seed < 200; user_seed++) {
        struct tokgen generator = tokgen_init("all", 3, user_seed, TOKGEN_TORTURE);
        struct token seen[TOKGEN_TORTURE_COUNT];
        uint64_t start = user_seed * UINT64_C(1000003);

        for (size_t i = 0; i < TOKGEN_TORTURE_COUNT; i++) {
            seen[i] = token_at(&generator, start + i);
            for (size_t j = 0; j < i; j++)
                assert_string_not_equal(seen[i].bytes, seen[j].bytes);
        }
    }
}

static void test_torture_has_what_users_were_promised(void **state)
{
    static const char *const promised[] = {
        "\xe4\xbd\xa0\xe5\xa5\xbd", /* CJK */
        "\xf0\x9f\x98\x80",         /* emoji */
        "\xcc\x81",                 /* a combining mark by itself */
        "\"",
        "\\",
        "\n",
        "\r\n",
        "\r",
        "\n\n",
        "\t",
        "\xe2\x80\xa8", /* U+2028 */
        "\xe2\x80\xa9", /* U+2029 */
        "\xc2\x85",     /* U+0085 */
        "\xef\xbb\xbf", /* U+FEFF */
        "\x01",
        "\x7f",
        "\xc2\xa0",         /* NBSP */
        "\xe2\x80\x8b",     /* zero-width space */
        "\xef\xbf\xbd",     /* U+FFFD */
        "\xf4\x8f\xbf\xbf", /* U+10FFFF */
        "data: ",
        "[DONE]",
        "\n\ndata: x\n\n",
        "event: error\n",
        "</script>",
        "\\u0041",
        "{\"token\":\"x\"}",
        "{",
        "}",
        " leading",
        "trailing ",
    };
    struct tokgen generator = generator_of("promised", TOKGEN_TORTURE);
    bool longest = false;

    (void)state;
    for (uint64_t i = 0; i < TOKGEN_TORTURE_COUNT; i++)
        longest = longest || token_at(&generator, i).len == TOKGEN_TOKEN_MAX_BYTES;
    assert_true(longest);
    for (size_t row = 0; row < COUNT_OF(promised); row++) {
        bool found = false;

        for (uint64_t i = 0; i < TOKGEN_TORTURE_COUNT && !found; i++)
            found = strcmp(token_at(&generator, i).bytes, promised[row]) == 0;
        if (!found)
            fail_msg("no torture token is row %zu: %s", row, promised[row]);
    }
}

/* -- prompts -- */

static void test_prompt_tokens(void **state)
{
    static const struct {
        const char *prompt;
        uint64_t tokens;
    } rows[] = {
        {"", 0},
        {"   \t\r\n", 0},
        {"hello", 1},
        {"  hello  ", 1},
        {"hello world", 2},
        {"hello, world!", 4},
        {"don't", 3},
        {"abc123", 1},
        {"3.14", 3},
        {"snake_case", 3},
        {"...", 3},
        {"a\nb", 2},
        {"x=y+1;", 6},
        {"\x01\x7f", 0},
        {"a\x01"
         "b",
         2},
        {u8"caf\u00e9", 1},                                    /* precomposed */
        {u8"cafe\u0301 noir", 2},                              /* a mark ends no run */
        {u8"\u0301", 0},                                       /* a mark alone counts nothing */
        {u8"!\u0301a", 2},                                     /* ... and starts no run */
        {u8"a \u0301b", 2},                                    /* ... nor joins two of them */
        {u8"\u4f60\u597d\u4e16\u754c", 1},                     /* Han letters form a run */
        {u8"\u4f60\u597d\uff0c\u4e16\u754c\u3002", 4},         /* full-width punctuation */
        {u8"\u3053\u3093\u306b\u3061\u306f\u3000\u4e16", 2},   /* ideographic space */
        {u8"\uc548\ub155 \uc138\uacc4", 2},                    /* Hangul */
        {u8"\u043f\u0440\u0438\u0432\u0435\u0442, \u043c", 3}, /* Cyrillic */
        {u8"\u03b3\u03b5\u03b9\u03ac", 1},                     /* Greek */
        {u8"\u0645\u0631\u062d\u0628\u0627 \u0661\u0662", 2},  /* Arabic, and its digits */
        {u8"\u05e9\u05dc\u05d5\u05dd", 1},                     /* Hebrew */
        {u8"\u0928\u092e\u0938\u094d\u0924\u0947", 1},         /* Devanagari with a virama */
        {u8"\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35", 1},         /* Thai */
        {u8"\U00020bb7\u91ce", 1},                             /* Han outside the BMP */
        {u8"\U0001f600\U0001f600", 2},                         /* emoji count one each */
        {u8"\U0001f44d\U0001f3fd", 2},       /* the skin tone is visible (Sk) */
        {u8"\U0001f468\u200d\U0001f469", 2}, /* the joiner is not (Cf) */
        {u8"\U0001f1ef\U0001f1f5", 2},       /* regional indicators (So) */
        {u8"\u2764\ufe0f", 1},               /* variation selector (Mn) */
        {u8"co\u00adop", 2},                 /* soft hyphen (Cf) ends a run */
        {u8"a\u200bb", 2},                   /* zero-width space (Cf) */
        {u8"a\u00a0b", 2},                   /* NBSP (Zs) */
        {u8"a\u2028b", 2},                   /* line separator (Zl) */
        {u8"\ufeffhello", 1},                /* a BOM is invisible */
        {u8"\u2167\u00bd\u00b2", 3},         /* other numbers (Nl, No) */
        {u8"\u20ac5", 2},                    /* currency (Sc) */
        {u8"\ue000", 1},                     /* private use may be seen */
        {u8"a\U000e0080b", 2},               /* unassigned ends a run */
        {u8"\U0010ffff", 0},                 /* a noncharacter is unassigned */
        {u8"\ufffd", 1},
        {"a\xff"
         "b",
         3}, /* malformed counts as U+FFFD */
    };

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        uint64_t tokens =
            tokgen_count_prompt_tokens(rows[row].prompt, strlen(rows[row].prompt));

        if (tokens != rows[row].tokens)
            fail_msg("row %zu, \"%s\": %llu tokens", row, rows[row].prompt,
                     (unsigned long long)tokens);
    }
}

static void test_prompt_tokens_stay_within_len(void **state)
{
    (void)state;
    assert_int_equal(tokgen_count_prompt_tokens("one two", 3), 1);
    assert_int_equal(tokgen_count_prompt_tokens("a\0b", 3), 2);
    /* A code point cut in two by the end is malformed, and not read beyond. */
    assert_int_equal(tokgen_count_prompt_tokens("\xe4\xbd\xa0", 2), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_vectors),
        cmocka_unit_test(test_mix_is_splitmix64),
        cmocka_unit_test(test_seed_and_prompt_select_the_sequence),
        cmocka_unit_test(test_fewer_tokens_are_a_prefix_of_more),
        cmocka_unit_test(test_any_order_equals_sequential),
        cmocka_unit_test(test_every_token_is_valid_utf8_without_nul),
        cmocka_unit_test(test_a_small_buffer_is_refused_and_left_alone),
        cmocka_unit_test(test_vocab_names),
        cmocka_unit_test(test_words_make_sentences),
        cmocka_unit_test(test_torture_any_n_in_a_row_are_all_entries),
        cmocka_unit_test(test_torture_has_what_users_were_promised),
        cmocka_unit_test(test_prompt_tokens),
        cmocka_unit_test(test_prompt_tokens_stay_within_len),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

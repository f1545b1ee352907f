/*
 * verification: a right stream in every cut is right, and each way to go wrong is found and
 * named.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "gen/load/verification.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

enum { TOKENS = 40 };

struct piece {
    char text[TOKGEN_TOKEN_MAX_BYTES];
    size_t len;
};

static struct tokgen generator(enum tokgen_vocab vocab)
{
    return tokgen_init("hello", 5, 0, vocab);
}

static struct piece piece_of(const struct tokgen *tokens, uint64_t index)
{
    struct piece piece;

    piece.len = tokgen_token(tokens, index, piece.text, sizeof(piece.text));
    return piece;
}

/* The tokens of `order` (its end is -1), one an event; the first status that is not OK, or that
 * of the end. */
static enum verification_status run(enum tokgen_vocab vocab, const int *order)
{
    struct tokgen tokens = generator(vocab);
    struct verification verification;

    verification_start(&verification, &tokens, TOKENS);
    for (; *order >= 0; order++) {
        struct piece piece = piece_of(&tokens, (uint64_t)*order);
        enum verification_status status =
            verification_take(&verification, piece.text, piece.len, 1);
        if (status != VERIFICATION_OK)
            return status;
    }
    return verification_end(&verification);
}

/* 0 to TOKENS - 1, then -1. */
static void in_order(int order[TOKENS + 8])
{
    for (int i = 0; i < TOKENS; i++)
        order[i] = i;
    order[TOKENS] = -1;
}

static void test_right(void **state)
{
    int order[TOKENS + 8];

    (void)state;
    in_order(order);
    assert_int_equal(run(TOKGEN_WORDS, order), VERIFICATION_OK);
    assert_int_equal(run(TOKGEN_TORTURE, order), VERIFICATION_OK);
}

/* At every token, and none is taken for right. Where a neighbour has the same text, or begins
 * in the same way, the name may be another's. */
static void test_wrong_anywhere(void **state)
{
    static const enum tokgen_vocab vocabs[] = {TOKGEN_WORDS, TOKGEN_TORTURE};
    int order[TOKENS + 8];

    (void)state;
    for (size_t v = 0; v < COUNT_OF(vocabs); v++) {
        for (int at = 0; at < TOKENS; at++) {
            in_order(order); /* lost */
            memmove(order + at, order + at + 1, sizeof(order[0]) * (size_t)(TOKENS - at));
            assert_int_not_equal(run(vocabs[v], order), VERIFICATION_OK);

            in_order(order); /* doubled */
            memmove(order + at + 1, order + at, sizeof(order[0]) * (size_t)(TOKENS - at + 1));
            assert_int_not_equal(run(vocabs[v], order), VERIFICATION_OK);
        }
        for (int at = 0; at + 1 < TOKENS; at++) {
            in_order(order); /* swapped */
            order[at] = at + 1;
            order[at + 1] = at;
            struct tokgen tokens = generator(vocabs[v]);
            struct piece one = piece_of(&tokens, (uint64_t)at);
            struct piece other = piece_of(&tokens, (uint64_t)at + 1);
            if (one.len != other.len || memcmp(one.text, other.text, one.len) != 0)
                assert_int_not_equal(run(vocabs[v], order), VERIFICATION_OK);
        }
    }
}

static void test_names(void **state)
{
    int order[TOKENS + 8];

    (void)state;
    in_order(order);
    order[10] = 9;
    assert_int_equal(run(TOKGEN_TORTURE, order), VERIFICATION_DOUBLED);
    in_order(order);
    order[10] = 11;
    assert_int_equal(run(TOKGEN_TORTURE, order), VERIFICATION_LOST);
    in_order(order);
    order[10] = 7;
    assert_int_equal(run(TOKGEN_TORTURE, order), VERIFICATION_REORDERED);
    in_order(order);
    order[TOKENS] = TOKENS;
    order[TOKENS + 1] = -1;
    assert_int_equal(run(TOKGEN_TORTURE, order), VERIFICATION_EXCESS);
    in_order(order);
    order[TOKENS - 1] = -1;
    assert_int_equal(run(TOKGEN_TORTURE, order), VERIFICATION_SHORT);
    order[0] = -1;
    assert_int_equal(run(TOKGEN_TORTURE, order), VERIFICATION_SHORT);
    assert_string_equal(verification_name(VERIFICATION_SHORT), "short");
    assert_string_equal(verification_name(VERIFICATION_LOST), "lost");
}

/* Any bit of any byte of any token. */
static void test_changed_bits(void **state)
{
    static const enum tokgen_vocab vocabs[] = {TOKGEN_WORDS, TOKGEN_TORTURE};

    (void)state;
    for (size_t v = 0; v < COUNT_OF(vocabs); v++) {
        struct tokgen tokens = generator(vocabs[v]);
        for (uint64_t i = 0; i < 5; i++) {
            struct piece right = piece_of(&tokens, i);
            for (size_t bit = 0; bit < 8 * right.len; bit++) {
                struct piece wrong = right;
                struct verification verification;
                wrong.text[bit / 8] = (char)(wrong.text[bit / 8] ^ 1 << bit % 8);
                verification_start(&verification, &tokens, TOKENS);
                for (uint64_t before = 0; before < i; before++) {
                    struct piece piece = piece_of(&tokens, before);
                    assert_int_equal(verification_take(&verification, piece.text, piece.len, 1),
                                     VERIFICATION_OK);
                }
                assert_int_not_equal(verification_take(&verification, wrong.text, wrong.len, 1),
                                     VERIFICATION_OK);
            }
        }
    }
}

/* Without a count, as in the OpenAI formats, a text may be cut anywhere. */
static void test_any_cut_without_a_count(void **state)
{
    struct tokgen tokens = generator(TOKGEN_TORTURE);
    char text[TOKENS * TOKGEN_TOKEN_MAX_BYTES];
    size_t len = 0;

    (void)state;
    for (uint64_t i = 0; i < TOKENS; i++)
        len += tokgen_token(&tokens, i, text + len, TOKGEN_TOKEN_MAX_BYTES);
    for (size_t size = 1; size <= len; size++) {
        struct verification verification;
        verification_start(&verification, &tokens, TOKENS);
        for (size_t at = 0; at < len; at += size) {
            size_t part = len - at < size ? len - at : size;
            assert_int_equal(verification_take(&verification, text + at, part, 0),
                             VERIFICATION_OK);
            if (at + part < len)
                assert_int_equal(verification_end(&verification), VERIFICATION_SHORT);
        }
        assert_int_equal(verification_end(&verification), VERIFICATION_OK);
        assert_int_equal(verification_take(&verification, "x", 1, 0), VERIFICATION_EXCESS);
    }
}

/* With a count, an event has exactly so many whole tokens. */
static void test_counts(void **state)
{
    static const struct {
        uint64_t tokens; /* in the text */
        size_t less;     /* bytes that are missing at its end */
        uint64_t count;  /* what the event says */
        enum verification_status status;
    } rows[] = {{3, 0, 3, VERIFICATION_OK},    {3, 0, 2, VERIFICATION_SPLIT},
                {3, 0, 4, VERIFICATION_SPLIT}, {3, 1, 3, VERIFICATION_SPLIT},
                {3, 1, 2, VERIFICATION_SPLIT}, {0, 0, 1, VERIFICATION_SPLIT}};
    struct tokgen tokens = generator(TOKGEN_WORDS);

    (void)state;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        struct verification verification;
        char text[4 * TOKGEN_TOKEN_MAX_BYTES];
        size_t len = 0;
        for (uint64_t i = 0; i < rows[row].tokens; i++)
            len += tokgen_token(&tokens, i, text + len, TOKGEN_TOKEN_MAX_BYTES);
        verification_start(&verification, &tokens, TOKENS);
        assert_int_equal(
            verification_take(&verification, text, len - rows[row].less, rows[row].count),
            rows[row].status);
    }
}

static void test_index(void **state)
{
    struct tokgen tokens = generator(TOKGEN_WORDS);
    struct verification verification;

    (void)state;
    verification_start(&verification, &tokens, TOKENS);
    for (uint64_t i = 0; i < 6; i++) {
        struct piece piece = piece_of(&tokens, i);
        verification_take(&verification, piece.text, piece.len, 1);
    }
    assert_int_equal(verification_take_index(&verification, 6, 1), VERIFICATION_OK);
    assert_int_equal(verification_take_index(&verification, 7, 1), VERIFICATION_LOST);
    assert_int_equal(verification_take_index(&verification, 5, 1), VERIFICATION_DOUBLED);
    assert_int_equal(verification_take_index(&verification, 2, 4), VERIFICATION_DOUBLED);
    assert_int_equal(verification_take_index(&verification, 1, 1), VERIFICATION_REORDERED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right),
        cmocka_unit_test(test_wrong_anywhere),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_changed_bits),
        cmocka_unit_test(test_any_cut_without_a_count),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_index),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

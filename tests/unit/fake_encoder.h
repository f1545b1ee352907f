#ifndef RUNNEL_TESTS_UNIT_FAKE_ENCODER_H
#define RUNNEL_TESTS_UNIT_FAKE_ENCODER_H

#include <string.h>

#include "engine/generation.h"
#include "tests/unit/fake_clock.h"

/*
 * An encoder whose bytes are easy to count: `H`, then `0;` `1;` `2;` for the tokens, then
 * `Edone` and so on for the outcome. It can be given a schedule, and then counts the tokens
 * that are asked for at any other microsecond. The test owns it; `free` is only counted.
 */
struct fake_encoder {
    /* how it behaves */
    bool is_whole;     /* nothing before the end: a reply in one piece */
    size_t head_bytes; /* each is filled up with dots to at least this */
    size_t token_bytes;
    size_t end_bytes;
    bool fails_at_head, fails_at_token, fails_at_end;
    uint64_t failing_token;
    uint64_t keeps_from, keeps_to; /* tokens from..to-1 are kept back until `to` comes */
    bool stops;
    uint64_t last_token;            /* with `stops`: the reply ends with it */
    const struct fake_clock *clock; /* not NULL: token i is expected at first_us + i * gap_us */
    int64_t first_us, gap_us;

    /* what it saw */
    uint64_t tokens;
    unsigned heads, ends, frees;
    enum ledger_outcome ended_as;
    uint64_t off_schedule;
    unsigned broken_rules;
};

static inline int fake_encoder_fill(struct buffer *out, size_t from, size_t to)
{
    while (out->len - from < to) {
        if (buffer_append_char(out, '.') != 0)
            return -1;
    }
    return 0;
}

static inline int fake_encoder_head(void *context, struct buffer *out)
{
    struct fake_encoder *encoder = context;
    size_t from = out->len;

    if (encoder->heads > 0 || encoder->frees > 0 || encoder->ends > 0)
        encoder->broken_rules++;
    encoder->heads++;
    if (encoder->fails_at_head)
        return -1;
    if (encoder->is_whole)
        return 0;
    buffer_append_char(out, 'H');
    return fake_encoder_fill(out, from, encoder->head_bytes);
}

static inline int fake_encoder_tokens(void *context, struct buffer *out,
                                      struct token_span *span)
{
    struct fake_encoder *encoder = context;
    size_t from = out->len;
    uint64_t index = span->first;

    if (encoder->stops && index + span->count > encoder->last_token) {
        span->stops = true;
        span->count = encoder->last_token + 1 - index;
    }
    if (span->count != 1 && !encoder->stops)
        encoder->broken_rules++; /* the plans of these tests ask for one at a time */
    if (encoder->heads != 1 || encoder->ends > 0 || encoder->frees > 0 ||
        index != encoder->tokens)
        encoder->broken_rules++;
    if (encoder->fails_at_token && index == encoder->failing_token) {
        buffer_append_text(out, "never to be seen");
        return -1;
    }
    if (encoder->clock != NULL &&
        encoder->clock->now_us != encoder->first_us + (int64_t)index * encoder->gap_us)
        encoder->off_schedule++;
    encoder->tokens += span->count;
    if (encoder->is_whole)
        return 0;
    if (index >= encoder->keeps_from && index < encoder->keeps_to && !span->stops) {
        span->kept = index + 1 - encoder->keeps_from;
        return 0;
    }
    if (encoder->keeps_to > encoder->keeps_from && index == encoder->keeps_to)
        buffer_append_char(out, '+'); /* those that were kept back */
    buffer_append_u64(out, index);
    buffer_append_char(out, ';');
    return fake_encoder_fill(out, from, encoder->token_bytes);
}

static inline int fake_encoder_end(void *context, struct buffer *out,
                                   enum ledger_outcome outcome)
{
    struct fake_encoder *encoder = context;
    size_t from = out->len;

    if (encoder->ends > 0 || encoder->frees > 0)
        encoder->broken_rules++;
    encoder->ends++;
    encoder->ended_as = outcome;
    if (encoder->fails_at_end)
        return -1;
    buffer_append_char(out, 'E');
    buffer_append_text(out, ledger_outcome_name(outcome));
    return fake_encoder_fill(out, from, encoder->end_bytes);
}

static inline void fake_encoder_free(void *context)
{
    struct fake_encoder *encoder = context;

    encoder->frees++;
}

static const struct encoder_ops fake_encoder_ops = {
    .head = fake_encoder_head,
    .tokens = fake_encoder_tokens,
    .end = fake_encoder_end,
    .free = fake_encoder_free,
};

#endif

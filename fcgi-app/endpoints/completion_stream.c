/*
 * A completion in chunks: an event a token, then why it ended, what it cost, and `[DONE]`.
 *
 * With stop sequences, tokens whose text may be the beginning of one are kept back until that
 * is decided, and then sent in one write, each in the event that it would have had: an event is
 * never a part of a token, but for the one in which the stop sequence begins.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "endpoints/completion.h"
#include "endpoints/resume.h"
#include "endpoints/submit.h"
#include "wire/json.h"
#include "wire/sse.h"

/* A chunk of tokens with every byte escaped, and what stands around them. */
enum { DATA_MAX_BYTES = 64 << 10 };

/* The tokens of one event, and where their text is in the text of this connection. */
struct piece {
    uint64_t first, count;
    int64_t due_us;
    int64_t start, end;
};

/* Pieces that are kept back: each has a byte that may be of a stop sequence. */
struct kept {
    int64_t read; /* bytes of text that have been searched */
    size_t count;
    struct piece pieces[]; /* as many as the longest stop sequence has bytes */
};

struct stream {
    struct completion completion;
    struct openai_chunks chunks;
    enum sse_wire wire;
    bool stamps, ids, hints, tells_count;
    bool head_sent, role_sent;
    uint64_t ends_at; /* no token of this index comes, whatever happens */
    /* Wall minus monotonic time when it was accepted: stamps are one clock, whatever is set. */
    int64_t wall_offset_us;
    struct kept *kept;  /* NULL: no stop sequences */
    struct buffer data; /* of the event being written */
};

static int stream_head(void *context, struct buffer *out)
{
    struct stream *stream = context;

    if (stream->completion.fault.kind == FAULT_STATUS)
        return 0; /* the end says it */
    stream->head_sent = true;
    if (reply_append_stream_head(out, &stream->completion.caller, stream->hints) != 0)
        return -1;
    return sse_append_start(out, stream->wire);
}

/* Send what is in `data` as an event. */
static int append_event(const struct stream *stream, struct buffer *out, const char *id)
{
    const struct sse_event event = {
        .id = id, .data = stream->data.data, .data_len = stream->data.len};

    return stream->data.failed ? -1 : sse_append_event(out, stream->wire, &event);
}

/* --- tokens --- */

/* `,"runnel":{"n":2,"i":7,"t_us":..,"due_us":..}` */
static void append_member(struct stream *stream, const struct piece *piece, int64_t now_us)
{
    struct buffer *data = &stream->data;

    buffer_append_text(data, ",\"runnel\":{");
    if (stream->tells_count) {
        buffer_append_text(data, "\"n\":");
        buffer_append_u64(data, piece->count);
    }
    if (stream->stamps) {
        buffer_append_text(data, stream->tells_count ? ",\"i\":" : "\"i\":");
        buffer_append_u64(data, piece->first);
        buffer_append_text(data, ",\"t_us\":");
        buffer_append_u64(data, (unsigned long long)(now_us + stream->wall_offset_us));
        buffer_append_text(data, ",\"due_us\":");
        buffer_append_u64(data, (unsigned long long)(piece->due_us + stream->wall_offset_us));
    }
    buffer_append_char(data, '}');
}

/* The chunk of a piece, of whose text only the first `text_len` bytes are sent. */
static void write_chunk(struct stream *stream, const struct piece *piece, size_t text_len,
                        int64_t now_us)
{
    struct buffer *data = &stream->data;
    char token[TOKGEN_TOKEN_MAX_BYTES];

    buffer_reset(data);
    openai_append_text_start(data, &stream->chunks);
    for (uint64_t i = 0; i < piece->count; i++) {
        size_t len =
            tokgen_token(&stream->completion.tokens, piece->first + i, token, sizeof(token));
        if (len > text_len)
            len = text_len;
        text_len -= len;
        json_append_escaped(data, token, len);
    }
    openai_append_text_end(data, &stream->chunks);
    if (stream->tells_count || stream->stamps)
        append_member(stream, piece, now_us);
    buffer_append_char(data, '}');
}

/* Who speaks is told with the first text, and not before. */
static int append_role(struct stream *stream, struct buffer *out)
{
    if (stream->role_sent)
        return 0;
    stream->role_sent = true;
    buffer_reset(&stream->data);
    openai_append_role(&stream->data, &stream->chunks);
    return append_event(stream, out, NULL);
}

static int append_piece(struct stream *stream, struct buffer *out, const struct piece *piece,
                        size_t text_len, int64_t now_us)
{
    const struct fault *fault = &stream->completion.fault;
    char id[24];

    if (append_role(stream, out) != 0)
        return -1;
    write_chunk(stream, piece, text_len, now_us);
    if (fault_hits(fault, FAULT_GARBLE, piece->first, piece->count) && !stream->data.failed)
        stream->data.len--; /* the closing brace */
    if (stream->ids)
        snprintf(id, sizeof(id), "%llu", (unsigned long long)(piece->first + piece->count));
    if (fault_hits(fault, FAULT_DUP, piece->first, piece->count))
        append_event(stream, out, stream->ids ? id : NULL);
    return append_event(stream, out, stream->ids ? id : NULL);
}

/* --- stop sequences --- */

/* Look for the stop sequences in the tokens of `span`, which end with the one that completes
 * the first. Returns up to where the text may be shown. */
static int64_t search(struct stream *stream, struct token_span *span)
{
    struct completion *completion = &stream->completion;
    char token[TOKGEN_TOKEN_MAX_BYTES];
    size_t found;

    for (uint64_t i = 0; i < span->count; i++) {
        size_t len = tokgen_token(&completion->tokens, span->first + i, token, sizeof(token));
        size_t read = stop_read(&completion->search, completion->stops, token, len, &found);
        stream->kept->read += (int64_t)(read > 0 ? read : len);
        if (read > 0) {
            completion->finish = OPENAI_STOP;
            span->stops = true;
            span->count = i + 1;
            return stream->kept->read - (int64_t)found;
        }
    }
    if (span->first + span->count >= stream->ends_at)
        return stream->kept->read; /* what has begun will not be completed */
    return stream->kept->read - (int64_t)stop_pending(&completion->search);
}

static int append_searched(struct stream *stream, struct buffer *out, struct token_span *span)
{
    struct kept *kept = stream->kept;
    size_t sent = 0;
    int64_t start = kept->read;
    int64_t shown_to = search(stream, span);

    kept->pieces[kept->count++] = (struct piece){.first = span->first,
                                                 .count = span->count,
                                                 .due_us = span->due_us,
                                                 .start = start,
                                                 .end = kept->read};
    for (; sent < kept->count && kept->pieces[sent].end <= shown_to; sent++) {
        if (append_piece(stream, out, &kept->pieces[sent], SIZE_MAX, span->now_us) != 0)
            return -1;
    }
    if (span->stops) {
        const struct piece *cut = &kept->pieces[sent];
        if (cut->start < shown_to &&
            append_piece(stream, out, cut, (size_t)(shown_to - cut->start), span->now_us) != 0)
            return -1;
        sent = kept->count;
    }
    kept->count -= sent;
    memmove(kept->pieces, kept->pieces + sent, kept->count * sizeof(kept->pieces[0]));
    for (size_t i = 0; i < kept->count; i++)
        span->kept += kept->pieces[i].count;
    return 0;
}

static int stream_tokens(void *context, struct buffer *out, struct token_span *span)
{
    struct stream *stream = context;
    int result;

    if (stream->kept != NULL)
        result = append_searched(stream, out, span);
    else
        result = append_piece(
            stream, out,
            &(struct piece){.first = span->first, .count = span->count, .due_us = span->due_us},
            SIZE_MAX, span->now_us);
    stream->completion.usage.completion_tokens += span->count;
    return result;
}

/* --- the rest --- */

static int stream_ping(void *context, struct buffer *out)
{
    const struct stream *stream = context;

    /* Without a head (fault=status) it would be taken for one. */
    return stream->head_sent ? sse_append_comment(out, stream->wire, "ping") : -1;
}

static int append_done(struct stream *stream, struct buffer *out)
{
    struct buffer *data = &stream->data;
    const struct sse_event done = {
        .id = stream->ids ? resume_done_id : NULL, .data = "[DONE]", .data_len = 6};

    append_role(stream, out);
    buffer_reset(data);
    openai_append_finish(data, &stream->chunks, stream->completion.finish);
    append_event(stream, out, NULL);
    if (stream->chunks.tells_usage) {
        buffer_reset(data);
        openai_append_usage(data, &stream->chunks, &stream->completion.usage);
        append_event(stream, out, NULL);
    }
    if (stream->completion.fault.kind != FAULT_NODONE)
        sse_append_event(out, stream->wire, &done);
    return sse_append_finish(out, stream->wire);
}

static int stream_end(void *context, struct buffer *out, enum ledger_outcome outcome)
{
    struct stream *stream = context;
    struct problem problem;

    if (outcome == LEDGER_DONE)
        return append_done(stream, out);
    submit_describe_end(&stream->completion.fault, outcome, &problem);
    if (!stream->head_sent)
        return reply_append_problem(out, &problem, NULL, &stream->completion.caller);
    /* Not an `event: error`, as /stream has it: this API's clients look for the member. */
    buffer_reset(&stream->data);
    if (problem_append_json(&problem, &stream->data) != 0)
        return -1;
    append_event(stream, out, NULL);
    return sse_append_finish(out, stream->wire);
}

static void stream_free(void *context)
{
    struct stream *stream = context;

    completion_release(&stream->completion);
    openai_chunks_free(&stream->chunks);
    buffer_free(&stream->data);
    free(stream->kept);
    free(stream);
}

static const struct encoder_ops stream_ops = {.head = stream_head,
                                              .tokens = stream_tokens,
                                              .ping = stream_ping,
                                              .end = stream_end,
                                              .free = stream_free};

/* The index behind the last token that can come. A fault that was resumed after is over. */
static uint64_t end_of(const struct controls *controls, uint64_t first)
{
    const struct fault *fault = &controls->fault;
    bool ends =
        fault->kind == FAULT_ERROR || fault->kind == FAULT_RESET || fault->kind == FAULT_EOF;

    return ends && fault->token > first && fault->token < controls->max_tokens
               ? fault->token
               : controls->max_tokens;
}

static struct kept *make_kept(const struct stop_sequences *stops)
{
    size_t longest = 0;

    for (size_t i = 0; i < stops->count; i++)
        longest = stops->sequence[i].len > longest ? stops->sequence[i].len : longest;
    /* Before a piece is added, the others have less than that many bytes. */
    return calloc(1, sizeof(struct kept) + longest * sizeof(struct piece));
}

static int set_up(struct stream *stream, const struct completion_start *start)
{
    const struct openai_request *asked = start->asked;
    const struct controls *controls = &asked->controls;

    buffer_init(&stream->data, DATA_MAX_BYTES);
    completion_init(&stream->completion, start);
    stream->wire = (enum sse_wire)controls->wire;
    stream->stamps = controls->stamps != 0;
    stream->ids = controls->ids != 0;
    stream->hints = controls->hints != 0;
    stream->tells_count = controls->chunk > 1;
    stream->role_sent = asked->kind != OPENAI_CHAT || start->first > 0;
    stream->ends_at = end_of(controls, start->first);
    stream->wall_offset_us = start->wall_us - start->monotonic_us;
    if (stream->completion.stops != NULL) {
        stream->kept = make_kept(stream->completion.stops);
        if (stream->kept == NULL)
            return -1;
    }
    return openai_chunks_init(&stream->chunks, &stream->completion.reply, asked->tells_usage,
                              stream->wire == SSE_MULTILINE);
}

struct encoder completion_stream_encoder(const struct completion_start *start)
{
    struct stream *stream = calloc(1, sizeof(*stream));

    if (stream != NULL && set_up(stream, start) != 0) {
        stream_free(stream);
        stream = NULL;
    }
    return (struct encoder){.ops = &stream_ops, .context = stream};
}

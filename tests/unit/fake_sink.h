#ifndef RUNNEL_TESTS_UNIT_FAKE_SINK_H
#define RUNNEL_TESTS_UNIT_FAKE_SINK_H

#include "base/buffer.h"
#include "engine/generation.h"

/*
 * A sink in memory. It takes what it is told to take, fails where it is told to fail, and
 * counts every call that breaks the contract of engine/generation.h. The test owns it; the
 * generation's release is only counted.
 */
struct fake_sink {
    /* how it behaves; a test may change it at any time */
    bool is_full;    /* takes nothing */
    bool is_limited; /* takes `room` more flushed writes, and is full then */
    unsigned room;
    bool forgets; /* count bytes, do not keep them */
    bool fails_at_write, fails_at_flush, fails_at_end;
    enum sink_peer peer;
    int fd; /* what epoll gets; 0 stands for none */

    /* what it saw */
    struct buffer bytes; /* flushed */
    size_t byte_count;
    size_t unflushed;
    unsigned writes, flushes, ends, releases;
    bool has_failed;
    unsigned broken_rules;
};

enum { FAKE_SINK_MAX_BYTES = 64 << 20 };

static inline bool fake_sink_writable(void *context)
{
    struct fake_sink *sink = context;

    if (sink->releases > 0)
        sink->broken_rules++;
    return !sink->is_full && !(sink->is_limited && sink->room == 0);
}

static inline int fake_sink_fail(struct fake_sink *sink)
{
    sink->has_failed = true;
    return -1;
}

static inline int fake_sink_write(void *context, const char *bytes, size_t len)
{
    struct fake_sink *sink = context;

    if (sink->releases > 0 || sink->ends > 0 || sink->has_failed || len == 0 ||
        sink->unflushed + len > SINK_WRITE_MAX_BYTES || !fake_sink_writable(sink))
        sink->broken_rules++;
    sink->writes++;
    if (sink->fails_at_write)
        return fake_sink_fail(sink);
    if (sink->bytes.max_bytes == 0)
        buffer_init(&sink->bytes, FAKE_SINK_MAX_BYTES);
    if (!sink->forgets)
        buffer_append(&sink->bytes, bytes, len);
    sink->byte_count += len;
    sink->unflushed += len;
    return 0;
}

static inline int fake_sink_flush(void *context)
{
    struct fake_sink *sink = context;

    if (sink->releases > 0 || sink->ends > 0 || sink->has_failed || sink->unflushed == 0)
        sink->broken_rules++;
    sink->flushes++;
    sink->unflushed = 0;
    if (sink->is_limited && sink->room > 0)
        sink->room--;
    return sink->fails_at_flush ? fake_sink_fail(sink) : 0;
}

static inline void fake_sink_soon(const void *context)
{
    const struct fake_sink *sink = context;

    assert_int_equal(sink->releases, 0);
}

static inline enum sink_peer fake_sink_peer(void *context)
{
    struct fake_sink *sink = context;

    if (sink->releases > 0)
        sink->broken_rules++;
    return sink->peer;
}

static inline int fake_sink_end(void *context)
{
    struct fake_sink *sink = context;

    if (sink->releases > 0 || sink->ends > 0 || sink->has_failed)
        sink->broken_rules++;
    sink->ends++;
    sink->unflushed = 0;
    if (sink->is_limited && sink->room > 0)
        sink->room--;
    return sink->fails_at_end ? fake_sink_fail(sink) : 0;
}

static inline void fake_sink_release(void *context)
{
    struct fake_sink *sink = context;

    sink->releases++;
}

static inline int fake_sink_descriptor(void *context)
{
    const struct fake_sink *sink = context;

    return sink->fd > 0 ? sink->fd : -1;
}

static const struct sink_ops fake_sink_ops = {
    .write = fake_sink_write,
    .flush = fake_sink_flush,
    .writable = fake_sink_writable,
    .soon = fake_sink_soon,
    .peer = fake_sink_peer,
    .end = fake_sink_end,
    .release = fake_sink_release,
    .descriptor = fake_sink_descriptor,
};

/* Released once, and no rule was broken. */
static inline bool fake_sink_is_over(const struct fake_sink *sink)
{
    return sink->releases == 1 && sink->broken_rules == 0;
}

#endif

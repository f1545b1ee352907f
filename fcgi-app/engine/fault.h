#ifndef RUNNEL_ENGINE_FAULT_H
#define RUNNEL_ENGINE_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A fault that one request asks for, at exactly token k (counted from 0): what a correct client
 * must survive. The engine commits those that stop or delay a generation, the encoder those
 * that change bytes.
 */

enum fault_kind {
    FAULT_NONE,
    FAULT_ERROR,  /* error@K: an error event instead of token K */
    FAULT_RESET,  /* reset@K: the connection is dropped instead of token K */
    FAULT_EOF,    /* eof@K: the reply ends before token K as if complete, without [DONE] */
    FAULT_STALL,  /* stall@K:MS: token K and all later ones come MS later */
    FAULT_STATUS, /* status:CODE: an HTTP error instead of a reply */
    FAULT_GARBLE, /* garble@K: the JSON of token K is malformed */
    FAULT_DUP,    /* dup@K: the event of token K comes twice */
    FAULT_NODONE, /* nodone: all tokens, but no [DONE] */
};

struct fault {
    enum fault_kind kind;
    uint64_t token;
    int64_t stall_us;
    int status;
};

/* 0, or -1 when it is none of the above; fault_allowed says them in words. */
int fault_parse(const char *text, size_t len, struct fault *fault);
extern const char fault_allowed[];

/* Whether it is of this kind and its token is one of `count` from `first` on. */
bool fault_hits(const struct fault *fault, enum fault_kind kind, uint64_t first,
                uint64_t count);

#endif

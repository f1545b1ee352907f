#ifndef RUNNEL_WIRE_STOP_H
#define RUNNEL_WIRE_STOP_H

#include <stddef.h>
#include <stdint.h>

/*
 * Stop sequences: where in a text, which comes in pieces, one of a few strings is first
 * complete.
 *
 * The search reads each byte once (Knuth, Morris and Pratt, 1977; one automaton a sequence), so
 * its cost does not depend on how text and sequences are made, and it knows at any moment how
 * many of the last bytes may be the beginning of one: those must not be shown yet. Of two that
 * are complete at the same byte the longer one counts; it began earlier. Pure.
 */

enum { STOP_SEQUENCES_MAX = 4, STOP_SEQUENCE_MAX_BYTES = 256 };

struct stop_sequences {
    size_t count;
    struct stop_sequence {
        size_t len;
        char text[STOP_SEQUENCE_MAX_BYTES];
        /* border[i]: how many of the first i + 1 bytes are an end of them and a beginning too,
         * without all of them */
        uint16_t border[STOP_SEQUENCE_MAX_BYTES];
    } sequence[STOP_SEQUENCES_MAX];
};

enum stop_status { STOP_ADDED, STOP_EMPTY, STOP_TOO_LONG, STOP_TOO_MANY };

/* One more sequence, copied. `sequences` is all zero at first. */
enum stop_status stop_add(struct stop_sequences *sequences, const char *text, size_t len);

/* All zero at first: nothing has been read. */
struct stop_search {
    uint16_t matched[STOP_SEQUENCES_MAX]; /* bytes of each that the text ends with */
};

/*
 * Read `len` bytes more. Returns 0 when no sequence is complete in them; else the number of
 * bytes that were read, up to and with the last byte of the sequence, whose length is in
 * `*found`.
 */
size_t stop_read(struct stop_search *search, const struct stop_sequences *sequences,
                 const char *text, size_t len, size_t *found);

/* How many bytes at the end of what was read may be the beginning of a sequence. */
size_t stop_pending(const struct stop_search *search);

#endif

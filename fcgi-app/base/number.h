#ifndef RUNNEL_BASE_NUMBER_H
#define RUNNEL_BASE_NUMBER_H

#include <stddef.h>
#include <stdint.h>

/*
 * Strict decimal numbers, for everything that a user or a peer writes.
 *
 * `20` is a number. The empty text, `+5`, `-1`, `1e3`, `0x10`, ` 20`, `20abc` and anything that
 * does not fit in 64 bits are not: strtol's generosity turns typing errors into other requests.
 */

enum number_status {
    NUMBER_OK,
    NUMBER_MALFORMED,    /* not a number in the sense above */
    NUMBER_OUT_OF_RANGE, /* a number, but not within min..max */
};

/* Whole number, digits only. `*out` is written on NUMBER_OK alone. */
enum number_status number_parse_u64(const char *text, size_t len, uint64_t min, uint64_t max,
                                    uint64_t *out);

/*
 * Milliseconds with up to three decimals (`25`, `0.5`, `33.333`) as whole microseconds; min and
 * max are in microseconds too. A fourth decimal is malformed, not rounded: nothing is sent at a
 * pace that was not asked for.
 */
enum number_status number_parse_ms(const char *text, size_t len, int64_t min_us, int64_t max_us,
                                   int64_t *out_us);

#endif

/* Strict decimal numbers; the header says what is refused and why. */

#include "base/number.h"

#include <stdbool.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* 0, or -1 when the next digit does not fit. */
static int push_digit(uint64_t *value, char digit)
{
    uint64_t add = (uint64_t)(digit - '0');

    if (*value > (UINT64_MAX - add) / 10)
        return -1;
    *value = *value * 10 + add;
    return 0;
}

enum number_status number_parse_u64(const char *text, size_t len, uint64_t min, uint64_t max,
                                    uint64_t *out)
{
    uint64_t value = 0;
    bool fits = true;

    if (len == 0)
        return NUMBER_MALFORMED;
    for (size_t i = 0; i < len; i++) {
        if (!is_digit(text[i]))
            return NUMBER_MALFORMED;
        if (fits && push_digit(&value, text[i]) != 0)
            fits = false; /* keep looking: a later letter makes it malformed */
    }
    if (!fits || value < min || value > max)
        return NUMBER_OUT_OF_RANGE;
    *out = value;
    return NUMBER_OK;
}

enum number_status number_parse_ms(const char *text, size_t len, int64_t min_us, int64_t max_us,
                                   int64_t *out_us)
{
    uint64_t whole_ms = 0;
    uint64_t fraction_us = 0;
    size_t dot = 0;

    while (dot < len && text[dot] != '.')
        dot++;
    enum number_status status =
        number_parse_u64(text, dot, 0, (uint64_t)INT64_MAX / 1000 - 1, &whole_ms);
    if (status == NUMBER_MALFORMED)
        return status;
    if (dot < len) {
        size_t decimals = len - dot - 1;
        if (decimals < 1 || decimals > 3 ||
            number_parse_u64(text + dot + 1, decimals, 0, 999, &fraction_us) != NUMBER_OK)
            return NUMBER_MALFORMED;
        for (; decimals < 3; decimals++)
            fraction_us *= 10;
    }
    if (status != NUMBER_OK)
        return status;

    int64_t value_us = (int64_t)(whole_ms * 1000 + fraction_us);
    if (value_us < min_us || value_us > max_us)
        return NUMBER_OUT_OF_RANGE;
    *out_us = value_us;
    return NUMBER_OK;
}

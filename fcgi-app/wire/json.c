/* Writing of JSON strings; the header says what is escaped and why. */

#include "wire/json.h"

#include <stdint.h>
#include <string.h>

/* How many bytes at `at` form one character that must be escaped, and its code point; else 0.
 */
static size_t must_escape(const unsigned char *at, size_t left, unsigned *code_point)
{
    if (at[0] < 0x20 || at[0] == '"' || at[0] == '\\' || at[0] == 0x7f) {
        *code_point = at[0];
        return 1;
    }
    if (left >= 2 && at[0] == 0xc2 && at[1] == 0x85) {
        *code_point = 0x85;
        return 2;
    }
    if (left >= 3 && at[0] == 0xe2 && at[1] == 0x80 && (at[2] == 0xa8 || at[2] == 0xa9)) {
        *code_point = 0x2000u + (at[2] & 0x3fu);
        return 3;
    }
    return 0;
}

static int append_escape(struct buffer *out, unsigned code_point)
{
    static const char hex[] = "0123456789abcdef";
    static const char *const named = "\"\"\\\\\bb\ff\nn\rr\tt";

    for (const char *pair = named; *pair != '\0'; pair += 2) {
        if (code_point == (unsigned char)pair[0]) {
            char escape[2] = {'\\', pair[1]};
            return buffer_append(out, escape, 2);
        }
    }
    char escape[6] = {'\\',
                      'u',
                      hex[code_point >> 12 & 15],
                      hex[code_point >> 8 & 15],
                      hex[code_point >> 4 & 15],
                      hex[code_point & 15]};
    return buffer_append(out, escape, 6);
}

int json_append_escaped(struct buffer *out, const char *text, size_t len)
{
    const unsigned char *bytes = (const unsigned char *)text;
    size_t plain = 0; /* start of the run that needs no escape */
    size_t at = 0;
    unsigned code_point;

    while (at < len) {
        size_t width = must_escape(bytes + at, len - at, &code_point);
        if (width == 0) {
            at++;
            continue;
        }
        if (buffer_append(out, text + plain, at - plain) != 0 ||
            append_escape(out, code_point) != 0)
            return -1;
        at += width;
        plain = at;
    }
    return buffer_append(out, text + plain, len - plain);
}

int json_append_string(struct buffer *out, const char *text, size_t len)
{
    if (buffer_append_char(out, '"') != 0 || json_append_escaped(out, text, len) != 0)
        return -1;
    return buffer_append_char(out, '"');
}

/*
 * The torture vocabulary: tokens that break an encoder which escapes too little, a client that
 * splits where it should not, a decoder that cuts UTF-8 at a read, and a terminal or page that
 * trusts what it shows. Each entry is valid UTF-8, not empty, without NUL; what cannot be sent
 * in a JSON string at all (a lone surrogate, a malformed byte) is refused here and belongs to
 * the `garble` fault.
 *
 * Token i is entry (a + b * i) mod N, with a in 0..N-1 and b in 1..N-1 drawn from the seed. N
 * is a prime, so any N tokens in a row are all the entries: a test of N tokens has met every
 * one.
 */
#include "base/random.h"
#include "gen/tokgen.h"

#include <string.h>

struct entry {
    const char *bytes;
    size_t len;
};

#define ENTRY(literal)                                                                         \
    {                                                                                          \
        literal, sizeof(literal) - 1                                                           \
    }
#define TIMES_4(s)  s s s s
#define TIMES_16(s) TIMES_4(TIMES_4(s))

/* The order is frozen. \u names stop at U+00A0, so what lies below is spelled in bytes. */
static const struct entry entries[] = {
    /* Scripts: several bytes a character, conjoining, right to left, outside the BMP. */
    ENTRY(u8"\u4f60\u597d"),
    ENTRY(u8"\u4e16\u754c"),
    ENTRY(u8"\u6771\u4eac\u90fd"),
    ENTRY(u8"\u30ab\u30bf\u30ab\u30ca"),
    ENTRY(u8"\uff76\uff9e"),           /* half-width katakana: NFKC makes it one character */
    ENTRY(u8"\uc548\ub155"),           /* Hangul syllables */
    ENTRY(u8"\u1112\u1161\u11ab"),     /* the same kind of syllable in conjoining jamo */
    ENTRY(u8"\U00020bb7\u91ce\u5bb6"), /* CJK outside the BMP: a surrogate pair in UTF-16 */
    ENTRY(u8"\U0002f81a"),             /* compatibility ideograph: NFC replaces it */
    ENTRY(u8"\U0001d54f"),             /* mathematical letter */
    ENTRY(u8"\u0928\u092e\u0938\u094d\u0924\u0947"),
    ENTRY(u8"\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35"),
    ENTRY(u8"\u0645\u0631\u062d\u0628\u0627"),
    ENTRY(u8" \u05e9\u05dc\u05d5\u05dd"),
    ENTRY(u8"\u0661\u0662\u0663"), /* digits, but not ASCII ones */
    ENTRY(u8"\u0130\u00df\ufb01"), /* change length when their case is changed */

    /* Emoji: pairs, sequences that are one picture, flags, modifiers. */
    ENTRY(u8"\U0001f600"),
    ENTRY(u8"\U0001f44d\U0001f3fd"),
    ENTRY(u8"\U0001f3fd"), /* a skin tone that changes whatever came before */
    ENTRY(u8"\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"),
    ENTRY(u8"\U0001f1ef\U0001f1f5"),
    ENTRY(u8"\U0001f1eb"), /* half a flag */
    ENTRY(u8"\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"),
    ENTRY(u8"\u2764\ufe0f"),
    ENTRY(u8"1\ufe0f\u20e3"),

    /* Combining marks: after a letter, stacked, and at the head of a token. */
    ENTRY(u8"\u00e9"),
    ENTRY(u8"e\u0301"),
    ENTRY(u8"o\u0323\u0302\u0300"),
    ENTRY(u8"\u0301"),
    ENTRY(u8"\u0308 x"),

    /* What is not seen, and what turns the text around. */
    ENTRY(u8"\u00a0"),
    ENTRY(u8"\u3000"),
    ENTRY(u8"\u200b"),
    ENTRY(u8"\u200d"),
    ENTRY(u8"\u200f"),
    ENTRY(u8"\u202eabc\u202c"),
    ENTRY(u8"\ufeff"),

    /* Line ends, for SSE, for JavaScript, and for str.splitlines. */
    ENTRY("\n"),
    ENTRY("\r\n"),
    ENTRY("\r"),
    ENTRY("\n\n"),
    ENTRY("\r\n\r\n"),
    ENTRY("a\nb"),
    ENTRY("\xc2\x85"), /* U+0085 */
    ENTRY(u8"\u2028"),
    ENTRY(u8"\u2029"),
    ENTRY("\v\f"),
    ENTRY("\x1c\x1d\x1e\x1f"),

    /* Other controls. */
    ENTRY("\t"),
    ENTRY("\x01"),
    ENTRY("\x7f"),
    ENTRY("\b"),
    ENTRY("\x1b[31m"),
    ENTRY("\xc2\x9f"), /* U+009F, the last of the C1 controls */

    /* Quotes, backslashes, JSON and escapes that are not escapes. */
    ENTRY("\""),
    ENTRY("'"),
    ENTRY("`"),
    ENTRY("\\"),
    ENTRY("\\\""),
    ENTRY("\\n"),
    ENTRY("\\u0041"),
    ENTRY("\\ud83d"),
    ENTRY("{\"token\":\"x\"}"),
    ENTRY("{"),
    ENTRY("}"),
    ENTRY("["),
    ENTRY("]}"),

    /* The protocol's own words. */
    ENTRY("data: "),
    ENTRY("[DONE]"),
    ENTRY("data: [DONE]\n\n"),
    ENTRY("\n\ndata: x\n\n"),
    ENTRY("event: error\n"),
    ENTRY("\nid: 0\n"),
    ENTRY(": ping\n\n"),

    /* The words of those who show or log it. */
    ENTRY("</script>"),
    ENTRY("<!--"),
    ENTRY("&amp;"),
    ENTRY("%s%n"),
    ENTRY("%00"),

    /* Spaces that a trim would take. */
    ENTRY(" "),
    ENTRY("   "),
    ENTRY(" leading"),
    ENTRY("trailing "),

    /* The ends of Unicode. */
    ENTRY(u8"\ufffd"),
    ENTRY(u8"\uffff"),
    ENTRY(u8"\U0010ffff"),

    /* The longest token, in characters, in pairs, and in what JSON makes of it (6 for 1). */
    ENTRY(TIMES_16("long")),
    ENTRY(TIMES_16(u8"\U0001f680")),
    ENTRY(TIMES_16("\x01\x02\x03\x04")),
};

_Static_assert(sizeof entries / sizeof entries[0] == TOKGEN_TORTURE_COUNT,
               "TOKGEN_TORTURE_COUNT must be the number of entries, and a prime");

size_t tokgen_torture_token(uint64_t seed, uint64_t index, char *buf, size_t cap)
{
    uint64_t first = random_at(seed, 0) % TOKGEN_TORTURE_COUNT;
    uint64_t stride = 1 + random_at(seed, 1) % (TOKGEN_TORTURE_COUNT - 1);
    uint64_t place = index % TOKGEN_TORTURE_COUNT;
    const struct entry *entry = &entries[(first + stride * place) % TOKGEN_TORTURE_COUNT];

    if (entry->len > cap)
        return 0;
    memcpy(buf, entry->bytes, entry->len);
    return entry->len;
}

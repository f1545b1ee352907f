/*
 * gen: prints the tokens that the server would stream for a prompt.
 *
 * It is the reference to compare a stream with: same generator, no server, no network, no
 * clock. Output is written as it is made, so memory does not grow with the number of tokens.
 *
 * It refuses to guess: a number is digits only, a prompt is valid UTF-8, and an output that
 * could not be written in full (full disk, closed pipe) is an error and never a silently short
 * file.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unistr.h>

#include "base/number.h"
#include "gen/tokgen.h"

#define PROMPT_MAX_BYTES 65536
#define TOKENS_MAX       UINT64_C(10000000)
#define GIVEN_MAX_BYTES  64 /* of a refused value, in the message */

enum exit_status { EXIT_OK = 0, EXIT_USAGE = 2, EXIT_OUTPUT = 3 };

struct order {
    const char *prompt;
    size_t prompt_len;
    uint64_t tokens;
    uint64_t seed;
    enum tokgen_vocab vocab;
    void (*write)(const struct order *order, FILE *out);
};

static void parse_order(struct order *order, int argc, char **argv);
static void take_option(struct order *order, int option, const char *value);
static void take_prompt(struct order *order, const char *value);
static uint64_t take_number(const char *name, const char *value, uint64_t min, uint64_t max);
static void take_vocab(struct order *order, const char *value);
static void take_format(struct order *order, const char *value);

static void write_lines(const struct order *order, FILE *out);
static void write_text(const struct order *order, FILE *out);
static void write_json(const struct order *order, FILE *out);
static void write_escaped(const char *utf8, size_t len, FILE *out);
static size_t escape_code_point(const char *utf8, size_t len, char *escape, size_t cap);

static void finish_output(FILE *out);
static _Noreturn void refuse_getopt(int option, char **argv);
static _Noreturn void refuse(const char *name, const char *given, const char *allowed);
static _Noreturn void die(enum exit_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static const struct {
    const char *name;
    void (*write)(const struct order *order, FILE *out);
} formats[] = {
    {"lines", write_lines},
    {"text", write_text},
    {"json", write_json},
};

/* Beyond any char, so that a short option never looks like one of these. */
enum { OPT_PROMPT = 256, OPT_TOKENS, OPT_SEED, OPT_VOCAB, OPT_FORMAT, OPT_HELP, OPT_VERSION };

static const struct option long_options[] = {
    {"prompt", required_argument, NULL, OPT_PROMPT},
    {"tokens", required_argument, NULL, OPT_TOKENS},
    {"seed", required_argument, NULL, OPT_SEED},
    {"vocab", required_argument, NULL, OPT_VOCAB},
    {"format", required_argument, NULL, OPT_FORMAT},
    {"help", no_argument, NULL, OPT_HELP},
    {"version", no_argument, NULL, OPT_VERSION},
    {NULL, 0, NULL, 0},
};

static const char version_text[] = "gen (runnel) 0.1.0\n";

static const char help_text[] =
    "usage: gen --prompt P --tokens N [--seed S] [--vocab words|torture]\n"
    "           [--format lines|text|json]\n"
    "\n"
    "Prints the first N tokens that runnel generates for the prompt P. The same arguments "
    "give\n"
    "the same bytes on every machine, and N tokens are a prefix of any longer output.\n"
    "\n"
    "  --prompt P   the prompt: UTF-8, 1 to 65536 bytes\n"
    "  --tokens N   how many tokens: 1 to 10000000\n"
    "  --seed S     another sequence for the same prompt: 0 to 18446744073709551615;\n"
    "               0, the default, derives the sequence from the prompt alone\n"
    "  --vocab V    words    English sentences (default)\n"
    "               torture  CJK, emoji, combining marks, quotes, newlines, controls\n"
    "  --format F   lines    one token a line, escaped as in a JSON string, without the\n"
    "                        quotes: no token can make a line of its own (default)\n"
    "               text     the bytes of the tokens and nothing else\n"
    "               json     one object: prompt, seed, vocab, counts, tokens and text\n"
    "  --help       this text\n"
    "  --version    the version\n"
    "\n"
    "Examples:\n"
    "  gen --prompt hello --tokens 20\n"
    "  gen --prompt hello --tokens 200 --format text\n"
    "  gen --prompt hello --tokens 89 --vocab torture --format json | jq -r '.tokens[]'\n"
    "\n"
    "Exit status: 0 all was written, 2 the arguments were refused, 3 the output could not be\n"
    "written.\n";

int main(int argc, char **argv)
{
    struct order order = {.vocab = TOKGEN_WORDS, .write = write_lines};

    /* A reader that left is then an error of write(2), which finish_output can report. */
    signal(SIGPIPE, SIG_IGN);
    parse_order(&order, argc, argv);
    order.write(&order, stdout);
    finish_output(stdout);
    return EXIT_OK;
}

static void parse_order(struct order *order, int argc, char **argv)
{
    int option;

    opterr = 0;
    while ((option = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
        if (option == '?' || option == ':')
            refuse_getopt(option, argv);
        take_option(order, option, optarg);
    }
    if (optind < argc)
        refuse("the argument left over", argv[optind],
               "none, and a prompt with spaces needs quotes");
    if (order->prompt == NULL)
        die(EXIT_USAGE, "--prompt is missing; it takes UTF-8 of 1 to %d bytes",
            PROMPT_MAX_BYTES);
    if (order->tokens == 0)
        die(EXIT_USAGE, "--tokens is missing; it takes a whole number, 1 to %" PRIu64,
            TOKENS_MAX);
}

static void take_option(struct order *order, int option, const char *value)
{
    switch (option) {
    case OPT_PROMPT:
        take_prompt(order, value);
        break;
    case OPT_TOKENS:
        order->tokens = take_number("--tokens", value, 1, TOKENS_MAX);
        break;
    case OPT_SEED:
        order->seed = take_number("--seed", value, 0, UINT64_MAX);
        break;
    case OPT_VOCAB:
        take_vocab(order, value);
        break;
    case OPT_FORMAT:
        take_format(order, value);
        break;
    default: /* --help and --version answer at once, whatever else was given */
        fputs(option == OPT_HELP ? help_text : version_text, stdout);
        finish_output(stdout);
        exit(EXIT_OK);
    }
}

static void take_prompt(struct order *order, const char *value)
{
    size_t len = strlen(value);

    if (len == 0)
        die(EXIT_USAGE, "--prompt is empty; it takes UTF-8 of 1 to %d bytes", PROMPT_MAX_BYTES);
    if (len > PROMPT_MAX_BYTES)
        die(EXIT_USAGE, "--prompt has %zu bytes; it takes UTF-8 of 1 to %d bytes", len,
            PROMPT_MAX_BYTES);

    const uint8_t *bytes = (const uint8_t *)value;
    const uint8_t *malformed = u8_check(bytes, len);

    if (malformed != NULL)
        die(EXIT_USAGE,
            "--prompt is malformed from byte %td on (0x%02x); it takes valid UTF-8 only",
            malformed - bytes, (unsigned)*malformed);
    order->prompt = value;
    order->prompt_len = len;
}

static uint64_t take_number(const char *name, const char *value, uint64_t min, uint64_t max)
{
    char allowed[96];
    uint64_t number = 0;

    if (number_parse_u64(value, strlen(value), min, max, &number) == NUMBER_OK)
        return number;
    snprintf(allowed, sizeof allowed, "a whole number in digits only, %" PRIu64 " to %" PRIu64,
             min, max);
    refuse(name, value, allowed);
}

static void take_vocab(struct order *order, const char *value)
{
    if (tokgen_vocab_parse(value, &order->vocab) != 0)
        refuse("--vocab", value, "words or torture");
}

static void take_format(struct order *order, const char *value)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (strcmp(value, formats[i].name) == 0) {
            order->write = formats[i].write;
            return;
        }
    }
    refuse("--format", value, "lines, text or json");
}

/* The writers stop early on a failed stream; finish_output says why. */

static void write_lines(const struct order *order, FILE *out)
{
    struct tokgen tokens =
        tokgen_init(order->prompt, order->prompt_len, order->seed, order->vocab);
    char token[TOKGEN_TOKEN_MAX_BYTES];

    for (uint64_t i = 0; i < order->tokens && !ferror(out); i++) {
        write_escaped(token, tokgen_token(&tokens, i, token, sizeof token), out);
        putc('\n', out);
    }
}

static void write_text(const struct order *order, FILE *out)
{
    struct tokgen tokens =
        tokgen_init(order->prompt, order->prompt_len, order->seed, order->vocab);
    char token[TOKGEN_TOKEN_MAX_BYTES];

    for (uint64_t i = 0; i < order->tokens && !ferror(out); i++)
        fwrite(token, 1, tokgen_token(&tokens, i, token, sizeof token), out);
}

/* The tokens are made twice, once for the array and once for the text, rather than kept. */
static void write_json(const struct order *order, FILE *out)
{
    struct tokgen tokens =
        tokgen_init(order->prompt, order->prompt_len, order->seed, order->vocab);
    char token[TOKGEN_TOKEN_MAX_BYTES];

    fputs("{\"prompt\":\"", out);
    write_escaped(order->prompt, order->prompt_len, out);
    /* A string, for most readers of JSON keep 53 bits of a number. */
    fprintf(out, "\",\"seed\":\"%" PRIu64 "\",\"vocab\":\"%s\"", order->seed,
            tokgen_vocab_name(order->vocab));
    fprintf(out, ",\"prompt_tokens\":%" PRIu64 ",\"completion_tokens\":%" PRIu64,
            tokgen_count_prompt_tokens(order->prompt, order->prompt_len), order->tokens);

    fputs(",\"tokens\":[", out);
    for (uint64_t i = 0; i < order->tokens && !ferror(out); i++) {
        fputs(i == 0 ? "\"" : ",\"", out);
        write_escaped(token, tokgen_token(&tokens, i, token, sizeof token), out);
        putc('"', out);
    }
    fputs("],\"text\":\"", out);
    for (uint64_t i = 0; i < order->tokens && !ferror(out); i++)
        write_escaped(token, tokgen_token(&tokens, i, token, sizeof token), out);
    fputs("\"}\n", out);
}

/* The inside of a JSON string (RFC 8259, section 7), safe for those who split lines as well. */
static void write_escaped(const char *utf8, size_t len, FILE *out)
{
    size_t start = 0;
    size_t at = 0;

    while (at < len) {
        char escape[8];
        size_t used = escape_code_point(utf8 + at, len - at, escape, sizeof escape);

        if (used == 0) {
            at++;
            continue;
        }
        fwrite(utf8 + start, 1, at - start, out);
        fputs(escape, out);
        at += used;
        start = at;
    }
    fwrite(utf8 + start, 1, len - start, out);
}

/*
 * When the text begins with a code point that must be escaped, writes the escape and returns
 * how many bytes it stands for, else returns 0. Escaped are quote and backslash, all controls
 * (U+0000 to U+001F, U+007F to U+009F), and U+2028 and U+2029.
 */
static size_t escape_code_point(const char *utf8, size_t len, char *escape, size_t cap)
{
    static const char short_from[] = "\"\\\b\f\n\r\t";
    static const char short_to[] = "\"\\bfnrt";
    unsigned char byte = (unsigned char)utf8[0];

    if (byte == '"' || byte == '\\' || byte < 0x20 || byte == 0x7f) {
        const char *found = byte == 0 ? NULL : strchr(short_from, byte);

        if (found != NULL)
            snprintf(escape, cap, "\\%c", short_to[found - short_from]);
        else
            snprintf(escape, cap, "\\u%04x", (unsigned)byte);
        return 1;
    }
    if (byte == 0xc2 && len >= 2 && (unsigned char)utf8[1] < 0xa0) {
        snprintf(escape, cap, "\\u%04x", (unsigned)(unsigned char)utf8[1]);
        return 2;
    }
    if (len >= 3 &&
        (memcmp(utf8, "\xe2\x80\xa8", 3) == 0 || memcmp(utf8, "\xe2\x80\xa9", 3) == 0)) {
        snprintf(escape, cap, "\\u20%02x", (unsigned)(unsigned char)utf8[2] - 0x80);
        return 3;
    }
    return 0;
}

/* Closes the stream too: some file systems report a full disk no earlier. */
static void finish_output(FILE *out)
{
    if (!ferror(out) && fflush(out) == 0 && fclose(out) == 0)
        return;
    die(EXIT_OUTPUT, "cannot write all of the output: %s", strerror(errno));
}

static _Noreturn void refuse_getopt(int option, char **argv)
{
    const char *given = argv[optind - 1];
    char short_option[] = {'-', (char)optopt, '\0'};

    if (option == ':')
        die(EXIT_USAGE, "%s needs a value after it; `gen --help` says which", given);
    if (optopt >= OPT_PROMPT)
        refuse(optopt == OPT_HELP ? "--help" : "--version", strchr(given, '='), "no value");
    refuse("the option given", optopt != 0 ? short_option : given,
           "--prompt, --tokens, --seed, --vocab, --format, --help and --version");
}

/* The given value is shown in printable ASCII and cut, so that it cannot play with a terminal.
 */
static _Noreturn void refuse(const char *name, const char *given, const char *allowed)
{
    char shown[GIVEN_MAX_BYTES * 4 + sizeof "..."];
    size_t at = 0;

    for (size_t i = 0; given[i] != '\0' && i < GIVEN_MAX_BYTES; i++) {
        unsigned char byte = (unsigned char)given[i];
        int printable = byte >= 0x20 && byte < 0x7f;

        at += (size_t)snprintf(shown + at, sizeof shown - at, printable ? "%c" : "\\x%02x",
                               (unsigned)byte);
    }
    snprintf(shown + at, sizeof shown - at, "%s", strlen(given) > GIVEN_MAX_BYTES ? "..." : "");
    die(EXIT_USAGE, "%s is \"%s\"; allowed: %s", name, shown, allowed);
}

static _Noreturn void die(enum exit_status status, const char *format, ...)
{
    va_list arguments;

    fputs("gen: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    putc('\n', stderr);
    exit(status);
}

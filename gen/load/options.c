/*
 * The command line. Numbers are strict, as everywhere; each refusal names the option, what was
 * given and what is allowed.
 */

#include "gen/load/options.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "gen/load/help.h"

enum {
    SHOWN_MAX_BYTES = 64, /* of a refused value */
    FILE_MAX_BYTES = 8 << 20,
    OPEN_LOOP_STREAMS = 10000,
    DEFAULT_TOKENS = 128,
    RAMP_US_A_STREAM = 1000,
};

#define STREAMS_MAX  UINT64_C(1000000)
#define REQUESTS_MAX UINT64_C(1000000000000)
#define DAY_MILLI    INT64_C(86400000)

static int refuse(struct options *options, const char *name, const char *given,
                  const char *format, ...) __attribute__((format(printf, 4, 5)));
static int complain(struct options *options, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

const char *figure_name(enum figure figure)
{
    static const char *const names[FIGURES] = {"ttft",  "ttft_sent", "itl",  "tpot",
                                               "total", "lateness",  "pace", "path",
                                               "due",   "turn",      "start"};

    return names[figure];
}

/* --- refusals: each returns -1 and leaves a sentence --- */

static int complain(struct options *options, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(options->why, sizeof(options->why), format, arguments);
    va_end(arguments);
    return -1;
}

/* The given value is shown in printable ASCII and cut: it cannot play with a terminal. */
static int refuse(struct options *options, const char *name, const char *given,
                  const char *format, ...)
{
    char shown[SHOWN_MAX_BYTES + 1];
    char allowed[128];
    size_t len = strlen(given) < SHOWN_MAX_BYTES ? strlen(given) : SHOWN_MAX_BYTES;
    va_list arguments;

    for (size_t i = 0; i < len; i++)
        shown[i] = given[i] >= 0x20 && given[i] < 0x7f ? given[i] : '?';
    shown[len] = '\0';
    va_start(arguments, format);
    vsnprintf(allowed, sizeof(allowed), format, arguments);
    va_end(arguments);
    return complain(options, "%s: `%s%s` was given; %s is allowed", name, shown,
                    given[len] != '\0' ? "..." : "", allowed);
}

static int take_whole(struct options *options, const char *name, const char *value,
                      uint64_t min, uint64_t max, uint64_t *out)
{
    if (number_parse_u64(value, strlen(value), min, max, out) == NUMBER_OK)
        return 0;
    return refuse(options, name, value, "a whole number from %" PRIu64 " to %" PRIu64, min,
                  max);
}

/* Thousandths of a number with up to three decimals. */
static int take_milli(struct options *options, const char *name, const char *value, int64_t min,
                      int64_t max, int64_t *out)
{
    if (number_parse_ms(value, strlen(value), min, max, out) == NUMBER_OK)
        return 0;
    return refuse(options, name, value, "a number from %g to %g with up to three decimals",
                  (double)min / 1000, (double)max / 1000);
}

/* --- files --- */

/* The whole file with a NUL behind it, to be freed; NULL after a sentence. */
static char *read_file(struct options *options, const char *name, const char *path, size_t *len)
{
    FILE *file = fopen(path, "re");
    char *text = NULL;

    if (file != NULL)
        text = malloc(FILE_MAX_BYTES + 1);
    if (text != NULL)
        *len = fread(text, 1, FILE_MAX_BYTES + 1, file);
    if (text == NULL || ferror(file) != 0) {
        complain(options, "%s: cannot read %s: %s", name, path, strerror(errno));
        free(text);
        text = NULL;
    } else if (*len > FILE_MAX_BYTES) {
        complain(options, "%s: %s has more than %d bytes", name, path, FILE_MAX_BYTES);
        free(text);
        text = NULL;
    } else {
        text[*len] = '\0';
    }
    if (file != NULL)
        fclose(file);
    return text;
}

static int keep_header(struct options *options, const char *line, size_t len)
{
    if (options->header_count == OPTIONS_HEADERS_MAX) {
        complain(options, "--header: more than %d headers", OPTIONS_HEADERS_MAX);
        return -1;
    }
    char *kept = strndup(line, len);
    if (kept == NULL) {
        complain(options, "no memory for a header");
        return -1;
    }
    options->headers[options->header_count++] = kept;
    for (const char *at = kept; *at != '\0'; at++) {
        if (*at == '\r' || *at == '\n')
            return refuse(options, "--header", kept, "one line");
    }
    if (strlen(kept) != len || kept[0] == ':' || strchr(kept, ':') == NULL)
        return refuse(options, "--header", kept, "a line `Name: value`");
    return 0;
}

static int take_header(struct options *options, const char *value)
{
    size_t len;

    if (value[0] != '@')
        return keep_header(options, value, strlen(value));
    char *text = read_file(options, "--header", value + 1, &len);
    int status = text == NULL ? -1 : 0;
    for (char *line = text; status == 0 && line < text + len;) {
        const char *end = memchr(line, '\n', (size_t)(text + len - line));
        size_t line_len = (size_t)((end != NULL ? end : text + len) - line);
        size_t kept_len = line_len > 0 && line[line_len - 1] == '\r' ? line_len - 1 : line_len;
        if (kept_len > 0)
            status = keep_header(options, line, kept_len);
        line += line_len + 1;
    }
    free(text);
    return status;
}

static int take_body(struct options *options, const char *value)
{
    free(options->body);
    options->body_len = strlen(value);
    options->body = value[0] == '@'
                        ? read_file(options, "--data", value + 1, &options->body_len)
                        : strdup(value);
    return options->body == NULL ? -1 : 0;
}

/* --- options with a form of their own --- */

static int take_control(struct options *options, const char *value)
{
    const char *equals = strchr(value, '=');

    if (equals == NULL || equals == value)
        return refuse(options, "--control", value, "NAME=VALUE");
    if (strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") !=
        (size_t)(equals - value))
        return refuse(options, "--control", value,
                      "a NAME of letters, digits, `_`, `.` and `-`");
    if (options->control_count == OPTIONS_CONTROLS_MAX) {
        complain(options, "--control: more than %d of them", OPTIONS_CONTROLS_MAX);
        return -1;
    }
    options->controls[options->control_count++] = value;
    return 0;
}

static int take_abort_after(struct options *options, const char *value)
{
    const char *dots = strstr(value, "..");
    size_t first_len = dots != NULL ? (size_t)(dots - value) : strlen(value);
    const char *second = dots != NULL ? dots + 2 : value;

    if (number_parse_u64(value, first_len, 1, INT32_MAX, &options->abort_min) != NUMBER_OK ||
        number_parse_u64(second, strlen(second), options->abort_min, INT32_MAX,
                         &options->abort_max) != NUMBER_OK)
        return refuse(options, "--abort-after", value, "K or A..B, from 1 and in order,");
    return 0;
}

static int take_goodput(struct options *options, const char *value)
{
    static const char allowed[] =
        "a list like ttft:500,itl:50 of ttft, itl, tpot and total in ms";
    struct goodput *goodput = &options->goodput;
    const struct {
        const char *name;
        int64_t *bound_us;
    } bounds[] = {{"ttft:", &goodput->ttft_us},
                  {"itl:", &goodput->itl_us},
                  {"tpot:", &goodput->tpot_us},
                  {"total:", &goodput->total_us}};

    goodput->wanted = true;
    for (const char *at = value;; at++) {
        size_t len = strcspn(at, ",");
        bool known = false;
        for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]) && !known; i++) {
            size_t name_len = strlen(bounds[i].name);
            known = len > name_len && strncmp(at, bounds[i].name, name_len) == 0 &&
                    number_parse_ms(at + name_len, len - name_len, 1, DAY_MILLI * 1000,
                                    bounds[i].bound_us) == NUMBER_OK;
        }
        if (!known)
            return refuse(options, "--goodput", value, "%s", allowed);
        at += len;
        if (*at == '\0')
            return 0;
    }
}

static int take_hdr(struct options *options, const char *value)
{
    struct hdr_output *output = &options->hdr[options->hdr_count];

    if (options->hdr_count == OPTIONS_HDR_MAX) {
        complain(options, "--hdr: more than %d of them", OPTIONS_HDR_MAX);
        return -1;
    }
    *output = (struct hdr_output){.figure = FIGURE_ITL, .path = value};
    for (enum figure figure = 0; figure < FIGURES; figure++) {
        size_t len = strlen(figure_name(figure));
        if (strncmp(value, figure_name(figure), len) == 0 && value[len] == ':')
            *output = (struct hdr_output){.figure = figure, .path = value + len + 1};
    }
    if (output->path[0] == '\0')
        return refuse(options, "--hdr", value, "FILE or NAME:FILE");
    options->hdr_count++;
    return 0;
}

static int take_arrivals(struct options *options, const char *value)
{
    if (strcmp(value, "constant") == 0)
        options->arrivals = ARRIVALS_CONSTANT;
    else if (strcmp(value, "poisson") == 0)
        options->arrivals = ARRIVALS_POISSON;
    else
        return refuse(options, "--arrivals", value, "constant or poisson");
    return 0;
}

static int take_format(struct options *options, const char *value)
{
    if (payload_format_parse(value, &options->format) != 0)
        return refuse(options, "--format", value, "auto, token or openai");
    return 0;
}

static int take_method(struct options *options, const char *value)
{
    static const char capitals[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

    if (value[strspn(value, capitals)] != '\0')
        return refuse(options, "--request", value, "a method in capital letters");
    options->method = value;
    return 0;
}

/* --- the table --- */

enum kind {
    KIND_TEXT,    /* const char *, not empty */
    KIND_WHOLE,   /* uint64_t, min to max */
    KIND_MILLI,   /* the same in thousandths, with up to three decimals */
    KIND_SECONDS, /* int64_t in microseconds; min in milliseconds */
    KIND_MS,      /* int64_t in microseconds */
    KIND_FLAG,    /* bool, no value */
    KIND_OWN,     /* by its own function */
    KIND_HELP,
    KIND_VERSION,
};

struct row {
    const char *name;
    int letter; /* 0: none */
    enum kind kind;
    size_t offset;
    uint64_t min, max;
    int (*take)(struct options *options, const char *value);
};

#define FIELD(name) offsetof(struct options, name)

static const struct row rows[] = {
    {"url", 0, KIND_TEXT, FIELD(url), 0, 0, NULL},
    {"unix-socket", 0, KIND_TEXT, FIELD(unix_socket), 0, 0, NULL},
    {"request", 'X', KIND_OWN, 0, 0, 0, take_method},
    {"header", 'H', KIND_OWN, 0, 0, 0, take_header},
    {"data", 'd', KIND_OWN, 0, 0, 0, take_body},
    {"prompt", 0, KIND_TEXT, FIELD(prompt), 0, 0, NULL},
    {"prompts", 0, KIND_WHOLE, FIELD(prompts), 1, REQUESTS_MAX, NULL},
    {"tokens", 0, KIND_WHOLE, FIELD(tokens), 1, 10000000, NULL},
    {"control", 0, KIND_OWN, 0, 0, 0, take_control},
    {"insecure", 0, KIND_FLAG, FIELD(insecure), 0, 0, NULL},
    {"streams", 0, KIND_WHOLE, FIELD(streams), 1, STREAMS_MAX, NULL},
    {"requests", 0, KIND_WHOLE, FIELD(requests), 1, REQUESTS_MAX, NULL},
    {"duration", 0, KIND_SECONDS, FIELD(duration_us), 1, DAY_MILLI, NULL},
    {"warmup", 0, KIND_SECONDS, FIELD(warmup_us), 0, DAY_MILLI, NULL},
    {"ramp", 0, KIND_SECONDS, FIELD(ramp_us), 0, DAY_MILLI, NULL},
    {"rate", 0, KIND_MILLI, FIELD(rate_milli), 1, UINT64_C(1000000000), NULL},
    {"arrivals", 0, KIND_OWN, 0, 0, 0, take_arrivals},
    {"keepalive", 0, KIND_FLAG, FIELD(keepalive), 0, 0, NULL},
    {"timeout", 0, KIND_SECONDS, FIELD(timeout_us), 1, DAY_MILLI, NULL},
    {"abort-rate", 0, KIND_MILLI, FIELD(abort_milli), 0, 100000, NULL},
    {"abort-after", 0, KIND_OWN, 0, 0, 0, take_abort_after},
    {"slow-readers", 0, KIND_MILLI, FIELD(slow_milli), 0, 100000, NULL},
    {"slow-pause", 0, KIND_MS, FIELD(slow_pause_us), 1, DAY_MILLI, NULL},
    {"seed", 0, KIND_WHOLE, FIELD(seed), 0, UINT64_MAX, NULL},
    {"verify", 0, KIND_FLAG, FIELD(verify), 0, 0, NULL},
    {"format", 0, KIND_OWN, 0, 0, 0, take_format},
    {"goodput", 0, KIND_OWN, 0, 0, 0, take_goodput},
    {"json", 0, KIND_TEXT, FIELD(json_path), 0, 0, NULL},
    {"hdr", 0, KIND_OWN, 0, 0, 0, take_hdr},
    {"events", 0, KIND_TEXT, FIELD(events_path), 0, 0, NULL},
    {"events-streams", 0, KIND_WHOLE, FIELD(events_streams), 1, 1000000, NULL},
    {"quiet", 'q', KIND_FLAG, FIELD(quiet), 0, 0, NULL},
    {"self-test", 0, KIND_FLAG, FIELD(self_test), 0, 0, NULL},
    {"help", 'h', KIND_HELP, 0, 0, 0, NULL},
    {"version", 0, KIND_VERSION, 0, 0, 0, NULL},
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]), FIRST_ROW = 256 /* beyond any letter */ };

static int take_row(struct options *options, const struct row *row, const char *value)
{
    char *field = (char *)options + row->offset;
    char name[32];
    int64_t milli = 0;
    int status = 0;

    snprintf(name, sizeof(name), "--%s", row->name);
    switch (row->kind) {
    case KIND_TEXT:
        if (value[0] == '\0')
            return refuse(options, name, value, "a value that is not empty");
        *(const char **)field = value;
        return 0;
    case KIND_WHOLE:
        return take_whole(options, name, value, row->min, row->max, (uint64_t *)field);
    case KIND_MILLI:
        status = take_milli(options, name, value, (int64_t)row->min, (int64_t)row->max, &milli);
        *(uint64_t *)field = (uint64_t)milli;
        return status;
    case KIND_SECONDS:
        status = take_milli(options, name, value, (int64_t)row->min, (int64_t)row->max, &milli);
        *(int64_t *)field = milli * 1000;
        return status;
    case KIND_MS:
        return take_milli(options, name, value, (int64_t)row->min, (int64_t)row->max,
                          (int64_t *)field);
    case KIND_FLAG:
        *(bool *)field = true;
        return 0;
    default:
        return row->take(options, value);
    }
}

static const struct row *row_of(int option)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (option == FIRST_ROW + (int)i || (rows[i].letter != 0 && option == rows[i].letter))
            return &rows[i];
    }
    return NULL;
}

/* --- all together --- */

#define ABORT_NOT_GIVEN UINT64_MAX
#define RAMP_NOT_GIVEN  INT64_C(-1)

/* The lab's own server, as the other instruments ask it. */
static int default_url(struct options *options)
{
    static char url[64];
    const char *port = getenv("RUNNEL_PORT");
    uint64_t number = 8170;

    if (port != NULL && port[0] != '\0' &&
        take_whole(options, "RUNNEL_PORT", port, 1, 65535, &number) != 0)
        return -1;
    snprintf(url, sizeof(url), "http://127.0.0.1:%" PRIu64 "/stream", number);
    options->url = url;
    if (options->prompt == NULL)
        options->prompt = "hello";
    if (options->tokens == 0)
        options->tokens = DEFAULT_TOKENS;
    return 0;
}

static int fill_in(struct options *options)
{
    if (options->url == NULL && options->body == NULL && default_url(options) != 0)
        return -1;
    if (options->url == NULL)
        return complain(options, "--data needs a URL to be sent to");
    if (options->prompts > 1 && options->prompt == NULL)
        return complain(options, "--prompts makes variants of --prompt, which is missing");
    if (options->abort_milli == ABORT_NOT_GIVEN)
        options->abort_milli = options->abort_max > 0 ? 100000 : 0;
    if (options->streams == 0)
        options->streams = options->rate_milli > 0 ? OPEN_LOOP_STREAMS : 1;
    if (options->ramp_us == RAMP_NOT_GIVEN)
        options->ramp_us = (int64_t)options->streams * RAMP_US_A_STREAM;
    if (options->requests == 0 && options->duration_us == 0 && options->rate_milli > 0)
        return complain(options, "--rate needs --requests or --duration: when is it over?");
    if (options->requests == 0 && options->duration_us == 0)
        options->requests = options->streams;
    if (options->duration_us > 0 && options->warmup_us >= options->duration_us)
        return complain(options,
                        "--warmup is not shorter than --duration: nothing would be measured");
    return 0;
}

static int refuse_getopt(struct options *options, int option, char **argv)
{
    const char *given = argv[optind - 1];

    if (option == ':')
        return complain(options, "%s needs a value after it; `load --help` says which", given);
    return refuse(options, "option", given, "what `load --help` lists");
}

enum options_status options_parse(struct options *options, int argc, char **argv)
{
    struct option long_options[ROWS + 1] = {{0}};
    int option;

    for (int i = 0; i < ROWS; i++) {
        long_options[i].name = rows[i].name;
        long_options[i].has_arg = rows[i].kind >= KIND_HELP || rows[i].kind == KIND_FLAG
                                      ? no_argument
                                      : required_argument;
        long_options[i].val = FIRST_ROW + i;
    }
    *options = (struct options){.prompts = 1,
                                .ramp_us = RAMP_NOT_GIVEN,
                                .timeout_us = 120000000,
                                .slow_pause_us = 100000,
                                .abort_milli = ABORT_NOT_GIVEN,
                                .events_streams = 100};
    opterr = 0;
    optind = 0; /* a test parses many */
    while ((option = getopt_long(argc, argv, ":X:H:d:qh", long_options, NULL)) != -1) {
        const struct row *row = row_of(option);
        if (row == NULL) {
            refuse_getopt(options, option, argv);
            return OPTIONS_USAGE;
        }
        if (row->kind >= KIND_HELP) {
            fputs(row->kind == KIND_HELP ? help_text : version_text, stdout);
            return OPTIONS_SAID;
        }
        if (take_row(options, row, optarg) != 0)
            return OPTIONS_USAGE;
    }
    if (optind < argc && options->url == NULL)
        options->url = argv[optind++];
    if (optind < argc) {
        refuse(options, "argument", argv[optind], "one URL");
        return OPTIONS_USAGE;
    }
    return fill_in(options) == 0 ? OPTIONS_RUN : OPTIONS_USAGE;
}

void options_free(struct options *options)
{
    for (size_t i = 0; i < options->header_count; i++)
        free(options->headers[i]);
    free(options->body);
    options->header_count = 0;
    options->body = NULL;
}

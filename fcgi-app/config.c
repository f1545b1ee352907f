/*
 * The settings' table and what reads it. A new setting is a field of struct config and a row
 * here; nothing else knows how settings are spelled.
 */

#include "config.h"

#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/number.h"

enum kind {
    KIND_TEXT,
    KIND_COUNT,
    KIND_BYTES,
    KIND_OCTAL,
    KIND_MS,      /* milliseconds with up to three decimals, kept in microseconds */
    KIND_SECONDS, /* seconds likewise */
    KIND_SWITCH,  /* a flag without a value; in the environment 0 or 1 */
    KIND_CHOICE,  /* one of a list of names, kept as its index */
    KIND_JITTER,
};

struct setting {
    const char *name; /* the flag without its dashes */
    enum kind kind;
    size_t offset;
    const char *fallback;
    uint64_t min,
        max; /* of the number as it is written; KIND_MS and KIND_SECONDS: whole units */
    const char *help;
    const char *const *choices; /* KIND_CHOICE: the names, then NULL */
};

/* In the order of enum log_level and enum log_format. */
static const char *const levels[] = {"debug", "info", "warn", "error", NULL};
static const char *const formats[] = {"text", "json", NULL};

#define AT(field) offsetof(struct config, field)

static const struct setting settings[] = {
    {"listen", KIND_TEXT, AT(listen), "", 0, 0,
     "unix:PATH or HOST:PORT; without it, the socket on descriptor 0 (spawn-fcgi)", NULL},
    {"socket-mode", KIND_OCTAL, AT(socket_mode), "660", 0, 0777,
     "permission bits of the unix socket that --listen makes", NULL},
    {"state", KIND_TEXT, AT(state), "", 0, 0,
     "the ledger's file, shared by processes and kept over restarts; without it, memory only",
     NULL},
    {"log-file", KIND_TEXT, AT(log_file), "", 0, 0,
     "append the log here (SIGHUP opens it anew); without it, standard error", NULL},
    {"log-level", KIND_CHOICE, AT(log_level), "info", 0, 0, "least level that is written",
     levels},
    {"log-format", KIND_CHOICE, AT(log_format), "text", 0, 0,
     "lines of text with key=value, or one JSON object a line", formats},
    {"max-tokens", KIND_COUNT, AT(max_tokens), "128", 1, 100000000,
     "tokens of a request that does not say max_tokens", NULL},
    {"ttft-ms", KIND_MS, AT(ttft_us), "200", 0, 86400000,
     "time to first token of a request that does not say ttft_ms", NULL},
    {"itl-ms", KIND_MS, AT(itl_us), "25", 0, 86400000,
     "time between tokens of a request that does not say itl_ms", NULL},
    {"jitter", KIND_JITTER, AT(jitter), "none", 0, 0,
     "how gaps scatter: none, uniform:P, normal:P or lognormal:P, P in percent of the gap",
     NULL},
    {"prefill-us-per-token", KIND_COUNT, AT(prefill_us_per_token), "0", 0, 1000000,
     "microseconds that each prompt token adds to the time to first token", NULL},
    {"timing-trace", KIND_TEXT, AT(timing_trace), "", 0, 0,
     "replay a file of recorded times, one figure in microseconds a line: a time to first "
     "token, "
     "then gaps; for requests that say neither ttft_ms nor itl_ms",
     NULL},
    {"max-tokens-limit", KIND_COUNT, AT(max_tokens_limit), "100000", 1, 100000000,
     "most tokens that a request may ask for", NULL},
    {"ttft-limit-ms", KIND_MS, AT(ttft_limit_us), "600000", 0, 86400000,
     "longest ttft_ms that a request may ask for", NULL},
    {"itl-limit-ms", KIND_MS, AT(itl_limit_us), "60000", 0, 86400000,
     "longest itl_ms that a request may ask for", NULL},
    {"prompt-max-bytes", KIND_BYTES, AT(prompt_max_bytes), "65536", 1, 16777216,
     "longest prompt", NULL},
    {"body-max-bytes", KIND_BYTES, AT(body_max_bytes), "1048576", 1, 67108864,
     "largest request body", NULL},
    {"slots", KIND_COUNT, AT(slots), "256", 1, 1000000, "requests that generate at once", NULL},
    {"queue", KIND_COUNT, AT(queue), "1024", 0, 1000000,
     "requests that wait for a slot; more are refused with 503", NULL},
    {"stall-timeout", KIND_SECONDS, AT(stall_timeout_us), "60", 0, 86400,
     "seconds that a client may refuse to read before it is cancelled", NULL},
    {"drain-s", KIND_SECONDS, AT(drain_us), "30", 0, 86400,
     "seconds that live streams get to end after SIGTERM", NULL},
    {"itl-per-running-us", KIND_COUNT, AT(itl_per_running_us), "0", 0, 1000000,
     "microseconds that each running generation adds to every gap, as a batch does", NULL},
    {"ignore-cancel", KIND_SWITCH, AT(ignore_cancel), "0", 0, 0,
     "do not notice clients that leave: shows the damage, never for real use", NULL},
    {"read-timeout-s", KIND_SECONDS, AT(read_timeout_us), "60", 0, 86400,
     "seconds that a connection may take to send its request", NULL},
    {"peer-timeout-s", KIND_SECONDS, AT(peer_timeout_us), "10", 0, 3600,
     "seconds without a sign of the web server's host after which its TCP connections are "
     "given up; 0: when the kernel does",
     NULL},
    {"api-key-file", KIND_TEXT, AT(api_key_file), "", 0, 0,
     "keys, one a line, of which /v1/, /stream and /generate want one as a bearer token "
     "(SIGHUP "
     "reads it anew); without it, none",
     NULL},
    {"cors-origin", KIND_TEXT, AT(cors_origin), "", 0, 0,
     "origins whose pages may call /v1/, /stream and /generate: `*`, or some with commas "
     "between; without it, none",
     NULL},
};

#undef AT

enum { SETTINGS = sizeof(settings) / sizeof(settings[0]) };

enum source { SOURCE_DEFAULT, SOURCE_ENVIRONMENT, SOURCE_FLAG };

static enum source sources[SETTINGS];

static void env_name(const struct setting *setting, char out[64])
{
    size_t len = (size_t)snprintf(out, 64, "RUNNEL_%s", setting->name);

    for (size_t i = 0; i < len; i++)
        out[i] = out[i] == '-' ? '_' : (char)toupper((unsigned char)out[i]);
}

static void list_choices(const char *const *choices, char out[96])
{
    size_t len = 0;

    for (size_t i = 0; choices[i] != NULL; i++) {
        const char *glue = i == 0 ? "" : choices[i + 1] == NULL ? " or " : ", ";
        len += (size_t)snprintf(out + len, 96 - len, "%s%s", glue, choices[i]);
    }
}

static const char *what_is_allowed(const struct setting *setting, char out[96])
{
    unsigned long long min = setting->min;
    unsigned long long max = setting->max;

    switch (setting->kind) {
    case KIND_OCTAL:
        snprintf(out, 96, "octal permission bits, 0 to 777");
        break;
    case KIND_MS:
    case KIND_SECONDS:
        snprintf(out, 96, "%llu to %llu %s, up to three decimals", min, max,
                 setting->kind == KIND_MS ? "milliseconds" : "seconds");
        break;
    case KIND_SWITCH:
        snprintf(out, 96, "0 or 1");
        break;
    case KIND_CHOICE:
        list_choices(setting->choices, out);
        break;
    case KIND_JITTER:
        snprintf(out, 96, "none, uniform:P, normal:P or lognormal:P");
        break;
    default:
        snprintf(out, 96, "a whole number, %llu to %llu", min, max);
    }
    return out;
}

static int parse_octal(const char *value, uint64_t max, uint64_t *out)
{
    char *end;

    if (value[0] < '0' || value[0] > '7')
        return -1;
    *out = strtoul(value, &end, 8);
    return *end == '\0' && *out <= max ? 0 : -1;
}

static int parse_choice(const char *const *choices, const char *value, uint64_t *out)
{
    for (uint64_t i = 0; choices[i] != NULL; i++) {
        if (strcmp(value, choices[i]) == 0) {
            *out = i;
            return 0;
        }
    }
    return -1;
}

static int parse_time(const struct setting *setting, const char *value, int64_t *out_us)
{
    int64_t scale = setting->kind == KIND_SECONDS ? 1000 : 1;

    if (number_parse_ms(value, strlen(value), (int64_t)setting->min * 1000,
                        (int64_t)setting->max * 1000, out_us) != NUMBER_OK)
        return -1;
    *out_us *= scale;
    return 0;
}

/* Store one value. 0, or -1 when it is not what the setting allows. */
static int store(struct config *config, const struct setting *setting, const char *value)
{
    void *field = (char *)config + setting->offset;
    uint64_t number;

    switch (setting->kind) {
    case KIND_TEXT:
        *(const char **)field = value;
        return 0;
    case KIND_OCTAL:
        return parse_octal(value, setting->max, field);
    case KIND_CHOICE:
        return parse_choice(setting->choices, value, field);
    case KIND_JITTER:
        return timing_parse_jitter(value, strlen(value), field);
    case KIND_MS:
    case KIND_SECONDS:
        return parse_time(setting, value, field);
    case KIND_SWITCH:
        if (number_parse_u64(value, strlen(value), 0, 1, &number) != NUMBER_OK)
            return -1;
        *(bool *)field = number == 1;
        return 0;
    default:
        return number_parse_u64(value, strlen(value), setting->min, setting->max, field) ==
                       NUMBER_OK
                   ? 0
                   : -1;
    }
}

static int set(struct config *config, size_t index, const char *value, enum source source,
               const char *spelled, char error[CONFIG_ERROR_MAX_BYTES])
{
    char allowed[96];

    if (store(config, &settings[index], value) != 0) {
        snprintf(error, CONFIG_ERROR_MAX_BYTES, "%s: `%.60s` is not allowed, it takes %s",
                 spelled, value, what_is_allowed(&settings[index], allowed));
        return -1;
    }
    sources[index] = source;
    return 0;
}

static int load_environment(struct config *config, char error[CONFIG_ERROR_MAX_BYTES])
{
    for (size_t i = 0; i < SETTINGS; i++) {
        char name[64];
        env_name(&settings[i], name);
        const char *value = getenv(name);
        if (value != NULL && set(config, i, value, SOURCE_ENVIRONMENT, name, error) != 0)
            return -1;
    }
    return 0;
}

/* The setting whose flag is `arg` (with or without `=value`), or SETTINGS. */
static size_t find_flag(const char *arg, const char **value)
{
    size_t len = strcspn(arg + 2, "=");

    *value = arg[2 + len] == '=' ? arg + 2 + len + 1 : NULL;
    for (size_t i = 0; i < SETTINGS; i++) {
        if (strlen(settings[i].name) == len && memcmp(settings[i].name, arg + 2, len) == 0)
            return i;
    }
    return SETTINGS;
}

static int load_flag(struct config *config, int argc, char **argv, int *at,
                     char error[CONFIG_ERROR_MAX_BYTES])
{
    const char *arg = argv[*at];
    const char *value = NULL;
    char spelled[72];
    size_t index = strncmp(arg, "--", 2) == 0 ? find_flag(arg, &value) : SETTINGS;

    if (index == SETTINGS) {
        snprintf(error, CONFIG_ERROR_MAX_BYTES,
                 "`%.60s` is no option of runnel; `runnel --help` lists them", arg);
        return -1;
    }
    snprintf(spelled, sizeof(spelled), "--%s", settings[index].name);
    if (value == NULL && settings[index].kind == KIND_SWITCH)
        value = "1";
    if (value == NULL && *at + 1 < argc)
        value = argv[++*at];
    if (value == NULL) {
        snprintf(error, CONFIG_ERROR_MAX_BYTES, "%s needs a value", spelled);
        return -1;
    }
    return set(config, index, value, SOURCE_FLAG, spelled, error);
}

/* What holds between settings. */
static int check(const struct config *config, char error[CONFIG_ERROR_MAX_BYTES])
{
    const char *wrong = NULL;

    if (config->max_tokens > config->max_tokens_limit)
        wrong = "--max-tokens is above --max-tokens-limit";
    else if (config->ttft_us > config->ttft_limit_us)
        wrong = "--ttft-ms is above --ttft-limit-ms";
    else if (config->itl_us > config->itl_limit_us)
        wrong = "--itl-ms is above --itl-limit-ms";
    else if (config->stall_timeout_us == 0)
        wrong = "--stall-timeout: 0 would cut every client off, it takes more than that";
    if (wrong == NULL)
        return 0;
    snprintf(error, CONFIG_ERROR_MAX_BYTES, "%s", wrong);
    return -1;
}

enum config_action config_load(struct config *config, int argc, char **argv,
                               char error[CONFIG_ERROR_MAX_BYTES])
{
    enum config_action action = CONFIG_RUN;

    memset(config, 0, sizeof(*config));
    for (size_t i = 0; i < SETTINGS; i++) {
        if (set(config, i, settings[i].fallback, SOURCE_DEFAULT, settings[i].name, error) != 0)
            return CONFIG_INVALID;
    }
    for (int at = 1; at < argc; at++) {
        if (strcmp(argv[at], "--help") == 0)
            return CONFIG_HELP;
        if (strcmp(argv[at], "--version") == 0)
            return CONFIG_VERSION;
    }
    if (load_environment(config, error) != 0)
        return CONFIG_INVALID;
    for (int at = 1; at < argc; at++) {
        if (strcmp(argv[at], "--print-config") == 0)
            action = CONFIG_PRINT;
        else if (load_flag(config, argc, argv, &at, error) != 0)
            return CONFIG_INVALID;
    }
    return check(config, error) == 0 ? action : CONFIG_INVALID;
}

static void print_value(const struct config *config, const struct setting *setting, FILE *out)
{
    const void *field = (const char *)config + setting->offset;
    int64_t scale = setting->kind == KIND_SECONDS ? 1000000 : 1000;

    switch (setting->kind) {
    case KIND_TEXT:
        fprintf(out, "%s", *(const char *const *)field);
        break;
    case KIND_OCTAL:
        fprintf(out, "%03llo", (unsigned long long)*(const uint64_t *)field);
        break;
    case KIND_CHOICE:
        fprintf(out, "%s", setting->choices[*(const uint64_t *)field]);
        break;
    case KIND_JITTER: {
        char text[32];
        timing_print_jitter(field, text);
        fprintf(out, "%s", text);
        break;
    }
    case KIND_MS:
    case KIND_SECONDS: {
        long long us = *(const int64_t *)field;
        long long thousandths = us % scale / (scale / 1000);
        fprintf(out, thousandths != 0 ? "%lld.%03lld" : "%lld", us / scale, thousandths);
        break;
    }
    case KIND_SWITCH:
        fprintf(out, "%d", *(const bool *)field ? 1 : 0);
        break;
    default:
        fprintf(out, "%llu", (unsigned long long)*(const uint64_t *)field);
    }
}

void config_print(const struct config *config, FILE *out)
{
    static const char *const source_names[] = {"default", "environment", "flag"};

    for (size_t i = 0; i < SETTINGS; i++) {
        fprintf(out, "%s = ", settings[i].name);
        print_value(config, &settings[i], out);
        fprintf(out, "  # %s\n", source_names[sources[i]]);
    }
}

void config_help(FILE *out)
{
    fputs("runnel: a token-streaming FastCGI responder whose tokens and timing are known\n"
          "\n"
          "usage: runnel [OPTION]...\n"
          "       spawn-fcgi -s SOCKET -- runnel [OPTION]...\n"
          "\n"
          "Each option can also be set by its environment variable; an option wins.\n"
          "\n",
          out);
    for (size_t i = 0; i < SETTINGS; i++) {
        char name[64];
        const struct setting *setting = &settings[i];
        env_name(setting, name);
        fprintf(out, "  --%s%s\n      %s\n      ", setting->name,
                setting->kind == KIND_SWITCH ? "" : " VALUE", setting->help);
        if (setting->fallback[0] != '\0' && setting->kind != KIND_SWITCH)
            fprintf(out, "default %s, ", setting->fallback);
        fprintf(out, "environment %s\n", name);
    }
    fputs("  --print-config\n      check the settings, print them and exit\n"
          "  --version, --help\n"
          "\n"
          "signals: TERM or INT drains and exits, a second one exits at once; HUP opens the "
          "log anew and reads the API keys\n"
          "exit status: 0 drained, 2 a setting is wrong, 3 could not start\n",
          out);
}

/* The controls' table, and how a value in a query or in JSON becomes a field. */

#include "endpoints/controls.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "wire/body.h"
#include "wire/query.h"
#include "wire/sse.h"

enum kind {
    KIND_PROMPT,
    KIND_COUNT,
    KIND_MS,     /* milliseconds, kept in microseconds */
    KIND_CHOICE, /* one of a list of names, kept as its index */
    KIND_SWITCH, /* 0 or 1; in JSON also false or true */
    KIND_JITTER,
    KIND_FAULT,
};

struct control {
    const char *name;
    enum kind kind;
    size_t offset;
    uint64_t min;
    uint64_t max;        /* where no setting limits it */
    size_t limit_offset; /* of the setting that does, in struct config; 0: none */
    const char *const *choices;
};

#define AT(field)    offsetof(struct controls, field)
#define LIMIT(field) offsetof(struct config, field)

/* In the order of enum tokgen_vocab. */
static const char *const vocabs[] = {"words", "torture", NULL};

/* In the order of enum sse_wire. */
static const char *const wires[] = {"lf",        "crlf", "cr",   "nospace", "comments",
                                    "multiline", "bom",  "drip", NULL};

enum { PREFILL_MAX_US_PER_TOKEN = 1000000, CHUNK_MAX_TOKENS = 64, PING_MIN_US = 1000 };

static const struct control table[] = {
    {"prompt", KIND_PROMPT, AT(prompt), 1, 0, LIMIT(prompt_max_bytes), NULL},
    {"max_tokens", KIND_COUNT, AT(max_tokens), 1, 0, LIMIT(max_tokens_limit), NULL},
    {"ttft_ms", KIND_MS, AT(ttft_us), 0, 0, LIMIT(ttft_limit_us), NULL},
    {"itl_ms", KIND_MS, AT(itl_us), 0, 0, LIMIT(itl_limit_us), NULL},
    {"seed", KIND_COUNT, AT(seed), 0, UINT64_MAX, 0, NULL},
    {"vocab", KIND_CHOICE, AT(vocab), 0, 0, 0, vocabs},
    {"jitter", KIND_JITTER, AT(jitter), 0, 0, 0, NULL},
    {"prefill_us_per_token", KIND_COUNT, AT(prefill_us_per_token), 0, PREFILL_MAX_US_PER_TOKEN,
     0, NULL},
    {"chunk", KIND_COUNT, AT(chunk), 1, CHUNK_MAX_TOKENS, 0, NULL},
    {"stamps", KIND_SWITCH, AT(stamps), 0, 1, 0, NULL},
    {"ids", KIND_SWITCH, AT(ids), 0, 1, 0, NULL},
    {"hints", KIND_SWITCH, AT(hints), 0, 1, 0, NULL},
    {"ping_ms", KIND_MS, AT(ping_us), 0, 0, LIMIT(ttft_limit_us), NULL},
    {"fault", KIND_FAULT, AT(fault), 0, 0, 0, NULL},
    {"wire", KIND_CHOICE, AT(wire), 0, 0, 0, wires},
};

#undef AT
#undef LIMIT

enum { CONTROLS = sizeof(table) / sizeof(table[0]) };

/* Where a control comes from: it is called by the name that the client has for it. */
enum origin { FROM_REQUEST, FROM_OBJECT, FROM_HEADER };

struct reading {
    struct controls *controls;
    const struct config *config;
    struct problem *problem;
    enum origin origin;
    const char *label; /* FROM_REQUEST: instead of the control's own name; or NULL */
    unsigned seen;     /* bit i: table[i] was given */
};

enum { LABEL_MAX_BYTES = 48 };

/* `itl_ms`, `runnel.itl_ms` or `X-Runnel-Itl-Ms`. */
static const char *label_of(const struct reading *reading, const struct control *control,
                            char label[LABEL_MAX_BYTES])
{
    bool starts_word = true;

    if (reading->origin == FROM_REQUEST)
        return reading->label != NULL ? reading->label : control->name;
    if (reading->origin == FROM_OBJECT) {
        snprintf(label, LABEL_MAX_BYTES, "runnel.%s", control->name);
        return label;
    }
    size_t len = (size_t)snprintf(label, LABEL_MAX_BYTES, "X-Runnel-%s", control->name);
    for (size_t i = sizeof("X-Runnel-") - 1; i < len; i++) {
        if (starts_word)
            label[i] = (char)toupper((unsigned char)label[i]);
        starts_word = label[i] == '_';
        if (starts_word)
            label[i] = '-';
    }
    return label;
}

static uint64_t max_of(const struct reading *reading, const struct control *control)
{
    if (control->limit_offset == 0)
        return control->max;
    /* Each limit is a uint64_t or an int64_t that is not negative. */
    uint64_t limit;
    memcpy(&limit, (const char *)reading->config + control->limit_offset, sizeof(limit));
    return limit;
}

/* --- what is allowed, in words --- */

static void describe_ms(char *out, size_t cap, uint64_t us)
{
    if (us % 1000 == 0)
        snprintf(out, cap, "%llu", (unsigned long long)(us / 1000));
    else
        snprintf(out, cap, "%llu.%03llu", (unsigned long long)(us / 1000),
                 (unsigned long long)(us % 1000));
}

static void describe(const struct reading *reading, const struct control *control,
                     char out[240])
{
    unsigned long long max = max_of(reading, control);
    char max_ms[32];

    switch (control->kind) {
    case KIND_PROMPT:
        snprintf(out, 240, "1 to %llu bytes of UTF-8 text are allowed (--prompt-max-bytes)",
                 max);
        break;
    case KIND_COUNT:
        snprintf(out, 240, "a whole number from %llu to %llu is allowed",
                 (unsigned long long)control->min, max);
        break;
    case KIND_MS:
        describe_ms(max_ms, sizeof(max_ms), max);
        snprintf(out, 240, "milliseconds from 0 to %s, with up to three decimals, are allowed",
                 max_ms);
        break;
    case KIND_CHOICE:
        out[0] = '\0';
        for (const char *const *choice = control->choices; *choice != NULL; choice++) {
            strcat(out, *choice);
            strcat(out, choice[1] == NULL ? " is allowed" : choice[2] == NULL ? " or " : ", ");
        }
        break;
    case KIND_SWITCH:
        snprintf(out, 240, "0 or 1 is allowed");
        break;
    case KIND_JITTER:
        snprintf(out, 240, "%s", timing_jitter_allowed);
        break;
    case KIND_FAULT:
        snprintf(out, 240, "%s", fault_allowed);
    }
}

static int refuse(struct reading *reading, const struct control *control, const char *code,
                  const char *given, size_t given_len)
{
    char allowed[240];
    char shown[PROBLEM_SHOWN_MAX_BYTES + 4];
    char storage[LABEL_MAX_BYTES];
    const char *label = label_of(reading, control, storage);

    describe(reading, control, allowed);
    return problem_set(reading->problem, 400, code, label, "%s: `%s` was given; %s", label,
                       problem_show(shown, given, given_len), allowed);
}

/* --- values --- */

static int store_prompt(struct reading *reading, const struct control *control,
                        const char *text, size_t len)
{
    uint64_t max = max_of(reading, control);
    char storage[LABEL_MAX_BYTES];
    const char *label = label_of(reading, control, storage);

    if (len == 0 || len > max)
        return problem_set(reading->problem, 400, len == 0 ? "empty" : "too_long", label,
                           "%s: %zu bytes were given; 1 to %llu are allowed "
                           "(--prompt-max-bytes)",
                           label, len, (unsigned long long)max);
    char *copy = malloc(len + 1);
    if (copy == NULL)
        return problem_set(reading->problem, 503, "no_memory", NULL,
                           "no memory for the prompt");
    memcpy(copy, text, len);
    copy[len] = '\0';
    controls_free(reading->controls);
    reading->controls->prompt = copy;
    reading->controls->prompt_len = len;
    return 0;
}

static int store_choice(struct reading *reading, const struct control *control,
                        const char *text, size_t len)
{
    uint64_t *field = (uint64_t *)((char *)reading->controls + control->offset);

    for (uint64_t i = 0; control->choices[i] != NULL; i++) {
        if (strlen(control->choices[i]) == len && memcmp(control->choices[i], text, len) == 0) {
            *field = i;
            return 0;
        }
    }
    return refuse(reading, control, "not_allowed", text, len);
}

static int store_text(struct reading *reading, const struct control *control, const char *text,
                      size_t len)
{
    void *field = (char *)reading->controls + control->offset;
    uint64_t max = max_of(reading, control);
    enum number_status status;

    switch (control->kind) {
    case KIND_PROMPT:
        return store_prompt(reading, control, text, len);
    case KIND_CHOICE:
        return store_choice(reading, control, text, len);
    case KIND_JITTER:
        return timing_parse_jitter(text, len, field) == 0
                   ? 0
                   : refuse(reading, control, "not_allowed", text, len);
    case KIND_FAULT:
        return fault_parse(text, len, field) == 0
                   ? 0
                   : refuse(reading, control, "not_allowed", text, len);
    case KIND_COUNT:
    case KIND_SWITCH:
        status = number_parse_u64(text, len, control->min, max, field);
        break;
    default:
        status = number_parse_ms(text, len, 0, (int64_t)max, field);
    }
    if (status == NUMBER_OK)
        return 0;
    return refuse(reading, control,
                  status == NUMBER_MALFORMED ? "not_a_number" : "out_of_range", text, len);
}

/* A JSON value, with its text as it was written: a number means what it does in a query. */
static int store_json(struct reading *reading, const struct control *control,
                      const struct body_value *given)
{
    const cJSON *value = given->json;
    char storage[LABEL_MAX_BYTES];
    const char *label = label_of(reading, control, storage);
    bool wants_number =
        control->kind == KIND_COUNT || control->kind == KIND_MS || control->kind == KIND_SWITCH;

    if (control->kind == KIND_SWITCH && cJSON_IsBool(value)) {
        *(uint64_t *)((char *)reading->controls + control->offset) =
            cJSON_IsTrue(value) ? 1 : 0;
        return 0;
    }
    if (wants_number && cJSON_IsNumber(value))
        return store_text(reading, control, given->text, given->len);
    if (!wants_number && cJSON_IsString(value))
        return store_text(reading, control, value->valuestring, strlen(value->valuestring));
    return problem_set(reading->problem, 400, "wrong_type", label,
                       "%s: a JSON %s is needed, and another type was given", label,
                       wants_number ? "number" : "string");
}

/* --- whole requests --- */

/* The row of `name`, marked as seen; NULL with problem->status 0 when the name is unknown, and
 * with a problem when it comes again. */
static const struct control *look_up(struct reading *reading, const char *name)
{
    char storage[LABEL_MAX_BYTES];

    for (unsigned i = 0; i < CONTROLS; i++) {
        if (strcmp(table[i].name, name) != 0)
            continue;
        if (reading->seen & 1u << i) {
            const char *label = label_of(reading, &table[i], storage);
            problem_set(reading->problem, 400, "given_twice", label,
                        "%s: it was given twice; once is allowed", label);
            return NULL;
        }
        reading->seen |= 1u << i;
        if (table[i].offset == offsetof(struct controls, ttft_us) ||
            table[i].offset == offsetof(struct controls, itl_us))
            reading->controls->is_paced = true;
        return &table[i];
    }
    return NULL;
}

static struct reading begin(struct controls *controls, const struct config *config,
                            enum origin origin, struct problem *problem)
{
    *problem = (struct problem){.status = 0};
    return (struct reading){
        .controls = controls, .config = config, .problem = problem, .origin = origin};
}

void controls_init(struct controls *controls, const struct config *config)
{
    *controls = (struct controls){
        .max_tokens = config->max_tokens,
        .ttft_us = config->ttft_us,
        .itl_us = config->itl_us,
        .jitter = config->jitter,
        .prefill_us_per_token = config->prefill_us_per_token,
        .chunk = 1,
        .hints = 1,
    };
}

int controls_check(const struct controls *controls, struct problem *problem)
{
    if (controls->prompt == NULL)
        return problem_set(problem, 400, "missing", "prompt",
                           "prompt: it was not given; it is the one parameter that is needed");
    if (controls->ping_us > 0 && controls->ping_us < PING_MIN_US)
        return problem_set(
            problem, 400, "out_of_range", "ping_ms",
            "ping_ms: less than a millisecond was given; 0 (none) or at least 1 is "
            "allowed");
    return 0;
}

static int end(struct reading *reading, int result)
{
    if (result == 0)
        result = controls_check(reading->controls, reading->problem);
    if (result != 0)
        controls_free(reading->controls);
    return result;
}

int controls_from_query(struct controls *controls, const struct config *config,
                        const char *query, struct problem *problem)
{
    struct query parsed;
    struct reading reading = begin(controls, config, FROM_REQUEST, problem);

    controls_init(controls, config);
    if (query_parse(&parsed, query, strlen(query), problem) != 0)
        return -1;
    int result = 0;
    for (size_t i = 0; result == 0 && i < parsed.count; i++) {
        const struct query_pair *pair = &parsed.pairs[i];
        const struct control *control = look_up(&reading, pair->name);
        if (control != NULL)
            result = store_text(&reading, control, pair->value, pair->value_len);
        else if (problem->status != 0)
            result = -1;
    }
    query_free(&parsed);
    return end(&reading, result);
}

int controls_from_body(struct controls *controls, const struct config *config, const char *body,
                       size_t len, struct problem *problem)
{
    struct reading reading = begin(controls, config, FROM_REQUEST, problem);
    cJSON *json = body_parse(body, len, problem);
    struct body_value value;

    controls_init(controls, config);
    if (json == NULL)
        return -1;
    int result = 0;
    struct body_members members = body_members(json, body, len);
    while (result == 0 && body_next(&members, &value)) {
        const struct control *control = look_up(&reading, value.json->string);
        if (control != NULL)
            result = store_json(&reading, control, &value);
        else if (problem->status != 0)
            result = -1;
    }
    cJSON_Delete(json);
    return end(&reading, result);
}

/* --- in parts --- */

int controls_set(struct controls *controls, const struct config *config, const char *name,
                 const char *label, const struct body_value *value, struct problem *problem)
{
    struct reading reading = begin(controls, config, FROM_REQUEST, problem);

    reading.label = label;
    return store_json(&reading, look_up(&reading, name), value);
}

int controls_set_prompt(struct controls *controls, const struct config *config,
                        const char *label, const char *text, size_t len,
                        struct problem *problem)
{
    struct reading reading = begin(controls, config, FROM_REQUEST, problem);

    reading.label = label;
    return store_prompt(&reading, look_up(&reading, "prompt"), text, len);
}

/* Whether it says how to generate, and not what: the latter has its place in each API. */
static bool is_manner(const struct control *control)
{
    return control->kind != KIND_PROMPT &&
           control->offset != offsetof(struct controls, max_tokens);
}

int controls_from_object(struct controls *controls, const struct config *config,
                         const struct body_value *object, struct problem *problem)
{
    struct reading reading = begin(controls, config, FROM_OBJECT, problem);
    struct body_value value;
    char shown[PROBLEM_SHOWN_MAX_BYTES + 4];

    if (!cJSON_IsObject(object->json))
        return problem_set(problem, 400, "wrong_type", "runnel",
                           "runnel: a JSON object is needed, and another type was given");
    struct body_members members = body_members(object->json, object->text, object->len);
    while (body_next(&members, &value)) {
        const char *name = value.json->string;
        const struct control *control = look_up(&reading, name);
        if (control != NULL && is_manner(control)) {
            if (store_json(&reading, control, &value) != 0)
                return -1;
        } else if (problem->status == 0) {
            return problem_set(problem, 400, "unknown_control", "runnel",
                               "runnel: `%s` is none of its members; ttft_ms, itl_ms and the "
                               "other controls but prompt and max_tokens are allowed",
                               problem_show(shown, name, strlen(name)));
        } else {
            return -1;
        }
    }
    return 0;
}

int controls_from_headers(struct controls *controls, const struct config *config,
                          const char *(*value_of)(const void *context, const char *param),
                          const void *context, struct problem *problem)
{
    struct reading reading = begin(controls, config, FROM_HEADER, problem);
    char param[LABEL_MAX_BYTES];

    for (size_t i = 0; i < CONTROLS; i++) {
        if (!is_manner(&table[i]))
            continue;
        size_t len = (size_t)snprintf(param, sizeof(param), "HTTP_X_RUNNEL_%s", table[i].name);
        for (size_t at = 0; at < len; at++)
            param[at] = (char)toupper((unsigned char)param[at]);
        const char *value = value_of(context, param);
        if (value[0] != '\0' &&
            store_text(&reading, look_up(&reading, table[i].name), value, strlen(value)) != 0)
            return -1;
    }
    return 0;
}

int controls_check_whole(const struct controls *controls, const char *path,
                         struct problem *problem)
{
    enum fault_kind kind = controls->fault.kind;
    const char *param = NULL;

    if (kind == FAULT_EOF || kind == FAULT_GARBLE || kind == FAULT_DUP || kind == FAULT_NODONE)
        param = "fault";
    else if (controls->wire != SSE_LF)
        param = "wire";
    else if (controls->stamps != 0)
        param = "stamps";
    else if (controls->hints == 0)
        param = "hints";
    else if (controls->ids != 0)
        param = "ids";
    else if (controls->ping_us != 0)
        param = "ping_ms";
    if (param == NULL)
        return 0;
    return problem_set(
        problem, 400, "streams_only", param,
        "%s: what was given exists for streams only; %s takes the faults "
        "error@K, reset@K, stall@K:MS and status:CODE, and no wire, stamps, ids, hints or "
        "ping_ms",
        param, path);
}

void controls_free(struct controls *controls)
{
    free(controls->prompt);
    controls->prompt = NULL;
}

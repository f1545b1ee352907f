/* The table of a body's members, and what is done with each. */

#include "endpoints/openai_request.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/number.h"
#include "endpoints/conversation.h"
#include "wire/body.h"

enum type { ANY, NUMBER, STRING, SWITCH, OBJECT, ARRAY };

enum { COMPLETION = 1 << OPENAI_COMPLETION, CHAT = 1 << OPENAI_CHAT, BOTH = COMPLETION | CHAT };

struct reading {
    struct openai_request *request;
    const struct config *config;
    struct problem *problem;
    uint64_t seen;           /* bit i: fields[i] was given */
    bool has_stream_options; /* needs `stream` */
    bool has_count;          /* max_tokens by one of its names */
    bool has_tools, forbids_tools;
};

struct field {
    const char *name;
    unsigned kinds;
    enum type type; /* null aside */
    /* 0, or -1 with the problem filled. */
    int (*take)(struct reading *reading, const struct field *field,
                const struct body_value *value);
    const char *allowed; /* for only_...: in words */
};

static int take_model(struct reading *, const struct field *, const struct body_value *);
static int take_prompt(struct reading *, const struct field *, const struct body_value *);
static int take_messages(struct reading *, const struct field *, const struct body_value *);
static int take_count(struct reading *, const struct field *, const struct body_value *);
static int take_seed(struct reading *, const struct field *, const struct body_value *);
static int take_stop(struct reading *, const struct field *, const struct body_value *);
static int take_stream(struct reading *, const struct field *, const struct body_value *);
static int take_stream_options(struct reading *, const struct field *,
                               const struct body_value *);
static int take_tools(struct reading *, const struct field *, const struct body_value *);
static int take_tool_choice(struct reading *, const struct field *, const struct body_value *);
static int ignore(struct reading *, const struct field *, const struct body_value *);
static int only_one(struct reading *, const struct field *, const struct body_value *);
static int only_zero(struct reading *, const struct field *, const struct body_value *);
static int only_false(struct reading *, const struct field *, const struct body_value *);
static int only_empty(struct reading *, const struct field *, const struct body_value *);
static int only_text_format(struct reading *, const struct field *, const struct body_value *);
static int only_text(struct reading *, const struct field *, const struct body_value *);
static int nothing(struct reading *, const struct field *, const struct body_value *);

static const struct field fields[] = {
    {"model", BOTH, STRING, take_model, NULL},
    {"prompt", COMPLETION, ANY, take_prompt, NULL},
    {"messages", CHAT, ARRAY, take_messages, NULL},
    {"max_tokens", BOTH, NUMBER, take_count, NULL},
    {"max_completion_tokens", CHAT, NUMBER, take_count, NULL},
    {"stream", BOTH, SWITCH, take_stream, NULL},
    {"stream_options", BOTH, OBJECT, take_stream_options, NULL},
    {"stop", BOTH, ANY, take_stop, NULL},
    {"seed", BOTH, NUMBER, take_seed, NULL},
    {"runnel", BOTH, OBJECT, ignore, NULL}, /* read last: it wins over all others */
    /* the reply would have to look different */
    {"n", BOTH, NUMBER, only_one, "1 is allowed, a reply has one choice"},
    {"best_of", COMPLETION, NUMBER, only_one, "1 is allowed, a reply has one choice"},
    {"echo", COMPLETION, SWITCH, only_false, "false is allowed, the prompt is not repeated"},
    {"suffix", COMPLETION, STRING, only_empty, "an empty one is allowed, nothing is inserted"},
    {"logprobs", COMPLETION, NUMBER, nothing, "null is allowed, tokens have no probabilities"},
    {"logprobs", CHAT, SWITCH, only_false, "false is allowed, tokens have no probabilities"},
    {"top_logprobs", CHAT, NUMBER, only_zero, "0 is allowed, tokens have no probabilities"},
    {"tools", CHAT, ARRAY, take_tools, NULL},
    {"tool_choice", CHAT, ANY, take_tool_choice, NULL},
    {"functions", CHAT, ARRAY, only_empty, "none are allowed, no function is ever called"},
    {"response_format", CHAT, OBJECT, only_text_format, "{\"type\":\"text\"} is allowed"},
    {"modalities", CHAT, ARRAY, only_text, "[\"text\"] is allowed"},
    {"audio", CHAT, OBJECT, nothing, "null is allowed, replies are text"},
    {"web_search_options", CHAT, OBJECT, nothing, "null is allowed, nothing is looked up"},
    /* it would look the same */
    {"temperature", BOTH, NUMBER, ignore, NULL},
    {"top_p", BOTH, NUMBER, ignore, NULL},
    {"presence_penalty", BOTH, NUMBER, ignore, NULL},
    {"frequency_penalty", BOTH, NUMBER, ignore, NULL},
    {"logit_bias", BOTH, OBJECT, ignore, NULL},
    {"user", BOTH, STRING, ignore, NULL},
    {"metadata", CHAT, OBJECT, ignore, NULL},
    {"store", CHAT, SWITCH, ignore, NULL},
    {"service_tier", CHAT, STRING, ignore, NULL},
    {"reasoning_effort", CHAT, STRING, ignore, NULL},
    {"verbosity", CHAT, STRING, ignore, NULL},
    {"safety_identifier", CHAT, STRING, ignore, NULL},
    {"prompt_cache_key", CHAT, STRING, ignore, NULL},
    {"prediction", CHAT, OBJECT, ignore, NULL},
    {"parallel_tool_calls", CHAT, SWITCH, ignore, NULL},
};

enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };

_Static_assert(FIELDS <= 64, "a bit of `seen` for each");

void openai_request_init(struct openai_request *request, enum openai_kind kind,
                         const struct config *config)
{
    *request = (struct openai_request){.kind = kind};
    controls_init(&request->controls, config);
    strcpy(request->model, openai_model);
}

void openai_request_free(struct openai_request *request)
{
    controls_free(&request->controls);
    free(request->stops);
    request->stops = NULL;
}

/* --- one member --- */

static bool has_type(const cJSON *json, enum type type)
{
    switch (type) {
    case NUMBER:
        return cJSON_IsNumber(json);
    case STRING:
        return cJSON_IsString(json);
    case SWITCH:
        return cJSON_IsBool(json);
    case OBJECT:
        return cJSON_IsObject(json);
    case ARRAY:
        return cJSON_IsArray(json);
    default:
        return true;
    }
}

static int refuse_type(struct reading *reading, const char *name, const char *needed)
{
    return problem_set(reading->problem, 400, "wrong_type", name,
                       "%s: a JSON %s is needed, and another type was given", name, needed);
}

static int refuse_value(struct reading *reading, const struct field *field,
                        const struct body_value *value, const char *allowed)
{
    char shown[PROBLEM_SHOWN_MAX_BYTES + 4];

    return problem_set(reading->problem, 400, "unsupported_value", field->name,
                       "%s: `%s` was given; %s", field->name,
                       problem_show(shown, value->text, value->len), allowed);
}

static int take_field(struct reading *reading, size_t index, const struct body_value *value)
{
    static const char *const type_names[] = {[NUMBER] = "number",
                                             [STRING] = "string",
                                             [SWITCH] = "true or false",
                                             [OBJECT] = "object",
                                             [ARRAY] = "array"};
    const struct field *field = &fields[index];

    if (reading->seen & UINT64_C(1) << index)
        return problem_set(reading->problem, 400, "given_twice", field->name,
                           "%s: it was given twice; once is allowed", field->name);
    reading->seen |= UINT64_C(1) << index;
    if (cJSON_IsNull(value->json))
        return 0;
    if (!has_type(value->json, field->type))
        return refuse_type(reading, field->name, type_names[field->type]);
    return field->take(reading, field, value);
}

static int take_member(struct reading *reading, const struct body_value *value)
{
    unsigned kind = 1u << reading->request->kind;

    for (size_t i = 0; i < FIELDS; i++) {
        if ((fields[i].kinds & kind) != 0 && strcmp(fields[i].name, value->json->string) == 0)
            return take_field(reading, i, value);
    }
    return 0;
}

/* --- what decides the reply --- */

static int take_model(struct reading *reading, const struct field *field,
                      const struct body_value *value)
{
    const char *model = value->json->valuestring;
    size_t len = strlen(model);

    if (len == 0 || len > OPENAI_MODEL_MAX_BYTES)
        return problem_set(reading->problem, 400, len == 0 ? "empty" : "too_long", field->name,
                           "%s: %zu bytes were given; 1 to %d are allowed", field->name, len,
                           OPENAI_MODEL_MAX_BYTES);
    memcpy(reading->request->model, model, len + 1);
    return 0;
}

static int set_prompt(struct reading *reading, const struct field *field, const char *text,
                      size_t len)
{
    return controls_set_prompt(&reading->request->controls, reading->config, field->name, text,
                               len, reading->problem);
}

static int take_prompt(struct reading *reading, const struct field *field,
                       const struct body_value *value)
{
    const cJSON *prompt = value->json;

    if (cJSON_IsArray(prompt)) {
        if (cJSON_IsNumber(prompt->child) || cJSON_IsArray(prompt->child))
            return refuse_value(reading, field, value,
                                "text is allowed, runnel has no ids of tokens");
        if (cJSON_GetArraySize(prompt) != 1)
            return refuse_value(reading, field, value,
                                "a string, or an array of one, is allowed");
        prompt = prompt->child;
    }
    if (!cJSON_IsString(prompt))
        return refuse_type(reading, field->name, "string");
    return set_prompt(reading, field, prompt->valuestring, strlen(prompt->valuestring));
}

static int take_messages(struct reading *reading, const struct field *field,
                         const struct body_value *value)
{
    struct buffer prompt;

    /* A role costs less in the prompt than in the body. */
    buffer_init(&prompt, reading->config->body_max_bytes);
    int result = conversation_append_prompt(value->json, &prompt, reading->problem);
    if (result == 0)
        result = set_prompt(reading, field, prompt.data, prompt.len);
    buffer_free(&prompt);
    return result;
}

static int take_count(struct reading *reading, const struct field *field,
                      const struct body_value *value)
{
    if (reading->has_count)
        return problem_set(reading->problem, 400, "given_twice", field->name,
                           "%s: max_tokens and max_completion_tokens are two names of one "
                           "number; one of them is allowed",
                           field->name);
    reading->has_count = true;
    return controls_set(&reading->request->controls, reading->config, "max_tokens", field->name,
                        value, reading->problem);
}

static int take_seed(struct reading *reading, const struct field *field,
                     const struct body_value *value)
{
    return controls_set(&reading->request->controls, reading->config, "seed", field->name,
                        value, reading->problem);
}

static int add_stop(struct reading *reading, const struct field *field, const cJSON *item)
{
    struct openai_request *request = reading->request;

    if (!cJSON_IsString(item))
        return refuse_type(reading, field->name, "string, or an array of strings,");
    if (request->stops == NULL)
        request->stops = calloc(1, sizeof(*request->stops));
    if (request->stops == NULL)
        return problem_set(reading->problem, 503, "no_memory", NULL,
                           "no memory for the stop sequences");
    size_t len = strlen(item->valuestring);
    switch (stop_add(request->stops, item->valuestring, len)) {
    case STOP_ADDED:
        return 0;
    case STOP_TOO_MANY:
        return problem_set(reading->problem, 400, "too_many", field->name,
                           "%s: more than %d were given; up to %d are allowed", field->name,
                           STOP_SEQUENCES_MAX, STOP_SEQUENCES_MAX);
    default:
        return problem_set(reading->problem, 400, len == 0 ? "empty" : "too_long", field->name,
                           "%s: one of %zu bytes was given; 1 to %d are allowed", field->name,
                           len, STOP_SEQUENCE_MAX_BYTES);
    }
}

static int take_stop(struct reading *reading, const struct field *field,
                     const struct body_value *value)
{
    const cJSON *item;

    if (!cJSON_IsArray(value->json))
        return add_stop(reading, field, value->json);
    cJSON_ArrayForEach(item, value->json)
    {
        if (add_stop(reading, field, item) != 0)
            return -1;
    }
    return 0;
}

static int take_stream(struct reading *reading, const struct field *field,
                       const struct body_value *value)
{
    (void)field;
    reading->request->streams = cJSON_IsTrue(value->json);
    return 0;
}

static int take_stream_options(struct reading *reading, const struct field *field,
                               const struct body_value *value)
{
    const cJSON *option;
    bool was_given = false;

    (void)field;
    reading->has_stream_options = true;
    cJSON_ArrayForEach(option, value->json)
    {
        if (strcmp(option->string, "include_usage") != 0)
            continue;
        if (was_given)
            return problem_set(reading->problem, 400, "given_twice",
                               "stream_options.include_usage",
                               "stream_options.include_usage: it was given twice; once is "
                               "allowed");
        was_given = true;
        if (!cJSON_IsBool(option) && !cJSON_IsNull(option))
            return refuse_type(reading, "stream_options.include_usage", "true or false");
        reading->request->tells_usage = cJSON_IsTrue(option);
    }
    return 0;
}

/* --- what does not --- */

static int ignore(struct reading *reading, const struct field *field,
                  const struct body_value *value)
{
    (void)reading;
    (void)field;
    (void)value;
    return 0;
}

static int nothing(struct reading *reading, const struct field *field,
                   const struct body_value *value)
{
    return refuse_value(reading, field, value, field->allowed);
}

static int only_number(struct reading *reading, const struct field *field,
                       const struct body_value *value, uint64_t number)
{
    uint64_t given;

    if (number_parse_u64(value->text, value->len, number, number, &given) == NUMBER_OK)
        return 0;
    return refuse_value(reading, field, value, field->allowed);
}

static int only_one(struct reading *reading, const struct field *field,
                    const struct body_value *value)
{
    return only_number(reading, field, value, 1);
}

static int only_zero(struct reading *reading, const struct field *field,
                     const struct body_value *value)
{
    return only_number(reading, field, value, 0);
}

static int only_false(struct reading *reading, const struct field *field,
                      const struct body_value *value)
{
    return cJSON_IsFalse(value->json) ? 0 : refuse_value(reading, field, value, field->allowed);
}

/* An empty string or array. */
static int only_empty(struct reading *reading, const struct field *field,
                      const struct body_value *value)
{
    const cJSON *json = value->json;
    bool is_empty = cJSON_IsString(json) ? json->valuestring[0] == '\0' : json->child == NULL;

    return is_empty ? 0 : refuse_value(reading, field, value, field->allowed);
}

static bool is_text(const cJSON *json)
{
    return cJSON_IsString(json) && strcmp(json->valuestring, "text") == 0;
}

static int only_text_format(struct reading *reading, const struct field *field,
                            const struct body_value *value)
{
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(value->json, "type");

    return is_text(type) ? 0 : refuse_value(reading, field, value, field->allowed);
}

static int only_text(struct reading *reading, const struct field *field,
                     const struct body_value *value)
{
    const cJSON *first = value->json->child;
    bool is_only_text = is_text(first) && first->next == NULL;

    return is_only_text ? 0 : refuse_value(reading, field, value, field->allowed);
}

static int take_tools(struct reading *reading, const struct field *field,
                      const struct body_value *value)
{
    (void)field;
    reading->has_tools = value->json->child != NULL;
    return 0;
}

static int take_tool_choice(struct reading *reading, const struct field *field,
                            const struct body_value *value)
{
    const char *choice = cJSON_IsString(value->json) ? value->json->valuestring : "";

    reading->forbids_tools = strcmp(choice, "none") == 0;
    if (reading->forbids_tools || strcmp(choice, "auto") == 0)
        return 0;
    return refuse_value(reading, field, value,
                        "none or auto is allowed, no tool is ever called");
}

/* --- the whole --- */

static int check(const struct reading *reading)
{
    const struct openai_request *request = reading->request;
    const char *needed = request->kind == OPENAI_CHAT ? "messages" : "prompt";

    if (request->controls.prompt == NULL)
        return problem_set(reading->problem, 400, "missing", needed,
                           "%s: it was not given; it is the one member that is needed", needed);
    if (reading->has_stream_options && !request->streams)
        return problem_set(reading->problem, 400, "streams_only", "stream_options",
                           "stream_options: it was given without stream; with `stream` true it "
                           "is allowed");
    if (reading->has_tools && !reading->forbids_tools)
        return problem_set(reading->problem, 400, "unsupported_value", "tools",
                           "tools: some were given, and none is ever called; an empty array is "
                           "allowed, or tool_choice `none`");
    return controls_check(&request->controls, reading->problem);
}

static int read_members(struct reading *reading, const cJSON *json, const char *body,
                        size_t len)
{
    struct body_members members = body_members(json, body, len);
    struct body_value value;
    struct body_value runnel = {.json = NULL};

    while (body_next(&members, &value)) {
        if (take_member(reading, &value) != 0)
            return -1;
        if (strcmp(value.json->string, "runnel") == 0 && !cJSON_IsNull(value.json))
            runnel = value;
    }
    if (runnel.json != NULL &&
        controls_from_object(&reading->request->controls, reading->config, &runnel,
                             reading->problem) != 0)
        return -1;
    return check(reading);
}

int openai_request_read(struct openai_request *request, const struct config *config,
                        const char *body, size_t len, struct problem *problem)
{
    struct reading reading = {.request = request, .config = config, .problem = problem};

    *problem = (struct problem){.status = 0};
    cJSON *json = body_parse(body, len, problem);
    if (json == NULL)
        return -1;
    int result = read_members(&reading, json, body, len);
    cJSON_Delete(json);
    return result;
}

/* Messages, their roles and parts; the header says what becomes of them. */

#include "endpoints/conversation.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char *const roles[] = {"system",    "developer", "user",
                                    "assistant", "tool",      "function"};

enum { ROLES = sizeof(roles) / sizeof(roles[0]) };

/* Where the reading is: in a message, or in a part of its content. */
struct place {
    size_t message;
    bool in_part;
    size_t part;
    struct problem *problem;
};

/* `messages[0].content[1].type`, spelled only when there is something to complain about. */
static void name_place(const struct place *place, const char *member,
                       char name[PROBLEM_PARAM_MAX_BYTES + 1])
{
    if (place->in_part)
        snprintf(name, PROBLEM_PARAM_MAX_BYTES + 1, "messages[%zu].content[%zu]%s",
                 place->message, place->part, member);
    else
        snprintf(name, PROBLEM_PARAM_MAX_BYTES + 1, "messages[%zu]%s", place->message, member);
}

static int refuse_type(const struct place *place, const char *member, const char *needed)
{
    char name[PROBLEM_PARAM_MAX_BYTES + 1];

    name_place(place, member, name);
    return problem_set(place->problem, 400, "wrong_type", name,
                       "%s: %s is needed, and another type was given", name, needed);
}

static int refuse_value(const struct place *place, const char *member, const char *code,
                        const char *given, const char *allowed)
{
    char name[PROBLEM_PARAM_MAX_BYTES + 1];
    char shown[PROBLEM_SHOWN_MAX_BYTES + 4];

    name_place(place, member, name);
    return problem_set(place->problem, 400, code, name, "%s: `%s` was given; %s", name,
                       problem_show(shown, given, strlen(given)), allowed);
}

/* The member `.name`; NULL when there is none. -1 when it is there twice: which one counts? */
static int find_member(const struct place *place, const cJSON *object, const char *member,
                       const cJSON **found)
{
    char name[PROBLEM_PARAM_MAX_BYTES + 1];
    const cJSON *item;

    *found = NULL;
    cJSON_ArrayForEach(item, object)
    {
        if (strcmp(item->string, member + 1) != 0)
            continue;
        if (*found != NULL) {
            name_place(place, member, name);
            return problem_set(place->problem, 400, "given_twice", name,
                               "%s: it was given twice; once is allowed", name);
        }
        *found = item;
    }
    return 0;
}

static int append_part(const struct place *place, const cJSON *part, struct buffer *prompt)
{
    const cJSON *type;
    const cJSON *text;

    if (!cJSON_IsObject(part))
        return refuse_type(place, "", "a JSON object such as {\"type\":\"text\",..}");
    if (find_member(place, part, ".type", &type) != 0 ||
        find_member(place, part, ".text", &text) != 0)
        return -1;
    if (!cJSON_IsString(type))
        return refuse_type(place, ".type", "the JSON string \"text\"");
    if (strcmp(type->valuestring, "text") != 0)
        return refuse_value(place, ".type", "unsupported_value", type->valuestring,
                            "text is allowed, runnel reads no images, sounds or files");
    if (!cJSON_IsString(text))
        return refuse_type(place, ".text", "a JSON string");
    return buffer_append_text(prompt, text->valuestring);
}

static int append_content(struct place *place, const cJSON *content, bool may_be_empty,
                          struct buffer *prompt)
{
    const cJSON *part;

    if (cJSON_IsString(content))
        return buffer_append_text(prompt, content->valuestring);
    if (may_be_empty && (content == NULL || cJSON_IsNull(content)))
        return 0; /* it called a tool and said nothing */
    if (!cJSON_IsArray(content))
        return refuse_type(place, ".content", "a JSON string or an array of text parts");
    place->in_part = true;
    cJSON_ArrayForEach(part, content)
    {
        if (append_part(place, part, prompt) != 0)
            return -1;
        place->part++;
    }
    return 0;
}

/* The role's name; NULL with the problem filled. */
static const char *read_role(const struct place *place, const cJSON *role)
{
    if (!cJSON_IsString(role)) {
        refuse_type(place, ".role", "a JSON string");
        return NULL;
    }
    for (size_t i = 0; i < ROLES; i++) {
        if (strcmp(role->valuestring, roles[i]) == 0)
            return roles[i];
    }
    refuse_value(place, ".role", "not_allowed", role->valuestring,
                 "system, developer, user, assistant, tool or function is allowed");
    return NULL;
}

static int append_message(struct place *place, const cJSON *message, bool is_only,
                          struct buffer *prompt)
{
    const cJSON *role_given;
    const cJSON *content;

    if (!cJSON_IsObject(message))
        return refuse_type(place, "", "a JSON object with role and content");
    if (find_member(place, message, ".role", &role_given) != 0 ||
        find_member(place, message, ".content", &content) != 0)
        return -1;
    const char *role = read_role(place, role_given);
    if (role == NULL)
        return -1;
    if (!is_only || strcmp(role, "user") != 0) {
        if (place->message > 0)
            buffer_append_char(prompt, '\n');
        buffer_append_text(prompt, role);
        buffer_append_text(prompt, ": ");
    }
    return append_content(place, content, strcmp(role, "assistant") == 0, prompt);
}

int conversation_append_prompt(const cJSON *messages, struct buffer *prompt,
                               struct problem *problem)
{
    bool is_only = messages->child != NULL && messages->child->next == NULL;
    const cJSON *message;
    size_t index = 0;

    if (messages->child == NULL)
        return problem_set(problem, 400, "empty", "messages",
                           "messages: an empty array was given; at least one is needed");
    cJSON_ArrayForEach(message, messages)
    {
        struct place place = {.message = index++, .problem = problem};
        if (append_message(&place, message, is_only, prompt) != 0) {
            if (problem->status == 0)
                problem_set(problem, 503, "no_memory", NULL, "no memory for the messages");
            return -1;
        }
    }
    return 0;
}

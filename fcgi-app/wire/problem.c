/* The error object; the header says what belongs into a message. */

#include "wire/problem.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistr.h>

#include "wire/json.h"

static const char *type_of(int status)
{
    switch (status) {
    case 401:
        return "authentication_error";
    case 404:
        return "not_found_error";
    case 429:
    case 503:
        return "overloaded_error";
    default:
        return status >= 500 ? "server_error" : "invalid_request_error";
    }
}

int problem_set(struct problem *problem, int status, const char *code, const char *param,
                const char *format, ...)
{
    va_list args;

    problem->status = status;
    problem->type = type_of(status);
    problem->code = code;
    problem->param = NULL;
    if (param != NULL) {
        snprintf(problem->name, sizeof(problem->name), "%s", param);
        problem->param = problem->name;
    }
    va_start(args, format);
    vsnprintf(problem->message, sizeof(problem->message), format, args);
    va_end(args);
    return -1;
}

int problem_append_json(const struct problem *problem, struct buffer *out)
{
    buffer_append_text(out, "{\"error\":{\"message\":");
    json_append_string(out, problem->message, strlen(problem->message));
    buffer_printf(out, ",\"type\":\"%s\",\"param\":", problem->type);
    if (problem->param != NULL)
        json_append_string(out, problem->param, strlen(problem->param));
    else
        buffer_append_text(out, "null");
    return buffer_printf(out, ",\"code\":\"%s\"}}", problem->code);
}

const char *problem_show(char shown[PROBLEM_SHOWN_MAX_BYTES + 4], const char *text, size_t len)
{
    const uint8_t *bytes = (const uint8_t *)text;
    size_t at = 0;
    size_t out = 0;

    while (at < len) {
        ucs4_t code_point;
        int width = u8_mbtoucr(&code_point, bytes + at, len - at);
        size_t step = width > 0 ? (size_t)width : 1;
        if (out + step > PROBLEM_SHOWN_MAX_BYTES) {
            memcpy(shown + out, "...", 3);
            out += 3;
            break;
        }
        if (width <= 0 || code_point < 0x20 || code_point == 0x7f)
            shown[out++] = '?';
        else {
            memcpy(shown + out, text + at, step);
            out += step;
        }
        at += step;
    }
    shown[out] = '\0';
    return shown;
}

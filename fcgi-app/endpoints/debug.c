/* GET /_debug/generated: what really became of a request, from the ledger. */

#include <string.h>

#include "endpoints/reply.h"
#include "endpoints/routes.h"
#include "wire/json.h"
#include "wire/query.h"

static void append_us_as_ms(struct buffer *out, const char *name, int64_t us)
{
    if (us < 0)
        buffer_printf(out, ",\"%s\":null", name);
    else
        buffer_printf(out, ",\"%s\":%lld.%03lld", name, (long long)(us / 1000),
                      (long long)(us % 1000));
}

static void append_request(struct buffer *out, const struct ledger_request *request)
{
    const char *detector = ledger_detector_name(request->detected_by);

    buffer_append_text(out, "{\"id\":");
    json_append_string(out, request->id, strlen(request->id));
    buffer_printf(out,
                  ",\"route\":\"%s\",\"requested\":%llu,\"generated\":%llu,\"delivered\":%llu,"
                  "\"discarded\":%llu,\"outcome\":\"%s\",\"phase\":\"%s\",\"detected_by\":",
                  ledger_route_name(request->route), (unsigned long long)request->requested,
                  (unsigned long long)request->generated,
                  (unsigned long long)request->delivered,
                  (unsigned long long)request->discarded, ledger_outcome_name(request->outcome),
                  ledger_phase_name(request->phase));
    if (detector[0] != '\0')
        buffer_printf(out, "\"%s\"", detector);
    else
        buffer_append_text(out, "null");
    append_us_as_ms(out, "ttft_ms", request->ttft_us);
    append_us_as_ms(out, "duration_ms", request->duration_us);
    if (request->pace_error_p99_us < 0)
        buffer_append_text(out, ",\"pace_error_p99_us\":null");
    else
        buffer_printf(out, ",\"pace_error_p99_us\":%lld",
                      (long long)request->pace_error_p99_us);
    buffer_printf(out, ",\"pid\":%d,", (int)request->pid);
}

static void append_totals(struct buffer *out, const struct ledger_totals *totals)
{
    static const enum ledger_outcome outcomes[] = {LEDGER_DONE,    LEDGER_CANCELLED,
                                                   LEDGER_FAILED,  LEDGER_SHED,
                                                   LEDGER_STALLED, LEDGER_DRAINED};

    buffer_printf(out, "\"total\":%llu,\"ledger\":{\"accepted\":%llu",
                  (unsigned long long)totals->generated, (unsigned long long)totals->accepted);
    for (size_t i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++) {
        uint64_t sum = 0;
        for (unsigned route = 0; route < LEDGER_ROUTES; route++)
            sum += totals->ended[route][outcomes[i]];
        buffer_printf(out, ",\"%s\":%llu", ledger_outcome_name(outcomes[i]),
                      (unsigned long long)sum);
    }
    buffer_printf(out,
                  ",\"queued\":%llu,\"running\":%llu,\"generated\":%llu,\"delivered\":%llu,"
                  "\"discarded\":%llu,\"held\":%llu}}\n",
                  (unsigned long long)totals->queued, (unsigned long long)totals->running,
                  (unsigned long long)totals->generated, (unsigned long long)totals->delivered,
                  (unsigned long long)totals->discarded, (unsigned long long)totals->held);
}

/* The value of `id`, or NULL when the query has none; it lives as long as the query. */
static const char *asked_id(const struct query *query)
{
    for (size_t i = 0; i < query->count; i++) {
        if (strcmp(query->pairs[i].name, "id") == 0)
            return query->pairs[i].value;
    }
    return NULL;
}

void endpoint_debug_generated(const struct app *app, struct request *request)
{
    struct query query;
    struct problem problem;
    struct ledger_request found;
    struct ledger_totals totals;
    struct buffer body;
    char shown[PROBLEM_SHOWN_MAX_BYTES + 4];

    if (query_parse(&query, request_query(request), strlen(request_query(request)), &problem) !=
        0) {
        reply_send_problem(request, &problem, NULL);
        return;
    }
    const char *id = asked_id(&query);
    bool is_found = id != NULL ? ledger_find(app->ledger, id, &found)
                               : ledger_last(app->ledger, LEDGER_STREAM, &found);
    if (id != NULL && !is_found) {
        problem_set(&problem, 404, "unknown_id", "id",
                    "id: `%s` is not among the last %d requests",
                    problem_show(shown, id, strlen(id)), LEDGER_RING);
        query_free(&query);
        reply_send_problem(request, &problem, NULL);
        return;
    }
    query_free(&query);
    ledger_read_totals(app->ledger, &totals);
    buffer_init(&body, 8192);
    if (is_found)
        append_request(&body, &found);
    else
        buffer_append_text(&body, "{\"id\":null,\"requested\":0,\"generated\":0,");
    append_totals(&body, &totals);
    reply_send(request, 200, REPLY_JSON, &body);
    buffer_free(&body);
}

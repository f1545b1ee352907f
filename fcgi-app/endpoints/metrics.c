/* GET /metrics: the ledger in Prometheus' text format. docs/metrics.md says what each is for.
 */

#include <stdio.h>

#include "endpoints/reply.h"
#include "endpoints/routes.h"
#include "wire/prometheus.h"

enum { METRICS_MAX_BYTES = REQUEST_REPLY_MAX_BYTES };

#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

static void append_requests(struct buffer *out, const struct ledger_totals *totals)
{
    char labels[80];

    prometheus_append_metric(out, "runnel_requests_accepted_total", "counter",
                             "Generation requests that were taken in.", totals->accepted);
    prometheus_append_head(out, "runnel_requests_total", "counter",
                           "Generation requests that have ended, by what became of them.");
    for (unsigned route = 0; route < LEDGER_ROUTES; route++) {
        for (unsigned outcome = LEDGER_LIVE + 1; outcome < LEDGER_OUTCOMES; outcome++) {
            snprintf(labels, sizeof(labels), "route=\"%s\",outcome=\"%s\"",
                     ledger_route_name((enum ledger_route)route),
                     ledger_outcome_name((enum ledger_outcome)outcome));
            prometheus_append_sample(out, "runnel_requests_total", labels,
                                     totals->ended[route][outcome]);
        }
    }
    prometheus_append_metric(out, "runnel_num_requests_running", "gauge",
                             "Requests that have a slot.", totals->running);
    prometheus_append_metric(out, "runnel_num_requests_waiting", "gauge",
                             "Requests that wait for a slot.", totals->queued);
    prometheus_append_metric(out, "runnel_slots", "gauge",
                             "Slots of all processes that live (--slots each).", totals->slots);
    prometheus_append_metric(out, "runnel_processes", "gauge",
                             "Processes that share the ledger and live.", totals->processes);
}

static void append_tokens(struct buffer *out, const struct ledger_totals *totals)
{
    prometheus_append_metric(out, "runnel_tokens_generated_total", "counter",
                             "Tokens that were generated.", totals->generated);
    prometheus_append_metric(out, "runnel_tokens_delivered_total", "counter",
                             "Tokens that were handed to the kernel towards the client.",
                             totals->delivered);
    prometheus_append_metric(out, "runnel_tokens_discarded_total", "counter",
                             "Tokens that were generated for nobody.", totals->discarded);
    prometheus_append_metric(out, "runnel_tokens_held", "gauge",
                             "Tokens of live replies that are sent in one piece at their end, "
                             "or may begin a stop sequence.",
                             totals->held);
}

static void append_histograms(struct buffer *out, const struct ledger_totals *totals)
{
    static const struct {
        const char *name;
        const char *help;
    } histograms[LEDGER_HISTOGRAMS] = {
        [LEDGER_TTFT] = {"runnel_time_to_first_token_seconds",
                         "From acceptance to the first token, the wait for a slot included."},
        [LEDGER_ITL] = {"runnel_inter_token_latency_seconds",
                        "Between two events of tokens of one request, as they were sent."},
        [LEDGER_PACE_ERROR] = {"runnel_pace_error_seconds",
                               "How much later than it was due an event was sent."},
        [LEDGER_QUEUE_TIME] = {"runnel_queue_time_seconds", "From acceptance to a slot."},
        [LEDGER_CANCEL_LATENCY] = {"runnel_cancel_latency_seconds",
                                   "From the moment that a client's close was visible to the "
                                   "moment that its slot was free."},
    };

    for (unsigned i = 0; i < LEDGER_HISTOGRAMS; i++)
        prometheus_append_histogram(out, histograms[i].name, histograms[i].help,
                                    histogram_bounds_us, totals->histograms[i].buckets,
                                    HISTOGRAM_BOUNDS, totals->histograms[i].sum_us);
}

void endpoint_metrics(const struct app *app, struct request *request)
{
    struct ledger_totals totals;
    struct buffer body;

    ledger_read_totals(app->ledger, &totals);
    buffer_init(&body, METRICS_MAX_BYTES);
    append_requests(&body, &totals);
    append_tokens(&body, &totals);
    append_histograms(&body, &totals);
    reply_send(request, 200, METRICS_TYPE, &body);
    buffer_free(&body);
}

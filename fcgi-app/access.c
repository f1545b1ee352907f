/* The access log's line, in both formats with the same names. */

#include "access.h"

#include "base/log.h"

static void log_text(const struct ledger_request *request, const char *detected_by)
{
    log_info("request id=%s route=%s outcome=%s phase=%s detected_by=%s requested=%llu "
             "generated=%llu delivered=%llu discarded=%llu ttft_ms=%.3f duration_ms=%.3f",
             request->id, ledger_route_name(request->route),
             ledger_outcome_name(request->outcome), ledger_phase_name(request->phase),
             detected_by, (unsigned long long)request->requested,
             (unsigned long long)request->generated, (unsigned long long)request->delivered,
             (unsigned long long)request->discarded,
             request->ttft_us < 0 ? -1.0 : (double)request->ttft_us / 1000,
             (double)request->duration_us / 1000);
}

static void log_json(const struct ledger_request *request, const char *detected_by)
{
    /* No name needs an escape: ids are A-Za-z0-9._- */
    log_write_members(
        LOG_INFO,
        "\"message\":\"request\",\"id\":\"%s\",\"route\":\"%s\",\"outcome\":\"%s\","
        "\"phase\":\"%s\",\"detected_by\":\"%s\",\"requested\":%llu,"
        "\"generated\":%llu,\"delivered\":%llu,\"discarded\":%llu,"
        "\"ttft_ms\":%.3f,\"duration_ms\":%.3f",
        request->id, ledger_route_name(request->route), ledger_outcome_name(request->outcome),
        ledger_phase_name(request->phase), detected_by, (unsigned long long)request->requested,
        (unsigned long long)request->generated, (unsigned long long)request->delivered,
        (unsigned long long)request->discarded,
        request->ttft_us < 0 ? -1.0 : (double)request->ttft_us / 1000,
        (double)request->duration_us / 1000);
}

void access_log(const struct ledger_request *request)
{
    const char *detected_by = ledger_detector_name(request->detected_by);

    if (detected_by[0] == '\0')
        detected_by = "-";
    if (log_format() == LOG_JSON)
        log_json(request, detected_by);
    else
        log_text(request, detected_by);
}

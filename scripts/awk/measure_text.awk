# The table of scripts/measure, from its summary: NAME, tab, COUNT MIN MEAN P50 P90 P99 MAX (whole
# microseconds), or NAME, tab, COUNT of what is no distribution.

BEGIN {
    FS = "\t"
    rows = split("ttfb first_event first_token gap tpot total throughput", row, " ")
    title["ttfb"] = "TTFB"
    what["ttfb"] = "request sent to the first byte of the body"
    title["first_event"] = "first event"
    what["first_event"] = "request sent to the first event of any kind"
    title["first_token"] = "TTFT"
    what["first_token"] = "request sent to the first event with a token in it"
    title["gap"] = "ITL"
    what["gap"] = "arrival of a token after the one before; all gaps pooled"
    title["tpot"] = "TPOT"
    what["tpot"] = "(last token - first token) / (tokens - 1), of each stream"
    title["total"] = "total"
    what["total"] = "request sent to the last byte"
    title["throughput"] = "throughput"
    what["throughput"] = "tokens / (request sent to last token), of each stream"
}

{ value[$1] = $2 }

END {
    print value["whole"] " of " value["runs"] " streams whole: " value["tokens"] " tokens in " value["token_events"] " events" \
          (value["counted"] != value["tokens"] ? " (tokens as the server's usage tells them; " value["counted"] " by the events)" : "") \
          (value["reasoning"] > 0 ? "; " value["reasoning"] " events of reasoning are not counted" : "")
    print ""
    printf "%-12s %6s %10s %10s %10s %10s  %-4s %s\n", "", "n", "p50", "p90", "p99", "max", "", ""
    for (i = 1; i <= rows; i++)
        print_row(row[i])
    if (value["pairs"] > 0)
        printf "%-12s %6d %9.1f%% %34s %s\n", "coalesced", value["pairs"], 100 * value["coalesced"] / value["pairs"], "", \
               "token events in the same read as the one before: " value["coalesced"]
    print ""
    print "Percentiles by nearest rank. n/a: the sample does not carry it (a p90 needs 10 values, a p99 needs 100)."
}

function print_row(name,    v) {
    split(value[name], v, " ")
    if (v[1] == 0)
        printf "%-12s %6d %10s %10s %10s %10s  %-4s %s\n", title[name], 0, "n/a", "n/a", "n/a", "n/a", "", what[name]
    else
        printf "%-12s %6d %10s %10s %10s %10s  %-4s %s\n", title[name], v[1], thousandths(v[4]), \
               (v[1] >= 10 ? thousandths(v[5]) : "n/a"), (v[1] >= 100 ? thousandths(v[6]) : "n/a"), thousandths(v[7]), \
               (name == "throughput" ? "/s" : "ms"), what[name]
}

function thousandths(v) {
    return sprintf("%.3f", v / 1000)
}

# The result of scripts/measure as JSON: awk -f json.awk -f measure_json.awk URL SUMMARY STREAMS FAILED
# (the files that scripts/measure makes). Milliseconds with three decimals; a percentile that the
# sample does not carry is null.

FILENAME == ARGV[1] { url = $0 }

FILENAME == ARGV[2] {
    tab = index($0, "\t")
    value[substr($0, 1, tab - 1)] = substr($0, tab + 1)
}

FILENAME == ARGV[3] { stream[++streams] = $0 }

FILENAME == ARGV[4] {
    tab = index($0, "\t")
    failed[++failures] = "{\"run\":" substr($0, 1, tab - 1) ",\"reason\":" json_quote(substr($0, tab + 1)) "}"
}

END {
    printf "{\"url\":%s,\"runs\":%d,\"whole\":%d,\n", json_quote(url), value["runs"], value["whole"]
    printf " \"tokens\":%d,\"token_events\":%d,\"reasoning_events\":%d,\n", value["tokens"], value["token_events"], value["reasoning"]
    printf " \"coalesced_events\":%d,\"coalesced_share\":%s,\n", value["coalesced"], \
           (value["pairs"] > 0 ? sprintf("%.4f", value["coalesced"] / value["pairs"]) : "null")
    distribution("ttfb_ms", "ttfb")
    distribution("first_event_ms", "first_event")
    distribution("ttft_ms", "first_token")
    distribution("itl_ms", "gap")
    distribution("tpot_ms", "tpot")
    distribution("total_ms", "total")
    distribution("throughput_tps", "throughput")
    printf " \"streams\":["
    for (i = 1; i <= streams; i++)
        print_stream(stream[i], i > 1 ? "," : "")
    printf "],\n \"failed\":["
    for (i = 1; i <= failures; i++)
        printf "%s%s", (i > 1 ? "," : ""), failed[i]
    print "]}"
}

function distribution(label, name,    v) {
    split(value[name], v, " ")
    if (v[1] == 0)
        printf " \"%s\":{\"count\":0},\n", label
    else
        printf " \"%s\":{\"count\":%d,\"min\":%s,\"mean\":%s,\"p50\":%s,\"p90\":%s,\"p99\":%s,\"max\":%s},\n", label, v[1], \
               thousandths(v[2]), thousandths(v[3]), thousandths(v[4]), (v[1] >= 10 ? thousandths(v[5]) : "null"), \
               (v[1] >= 100 ? thousandths(v[6]) : "null"), thousandths(v[7])
}

function print_stream(line, comma,    word, n, i, f) {
    n = split(line, word, " ")
    for (i = 1; i <= n; i++)
        f[substr(word[i], 1, index(word[i], "=") - 1)] = substr(word[i], index(word[i], "=") + 1)
    printf "%s\n  {\"run\":%d,\"tokens\":%d,\"ttfb_ms\":%s,\"first_event_ms\":%s,\"ttft_ms\":%s,\"last_token_ms\":%s,\"total_ms\":%s}", \
           comma, f["run"], f["tokens"], thousandths(f["ttfb_us"]), thousandths(f["first_event_us"]), \
           thousandths(f["first_token_us"]), thousandths(f["last_token_us"]), thousandths(f["total_us"])
}

function thousandths(v) {
    return sprintf("%.3f", v / 1000)
}

# The tables of `scripts/proxies run` from its result.tsv: -v form=text or markdown. One says how
# tokens arrive, one what becomes of clients that leave and of streams that are cut.

BEGIN {
    FS = "\t"
    beds = 0
}

NR == 1 {
    for (i = 1; i <= NF; i++)
        column[$i] = i
    next
}

NF > 1 {
    beds++
    for (i = 1; i <= NF; i++)
        field[beds, i] = $i
}

function value(name) { return (name in column) ? field[bed, column[name]] : "-" }

function rounded(name,    v) {
    v = value(name)
    return v ~ /^[0-9.]+$/ ? sprintf("%.1f", v) : v
}

function whole_number(name,    v) {
    v = value(name)
    return v ~ /^[0-9.]+$/ ? sprintf("%.0f", v) : v
}

# How soon a client's leaving was noticed, and how many tokens were made for nobody.
function leaving(name,    class) {
    class = value("abort_" name "_class")
    if (value("abort_" name) ~ /^(done|live)$/)
        return "never"
    if (class == "-" || class == "note")
        return "-"
    return value("abort_" name "_extra") ", " value("abort_" name "_ms") " ms"
}

function ping(    class) {
    class = value("abort_ping_class")
    return class == "ok" ? value("abort_ping_ms") " ms" : (class == "none" ? "no help" : "-")
}

# With the time, if the client was told late.
function crash(    v) {
    v = value("crash")
    return value("crash_ms") > 2000 ? v " (" sprintf("%.0f", value("crash_ms") / 1000) " s)" : v
}

function cut(    v) {
    v = value("drain")
    return v == "cut" ? v " (" sprintf("%.1f", value("drain_ms") / 1000) " s)" : v
}

function begin_table(names) {
    columns = split(names, title, "[|]")
    for (i = 1; i <= columns; i++)
        width[i] = length(title[i])
    rows = 0
}

function row(values,    cell, n) {
    n = split(values, cell, "\t")
    rows++
    for (i = 1; i <= columns; i++) {
        text[rows, i] = i <= n ? cell[i] : ""
        if (length(text[rows, i]) > width[i])
            width[i] = length(text[rows, i])
    }
}

function end_table(    r, line) {
    line = "|"
    for (i = 1; i <= columns; i++)
        line = line " " title[i] " |"
    if (form == "markdown") {
        print line
        gsub(/[^|]+/, " --- ", line)
        print line
    } else
        print text_line(0)
    for (r = 1; r <= rows; r++) {
        if (form == "markdown") {
            line = "|"
            for (i = 1; i <= columns; i++)
                line = line " " text[r, i] " |"
            print line
        } else
            print text_line(r)
    }
}

function text_line(r,    line, s) {
    line = ""
    for (i = 1; i <= columns; i++) {
        s = r == 0 ? title[i] : text[r, i]
        line = line sprintf("%-" width[i] "s", s) (i < columns ? "  " : "")
    }
    sub(/ +$/, "", line)
    return line
}

END {
    begin_table("bed|verdict|stream|TTFT ms|gap p50|gap max|p99 at 1 ms|coalesced %|X-Accel-Buffering|bytes|HTTP/2")
    for (bed = 1; bed <= beds; bed++)
        row(value("bed") "\t" value("verdict") "\t" value("stream") "\t" whole_number("ttft_ms") "\t" \
            rounded("gap_p50_ms") "\t" rounded("gap_max_ms") "\t" rounded("fast_gap_p99_ms") "\t" \
            rounded("coalesced_percent") "\t" value("x_accel_buffering") "\t" value("bytes") "\t" value("http2"))
    end_table()
    print ""
    begin_table("bed|left in decode|in a gap|with pings|in prefill|half-close|HEAD|slow reader KB|crash|drain")
    for (bed = 1; bed <= beds; bed++)
        row(value("bed") "\t" leaving("decode") "\t" leaving("gap") "\t" ping() "\t" leaving("prefill") "\t" \
            value("half_close") "\t" (value("head_generates") == "yes" ? "generates" : value("head")) "\t" \
            value("absorbed_kb") (value("slow_reader") == "limit" ? ", all" : "") "\t" crash() "\t" cut())
    end_table()
}

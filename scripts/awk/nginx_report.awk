# How findings are told: text for people, TSV and JSON for programs.

# --- text ---

# Locations with the same findings are told once. What is the block's own place is the same for all.
function signature(c,    f, s) {
    s = ""
    for (f = F_FROM[c]; f <= F_TO[c]; f++)
        s = s F_SEVERITY[f] FS F_CHECK[f] FS F_WHY[f] FS F_HOW[f] FS \
            (at_own_place(f) ? "" : F_FIX_FILE[f] ":" F_FIX_LINE[f]) FS F_FIX[f] "\n"
    return s
}

function at_own_place(f) {
    return F_FIX_FILE[f] == F_NAME[C_FILE[F_CTX[f]]] && F_FIX_LINE[f] == C_LINE[F_CTX[f]] && F_HOW[f] == "add"
}

# Locations first, then what is said of servers and of the whole.
function report_text(    c, s, n, k, group, first) {
    n = 0
    for (c = 0; c < C_COUNT; c++) {
        if (!(c in F_FROM))
            continue
        s = signature(c)
        if (!(s in group)) {
            group[s] = ++n
            first[n] = c
            SIZE[n] = 0
        }
        MEMBER[group[s], ++SIZE[group[s]]] = c
    }
    for (k = 1; k <= n; k++)
        if (pass_of(first[k]))
            report_group(k, first[k])
    for (k = 1; k <= n; k++)
        if (!pass_of(first[k]))
            report_group(k, first[k])
}

function report_group(k, c,    m) {
    for (m = 1; m <= SIZE[k]; m++)
        print heading(MEMBER[k, m])
    report_findings(c, "fault")
    report_findings(c, "warning")
    report_findings(c, "note")
    report_fixes(c, SIZE[k] > 1)
    print ""
}

function report_findings(c, severity,    f) {
    for (f = F_FROM[c]; f <= F_TO[c]; f++)
        if (F_SEVERITY[f] == severity)
            print_wrapped(sprintf("  %-8s %-17s ", severity, F_CHECK[f]), F_WHY[f], 100)
}

function heading(c,    d, s) {
    s = F_NAME[C_FILE[c]] ":" C_LINE[c] ": "
    if (C_KIND[c] == "main")
        return F_NAME[1] ": the configuration as a whole"
    if (C_KIND[c] == "events")
        return s "events"
    if (C_KIND[c] == "server")
        return s "server " server_label(c)
    d = pass_of(c)
    return s location_label(c) " of " server_label(c) ", " D_NAME[d] " " D_WORD[d, 1]
}

# The first line behind `before`, the others under its text.
function print_wrapped(before, s, width,    indent, n, word, k, line) {
    indent = sprintf("%" length(before) "s", "")
    n = split(s, word, " ")
    line = before word[1]
    for (k = 2; k <= n; k++)
        if (length(line) + 1 + length(word[k]) > width) {
            print line
            line = indent word[k]
        } else
            line = line " " word[k]
    print line
}

# Edits of the same kind at the same place together, each line once.
function report_fixes(c, many,    f, g, at, n, line, k, told, seen) {
    for (f = F_FROM[c]; f <= F_TO[c]; f++) {
        if (F_HOW[f] == "")
            continue
        at = F_HOW[f] " " F_FIX_FILE[f] ":" F_FIX_LINE[f]
        if (at in told)
            continue
        told[at] = 1
        if (!at_own_place(f))
            print "  " (F_HOW[f] == "add" ? "add to the block at" : F_HOW[f]) " " F_FIX_FILE[f] ":" F_FIX_LINE[f] ":"
        else
            print "  add to " (many ? "each" : "it") ":"
        for (g = f; g <= F_TO[c]; g++) {
            if (F_HOW[g] " " F_FIX_FILE[g] ":" F_FIX_LINE[g] != at)
                continue
            n = split(F_FIX[g], line, "\n")
            for (k = 1; k <= n; k++)
                if (!((at, line[k]) in seen)) {
                    seen[at, line[k]] = 1
                    printf "      %-42s # %s\n", line[k], F_CHECK[g]
                }
        }
    }
}

function report_served(    c, l) {
    for (c = 0; c < C_COUNT; c++) {
        if (!CHOSEN[c])
            continue
        l = SERVED_BY[c]
        if (REDIRECTED[c])
            print server_label(c) " redirects " uri " to " uri "/"
        else if (l == c)
            print server_label(c) " has no location for " uri ": the server itself serves it"
        else
            print F_NAME[C_FILE[l]] ":" C_LINE[l] ": " uri " is served by " location_label(l) " of " server_label(c) \
                (pass_of(l) ? "" : has_named(c, l) ? ", which goes on to a named location" : ", which passes nothing on")
    }
    print ""
}

function has_named(server, l,    k) {
    for (k in SERVED)
        if (k != l && C_UP[k] == server)
            return 1
    return 0
}

function plural(n, what) {
    return n " " what (n == 1 ? "" : "s")
}

function summary(    s, k, n, reason) {
    s = checked ? plural(checked, "location") " checked" : "no location here passes requests on"
    n = split("probe asset subrequest websocket", reason, " ")
    for (k = 1; k <= n; k++)
        if (SKIPPED[reason[k]])
            s = s ", " plural(SKIPPED[reason[k]], reason[k]) " left out"
    s = s ": " plural(TALLY["fault"] + 0, "fault") ", " plural(TALLY["warning"] + 0, "warning") ", " plural(TALLY["note"] + 0, "note")
    if (fragment)
        s = s " (there is no http block: what it sets is not known here)"
    return s
}

# --- for programs ---

function report_tsv(    f, d) {
    OFS = "\t"
    for (f = 1; f <= F_COUNT; f++) {
        d = pass_of(F_CTX[f])
        print F_SEVERITY[f], F_CHECK[f], field(F_FILE[f] ":" F_LINE[f]), field(server_label(F_CTX[f])), \
            field(location_label(F_CTX[f])), field(d ? D_NAME[d] " " D_WORD[d, 1] : ""), field(F_DIRECTIVE[f]), field(F_WHY[f]), \
            field(F_HOW[f]), field(F_HOW[f] == "" ? "" : F_FIX_FILE[f] ":" F_FIX_LINE[f]), field(F_FIX[f])
    }
}

# An empty field is "-", so that a shell's `read` counts right; a newline is " \n ".
function field(s) {
    gsub(/[\t\r]/, " ", s)
    gsub(/\n/, " \\n ", s)
    return s == "" ? "-" : s
}

function report_json(    f, n, k, line, d, c) {
    json_begin()
    printf "{\"locations_checked\":%d,\"faults\":%d,\"warnings\":%d,\"notes\":%d,", \
        checked, TALLY["fault"], TALLY["warning"], TALLY["note"]
    if (uri != "") {
        printf "\"served_by\":["
        n = 0
        for (c = 0; c < C_COUNT; c++)
            if (CHOSEN[c])
                printf "%s{\"server\":%s,\"location\":%s,\"redirect\":%s}", (n++ ? "," : ""), json(server_label(c)), \
                    SERVED_BY[c] == c ? "null" : json(location_label(SERVED_BY[c])), REDIRECTED[c] ? "true" : "false"
        printf "],"
    }
    printf "\"findings\":["
    for (f = 1; f <= F_COUNT; f++) {
        d = pass_of(F_CTX[f])
        printf "%s\n{\"severity\":%s,\"check\":%s,\"file\":%s,\"line\":%d,\"server\":%s,\"location\":%s,\"pass\":%s,\"directive\":%s,\"reason\":%s,\"fix\":", \
            (f > 1 ? "," : ""), json(F_SEVERITY[f]), json(F_CHECK[f]), json(F_FILE[f]), F_LINE[f], json(server_label(F_CTX[f])), \
            json(location_label(F_CTX[f])), d ? json(D_NAME[d] " " D_WORD[d, 1]) : "null", \
            F_DIRECTIVE[f] == "" ? "null" : json(F_DIRECTIVE[f]), json(F_WHY[f])
        if (F_HOW[f] == "")
            printf "null}"
        else {
            printf "{\"how\":%s,\"file\":%s,\"line\":%d,\"lines\":[", json(F_HOW[f]), json(F_FIX_FILE[f]), F_FIX_LINE[f]
            n = split(F_FIX[f], line, "\n")
            for (k = 1; k <= n; k++)
                printf "%s%s", (k > 1 ? "," : ""), json(line[k])
            printf "]}}"
        }
    }
    print "]}"
}

# A JSON string. A configuration may hold any bytes: what is not UTF-8 becomes U+FFFD.
function json(s,    i, c, out, n, w, k) {
    if (s !~ /[\001-\037"\\\177-\377]/)
        return "\"" s "\""
    out = ""
    for (i = 1; i <= length(s); i++) {
        c = substr(s, i, 1)
        n = CODE[c]
        if (n < 32)
            out = out sprintf("\\u%04x", n)
        else if (c == "\"" || c == "\\")
            out = out "\\" c
        else if (n < 128)
            out = out c
        else {
            w = n >= 194 && n < 224 ? 2 : n >= 224 && n < 240 ? 3 : n >= 240 && n < 245 ? 4 : 1
            for (k = 1; k < w; k++)
                if (CODE[substr(s, i + k, 1)] + 0 < 128 || CODE[substr(s, i + k, 1)] >= 192)
                    w = 1
            if (w > 2) {
                # Overlong forms, surrogates and what is above U+10FFFF are no characters.
                k = CODE[substr(s, i + 1, 1)]
                if ((n == 224 && k < 160) || (n == 237 && k >= 160) || (n == 240 && k < 144) || (n == 244 && k >= 144))
                    w = 1
            }
            out = out (w == 1 ? "\\ufffd" : substr(s, i, w))
            i += w - 1
        }
    }
    return "\"" out "\""
}

function json_begin(    i) {
    for (i = 1; i < 256; i++)
        CODE[sprintf("%c", i)] = i
}

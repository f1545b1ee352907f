# The program that scripts/nginx-lint runs: the other nginx_*.awk files are its functions.
#
#     LC_ALL=C awk -v want=report -v ... -f nginx_read.awk ... -f nginx_lint.awk DUMP
#
# want=includes: lines of FILE, LINE, NAME for each include in DUMP.
# want=matches: the regular expressions that --uri and --host need (nginx_match.awk).
# want=report: the findings. Exit 0 no fault, 1 a fault (strict: or a warning), 3 the configuration cannot be read.
#
# Other settings: mark, format (text tsv json), all, quiet, strict, x_accel, silence_s, type, nginx_version,
# uri, host, matched.

BEGIN {
    if (mark == "")
        mark = "# configuration file "
    gathering = want == "includes"
    split(nginx_version, part, ".")
    version_number = part[1] * 1000000 + part[2] * 1000 + part[3]
    # Since 1.29.7 nginx speaks HTTP/1.1 to upstreams, and keeps the connections.
    OLD_HTTP = version_number < 1029007
    # What the user gave comes by the environment: -v would take escapes in it.
    uri = ENVIRON["LINT_URI"]
    host = tolower(ENVIRON["LINT_HOST"])
    TYPE = tolower(ENVIRON["LINT_TYPE"])
    if (ENVIRON["LINT_MARK"] != "")
        mark = ENVIRON["LINT_MARK"]
}

{ nginx_store($0) }

END {
    if (failed)
        exit 3
    if (gathering) {
        for (file = 1; file <= file_count; file++) {
            if (!(file in HAS_INCLUDE))
                continue
            C_COUNT = 0
            new_context("main", -1, "", file, 1)
            CTX = 0
            F_END[file_count] = line_count
            parse_file(file, 0)
        }
        exit 0
    }
    nginx_parse()
    values_begin()
    checks_begin()
    if (want == "matches") {
        path = normal_path(uri, 0)
        if (path == "")
            exit 2
        matches_needed(path)
        exit 0
    }
    if (uri != "") {
        choose_servers()
        mark_served(normal_path(uri, 0))
    } else if (host != "")
        choose_servers()
    check_all()
    if (format == "json")
        report_json()
    else if (format == "tsv")
        report_tsv()
    else {
        if (uri != "" && !quiet)
            report_served()
        if (!quiet)
            report_text()
        print summary()
    }
    exit (TALLY["fault"] > 0 || (strict && TALLY["warning"] > 0)) ? 1 : 0
}

function check_all(    c, s, why) {
    for (c = 0; c < C_COUNT; c++) {
        if ((C_KIND[c] != "location" && C_KIND[c] != "if" && C_KIND[c] != "limit_except") || !is_of_interest(c))
            continue
        s = server_of(c)
        if (uri != "" ? !is_served(c) : host != "" && !CHOSEN[s])
            continue
        why = not_a_stream(c)
        if (why != "" && !all && uri == "") {
            SKIPPED[why]++
            continue
        }
        if (++checked > 10000)
            nginx_fail(C_FILE[c], C_LINE[c], "more than 10000 locations: choose with --host or --uri")
        # A server's own checks come once, with the first of its locations.
        if (s >= 0 && !(s in SERVER_CHECKED)) {
            SERVER_CHECKED[s] = 1
            check_server(s)
        }
        check_location(c)
    }
    if (checked)
        check_main()
}

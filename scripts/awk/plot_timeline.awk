# From a table of events (measure --tsv; any with the columns run or stream, us, kind, tokens and
# perhaps data): the arrival of each token, in seconds and as its number, of the N-th run: -v run=N
# -v label=TEXT. After
# two empty lines, if the events carry runnel's stamps: when each was sent, by the server's clock,
# shifted so that the quickest of them took no time.
#
#     awk -f json.awk -f plot_timeline.awk -v run=1 -v label=TEXT FILE

BEGIN { FS = OFS = "\t" }

FNR == 1 {
    sub(/^# */, "", $1)
    for (i = 1; i <= NF; i++)
        column[$i] = i
    by = "run" in column ? column["run"] : column["stream"]
    print "seconds", label
    next
}

# The N-th of those that are there: a load client begins to count at 0.
!($by in place) { place[$by] = ++runs }

place[$by] == run && $column["kind"] == "token" {
    us = $column["us"]
    n += $column["tokens"]
    printf "%.6f\t%d\n", us / 1e6, n
    if ("data" in column && json_parse($column["data"]) && JSON_TYPE["t_us"] == "number") {
        sent_us[++stamped] = JSON_RAW["t_us"] + 0
        number[stamped] = n
        if (stamped == 1 || us - sent_us[stamped] < offset)
            offset = us - sent_us[stamped]
    }
}

END {
    if (!stamped)
        exit
    printf "\n\n"
    print "seconds", "sent (" label ")"
    for (i = 1; i <= stamped; i++)
        printf "%.6f\t%d\n", (sent_us[i] + offset) / 1e6, number[i]
}

# The gaps of a table of events (measure --tsv), in whole microseconds, one a line: of each run, as
# gaps.awk has them.

BEGIN { FS = "\t" }

FNR == 1 {
    sub(/^# */, "", $1)
    for (i = 1; i <= NF; i++)
        column[$i] = i
    by = "run" in column ? column["run"] : column["stream"]
    next
}

$column["kind"] == "token" {
    run = $by
    if (run in before)
        printf "%.0f\n", $column["us"] - before[run]
    for (i = 1; i < $column["tokens"]; i++)
        print 0
    before[run] = $column["us"]
}

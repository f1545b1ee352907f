# Reads the events of one request (trace_events.awk) and prints those of its stream as a table, for
# people and for gnuplot: -v run=N. Columns: run, us, read, kind, tokens, data.

BEGIN { FS = OFS = "\t" }

$1 == "event" {
    gsub(/[\001-\037\177]/, " ", $6)        # a stranger's text: nothing that a terminal obeys
    print run, $2, $3, $4, $5, $6
}

# Reads the events of one stream (trace_events.awk) and prints the gap before each token but the
# first, in microseconds, one a line: n tokens give n - 1 gaps. The tokens of one event arrived
# together: the gaps between them are 0.

BEGIN { FS = "\t" }

$1 == "event" && $4 == "token" {
    if (seen)
        printf "%.0f\n", $2 - before
    for (i = 1; i < $5; i++)
        print 0
    before = $2
    seen = 1
}

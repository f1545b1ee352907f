# Reads the events of one stream (trace_events.awk; a stream that was cut will do) and tells how its
# tokens came: -v split_us=N. Token events less than N microseconds apart are one burst. Output, NAME,
# tab, VALUE, many of each name:
#
#     burst_events    token events of a burst
#     burst_bytes     bytes of its events (as sent: without HTTP's chunk sizes)
#     interval_us     from the begin of a burst to the begin of the next
#     delay_us        arrival after sending, by runnel's stamps; the quickest is 0, since the two
#                     clocks have nothing to do with each other
#
# and once each: events, bursts, coalesced, first_us and last_us (arrivals), arrived_us and sent_us (from
# the first token to the last, as they arrived and as they were sent; sent_us only with stamps).
#
#     awk -f json.awk -f bursts.awk -v split_us=25000 FILE

BEGIN { FS = OFS = "\t" }

$1 == "event" && $4 == "token" {
    if (events == 0 || $2 - before >= split_us) {
        if (events > 0) {
            end_burst()
            print "interval_us", sprintf("%.0f", $2 - begin)
        }
        begin = $2
        in_burst = bytes = 0
    }
    if (events++ == 0)
        first = $2
    else if ($3 == read)
        coalesced++
    read = $3
    before = $2
    in_burst++
    bytes += length($6) + 8         # "data: " and two line ends
    if (json_parse($6) && JSON_TYPE["t_us"] == "number") {
        arrived[++stamped] = $2
        sent[stamped] = JSON_RAW["t_us"] + 0
        if (stamped == 1 || $2 - sent[stamped] < quickest)
            quickest = $2 - sent[stamped]
    }
}

END {
    if (events > 0)
        end_burst()
    print "events", events + 0
    print "bursts", bursts + 0
    print "coalesced", coalesced + 0
    print "first_us", sprintf("%.0f", first)
    print "last_us", sprintf("%.0f", before)
    print "arrived_us", sprintf("%.0f", before - first)
    if (stamped > 0)
        print "sent_us", sprintf("%.0f", sent[stamped] - sent[1])
    for (i = 1; i <= stamped; i++)
        print "delay_us", sprintf("%.0f", arrived[i] - sent[i] - quickest)
}

function end_burst() {
    bursts++
    print "burst_events", in_burst
    print "burst_bytes", bytes
}

# Reads curl's trace of one request; prints for each read of the body: microseconds since the request
# was sent, tab, bytes. awk -f trace_clock.awk -f trace_reads.awk FILE

/^[0-9][0-9]:[0-9][0-9]:[0-9][0-9]\.[0-9]+ / {
    now = clock($1)
    if ($2 == "=>" && $4 ~ /^header/ && !sent)
        sent = now
    else if ($2 == "<=" && $3 == "Recv" && $4 == "data,")
        print micros(now - sent) "\t" $5
}

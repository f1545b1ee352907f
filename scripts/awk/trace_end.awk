# Reads curl's trace of one request; prints how many microseconds after the request was sent the last
# thing happened. awk -f trace_clock.awk -f trace_end.awk FILE

/^[0-9][0-9]:[0-9][0-9]:[0-9][0-9]\.[0-9]+ / {
    now = clock($1)
    if ($2 == "=>" && $4 ~ /^header/ && !sent)
        sent = now
}

END { print sent ? micros(now - sent) : 0 }

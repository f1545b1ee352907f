# One line of /metrics of runnel over time: -v ms=MILLISECONDS. Seconds, running, waiting, and the
# totals of delivered and discarded tokens, in columns.

/^runnel_num_requests_running/ { running += $NF }
/^runnel_num_requests_waiting/ { waiting += $NF }
/^runnel_tokens_delivered_total/ { delivered += $NF }
/^runnel_tokens_discarded_total/ { discarded += $NF }

END {
    if (NR > 0)
        printf "%.1f\t%d\t%d\t%.0f\t%.0f\n", ms / 1000, running, waiting, delivered, discarded
}

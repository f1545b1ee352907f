# Adds up what is counted of all streams: lines of NAME=VALUE words (figures.awk) to NAME, tab, SUM.

{
    for (i = 1; i <= NF; i++)
        sum[substr($i, 1, index($i, "=") - 1)] += substr($i, index($i, "=") + 1)
}

END {
    n = split("tokens counted token_events coalesced reads reasoning", names, " ")
    for (i = 1; i <= n; i++)
        print names[i] "\t" sum[names[i]] + 0
    print "pairs\t" sum["token_events"] - NR     # token events that have one before them
}

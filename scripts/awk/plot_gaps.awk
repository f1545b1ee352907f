# From whole microseconds, one a line and sorted: which share of the gaps is at most how many
# milliseconds. -v label=TEXT. A logarithmic axis has no 0: what is below 0.01 ms is drawn there.

BEGIN {
    OFS = "\t"
    print "ms", label
}

{ gap[NR] = $1 }

function ms(us) {
    return sprintf("%.3f", us < 10 ? 0.01 : us / 1000)
}

END {
    if (NR > 0)
        print ms(gap[1]), 0
    for (i = 1; i <= NR; i++)
        if (i == NR || gap[i] != gap[i + 1])
            print ms(gap[i]), sprintf("%.6f", i / NR)
}

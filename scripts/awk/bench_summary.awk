# Reads runs.tsv of tests/bench/run and prints a row for each level and peer, in the order in which
# they came first: the number of runs, the median of each figure over those that have it, and behind it
# how much it is of the same figure of `base` (runnel): 2.00 is twice as much. `-` where no run has the
# figure, or there is nothing to compare with.
#
#     awk [-v base=NAME] -f bench_summary.awk runs.tsv

BEGIN {
    FS = OFS = "\t"
    if (base == "")
        base = "runnel"
}

NR == 1 {
    columns = NF
    for (i = 4; i <= NF; i++)
        name[i] = $i
    next
}

{
    key = $2 OFS $3
    if (!(key in runs)) {
        order[++keys] = key
        level[key] = $2
    }
    runs[key]++
    for (i = 4; i <= columns; i++)
        if ($i != "-")
            value[key, i, ++count[key, i]] = $i
}

END {
    line = "level" OFS "peer" OFS "runs"
    for (i = 4; i <= columns; i++)
        line = line OFS name[i] OFS "x"
    print line
    for (k = 1; k <= keys; k++) {
        key = order[k]
        line = key OFS runs[key]
        for (i = 4; i <= columns; i++)
            line = line OFS (count[key, i] > 0 ? sprintf("%.3f", median(key, i)) : "-") OFS ratio(key, level[key] OFS base, i)
        print line
    }
}

function ratio(key, other, i,    against) {
    if (!(count[other, i] > 0 && count[key, i] > 0))
        return "-"
    against = median(other, i)
    return against > 0 ? sprintf("%.2f", median(key, i) / against) : "-"
}

# Of an even number of runs, the mean of the two in the middle.
function median(key, i,    n, j, k, v, sorted) {
    n = count[key, i]
    for (j = 1; j <= n; j++) {
        v = value[key, i, j] + 0
        for (k = j - 1; k > 0 && sorted[k] > v; k--)
            sorted[k + 1] = sorted[k]
        sorted[k + 1] = v
    }
    return n % 2 ? sorted[(n + 1) / 2] : (sorted[n / 2] + sorted[n / 2 + 1]) / 2
}

# Reads whole numbers, one a line, and prints count=, min=, mean= (rounded), max= and a pNN= for each
# percentile that is asked for: awk -v ask="50 99" -f percentiles.awk. No number: count=0 alone.
#
# Nearest rank: the p-th percentile of n sorted values is the one at rank ceil(p * n / 100), counted
# from 1. It is always a value that was measured, never one in between.

BEGIN {
    if (ask == "")
        ask = "50 90 99"
}

NF > 0 {
    value[++n] = $1 + 0
    sum += $1
}

END {
    print "count=" n + 0
    if (n == 0)
        exit
    sort_values()
    printf "min=%.0f\n", value[1]
    printf "mean=%.0f\n", int(sum / n + 0.5)
    wanted = split(ask, p, " ")
    for (i = 1; i <= wanted; i++)
        printf "p%s=%.0f\n", p[i], value[rank(p[i])]
    printf "max=%.0f\n", value[n]
}

# In whole numbers: 0.99 * 100 is 99.00000000000001 for some, and its ceiling 100. A percentile may
# have up to three decimals (99.9).
function rank(percent,    milli, r) {
    milli = int(percent * 1000 + 0.5)
    r = int((milli * n + 99999) / 100000)
    return r < 1 ? 1 : (r > n ? n : r)
}

# Merge sort from the bottom up: n log n whatever the order, and no recursion.
function sort_values(    width, start, middle, end, a, b, k) {
    for (width = 1; width < n; width *= 2) {
        for (start = 1; start <= n; start = end) {
            middle = start + width <= n + 1 ? start + width : n + 1
            end = middle + width <= n + 1 ? middle + width : n + 1
            a = start
            b = middle
            for (k = start; k < end; k++)
                merged[k] = (a < middle && (b >= end || value[a] <= value[b])) ? value[a++] : value[b++]
        }
        for (k = 1; k <= n; k++)
            value[k] = merged[k]
    }
}

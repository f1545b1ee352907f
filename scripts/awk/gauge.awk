# The sum of the first known gauge in a text of Prometheus metrics: -v names="NAME NAME...". Exit 1: none.

BEGIN { n = split(names, known, " ") }

/^#/ { next }

{
    name = $1
    sub(/\{.*/, "", name)
    sum[name] += $NF
    seen[name] = 1
}

END {
    for (i = 1; i <= n; i++)
        if (known[i] in seen) {
            printf "%.0f\n", sum[known[i]]
            exit 0
        }
    exit 1
}

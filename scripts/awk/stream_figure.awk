# Prints one figure of each stream: -v name=NAME. The input has a line a stream, of NAME=VALUE words
# (figures.awk). Microseconds; throughput in thousandths of a token a second.

{
    for (i = 1; i <= NF; i++)
        f[substr($i, 1, index($i, "=") - 1)] = substr($i, index($i, "=") + 1)
    if (name == "tpot") {
        if (f["tokens"] > 1)
            printf "%.0f\n", (f["last_token_us"] - f["first_token_us"]) / (f["tokens"] - 1)
    } else if (name == "throughput")
        printf "%.0f\n", f["tokens"] * 1e9 / (f["last_token_us"] > 0 ? f["last_token_us"] : 1)
    else
        printf "%.0f\n", f[name "_us"]
}

# Prints what to change for one fault: -v code=CODE -v server="Server and Via headers". The table has
# CODE, PROXY, DIRECTIVE in columns; a row whose PROXY is "-" says what the fault is. The proxy that the
# headers name comes first, marked.

BEGIN { FS = "\t" }

/^#/ || $1 != code { next }

$2 == "-" {
    title = $3
    next
}

{
    n++
    proxy[n] = $2
    text[n] = $3
    word = tolower($2)
    sub(/[ ,].*/, "", word)
    mine[n] = index(tolower(server), word) > 0
}

END {
    if (title == "" && n == 0)
        exit
    print ""
    print title
    for (pass = 1; pass >= 0; pass--)
        for (i = 1; i <= n; i++)
            if (mine[i] == pass)
                print_row((pass ? "> " : "  ") sprintf("%-11s", proxy[i]), text[i])
}

# Wrapped under itself.
function print_row(head, s,    i) {
    while (length(s) > 80) {
        for (i = 80; i > 40 && substr(s, i, 1) != " "; i--)
            ;
        print head " " substr(s, 1, i - 1)
        head = "             "
        s = substr(s, i + 1)
    }
    print head " " s
}

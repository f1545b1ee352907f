# Prints what to change for what the doctor found: awk -v server="Server and Via headers" -f directives.awk
# FINDINGS TABLE. FINDINGS has LEVEL and CODE in columns: of faults and limits each code is told once, in
# the order in which it was found. TABLE has CODE, PROXY, DIRECTIVE; a row whose PROXY is "-" says what the
# code means. The proxy that the headers name comes first, marked.

BEGIN { FS = "\t" }

FILENAME == ARGV[1] {
    if (($1 == "fault" || $1 == "limit") && !($2 in title)) {
        title[$2] = ""
        code[++codes] = $2
    }
    next
}

/^#/ || !($1 in title) { next }

$2 == "-" {
    title[$1] = $3
    next
}

{
    n = ++rows[$1]
    proxy[$1, n] = $2
    text[$1, n] = $3
    word = tolower($2)
    sub(/[ ,].*/, "", word)
    mine[$1, n] = index(tolower(server), word) > 0
}

END {
    for (i = 1; i <= codes; i++)
        print_code(code[i])
}

function print_code(c,    pass, i) {
    if (title[c] == "" && rows[c] == 0)
        return
    print ""
    print title[c]
    for (pass = 1; pass >= 0; pass--)
        for (i = 1; i <= rows[c]; i++)
            if (mine[c, i] == pass)
                print_row((pass ? "> " : "  ") sprintf("%-11s", proxy[c, i]), text[c, i])
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

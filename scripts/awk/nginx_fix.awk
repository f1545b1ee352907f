# What to write to mend a finding: functions over nginx_read.awk's tree.
#
# Each sets FIX_HOW, FIX_FILE, FIX_LINE and FIX (lines), which finding() takes:
#     add      write FIX into the block that begins there
#     replace  write FIX instead of the directive there
#     remove   take the directive there away (FIX shows it)

# A directive that may stand once: nginx refuses a second one in the same block.
function fix_set(c, name, value,    t) {
    t = home_of(c)
    if ((c, name) in N)
        fix_replace(I[c, name, N[c, name]], name " " value ";")
    else if ((t, name) in N)
        fix_replace(I[t, name, N[t, name]], name " " value ";")
    else
        fix_add(t, name " " value ";")
}

# One more of a directive that may stand often. The first of its name in a block hides those of the
# blocks around it, so they are written out again.
function fix_more(c, name, value,    t, from, k, d, lines) {
    t = home_of(c)
    lines = ""
    if (!((t, name) in N) && (from = where(t, name)) >= 0)
        for (k = 1; k <= N[from, name]; k++) {
            d = I[from, name, k]
            if (tolower(D_WORD[d, 1]) != tolower(first_of(value)))
                lines = lines written(d) "\n"
        }
    fix_add(t, lines name " " value ";")
}

function fix_add(c, lines) {
    FIX_HOW = "add"
    FIX_FILE = F_NAME[C_FILE[c]]
    FIX_LINE = C_LINE[c]
    FIX = lines
}

function fix_replace(d, line) {
    FIX_HOW = "replace"
    FIX_FILE = F_NAME[D_FILE[d]]
    FIX_LINE = D_LINE[d]
    FIX = line
}

function fix_remove(d) {
    FIX_HOW = "remove"
    FIX_FILE = F_NAME[D_FILE[d]]
    FIX_LINE = D_LINE[d]
    FIX = written(d)
}

# Most directives are not allowed in an `if` or a limit_except: theirs go into the location.
function home_of(c) {
    while (C_KIND[c] == "if" || C_KIND[c] == "limit_except")
        c = C_UP[c]
    return c
}

function first_of(s) {
    sub(/ .*/, "", s)
    return s
}

# Takes the stream's type, and *, out of a list of media types.
function fix_types(d,    k, s) {
    s = ""
    for (k = 1; k <= D_WORDS[d]; k++)
        if (D_WORD[d, k] != "*" && tolower(D_WORD[d, k]) != TYPE)
            s = s " " quoted(D_WORD[d, k])
    if (s == "")
        fix_remove(d)
    else
        fix_replace(d, D_NAME[d] s ";")
}

function fix_none() {
    FIX_HOW = FIX_FILE = FIX_LINE = FIX = ""
}

# A directive, as one would write it.
function written(d,    s, k) {
    s = D_NAME[d]
    for (k = 1; k <= D_WORDS[d]; k++)
        s = s " " quoted(D_WORD[d, k])
    return s ";"
}

function quoted(w,    i, c, out) {
    if (w != "" && w !~ /[ \t\r\n;{}"'\\#]/)
        return w
    # Not by gsub: the awks differ in how many backslashes make one.
    out = ""
    for (i = 1; i <= length(w); i++) {
        c = substr(w, i, 1)
        out = out (c == "\\" || c == "\"" ? "\\" : "") c
    }
    return "\"" out "\""
}

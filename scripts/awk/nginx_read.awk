# Reads an nginx configuration into a tree: functions for the other nginx_*.awk programs.
#
# The input is what `nginx -T` prints: each file once, behind a line "# configuration file NAME:"
# (`mark` is another beginning of that line, for files that were gathered from the disk). The first
# file is the main one; an include is resolved where it stands, against the names in the dump, as
# often as it is named. A relative name belongs to the folder of the main file.
#
# After nginx_parse(), of each block c (0 is the main level), in the order of the configuration:
#     C_KIND[c]     main events http server location if limit_except upstream, or skip
#     C_UP[c]       the block around it (of 0: -1)     C_ARG[c] its words, joined by spaces
#     C_FILE[c] C_LINE[c]                              C_COUNT: one more than the last
# and of each simple directive d (from 1) in a block that is not skipped:
#     D_CTX[d] D_NAME[d] D_WORDS[d] D_FILE[d] D_LINE[d]; D_WORD[d, 1] is its first argument
#     N[c, name]: how often it stands in block c;  I[c, name, k]: the k-th of them
#
# Skipped is what has no directives of http in it: map, geo, types, stream, mail, Lua.
#
# The tokenizer follows ngx_conf_read_token() of nginx 1.22: a word ends at white space, `;` or `{`;
# a quote counts only at its beginning, `#` and `}` likewise; `${` and a backslash keep the brace or
# the quote behind them. Words have at most 4096 bytes, as in nginx. Lines are read in slices, so that a
# hostile one costs no more than its length.

function nginx_store(line,    name) {
    if (substr(line, 1, length(mark)) == mark && line ~ /:\r?$/) {
        name = substr(line, length(mark) + 1)
        sub(/:\r?$/, "", name)
        if (file_count > 0)
            F_END[file_count] = line_count
        F_NAME[++file_count] = name
        F_START[file_count] = line_count + 1
        if (!(name in F_ID))
            F_ID[name] = file_count
        return
    }
    # What stands before the first file is what nginx says on standard error.
    if (file_count == 0)
        return
    LINE[++line_count] = line
    if (line_count > 500000)
        nginx_fail(file_count, line_count - F_START[file_count] + 1, "the configuration has more than 500000 lines")
    if (gathering && index(line, "include"))
        HAS_INCLUDE[file_count] = 1
}

function nginx_parse() {
    C_COUNT = 0
    new_context("main", -1, "", 1, 1)
    if (file_count == 0)
        return
    F_END[file_count] = line_count
    folder = F_NAME[1]
    sub(/[^\/]*$/, "", folder)
    CTX = 0
    parse_file(1, 0)
}

# --- errors: the first one ends it ---

function nginx_fail(file, line, message) {
    printf "%s:%d: %s\n", F_NAME[file], line, message | "cat >&2"
    close("cat >&2")
    failed = 1
    exit 3
}

# --- files ---

function parse_file(file, depth,    k, s, open, was_file, was_line, was_open) {
    if (depth > 16)
        nginx_fail(CUR_FILE, CUR_LINE, "includes are nested more than 16 deep")
    was_file = CUR_FILE
    was_line = CUR_LINE
    was_open = OPEN
    CUR_FILE = file
    CUR_DEPTH = depth
    OPEN = 0
    IN_USE[file] = 1
    T_MODE = ""
    T_N = 0
    for (k = F_START[file]; k <= F_END[file]; k++) {
        CUR_LINE = k - F_START[file] + 1
        if (CUR_LINE == 1 && substr(LINE[k], 1, 3) == "\357\273\277")
            nginx_fail(file, 1, "the file begins with a byte order mark, which nginx takes for a word")
        feed_line(LINE[k])
        feed_newline()
    }
    CUR_LINE = F_END[file] - F_START[file] + 1
    if (T_MODE == "\"" || T_MODE == "'")
        nginx_fail(file, T_START, "a quote is not closed: " T_MODE)
    if (T_MODE == "lua")
        nginx_fail(file, LUA_START, "the block is not closed: " LUA_NAME)
    if (T_N > 0)
        nginx_fail(file, D_START, "the directive is not ended by \";\" or a block: " shown(T_W[1]))
    if (OPEN > 0)
        nginx_fail(file, C_LINE[CTX], "the block is not closed: " shown(C_HEAD[CTX]))
    delete IN_USE[file]
    CUR_FILE = was_file
    CUR_LINE = was_line
    CUR_DEPTH = depth - 1
    OPEN = was_open
}

function include_seen(    name, pattern, file, k, n) {
    if (T_N != 2)
        nginx_fail(CUR_FILE, D_START, "include takes one name")
    name = T_W[2]
    if (gathering) {
        printf "%s\t%d\t%s\n", F_NAME[CUR_FILE], D_START, name
        return
    }
    if (C_KIND[CTX] == "skip")
        return
    if (name !~ /^\//)
        name = folder name
    if (name !~ /[*?[]/) {
        if (!(name in F_ID))
            nginx_fail(CUR_FILE, D_START, "include: there is no " shown(name))
        include_file(F_ID[name])
        return
    }
    n = glob(name)
    # The list is copied: a file that is included may include others by a pattern.
    for (k = 1; k <= n; k++)
        INCLUDE[CUR_DEPTH, k] = GLOB[k]
    for (k = 1; k <= n; k++)
        include_file(INCLUDE[CUR_DEPTH, k])
}

function include_file(file) {
    if (file in IN_USE)
        nginx_fail(CUR_FILE, CUR_LINE, "include: " shown(F_NAME[file]) " includes itself")
    if (++includes > 10000)
        nginx_fail(CUR_FILE, CUR_LINE, "more than 10000 files are included")
    T_N = 0
    parse_file(file, CUR_DEPTH + 1)
}

# The files of the dump that match, sorted, in GLOB; each pattern is matched once.
function glob(pattern,    re, k, n, i, j) {
    if (pattern in GLOB_COUNT) {
        for (k = 1; k <= GLOB_COUNT[pattern]; k++)
            GLOB[k] = GLOB_SEEN[pattern, k]
        return GLOB_COUNT[pattern]
    }
    re = glob_regex(pattern)
    n = 0
    for (k = 1; k <= file_count; k++)
        if (F_ID[F_NAME[k]] == k && F_NAME[k] ~ re) {
            for (i = n; i >= 1 && (F_NAME[GLOB[i]] "") > (F_NAME[k] ""); i--)
                GLOB[i + 1] = GLOB[i]
            GLOB[i + 1] = k
            n++
        }
    for (j = 1; j <= n; j++)
        GLOB_SEEN[pattern, j] = GLOB[j]
    GLOB_COUNT[pattern] = n
    return n
}

# As glob(3): a wildcard matches no slash, and no dot at the beginning of a name.
function glob_regex(pattern,    re, i, c, j, first) {
    re = "^"
    first = 1
    for (i = 1; i <= length(pattern); i++) {
        c = substr(pattern, i, 1)
        if (c == "*")
            re = re (first ? "([^./][^/]*)?" : "[^/]*")
        else if (c == "?")
            re = re (first ? "[^./]" : "[^/]")
        else if (c == "[" && (j = index(substr(pattern, i + 2), "]")) > 0) {
            c = substr(pattern, i + 1, j)
            sub(/^!/, "^", c)
            # A backslash in a class would be an escape to some awks only.
            re = re "[" (index(c, "\\") ? "^/" : c) "]"
            i += j + 1
        } else if (c == "\\" || c == "^")
            re = re "\\" c
        else
            re = re "[" c "]"
        first = c == "/"
    }
    return re "$"
}

# --- characters to words ---

# Most lines are one directive, or the beginning of a block, without a quote: those are not walked through.
function feed_line(s,    at) {
    if (T_MODE == "" && length(s) <= 4096 && s ~ /^[^"'\\{}#;\001-\010\013-\037\177]*[;{][ \t\r]*$/ && s !~ /[$]\{/) {
        feed_whole(s)
        return
    }
    if (s ~ /^[ \t\r]*(#.*)?$/ && (T_MODE == "" || T_MODE == "after"))
        return
    # A tab and a CR are text, and so are the bytes of UTF-8; in a comment, anything.
    if (s ~ /[\001-\010\013\014\016-\037\177]/)
        nginx_fail(CUR_FILE, CUR_LINE, "this is not text: a control character")
    if (length(s) <= 1024) {
        feed(s)
        return
    }
    for (at = 1; at <= length(s); at += 65536)
        feed_part(substr(s, at, 65536))
}

function feed_whole(s,    end, n, k) {
    match(s, /[;{][ \t\r]*$/)
    end = substr(s, RSTART, 1)
    n = split(substr(s, 1, RSTART - 1), PIECE, " ")
    if (T_N == 0)
        D_START = CUR_LINE
    for (k = 1; k <= n; k++)
        T_W[++T_N] = PIECE[k]
    feed_start(end)
}

function feed_part(s,    at) {
    for (at = 1; at <= length(s); at += 1024)
        feed(substr(s, at, 1024))
}

function feed(s,    i, c) {
    while (s != "") {
        if (T_MODE == "#")
            return
        if (T_MODE == "lua")
            s = feed_lua(s)
        else if (T_MODE == "") {
            if (match(s, /^[ \t\r]+/))
                s = substr(s, RLENGTH + 1)
            else
                s = feed_start(s)
        } else if (T_MODE == "after") {
            c = substr(s, 1, 1)
            if (c !~ /[ \t\r;{)]/)
                nginx_fail(CUR_FILE, CUR_LINE, "unexpected \"" c "\" behind a quoted word")
            T_MODE = ""
        } else if (T_ESCAPED) {
            T_ESCAPED = T_DOLLAR = 0
            s = feed_word(s, 1)
        } else if (T_MODE == "word") {
            if (T_DOLLAR && substr(s, 1, 1) == "{") {
                T_DOLLAR = 0
                s = feed_word(s, 1)
                continue
            }
            T_DOLLAR = 0
            i = match(s, /[ \t\r;{\\$]/)
            if (i == 0)
                s = feed_word(s, length(s))
            else {
                c = substr(s, i, 1)
                if (c == "\\" || c == "$") {
                    T_ESCAPED = c == "\\"
                    T_DOLLAR = c == "$"
                    s = feed_word(s, i)
                } else {
                    s = feed_word(s, i - 1)
                    word_done("")
                }
            }
        } else {
            # In quotes: T_MODE is the quote.
            i = match_quote(s, T_MODE)
            if (i == 0)
                s = feed_word(s, length(s))
            else if (substr(s, i, 1) == "\\") {
                s = feed_word(s, i)
                T_ESCAPED = 1
            } else {
                s = substr(feed_word(s, i - 1), 2)
                word_done("after")
            }
        }
    }
}

# Where the quote, or a backslash, is.
function match_quote(s, quote) {
    if (quote == "'")
        return match(s, /['\\]/)
    return match(s, /["\\]/)
}

# The first character of a word, or what stands instead of one.
function feed_start(s,    c) {
    c = substr(s, 1, 1)
    if (c == "#") {
        T_MODE = "#"
        return ""
    }
    if (c == ";" || c == "{") {
        if (T_N == 0)
            nginx_fail(CUR_FILE, CUR_LINE, "unexpected \"" c "\"")
        if (c == "{")
            block_opened()
        else
            directive_seen()
        T_N = 0
        return substr(s, 2)
    }
    if (c == "}") {
        if (T_N > 0)
            nginx_fail(CUR_FILE, CUR_LINE, "unexpected \"}\": the directive before it is not ended by \";\": " shown(T_W[1]))
        if (OPEN == 0)
            nginx_fail(CUR_FILE, CUR_LINE, "unexpected \"}\": no block is open in this file")
        CTX = C_UP[CTX]
        OPEN--
        return substr(s, 2)
    }
    T_WORD = ""
    T_START = CUR_LINE
    if (T_N == 0)
        D_START = CUR_LINE
    T_ESCAPED = T_DOLLAR = 0
    if (c == "\"" || c == "'") {
        T_MODE = c
        return substr(s, 2)
    }
    T_MODE = "word"
    return s
}

function feed_newline() {
    if (T_MODE == "#" || T_MODE == "after")
        T_MODE = ""
    else if (T_MODE == "lua")
        lua_newline()
    else if (T_MODE == "word" && !T_ESCAPED)
        word_done("")
    else if (T_MODE != "") {
        T_ESCAPED = 0
        feed_word("\n", 1)
    }
}

# Takes n characters of s into the word, and returns the rest.
function feed_word(s, n) {
    T_WORD = T_WORD substr(s, 1, n)
    if (length(T_WORD) > 4096)
        word_too_long()
    return substr(s, n + 1)
}

function word_too_long() {
    nginx_fail(CUR_FILE, T_START, "a word of more than 4096 bytes begins here: nginx does not take it (a quote that is not closed?)")
}

function word_done(mode) {
    if (T_N >= 100000)
        nginx_fail(CUR_FILE, D_START, "a directive of more than 100000 words: " shown(T_W[1]))
    T_W[++T_N] = index(T_WORD, "\\") ? unescaped(T_WORD) : T_WORD
    T_MODE = mode
}

function unescaped(s,    out, i, c) {
    out = ""
    while ((i = index(s, "\\")) > 0) {
        out = out substr(s, 1, i - 1)
        c = substr(s, i + 1, 1)
        if (c == "\"" || c == "'" || c == "\\")
            out = out c
        else if (c == "t")
            out = out "\t"
        else if (c == "r")
            out = out "\r"
        else if (c == "n")
            out = out "\n"
        else
            out = out "\\" c
        s = substr(s, i + 2)
    }
    return out s
}

# A word for a message: short, on one line.
function shown(s) {
    gsub(/[\t\r\n]/, " ", s)
    return length(s) > 60 ? substr(s, 1, 57) "..." : s
}

# --- words to directives and blocks ---

function words_from(from,    s, i) {
    s = ""
    # A server_name of thousands of names: what is looked at in one piece is short.
    for (i = from; i <= T_N && length(s) < 4096; i++)
        s = s (i > from ? " " : "") T_W[i]
    return s
}

function new_context(kind, up, arg, file, line) {
    C_KIND[C_COUNT] = kind
    C_UP[C_COUNT] = up
    C_ARG[C_COUNT] = arg
    C_FILE[C_COUNT] = file
    C_LINE[C_COUNT] = line
    C_DEPTH[C_COUNT] = up < 0 ? 0 : C_DEPTH[up] + 1
    return C_COUNT++
}

function block_opened(    c, k) {
    if (C_DEPTH[CTX] >= 50)
        nginx_fail(CUR_FILE, D_START, "blocks are nested more than 50 deep")
    if (C_COUNT >= 100000)
        nginx_fail(CUR_FILE, D_START, "more than 100000 blocks")
    c = new_context(kind_of(T_W[1], C_KIND[CTX]), CTX, words_from(2), CUR_FILE, D_START)
    C_HEAD[c] = T_W[1] (T_N > 1 ? " " C_ARG[c] : "")
    C_WORDS[c] = T_N - 1
    if (C_KIND[c] == "location" || C_KIND[c] == "upstream")
        for (k = 2; k <= T_N && k <= 4; k++)
            C_WORD[c, k - 1] = T_W[k]
    # The braces of Lua are its own.
    if (T_W[1] ~ /_by_lua_block$/) {
        note_directive(T_W[1])
        LUA_NAME = T_W[1]
        LUA_START = D_START
        LUA_OPEN = 1
        LUA_MODE = LUA_TAIL = ""
        T_MODE = "lua"
        return
    }
    CTX = c
    OPEN++
}

# A file of conf.d or snippets alone has no http around its servers and locations.
function kind_of(name, up) {
    if (up == "main") {
        if (name == "http" || name == "events")
            return name
        if (name == "server" || name == "upstream" || name == "location") {
            if (!fragment)
                fragment = name
            return name
        }
    } else if (up == "http" && (name == "server" || name == "upstream"))
        return name
    else if (up == "server" && name == "location")
        return name
    else if (up == "location" && (name == "location" || name == "if" || name == "limit_except"))
        return name
    return "skip"
}

function directive_seen(    d, k) {
    if (T_W[1] == "include") {
        include_seen()
        return
    }
    if (C_KIND[CTX] == "skip" || gathering)
        return
    d = note_directive(T_W[1])
    for (k = 2; k <= T_N; k++)
        D_WORD[d, k - 1] = T_W[k]
}

function note_directive(name,    d) {
    d = ++D_COUNT
    D_CTX[d] = CTX
    D_NAME[d] = name
    D_WORDS[d] = T_N - 1
    D_FILE[d] = CUR_FILE
    D_LINE[d] = D_START
    I[CTX, name, ++N[CTX, name]] = d
    USED[name] = 1
    return d
}

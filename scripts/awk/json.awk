# A small JSON reader: functions for the other awk programs (awk -f json.awk -f program.awk).
#
#   json_parse(text)     1 if text is one JSON value, else 0. Afterwards, for every value in it,
#                        JSON_TYPE[path] is one of object array string number literal, and
#                        JSON_RAW[path] its text (of a string: without the quotes, still escaped).
#                        The path of the whole is "", of a member "choices.0.delta.content".
#   json_string(raw)     a string's text with its escapes undone, as UTF-8
#   json_get(path)       that value as text: strings unescaped, others as written, "" if absent
#
# It checks the structure (nesting, commas, colons, closed strings), not the spelling of numbers
# or escapes. A key that contains a dot cannot be told from two keys. Time is linear in the length:
# the text is split at its quotes once, and never scanned again from the front.

function json_parse(text,    piece, n, i, s, tail) {
    split("", JSON_TYPE)
    split("", JSON_RAW)
    split("", JSON_KIND)        # of each open level: "{" or "["
    split("", JSON_PATH)        # of each open level: its path and a dot, or ""
    split("", JSON_INDEX)       # of each open array: the index of its next value
    JSON_DEPTH = 0
    JSON_WANT = "value"         # what may come next: value, first, key, colon, next, end
    JSON_KEY = ""

    n = split(text, piece, "\"")
    for (i = 1; i <= n; i++) {
        if (!json_between(piece[i]))
            return 0
        if (i == n)
            break
        s = ""
        tail = piece[++i]
        while (i < n && json_open(piece[i])) {
            tail = tail "\"" piece[++i]
            # Two levels, so that a long text is not copied once for each of its quotes.
            if (length(tail) > 2048) {
                s = s tail
                tail = ""
            }
        }
        # A quote that ends the text leaves an empty last piece; none means an unclosed string.
        if (i == n || !json_string_seen(s tail))
            return 0
    }
    return JSON_WANT == "end"
}

# Does the piece end in an odd number of backslashes, so that the quote after it is text?
function json_open(s,    k) {
    for (k = length(s); k > 0 && substr(s, k, 1) == "\\"; k--)
        ;
    return (length(s) - k) % 2
}

function json_string_seen(s) {
    if (JSON_WANT == "key" || (JSON_WANT == "first" && JSON_KIND[JSON_DEPTH] == "{")) {
        JSON_KEY = s
        JSON_WANT = "colon"
        return 1
    }
    return json_value("string", s)
}

# What stands between two strings: brackets, commas, colons, numbers, literals, white space.
function json_between(s,    i, c, word, len) {
    len = length(s)
    for (i = 1; i <= len; i++) {
        c = substr(s, i, 1)
        if (c == " " || c == "\t" || c == "\n" || c == "\r")
            continue
        if (c == "{" || c == "[") {
            if (!json_value(c == "{" ? "object" : "array", c))
                return 0
        } else if (c == "}" || c == "]") {
            if (!json_close(c == "}" ? "{" : "["))
                return 0
        } else if (c == ":") {
            if (JSON_WANT != "colon")
                return 0
            JSON_WANT = "value"
        } else if (c == ",") {
            if (JSON_WANT != "next")
                return 0
            JSON_WANT = JSON_KIND[JSON_DEPTH] == "{" ? "key" : "value"
        } else {
            word = c
            while (i < len && (c = substr(s, i + 1, 1)) ~ /[-+.0-9A-Za-z]/) {
                word = word c
                i++
            }
            if (word == "true" || word == "false" || word == "null") {
                if (!json_value("literal", word))
                    return 0
            } else if (word !~ /^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$/ || !json_value("number", word))
                return 0
        }
    }
    return 1
}

function json_value(type, raw,    path) {
    if (JSON_WANT == "first" && JSON_KIND[JSON_DEPTH] == "[")
        JSON_WANT = "value"
    if (JSON_WANT != "value")
        return 0
    path = ""
    if (JSON_DEPTH > 0)
        path = JSON_PATH[JSON_DEPTH] (JSON_KIND[JSON_DEPTH] == "[" ? JSON_INDEX[JSON_DEPTH]++ : JSON_KEY)
    JSON_TYPE[path] = type
    JSON_RAW[path] = raw
    if (type == "object" || type == "array") {
        JSON_DEPTH++
        JSON_KIND[JSON_DEPTH] = raw
        JSON_PATH[JSON_DEPTH] = path == "" ? "" : path "."
        JSON_INDEX[JSON_DEPTH] = 0
        JSON_WANT = "first"
    } else
        JSON_WANT = JSON_DEPTH > 0 ? "next" : "end"
    return 1
}

function json_close(kind) {
    if (JSON_DEPTH == 0 || JSON_KIND[JSON_DEPTH] != kind || (JSON_WANT != "first" && JSON_WANT != "next"))
        return 0
    JSON_DEPTH--
    JSON_WANT = JSON_DEPTH > 0 ? "next" : "end"
    return 1
}

function json_get(path) {
    if (!(path in JSON_TYPE))
        return ""
    return JSON_TYPE[path] == "string" ? json_string(JSON_RAW[path]) : JSON_RAW[path]
}

# Split at the backslashes: every piece but the first begins with the letter of an escape, and an
# empty one is an escaped backslash, after which the next piece is plain text.
function json_string(raw,    piece, n, i, c, p, out, tail, high, code) {
    if (index(raw, "\\") == 0)
        return raw
    n = split(raw, piece, "\\")
    out = ""
    tail = piece[1]
    high = 0
    for (i = 2; i <= n; i++) {
        p = piece[i]
        c = substr(p, 1, 1)
        if (c == "u") {
            code = json_hex(substr(p, 2, 4))
            p = substr(p, 6)
            if (code >= 55296 && code < 56320 && p == "" && i < n && piece[i + 1] ~ /^u[dD][c-fC-F]/) {
                high = code
                continue
            }
            if (high)
                code = 65536 + (high - 55296) * 1024 + (code - 56320)
            high = 0
            tail = tail json_utf8(code) p
        } else if (p == "") {
            tail = tail "\\"
            if (i < n)
                tail = tail piece[++i]
        } else if (c in JSON_ESCAPE)
            tail = tail JSON_ESCAPE[c] substr(p, 2)
        else
            tail = tail p
        # Two levels again.
        if (length(tail) > 2048) {
            out = out tail
            tail = ""
        }
    }
    return out tail
}

function json_hex(digits,    i, v) {
    v = 0
    for (i = 1; i <= length(digits); i++)
        v = v * 16 + index("0123456789abcdef", tolower(substr(digits, i, 1))) - 1
    return v
}

# A lone surrogate has no UTF-8: it becomes U+FFFD, as browsers do; NUL too (awk cannot hold it).
function json_utf8(code) {
    if (code == 0 || (code >= 55296 && code < 57344))
        code = 65533
    if (code < 128)
        return sprintf("%c", code)
    if (code < 2048)
        return sprintf("%c%c", 192 + int(code / 64), 128 + code % 64)
    if (code < 65536)
        return sprintf("%c%c%c", 224 + int(code / 4096), 128 + int(code / 64) % 64, 128 + code % 64)
    return sprintf("%c%c%c%c", 240 + int(code / 262144), 128 + int(code / 4096) % 64,
                   128 + int(code / 64) % 64, 128 + code % 64)
}

BEGIN {
    JSON_ESCAPE["b"] = "\b"; JSON_ESCAPE["f"] = "\f"; JSON_ESCAPE["n"] = "\n"
    JSON_ESCAPE["r"] = "\r"; JSON_ESCAPE["t"] = "\t"
    JSON_ESCAPE["\""] = "\""; JSON_ESCAPE["/"] = "/"
}

# A text as a JSON string. What is not ASCII becomes "?": the text may be cut, or no UTF-8 at all.
function json_quote(s,    n, i, c, out) {
    n = length(s)
    out = "\""
    for (i = 1; i <= n; i++) {
        c = substr(s, i, 1)
        out = out (c == "\"" || c == "\\" ? "\\" c : c >= " " && c <= "~" ? c : "?")
    }
    return out "\""
}

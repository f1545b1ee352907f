# What is in force in a block of an nginx configuration: functions over nginx_read.awk's tree.
#
# nginx inherits a directive from the block around it unless the block has one of that name; of those
# that may stand more than once (proxy_set_header, add_header, ...) a block with one has none of the
# outer ones. Both are the same walk: the innermost block that has the name.

# The block, from c outwards, in which the directive stands; -1 if in none.
function where(c, name) {
    if (!(name in USED))
        return -1
    for (; c >= 0; c = C_UP[c])
        if ((c, name) in N)
            return c
    return -1
}

# How often it stands in block c itself. (To read N would make an element of it.)
function count(c, name) {
    return (c, name) in N ? N[c, name] : 0
}

# The directive in force, or 0. Where one may stand once only, the last of two is as good as the first.
function find(c, name) {
    c = where(c, name)
    return c < 0 ? 0 : I[c, name, N[c, name]]
}

function value_of(c, name, fallback,    d) {
    d = find(c, name)
    return d && D_WORDS[d] > 0 ? D_WORD[d, 1] : fallback
}

function is_on(c, name, fallback) {
    return tolower(value_of(c, name, fallback)) == "on"
}

# Of the directives in force, the last whose first word is this one, in any case of letters; or 0.
function find_word(c, name, first,    k) {
    c = where(c, name)
    if (c < 0)
        return 0
    for (k = N[c, name]; k >= 1; k--)
        if (tolower(D_WORD[I[c, name, k], 1]) == first)
            return I[c, name, k]
    return 0
}

function has_word(d, w,    k) {
    for (k = 1; k <= D_WORDS[d]; k++)
        if (tolower(D_WORD[d, k]) == w)
            return 1
    return 0
}

# A directive of media types: is TYPE among them, or all? Without one, only text/html is.
function types_match(c, name,    d) {
    d = find(c, name)
    return d && (has_word(d, "*") || has_word(d, TYPE))
}

# "file:line"
function place(d) {
    return F_NAME[D_FILE[d]] ":" D_LINE[d]
}

# Where a value comes from, for a sentence.
function origin(d) {
    return d ? "set at " place(d) : "nginx's default"
}

# --- times and sizes ---

# Milliseconds of "60", "1h30m", "500ms"; -1 if it is no time.
function milliseconds(s,    ms, n, unit) {
    if (s ~ /^[0-9]+$/)
        return s * 1000
    ms = 0
    while (match(s, /^ *[0-9]+(ms|[smhdwMy])/)) {
        n = substr(s, 1, RLENGTH)
        s = substr(s, RLENGTH + 1)
        match(n, /(ms|[a-zA-Z])$/)
        unit = substr(n, RSTART)
        ms += substr(n, 1, RSTART - 1) * UNIT[unit]
    }
    return s == "" && ms >= 0 && unit != "" ? ms : -1
}

# Bytes of "8k", "1m"; -1 if it is no size.
function bytes(s) {
    if (s ~ /^[0-9]+$/)
        return s + 0
    if (s ~ /^[0-9]+[kK]$/)
        return s * 1024
    if (s ~ /^[0-9]+[mM]$/)
        return s * 1048576
    if (s ~ /^[0-9]+[gG]$/)
        return s * 1073741824
    return -1
}

# A time in force, in ms; what nginx would refuse ends the reading.
function time_of(c, name, fallback,    d, ms) {
    d = find(c, name)
    if (!d)
        return fallback
    ms = milliseconds(D_WORDS[d] ? D_WORD[d, 1] : "")
    if (ms < 0)
        nginx_fail(D_FILE[d], D_LINE[d], name ": \"" D_WORD[d, 1] "\" is not a time")
    return ms
}

function size_of(c, name, fallback,    d, n) {
    d = find(c, name)
    if (!d)
        return fallback
    n = bytes(D_WORDS[d] ? D_WORD[d, 1] : "")
    return n < 0 ? fallback : n
}

# 90000 -> "90 s"
function seconds(ms) {
    return ms < 1000 ? sprintf("%d ms", ms) : sprintf("%g s", ms / 1000)
}

# --- where a request goes ---

# The directive by which block c passes requests on, or 0. A location does not inherit it, an `if` and a
# limit_except do.
function pass_of(c,    k, d) {
    for (k = 1; k <= PASS_COUNT; k++)
        if ((c, PASS[k]) in N)
            return I[c, PASS[k], 1]
    if (C_KIND[c] == "if" || C_KIND[c] == "limit_except")
        return pass_of(C_UP[c])
    return 0
}

# Sets TO_HOST (without a scheme and a path) and TO_UPSTREAM (an upstream block, or -1).
function target_of(d,    s) {
    s = D_WORDS[d] ? D_WORD[d, 1] : ""
    sub(/^(http|https|grpc|grpcs|uwsgi|suwsgi):\/\//, "", s)
    if (s !~ /^unix:/)
        sub(/\/.*/, "", s)
    TO_HOST = s
    TO_UPSTREAM = (s in UPSTREAM) ? UPSTREAM[s] : -1
}

# May the request go to a second server? "yes", "no" or "maybe" (a name may have several addresses).
function peers(    k, d, n) {
    if (TO_UPSTREAM < 0) {
        if (TO_HOST ~ /^unix:/ || TO_HOST ~ /^[0-9.]+(:[0-9]+)?$/ || TO_HOST ~ /^\[/)
            return "no"
        return "maybe"
    }
    n = 0
    for (k = 1; k <= count(TO_UPSTREAM, "server"); k++) {
        d = I[TO_UPSTREAM, "server", k]
        if (!has_word(d, "down"))
            n++
    }
    return n > 1 ? "yes" : "no"
}

# --- servers and locations, for people ---

function server_of(c) {
    while (c >= 0 && C_KIND[c] != "server")
        c = C_UP[c]
    return c
}

# "example.com:80,443", after the first server_name and the listens.
function server_label(c,    k, d, s, seen, port, name) {
    c = server_of(c)
    if (c < 0)
        return "-"
    if (c in LABEL)
        return LABEL[c]
    name = ""
    for (k = 1; k <= count(c, "server_name") && name == ""; k++) {
        d = I[c, "server_name", k]
        if (D_WORDS[d] && D_WORD[d, 1] != "")
            name = D_WORD[d, 1]
    }
    s = ""
    for (k = 1; k <= count(c, "listen"); k++) {
        d = I[c, "listen", k]
        port = D_WORDS[d] ? D_WORD[d, 1] : ""
        if (port !~ /^unix:/) {
            if (port ~ /[:\]]/ && port !~ /:[0-9]+$/)
                port = port ":80"
            sub(/^.*:/, "", port)
            if (port !~ /^[0-9]+$/)
                port = "80"
        }
        if (index("," s ",", "," port ",") == 0)
            s = s (s == "" ? "" : ",") port
    }
    if (s == "")
        s = "80"
    return LABEL[c] = (name == "" ? "_" : name) ":" s
}

# Is any of the server's sockets TLS? And may the client speak HTTP/2 or 3 on it?
function server_tls(c,    k) {
    c = server_of(c)
    if (c < 0)
        return 0
    if (is_on(c, "ssl", "off"))
        return 1
    for (k = 1; k <= count(c, "listen"); k++)
        if (has_word(I[c, "listen", k], "ssl"))
            return 1
    return 0
}

function server_http2(c,    k) {
    if (is_on(c, "http2", "off"))
        return 1
    for (k = 1; k <= count(c, "listen"); k++)
        if (has_word(I[c, "listen", k], "http2") || has_word(I[c, "listen", k], "spdy") || has_word(I[c, "listen", k], "quic"))
            return 1
    return 0
}

# A location's modifier ("", "=", "^~", "~", "~*", "@") and its path or pattern.
function location_parts(c,    s) {
    s = C_WORD[c, 1]
    if (C_WORDS[c] >= 2) {
        L_MOD[c] = s
        L_PATH[c] = C_WORD[c, 2]
        return
    }
    if (match(s, /^(=|\^~|~\*|~|@)/)) {
        L_MOD[c] = substr(s, 1, RLENGTH)
        L_PATH[c] = substr(s, RLENGTH + 1)
        return
    }
    L_MOD[c] = ""
    L_PATH[c] = s
}

function location_label(c) {
    if (C_KIND[c] == "location")
        return "location " C_ARG[c]
    if (C_KIND[c] == "if" || C_KIND[c] == "limit_except")
        return C_KIND[c] " " C_ARG[c] " in " location_label(C_UP[c])
    return C_KIND[c]
}

function values_begin(    k, c) {
    PASS_COUNT = split("proxy_pass fastcgi_pass uwsgi_pass scgi_pass grpc_pass", PASS, " ")
    UNIT["ms"] = 1
    UNIT["s"] = 1000
    UNIT["m"] = 60000
    UNIT["h"] = 3600000
    UNIT["d"] = 86400000
    UNIT["w"] = 604800000
    UNIT["M"] = 2592000000
    UNIT["y"] = 31536000000
    for (c = 0; c < C_COUNT; c++) {
        if (C_KIND[c] == "upstream")
            UPSTREAM[C_WORD[c, 1]] = c
        else if (C_KIND[c] == "location") {
            location_parts(c)
            KID[C_UP[c], ++KIDS[C_UP[c]]] = c
        }
    }
}

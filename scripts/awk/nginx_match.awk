# Which location serves a request: nginx's own choice of server and location, over nginx_read.awk's tree.
#
# Regular expressions are nginx's (PCRE), which no awk has. The caller asks for them (matches_needed), tries
# them with grep -P, and gives the numbers of those that matched (`matched`, separated by blanks):
# a block's number is the same each time the same configuration is read.

# --- the request ---

# The path as nginx matches it: without the query, %XX decoded, slashes merged, dots resolved. "" if
# nginx would answer 400.
function normal_path(s, keep_slashes,    out, i, c, n, part, k, m) {
    sub(/[?#].*/, "", s)
    if (substr(s, 1, 1) != "/")
        return ""
    out = ""
    while ((i = index(s, "%")) > 0) {
        c = tolower(substr(s, i + 1, 2))
        if (c !~ /^[0-9a-f][0-9a-f]$/ || c == "00")
            return ""
        n = 16 * (index("0123456789abcdef", substr(c, 1, 1)) - 1) + index("0123456789abcdef", substr(c, 2, 1)) - 1
        out = out substr(s, 1, i - 1) sprintf("%c", n)
        s = substr(s, i + 3)
    }
    s = out s
    n = split(s, part, "/")
    m = 0
    for (k = 2; k <= n; k++) {
        if (part[k] == "" && k < n && !keep_slashes)
            continue
        if (part[k] == ".." || part[k] == ".") {
            if (part[k] == ".." && --m < 0)
                return ""
            if (k == n)
                part[++m] = ""
        } else
            part[++m] = part[k]
    }
    out = ""
    for (k = 1; k <= m; k++)
        out = out "/" part[k]
    return out == "" ? "/" : out
}

# --- regular expressions that are to be tried ---

# Lines of NUMBER, "i" or "", PATTERN, TEXT for all that may matter.
function matches_needed(path,    c, k, d, w) {
    for (c = 0; c < C_COUNT; c++) {
        if (C_KIND[c] == "location" && (L_MOD[c] == "~" || L_MOD[c] == "~*"))
            need_match(c, L_MOD[c] == "~*" ? "i" : "-", L_PATH[c], path)
        else if (C_KIND[c] == "server" && host != "")
            for (k = 1; k <= count(c, "server_name"); k++) {
                d = I[c, "server_name", k]
                for (w = 1; w <= D_WORDS[d]; w++)
                    if (D_WORD[d, w] ~ /^~/)
                        need_match(c "." k "." w, "i", substr(D_WORD[d, w], 2), host)
            }
    }
}

function need_match(number, flags, pattern, text) {
    if (pattern text ~ /[\n\t]/)
        return
    printf "%s\t%s\t%s\t%s\n", number, flags, pattern, text
}

function is_matched(number) {
    return index(" " matched " ", " " number " ") > 0
}

# --- the server ---

# Marks in CHOSEN the servers that a Host may lead to: for each socket one. Without a host, all.
function choose_servers(    c, k, d, key, keys, n, i, best, rank, r) {
    n = 0
    for (c = 0; c < C_COUNT; c++) {
        if (C_KIND[c] != "server")
            continue
        if (host == "") {
            CHOSEN[c] = 1
            continue
        }
        for (k = 1; k <= count(c, "listen") || k == 1; k++) {
            d = count(c, "listen") ? I[c, "listen", k] : 0
            key = d && D_WORDS[d] ? D_WORD[d, 1] : "80"
            if (key ~ /^[0-9]+$/)
                key = "*:" key
            if (!(key in best)) {
                keys[++n] = key
                best[key] = c
                rank[key] = 0
            }
            r = rank_of(c)
            if (r == 0 && d && (has_word(d, "default_server") || has_word(d, "default")))
                r = 0.5
            if (r > rank[key]) {
                best[key] = c
                rank[key] = r
            }
        }
    }
    for (i = 1; i <= n; i++)
        CHOSEN[best[keys[i]]] = 1
    if (fragment == "location")
        CHOSEN[0] = 1
}

# How well a server's names fit the host: exact, *.name (the longest), name.* (the longest), the first ~regex.
function rank_of(c,    k, d, w, name, r, best) {
    best = 0
    for (k = 1; k <= count(c, "server_name"); k++) {
        d = I[c, "server_name", k]
        for (w = 1; w <= D_WORDS[d]; w++) {
            name = tolower(D_WORD[d, w])
            r = 0
            if (name == host || name == "." host)
                r = 4000000
            else if (name ~ /^\*?\./) {
                sub(/^\*/, "", name)
                if (length(host) > length(name) && substr(host, length(host) - length(name) + 1) == name)
                    r = 3000000 + length(name)
            } else if (name ~ /\.\*$/) {
                sub(/\*$/, "", name)
                if (substr(host, 1, length(name)) == name && length(host) > length(name))
                    r = 2000000 + length(name)
            } else if (name ~ /^~/ && is_matched(c "." k "." w))
                r = 2000000 - c
            if (r > best)
                best = r
        }
    }
    return best
}

# --- the location ---

# The location of block c (a server or a location) that serves the path: the one that matches exactly; else the
# longest prefix, and in it its own locations; unless that is ^~, the first regex that matches wins. c itself
# when none does.
function serve(c, path,    i, k, best, found, deeper) {
    best = -1
    for (i = 1; i <= KIDS[c]; i++) {
        k = KID[c, i]
        if (L_MOD[k] == "=" && L_PATH[k] == path)
            return k
        if (is_prefix(k) && substr(path, 1, length(L_PATH[k])) == L_PATH[k] && \
            (best < 0 || length(L_PATH[k]) > length(L_PATH[best])))
            best = k
    }
    if (best >= 0) {
        found = serve(best, path)
        # An exact or a regex location inside has the last word.
        if (found != best && (L_MOD[found] == "=" || L_MOD[found] ~ /^~/))
            return found
        deeper = found
    } else
        deeper = c
    if (best < 0 || L_MOD[best] != "^~")
        for (i = 1; i <= KIDS[c]; i++) {
            k = KID[c, i]
            if (L_MOD[k] ~ /^~/ && is_matched(k))
                return serve(k, path)
        }
    return deeper
}

function is_prefix(l) {
    return L_MOD[l] == "" || L_MOD[l] == "^~"
}

# Marks in SERVED what may serve the path: the location, and those that it goes on to by a name (try_files; an
# error_page for what it returns, or for a file that is not there).
function mark_served(path,    c, l) {
    for (c = 0; c < C_COUNT; c++)
        if (CHOSEN[c]) {
            l = serve(c, path)
            SERVED_BY[c] = l
            REDIRECTED[c] = redirected(c, path)
            if (l != c && !REDIRECTED[c])
                mark_location(l, c)
        }
}

# A request for /a is answered by a redirect where a prefix /a/ passes requests on, and no = /a stands beside it.
function redirected(c, path,    i, k, yes) {
    yes = 0
    for (i = 1; i <= KIDS[c]; i++) {
        k = KID[c, i]
        if (L_MOD[k] == "=" && L_PATH[k] == path)
            return 0
        if (is_prefix(k) && L_PATH[k] == path "/" && pass_of(k))
            yes = 1
    }
    return yes
}

function mark_location(l, server,    d, c, k) {
    if (l in SERVED)
        return
    SERVED[l] = 1
    if (pass_of(l))
        return
    d = count(l, "try_files") ? I[l, "try_files", 1] : 0
    if (d)
        mark_named(D_WORD[d, D_WORDS[d]], server)
    c = where(l, "error_page")
    for (k = 1; c >= 0 && k <= N[c, "error_page"]; k++) {
        d = I[c, "error_page", k]
        if (has_word(d, count(l, "return") ? D_WORD[I[l, "return", 1], 1] : "404"))
            mark_named(D_WORD[d, D_WORDS[d]], server)
    }
}

function mark_named(name, server,    i) {
    if (name ~ /^@/)
        for (i = 1; i <= KIDS[server]; i++)
            if (C_ARG[KID[server, i]] == name)
                mark_location(KID[server, i], server)
}

# Is the block, or one around it, what serves the path?
function is_served(c) {
    return (home_of(c) in SERVED)
}

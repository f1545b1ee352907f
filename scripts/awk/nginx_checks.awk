# What hurts a token stream in a location that passes requests on: one function a check.
#
# docs/nginx-lint.md tells for each how it was found out. Severities:
#     fault    the stream does not stream, or an abort does not arrive
#     warning  it breaks under conditions that will come
#     note     it costs something, or needs something else to be right
#
# P is the module's prefix ("proxy"). BUFFERED: the reply passes nginx's buffers, by configuration, and no
# header of the upstream prevents it (`x_accel`). HELD: nginx does not even hand on what has come.

function finding(severity, id, d, why) {
    F_COUNT++
    F_SEVERITY[F_COUNT] = severity
    F_CHECK[F_COUNT] = id
    F_CTX[F_COUNT] = HERE
    # The findings of a block stand together.
    if (!(HERE in F_FROM))
        F_FROM[HERE] = F_COUNT
    F_TO[HERE] = F_COUNT
    F_FILE[F_COUNT] = F_NAME[d ? D_FILE[d] : C_FILE[HERE]]
    F_LINE[F_COUNT] = d ? D_LINE[d] : C_LINE[HERE]
    F_DIRECTIVE[F_COUNT] = d ? written(d) : ""
    F_WHY[F_COUNT] = why
    F_HOW[F_COUNT] = FIX_HOW
    F_FIX_FILE[F_COUNT] = FIX_FILE
    F_FIX_LINE[F_COUNT] = FIX_LINE
    F_FIX[F_COUNT] = FIX
    fix_none()
    TALLY[severity]++
}

function check_location(c,    d) {
    HERE = c
    d = pass_of(c)
    P = D_NAME[d]
    sub(/_pass$/, "", P)
    target_of(d)
    BUFFERED = HELD = 0
    if (P != "grpc") {
        check_buffering(c)
        if (P == "proxy")
            check_http_version(c)
        check_cache(c)
        check_client_abort(c)
        check_hidden(c)
        check_limit_rate(c)
    }
    check_compression(c)
    check_filters(c)
    check_read_timeout(c)
    check_next_upstream(c)
    check_mirror(c)
    check_client_side(c)
    if (P != "grpc") {
        check_accel_header(c)
        check_keepalive(c)
        check_costs(c)
    }
}

# --- does it stream? ---

function check_buffering(c,    d, name, deaf, tail, framed, wrong) {
    name = P "_buffering"
    if (!is_on(c, name, "on"))
        return
    d = find(c, name)
    deaf = find(c, P "_ignore_headers")
    if (deaf && !has_word(deaf, "x-accel-buffering"))
        deaf = 0
    fix_set(c, name, "off")
    if (x_accel && !deaf) {
        finding("note", "buffering", d, name " is on (" origin(d) "): it streams only as long as the upstream sends X-Accel-Buffering: no")
        return
    }
    BUFFERED = 1
    tail = deaf ? "; and " P "_ignore_headers at " place(deaf) " makes nginx deaf to the upstream's X-Accel-Buffering: no" : ""
    # Where nginx sees the ends of chunks or records, it hands them on: in the clear and in HTTP/2.
    framed = P == "proxy" ? http_version(c) != "1.0" : P == "fastcgi" && is_on(c, "fastcgi_keep_conn", "off")
    HELD = !framed
    if (HELD)
        finding("fault", "buffering", d, name " is on (" origin(d) "): tokens wait in nginx until a buffer " (find(c, P "_buffer_size") || find(c, P "_buffers") ? "(" P "_buffers)" : "of 4 or 8 KiB") " is full, a short reply until its end" tail)
    else if (server_tls(c))
        finding("fault", "buffering", d, name " is on (" origin(d) "): an HTTP/1.1 client over TLS gets nothing until " value_of(c, "ssl_buffer_size", "16k") " have come (ssl_buffer_size)" tail)
    else
        finding("warning", "buffering", d, name " is on (" origin(d) "): " (P == "proxy" ? "chunks pass, but a reply without them waits," : "records pass, but") " Nagle's algorithm may hold one back for 40 ms, and a slow client does not slow the generator" tail)

    wrong = find_word(c, "add_header", "x-accel-buffering")
    if (!wrong && P == "proxy")
        wrong = find_word(c, "proxy_set_header", "x-accel-buffering")
    if (wrong) {
        fix_set(c, name, "off")
        finding("warning", "accel-misplaced", wrong, D_NAME[wrong] " X-Accel-Buffering does not switch off the buffering of this nginx: it listens to the upstream's reply only")
    }
}

function http_version(c) {
    return value_of(c, "proxy_http_version", OLD_HTTP ? "1.0" : "1.1")
}

function check_http_version(c,    d) {
    if (http_version(c) != "1.0")
        return
    d = find(c, "proxy_http_version")
    fix_set(c, "proxy_http_version", "1.1")
    finding("warning", "http-version", d, "the upstream is spoken to in HTTP/1.0 (" (d ? origin(d) : "nginx's default before 1.29.7") "): a reply that breaks off reaches the client as a complete one")
}

# A compressor that is flushed for each token streams; one behind a buffer waits for its end.
function check_compression(c,    k, name, types, d, why) {
    for (k = 1; k <= COMPRESSOR_COUNT; k++) {
        name = COMPRESSOR[k]
        if (!is_on(c, name, "off") || !types_match(c, name "_types"))
            continue
        d = find(c, name)
        types = find(c, name "_types")
        why = name " is on for " TYPE " (" place(d) (place(types) == place(d) ? ")" : ", " place(types) ")")
        fix_set(c, name, "off")
        if (BUFFERED)
            finding("fault", "compression", types, why ": with buffering on, it gives nothing away until the stream ends")
        else
            finding("note", "compression", types, why ": it streams, but each stream holds a compressor (about 100 KiB with gzip) and each token costs a flush")
    }
}

function check_limit_rate(c,    k, name, d, n) {
    if (!BUFFERED)
        return
    for (k = 1; k <= 2; k++) {
        name = k == 1 ? "limit_rate" : P "_limit_rate"
        d = find(c, name)
        n = size_of(c, name, 0)
        if (n > 0 && n < 32768) {
            fix_set(c, name, "0")
            finding("warning", "limit-rate", d, name " " D_WORD[d, 1] ": nginx stops the stream for seconds to keep to it (it would not, without buffering)")
        }
    }
}

# --- does an abort arrive? ---

function check_client_abort(c,    d, name) {
    name = P "_ignore_client_abort"
    if (!is_on(c, name, "off"))
        return
    d = find(c, name)
    fix_set(c, name, "off")
    if (HELD)
        finding("fault", "client-abort", d, name " is on: a client that leaves is never noticed, its generation runs to the end")
    else
        finding("fault", "client-abort", d, name " is on: a client that leaves is noticed at the next token only; what is queued or in prefill runs on for nobody")
}

function check_cache(c,    d, name, deaf, methods, post, get) {
    name = P "_store"
    d = find(c, name)
    if (d && D_WORD[d, 1] != "off") {
        fix_set(c, name, "off")
        finding("fault", "store", d, name " is on: a client that leaves is " (BUFFERED ? "never noticed, its generation runs to the end, to be stored" : "noticed at the next token only; what is queued or in prefill runs on for nobody"))
    }
    name = P "_cache"
    d = find(c, name)
    if (!d || D_WORD[d, 1] == "off")
        return
    methods = find(c, name "_methods")
    post = methods && has_word(methods, "post")
    deaf = find(c, P "_ignore_headers")
    deaf = deaf && has_word(deaf, "cache-control")
    fix_set(c, name, "off")
    get = post ? "GET or POST" : "GET"
    if (BUFFERED && deaf)
        finding("fault", "cache", d, name " is on, and the upstream's Cache-Control ignored: a " get " whose client leaves runs to its end, to be stored, and is replayed in one piece")
    else
        finding(post ? "fault" : "warning", "cache", d, name " is on: a " get " whose client leaves before the upstream's reply begins (queue, prefill) is not noticed" (BUFFERED && find(c, name "_valid") ? ", and afterwards neither unless the upstream says Cache-Control: no-cache" : ""))
}

# --- time ---

function check_read_timeout(c,    d, name, ms) {
    name = P "_read_timeout"
    d = find(c, name)
    ms = time_of(c, name, 60000)
    if (ms > silence_s * 1000)
        return
    fix_set(c, name, silence_s < 3600 ? "1h" : (2 * silence_s) "s")
    finding("warning", "read-timeout", d, name " is " seconds(ms) " (" origin(d) "): a longer silence (queue, prefill, stall, a reply that is not streamed) is cut, with a 504, or in the middle of a stream that is logged as 200")
}

# A second server may get what the first one is still generating.
function check_next_upstream(c,    d, name, many, again, risky) {
    name = P "_next_upstream"
    d = find(c, name)
    if (value_of(c, name "_tries", "0") == "1" || (d && has_word(d, "off")))
        return
    many = peers()
    if (many == "no")
        return
    again = !d || has_word(d, "timeout") ? "a timeout" : has_word(d, "http_504") ? "a 504" : ""
    risky = d && has_word(d, "non_idempotent")
    fix_set(c, name, "off")
    if (risky)
        finding(many == "yes" ? "fault" : "warning", "next-upstream", d, name " has non_idempotent: a POST whose server " (again != "" ? "is silent for too long" : "fails") " is sent to another one" (again != "" ? ", and generated twice" : ""))
    else if (again != "")
        finding(many == "yes" ? "warning" : "note", "next-upstream", d, name " (" origin(d) "): after " again " a GET is sent to another server" (many == "yes" ? "" : ", if " TO_HOST " has several addresses,") " and generated twice; `error` alone is safe")
    fix_none()
}

# --- what else touches the reply ---

function check_filters(c,    d, k, name) {
    d = find(c, "image_filter")
    if (d && D_WORD[d, 1] != "off") {
        fix_set(c, "image_filter", "off")
        finding("fault", "image-filter", d, "image_filter answers 415 to all that is no image")
    }
    d = find(c, "xslt_stylesheet")
    if (d && types_match(c, "xslt_types")) {
        fix_remove(d)
        finding("fault", "xslt", d, "xslt_stylesheet reads the whole reply as XML, and answers 500 to a stream")
    }
    if (is_on(c, "ssi", "off") && types_match(c, "ssi_types")) {
        fix_set(c, "ssi", "off")
        finding("fault", "ssi", find(c, "ssi"), "ssi is on for " TYPE " (" place(find(c, "ssi_types")) "): a token that reads <!--# ... --> is executed")
    }
    if (types_match(c, "addition_types"))
        for (k = 1; k <= 2; k++) {
            name = k == 1 ? "add_before_body" : "add_after_body"
            d = find(c, name)
            if (d && D_WORD[d, 1] != "") {
                fix_set(c, name, "\"\"")
                finding("warning", "addition", d, name " puts text into the stream" (k == 2 ? ", after its last event" : ", before its first event"))
            }
        }
    for (k = 1; k <= 2; k++) {
        name = k == 1 ? "sub_filter" : "subs_filter"
        d = find(c, name)
        if (d && types_match(c, name "_types")) {
            fix_types(find(c, name "_types"))
            finding("note", "sub-filter", d, name " reads " TYPE " too (" place(find(c, name "_types")) "): it rewrites what the tokens say")
        }
    }
    for (k = 1; k <= SCRIPT_COUNT; k++)
        if (d = find(c, SCRIPT[k]))
            finding("note", "script-filter", d, SCRIPT[k] ": its code sees each piece of the stream; it must neither collect nor block")
}

function check_hidden(c,    d) {
    d = find_word(c, P "_hide_header", "content-type")
    if (d) {
        fix_remove(d)
        finding("fault", "hidden-type", d, "Content-Type is hidden: an EventSource does not read a reply without it")
    }
}

function check_mirror(c,    d) {
    d = find(c, "mirror")
    if (d && D_WORD[d, 1] != "off") {
        fix_set(c, "mirror", "off")
        finding("warning", "mirror", d, "mirror sends each request to a second upstream too, which generates as well; and the client's next request on its connection waits for that reply")
    }
}

# --- between nginx and the client ---

function check_client_side(c,    d, ms, s) {
    if (tolower(value_of(c, "tcp_nodelay", "on")) == "off") {
        fix_set(c, "tcp_nodelay", "on")
        finding("warning", "nodelay", find(c, "tcp_nodelay"), "tcp_nodelay is off: a token waits until the client has acknowledged the one before, up to 40 ms or a round trip")
    }
    if (tolower(value_of(c, "chunked_transfer_encoding", "on")) == "off") {
        fix_set(c, "chunked_transfer_encoding", "on")
        finding("warning", "chunked", find(c, "chunked_transfer_encoding"), "chunked_transfer_encoding is off: an HTTP/1.1 client cannot tell a stream that broke off from a complete one, and the connection ends with it")
    }
    d = find(c, "expires")
    s = d ? D_WORD[d, 1] == "modified" ? D_WORD[d, 2] : D_WORD[d, 1] : "off"
    if (s != "off" && s != "epoch" && s !~ /^-/ && s !~ /[$]/) {
        fix_set(c, "expires", "off")
        finding("warning", "expires", d, "expires " s " replaces the upstream's Cache-Control: no-cache: a cache in front may store the stream and hold it back")
    }
    ms = time_of(c, "send_timeout", 60000)
    if (ms < 10000) {
        fix_set(c, "send_timeout", "60s")
        finding("note", "send-timeout", find(c, "send_timeout"), "send_timeout is " seconds(ms) ": a client that stops reading for so long (a phone between two cells) is dropped")
    }
}

# X-Accel-* of the upstream ends here.
function check_accel_header(c) {
    if (find_word(c, P "_pass_header", "x-accel-buffering") || find_word(c, "add_header", "x-accel-buffering"))
        return
    fix_more(c, P "_pass_header", "X-Accel-Buffering")
    finding("note", "accel-header", find_word(c, P "_hide_header", "x-accel-buffering"), "nginx keeps the upstream's X-Accel-Buffering: no for itself: an nginx in front of this one would buffer")
}

# --- connections to the upstream, memory ---

function check_keepalive(c,    kept, h, closes) {
    kept = TO_UPSTREAM >= 0 && count(TO_UPSTREAM, "keepalive") ? I[TO_UPSTREAM, "keepalive", 1] : 0
    if (!kept || D_WORD[kept, 1] == "0")
        return
    if (P == "fastcgi") {
        fix_remove(kept)
        if (is_on(c, "fastcgi_keep_conn", "off"))
            finding("note", "keepalive", kept, "keepalive of the upstream: each idle connection holds a worker of a server that has one process a request (php-fpm, spawn-fcgi)")
        else
            finding("note", "keepalive", kept, "keepalive of the upstream is not used: fastcgi_keep_conn is off (on is for servers whose idle connections hold no worker)")
    } else if (P == "proxy" && http_version(c) != "2") {
        h = find_word(c, "proxy_set_header", "connection")
        closes = h ? tolower(D_WORD[h, 2]) == "close" : OLD_HTTP
        if (!closes && http_version(c) != "1.0")
            return
        if (!closes)
            fix_set(c, "proxy_http_version", "1.1")
        else if (h && D_CTX[h] == home_of(c))
            fix_replace(h, "proxy_set_header Connection \"\";")
        else
            fix_more(c, "proxy_set_header", "Connection \"\"")
        finding("note", "keepalive", kept, "keepalive of the upstream is not used (" (http_version(c) == "1.0" ? "HTTP/1.0" (closes ? " and " : "") : "") (closes ? "Connection: close" (h ? " at " place(h) : "") : "") "): each request pays for a connection")
    }
}

function check_costs(c,    d, n) {
    d = find(c, P "_request_buffering")
    if (d && !is_on(c, P "_request_buffering", "on")) {
        fix_set(c, P "_request_buffering", "on")
        finding("note", "request-buffering", d, P "_request_buffering is off: a client that uploads slowly holds a connection of the upstream meanwhile")
    }
    n = size_of(c, P "_buffer_size", 4096)
    if (n > 65536) {
        d = find(c, P "_buffer_size")
        fix_set(c, P "_buffer_size", "8k")
        finding("note", "buffer-size", d, P "_buffer_size " D_WORD[d, 1] ": each live stream holds one, 1,000 streams " sprintf("%d MB", n * 1000 / 1000000))
    }
}

# --- once a server, once a configuration ---

function check_server(c,    k, d) {
    HERE = c
    if (!server_tls(c) || server_http2(c))
        return
    if (version_number >= 1025001)
        fix_add(c, "http2 on;")
    else
        for (k = 1; k <= count(c, "listen"); k++) {
            d = I[c, "listen", k]
            if (FIX == "" && has_word(d, "ssl"))
                fix_replace(d, substr(written(d), 1, length(written(d)) - 1) " http2;")
        }
    finding("note", "http1-only", 0, "TLS without HTTP/2: a browser opens six connections to a host, so its seventh EventSource waits")
}

function check_main(    d, ms, c, n) {
    HERE = 0
    d = find(0, "worker_shutdown_timeout")
    ms = time_of(0, "worker_shutdown_timeout", 3600000)
    if (ms < 3600000) {
        fix_replace(d, "worker_shutdown_timeout 1h;")
        finding("warning", "shutdown-timeout", d, "worker_shutdown_timeout is " seconds(ms) ": after a reload, streams are cut that last longer")
    }
    for (c = 0; c < C_COUNT; c++)
        if (C_KIND[c] == "events") {
            HERE = c
            n = value_of(c, "worker_connections", "512")
            if (n + 0 < 1024) {
                fix_set(c, "worker_connections", "16384")
                finding("note", "connections", find(c, "worker_connections"), "worker_connections is " n " (" origin(find(c, "worker_connections")) "): a stream takes two, so a worker holds " int(n / 2) " streams at most")
            }
        }
}

# --- what obviously does not stream ---

# A word for the summary, or "".
function not_a_stream(c,    path, mod) {
    c = home_of(c)
    path = tolower(L_PATH[c])
    mod = L_MOD[c]
    if (mod != "~" && mod != "~*" && (L_PATH[c] in SUBREQUEST))
        return "subrequest"
    if (mod == "~" || mod == "~*") {
        if (path ~ /\\\.\(?.*(css|png|jpe?g|gif|ico|svg|woff|ttf)[^\/]*$/)
            return "asset"
    } else if (path ~ /\/(health|healthz|healthcheck|health_check|livez|readyz|ping|metrics|nginx_status|stub_status|favicon\.ico|robots\.txt)\/?$/)
        return "probe"
    else if (path ~ /^\/(static|assets|images|img|css|js|fonts|\.well-known)(\/|$)/)
        return "asset"
    if (path ~ /(^|[\/_-])(ws|wss|websockets?|socket\.io|sockjs|cable)([\/$_-]|$)/ && find_word(c, "proxy_set_header", "upgrade"))
        return "websocket"
    return ""
}

# An `if` that changes nothing of ours is no location of its own.
function is_of_interest(c,    k) {
    if (!pass_of(c))
        return 0
    if (C_KIND[c] != "if" && C_KIND[c] != "limit_except")
        return 1
    if ((c, "return") in N)
        return 0
    for (k = 1; k <= OWN_COUNT; k++)
        if ((c, OWN[k]) in N)
            return 1
    return 0
}

function checks_begin(    d) {
    COMPRESSOR_COUNT = split("gzip brotli zstd", COMPRESSOR, " ")
    SCRIPT_COUNT = split("body_filter_by_lua_block body_filter_by_lua body_filter_by_lua_file js_body_filter", SCRIPT, " ")
    OWN_COUNT = split("proxy_pass fastcgi_pass uwsgi_pass scgi_pass grpc_pass gzip brotli limit_rate expires", OWN, " ")
    for (d = 1; d <= D_COUNT; d++)
        if ((D_NAME[d] == "auth_request" || D_NAME[d] == "mirror") && D_WORD[d, 1] != "off")
            SUBREQUEST[D_WORD[d, 1]] = 1
}

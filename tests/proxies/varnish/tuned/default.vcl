vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "@ORIGIN_PORT@";

    # For what is not piped: 60 s (the default) of silence end a reply.
    .first_byte_timeout = 1h;
    .between_bytes_timeout = 1h;
}

sub vcl_recv {
    # Otherwise Varnish fetches and delivers in two threads, and looks at the client only when it
    # writes: one that leaves is noticed three tokens later, and in a silent gap not at all. In a
    # pipe it passes bytes and closes on.
    if (req.url ~ "^/(stream|generate|v1/)") {
        return (pipe);
    }
}

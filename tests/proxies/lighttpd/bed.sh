# lighttpd, mod_fastcgi.
# shellcheck shell=sh disable=SC2034

DRAIN=INT # takes no more connections; live requests go on to their end

start_proxy() {
    start_server proxy lighttpd -D -f lighttpd.conf -m "$SERVERS/usr/lib/lighttpd"
}

# Varnish before nginx: the side door, with the shipped nginx.conf.
# shellcheck shell=sh disable=SC2034

DRAIN=TERM # Varnish knows no other end

start_proxy() {
    # No jail: it would want users and capabilities of its own.
    set -- -F -j none -n "$PWD/work" -a "127.0.0.1:$PORT" -f "$PWD/default.vcl" -s malloc,64m
    if [ -f parameters ]; then
        while read -r parameter comment; do
            set -- "$@" -p "$parameter"
        done <parameters
    fi
    start_server proxy varnishd "$@"
}

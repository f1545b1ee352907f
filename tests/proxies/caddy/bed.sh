# Caddy, reverse_proxy with the FastCGI transport.
# shellcheck shell=sh disable=SC2034

DRAIN=TERM
STOP=QUIT # TERM waits for live streams, QUIT does not

start_proxy() {
    XDG_DATA_HOME=$PWD XDG_CONFIG_HOME=$PWD start_server proxy caddy run --config Caddyfile
}

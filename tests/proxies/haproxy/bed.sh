# HAProxy, fcgi-app.
# shellcheck shell=sh disable=SC2034

DRAIN=USR1 # soft-stop: takes no more connections; live requests go on to their end

start_proxy() {
    start_server proxy haproxy -db -f haproxy.cfg
}

# h2o, fastcgi.connect.
# shellcheck shell=sh disable=SC2034

DRAIN=TERM
STOP=INT # TERM waits for live streams

start_proxy() {
    # It refuses to run as root, and to be told whom to run as by anybody else.
    ! is_root || echo "user: $SERVER_USER" >>h2o.conf
    start_server proxy h2o -c h2o.conf
}

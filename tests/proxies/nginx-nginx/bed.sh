# nginx, proxy_pass, before another nginx.
# shellcheck shell=sh disable=SC2034

DRAIN=QUIT # of the one in front: takes no more connections; live requests go on to their end

start_proxy() {
    fill "$BEDS/private/nginx-private.conf"
    # Without a back.conf of its own, the one behind is the side door, with the shipped nginx.conf.
    if [ -f back.conf ]; then
        start_server back nginx -p "$PWD/" -c "$PWD/back.conf" -e back.log \
            -g "daemon off; user $SERVER_USER; pid back.pid; error_log back.log;"
    fi
    start_server proxy nginx -p "$PWD/" -c "$PWD/front.conf" -e error.log \
        -g "daemon off; user $SERVER_USER; pid nginx.pid; error_log error.log;"
}

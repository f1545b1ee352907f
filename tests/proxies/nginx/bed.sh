# nginx, fastcgi_pass.
# shellcheck shell=sh disable=SC2034

DRAIN=QUIT # takes no more connections; live requests go on to their end

start_proxy() {
    fill "$BEDS/private/nginx-private.conf"
    start_server proxy nginx -p "$PWD/" -c "$PWD/nginx.conf" -e error.log \
        -g "daemon off; user $SERVER_USER; pid nginx.pid; error_log error.log;"
}

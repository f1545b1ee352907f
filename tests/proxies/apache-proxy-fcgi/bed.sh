# Apache, mod_proxy_fcgi.
# shellcheck shell=sh disable=SC2034

DRAIN=WINCH # graceful-stop: takes no more connections; live requests go on to their end

start_proxy() {
    fill "$BEDS/private/apache-private.conf"
    start_server proxy apache2 -DFOREGROUND -d "$PWD" -f "$PWD/apache.conf" -E startup.log
}

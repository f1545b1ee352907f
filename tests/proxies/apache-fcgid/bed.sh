# Apache, mod_fcgid, which starts the responder itself: it cannot connect to one that runs. The
# ledger's file makes that responder's requests known at the side door, to another one.
# shellcheck shell=sh disable=SC2034

DRAIN=WINCH # graceful-stop: takes no more connections; live requests go on to their end

start_proxy() {
    fill "$BEDS/private/apache-private.conf"
    # A copy, because root's Apache runs as another user, who may not look into /root.
    install -m 755 -- "$(readlink -f -- "${RUNNEL:-$ROOT/build/bin/runnel}")" runnel
    start_server proxy apache2 -DFOREGROUND -d "$PWD" -f "$PWD/apache.conf" -E startup.log
}

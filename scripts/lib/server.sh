# The server of `scripts/up`: where it lives, which processes are its own. Sourced after common.sh.
# shellcheck shell=sh disable=SC2034,SC2154 # its variables are the callers', and the other way

PATH=$PATH:/usr/sbin:/sbin              # nginx, for an ordinary user
SERVER_USER=www-data                    # of nginx.conf; used when root

is_root() { [ "$(id -u)" -eq 0 ]; }

# The prefix holds the socket, pid files, logs and the ledger. PREFIX is absolute; nothing is made.
choose_prefix() {
    if [ -n "${RUNNEL_PREFIX:-}" ]; then
        PREFIX=$RUNNEL_PREFIX
    elif is_root; then
        PREFIX=/run/runnel
    else
        PREFIX=${XDG_RUNTIME_DIR:-/tmp}/runnel-$(id -u)
    fi
    case $PREFIX in
        /*) ;;
        *) PREFIX=$(pwd)/$PREFIX ;;
    esac
    PREFIX=${PREFIX%/}
}

# In /tmp another user may have made the folder first: then its files are not to be trusted.
check_prefix() {
    [ ! -L "$PREFIX" ] || could_not_run "$PREFIX is a symbolic link: set RUNNEL_PREFIX to a folder of your own"
    [ -d "$PREFIX" ] || could_not_run "$PREFIX is no folder: set RUNNEL_PREFIX"
    owner=$(stat -c %u -- "$PREFIX")
    [ "$owner" -eq "$(id -u)" ] ||
        could_not_run "$PREFIX belongs to user $(stat -c %U -- "$PREFIX"): set RUNNEL_PREFIX to a folder of your own"
    PREFIX=$(cd -- "$PREFIX" && pwd -P)
}

# is_ours PID WORD: a live process whose working directory is the prefix and whose command line has
# WORD in it. A pid file may be stale, and its number by now somebody else's.
is_ours() {
    case $1 in '' | *[!0-9]*) return 1 ;; esac
    is_running "$1" && [ "$(readlink "/proc/$1/cwd")" = "$PREFIX" ] &&
        tr '\0' ' ' <"/proc/$1/cmdline" 2>/dev/null | grep -q -- "$2"
}

# The pids that are ours and alive, space-separated; empty if there is none.
nginx_pid() {
    pid=$(cat "$PREFIX/nginx.pid" 2>/dev/null) || return 0
    ! is_ours "$pid" '^nginx: master' || echo "$pid"
}

responder_pids() {
    alive=
    while read -r pid || [ -n "$pid" ]; do
        ! is_ours "$pid" 'runnel\.state' || alive="$alive${alive:+ }$pid"
    done 2>/dev/null <"$PREFIX/runnel.pid" || :
    echo "$alive"
}

# What lives in the prefix though no pid file tells of it: a responder whose spawn-fcgi was
# interrupted before it wrote one, workers whose master was killed.
stray_pids() {
    master=$(nginx_pid)
    known=" $(responder_pids) "
    strays=
    for entry in /proc/[0-9]*; do
        pid=${entry#/proc/}
        [ "$(readlink "$entry/cwd" 2>/dev/null)" = "$PREFIX" ] || continue
        if is_ours "$pid" 'runnel\.state'; then
            case $known in *" $pid "*) continue ;; esac
        elif [ -n "$master" ] || ! is_ours "$pid" '^nginx: '; then
            continue
        fi
        strays="$strays${strays:+ }$pid"
    done
    echo "$strays"
}

# wait_gone TENTHS PID...: 0 as soon as all have ended, 1 if one is left after that time.
wait_gone() {
    tries=$1
    shift
    while :; do
        left=
        for pid in "$@"; do
            ! is_running "$pid" || left=1
        done
        [ -n "$left" ] || return 0
        tries=$((tries - 1))
        [ "$tries" -ge 0 ] || return 1
        sleep 0.1
    done
}

# end_processes TENTHS PID...: TERM, TERM again after that time, KILL two seconds later.
end_processes() {
    patience=$1
    shift
    [ $# -gt 0 ] || return 0
    kill -TERM "$@" 2>/dev/null || :
    wait_gone "$patience" "$@" && return 0
    kill -TERM "$@" 2>/dev/null || :
    wait_gone 20 "$@" && return 0
    kill -KILL "$@" 2>/dev/null || :
    wait_gone 20 "$@"
}

# Who listens on 127.0.0.1:PORT? Prints `pid 123 (nginx)`, `another user's process`, or nothing if
# the port is free. From /proc, since a small machine has neither ss nor lsof.
port_holder() {
    inode=$(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | run_awk listener -v port="$(printf '%04X' "$1")")
    [ -n "$inode" ] || return 0
    for fd in /proc/[0-9]*/fd/*; do
        [ "$(readlink "$fd" 2>/dev/null)" = "socket:[$inode]" ] || continue
        pid=${fd#/proc/}
        pid=${pid%%/*}
        echo "pid $pid ($(cat "/proc/$pid/comm" 2>/dev/null))"
        return 0
    done
    echo "a process of another user"
}

healthy() {
    [ "$(curl -q -s -o /dev/null -w '%{http_code}' --noproxy 127.0.0.1 --max-time 2 "http://127.0.0.1:$PORT/healthz")" = 200 ]
}

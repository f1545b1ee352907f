# Beds of real proxies: runnel's responder behind one proxy, in a folder of its own. Sourced after
# common.sh and server.sh.
#
# A bed is tests/proxies/NAME/VARIANT: templates of the proxy's configuration. NAME/bed.sh says how that
# proxy is started. When it is up, $BED holds
#
#   origin/   the responder and the side door, nginx with the shipped nginx.conf (scripts/up made it):
#             whoever asks there does not pass the proxy
#   proxy/    the proxy's configuration and logs, and its working directory
#   servers   LABEL PID START of what runs there; START tells a pid from its later namesakes
#   answer    url=, side_door= and prefix=, the bed's whole contract
# shellcheck shell=sh disable=SC2034,SC2154 # its variables are the callers', and the other way

BEDS=$ROOT/tests/proxies
SERVERS=$ROOT/build/proxies/root        # where tests/proxies/setup has unpacked them
FIRST_PORT=${RUNNEL_PROXIES_PORT:-18300}
READY_S=${RUNNEL_READY_S:-30}             # Varnish compiles its configuration

# --- which ---

bed_list() {
    for folder in "$BEDS"/*/*/; do
        folder=${folder%/}
        [ ! -f "${folder%/*}/bed.sh" ] || echo "${folder#"$BEDS/"}"
    done
}

# need_bed NAME/VARIANT: sets NAME, VARIANT and BED.
need_bed() {
    bed_list | grep -Fqx -- "$1" || {
        variants=$(bed_list | grep "^${1%%/*}/" | paste -sd ' ') || :
        usage_error "there is no bed '$1'${variants:+: one of $variants}"
    }
    NAME=${1%/*}
    VARIANT=${1#*/}
    BED=$FOLDER/$NAME/$VARIANT
}

choose_folder() {
    PREFIX=${RUNNEL_PROXIES:-${TMPDIR:-/tmp}/runnel-proxies-$(id -u)}
    case $PREFIX in
        /*) ;;
        *) PREFIX=$(pwd)/$PREFIX ;;
    esac
    make_folder
    check_prefix
    FOLDER=$PREFIX
}

make_folder() {
    [ -e "$PREFIX" ] || [ -L "$PREFIX" ] || mkdir -p -- "$PREFIX" ||
        could_not_run "cannot make $PREFIX: set RUNNEL_PROXIES to a folder of your own"
}

# One at a time: ports are chosen and taken under it. The folder itself is the lock, and whoever had
# it before may have removed it.
lock_folder() {
    command -v flock >/dev/null || return 0
    while :; do
        make_folder
        exec 9<"$FOLDER"
        flock -w 120 9 || could_not_run "another scripts/proxies has been busy for two minutes in $FOLDER"
        [ "$(stat -L -c %i "/proc/$$/fd/9")" != "$(stat -c %i "$FOLDER" 2>/dev/null)" ] || return 0
    done
}

# --- templates ---

# Sets PORT to the next one of the hundred on which nobody listens. Another may be quicker to take it.
next_port() {
    tries=0
    while [ "$tries" -lt 100 ]; do
        tries=$((tries + 1))
        PORT=$((FIRST_PORT + (PORT - FIRST_PORT + 1) % 100))
        listener=$(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
            run_awk listener -v port="$(printf '%04X' "$PORT")")
        [ -n "$listener" ] || return 0
    done
    could_not_run "ports $FIRST_PORT to $((FIRST_PORT + 99)) are all taken: set RUNNEL_PROXIES_PORT"
}

# For sed's right side, between bars.
sed_quoted() { printf '%s' "$1" | sed 's/[&|\\]/\\&/g'; }

# fill FILE...: into the working directory.
fill() {
    for file in "$@"; do
        sed -e "s|@PORT@|$PORT|g" -e "s|@ORIGIN_PORT@|$ORIGIN_PORT|g" \
            -e 's|@RESPONDER_SOCKET@|../origin/runnel.sock|g' \
            -e "s|@STATE@|$(sed_quoted "$BED/origin/runnel.state")|g" \
            -e "s|@PREFIX@|$(sed_quoted "$BED/proxy")|g" \
            -e "s|@ROOT@|$(sed_quoted "$SERVERS")|g" \
            -e "s|@USER@|$SERVER_USER|g" "$file" >"${file##*/}"
        ! grep -n '@[A-Z_]*@' "${file##*/}" >&2 || could_not_run "$file: this placeholder is unknown"
    done
}

# --- processes ---

# stat_of PID: sets SESSION and START (in ticks since the boot), empty if there is no such process.
# proc(5) escapes newlines in the name, the second field, which may have anything else in it.
stat_of() {
    SESSION=
    START=
    { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 0
    # shellcheck disable=SC2086 # fields
    set -- ${stat##*) }
    SESSION=$4
    START=${20}
}

# start_server LABEL PROGRAM ARGUMENT...: in the background, in a session of its own, so that what it
# starts can be found. For bed.sh.
start_server() {
    label=$1
    program=$2
    shift 2
    if [ -x "$SERVERS/usr/sbin/$program" ]; then
        program=$SERVERS/usr/sbin/$program
    elif [ -x "$SERVERS/usr/bin/$program" ]; then
        program=$SERVERS/usr/bin/$program
    else
        need_program "$program"
        program=$(command -v "$program")
    fi
    case $program in
        "$SERVERS"/*)
            set -- env "LD_LIBRARY_PATH=$(echo "$SERVERS"/usr/lib/*-linux-*)" "$program" "$@" ;;
        *) set -- "$program" "$@" ;;
    esac
    setsid "$@" </dev/null >"$label.out" 2>&1 9>&- &
    stat_of $!
    echo "$label $! $START" >>"$BED/servers"
}

# The pids that are still those which we have started.
server_pids() {
    while read -r label pid start; do
        stat_of "$pid"
        [ "$START" != "$start" ] || ! is_running "$pid" || echo "$pid"
    done 2>/dev/null <"$BED/servers" || :
}

# What still lives of their sessions. A number that is now another's has begun a session of its own.
session_pids() {
    sessions=' '
    while read -r label pid start; do
        stat_of "$pid"
        [ -n "$START" ] && [ "$START" != "$start" ] || sessions="$sessions$pid "
    done 2>/dev/null <"$BED/servers" || :
    for entry in /proc/[0-9]*; do
        stat_of "${entry#/proc/}"
        case $sessions in
            *" ${SESSION:-none} "*) ! is_running "${entry#/proc/}" || echo "${entry#/proc/}" ;;
        esac
    done
}

# --- up and down ---

answers() {
    [ "$(curl -q -s -o /dev/null -w '%{http_code}' --noproxy 127.0.0.1 --max-time 5 "$1/healthz")" = 200 ]
}

bed_is_up() {
    [ -f "$BED/answer" ] && [ -n "$(server_pids)" ] &&
        [ "$(server_pids | wc -l)" -eq "$(wc -l <"$BED/servers")" ] &&
        answers "$(figure "$BED/answer" url)" && answers "$(figure "$BED/answer" side_door)"
}

origin_up() {
    RUNNEL_PREFIX=$BED/origin RUNNEL_PORT=$ORIGIN_PORT "$ROOT/scripts/up" -- "$@" >"$BED/origin.out" 2>&1 9>&-
}

# A responder keeps the options that it was started with: others are an error.
same_options() {
    ORIGIN_PORT=$(cat "$BED/origin/port")
    origin_up "$@" || {
        cat "$BED/origin.out" >&2
        could_not_run "$NAME/$VARIANT is already up: run scripts/proxies down $NAME/$VARIANT first"
    }
}

log_tails() {
    for log in "$BED"/proxy/*.out "$BED"/proxy/*.log; do
        [ -s "$log" ] || continue
        say "the end of $log:"
        tail -n 5 -- "$log" | sed 's/^/    /' >&2
    done
}

# Whether a request through the proxy is known at the side door: another's server on the same port
# would answer as well.
passes_through() {
    probe=ready-$$-$PORT
    curl -q -s -o /dev/null --noproxy 127.0.0.1 --max-time 5 -H "X-Request-Id: $probe" \
        "http://127.0.0.1:$PORT/stream?prompt=ready&max_tokens=1&ttft_ms=0" &&
        curl -q -s -f -o /dev/null --noproxy 127.0.0.1 --max-time 5 \
            "http://127.0.0.1:$ORIGIN_PORT/_debug/generated?id=$probe"
}

port_was_taken() { grep -qi 'address already in use' "$@" 2>/dev/null; }

# 0 when the proxy serves, 1 when another took its port.
wait_ready() {
    end=$(($(date +%s) + READY_S))
    until passes_through; do
        while read -r label pid start; do
            is_running "$pid" && continue
            ! port_was_taken ./*.out ./*.log || return 1
            log_tails
            could_not_run "$NAME/$VARIANT: $label (pid $pid) died"
        done <"$BED/servers"
        [ "$(date +%s)" -le "$end" ] || {
            log_tails
            could_not_run "$NAME/$VARIANT: in $READY_S s no request came through to the responder"
        }
        sleep 0.05
    done
}

start_origin() {
    until
        next_port
        ORIGIN_PORT=$PORT
        origin_up "$@"
    do
        grep -q "port $ORIGIN_PORT .* is taken" "$BED/origin.out" || port_was_taken "$BED/origin.out" || {
            cat "$BED/origin.out" >&2
            could_not_run "$NAME/$VARIANT: the responder and its side door did not start"
        }
    done
}

# bed_up OPTION...: options of the responder. Whoever calls it ends a bed that did not come up.
bed_up() {
    mkdir -p -- "$BED/proxy"
    # The workers of root's servers are another user.
    chmod 711 -- "$FOLDER" "$FOLDER/$NAME" "$BED" "$BED/proxy"
    : >"$BED/servers"
    PORT=$((FIRST_PORT + $$ % 100))
    start_origin "$@"
    cd -- "$BED/proxy" || could_not_run "cannot enter $BED/proxy"
    # shellcheck source=tests/proxies/nginx/bed.sh
    . "$BEDS/$NAME/bed.sh"
    until
        next_port
        for file in "$BEDS/$NAME/$VARIANT"/*; do
            case $file in
                */expected) ;;
                *) fill "$file" ;;
            esac
        done
        start_proxy
        wait_ready
    do
        stop_servers
        rm -f ./*.out ./*.log
        : >"$BED/servers"
    done
    printf 'url=http://127.0.0.1:%s\nside_door=http://127.0.0.1:%s\nprefix=%s\n' \
        "$PORT" "$ORIGIN_PORT" "$BED" >"$BED/answer.new"
    mv -- "$BED/answer.new" "$BED/answer"
}

stop_servers() {
    STOP=TERM
    # shellcheck source=tests/proxies/nginx/bed.sh
    . "$BEDS/$NAME/bed.sh"
    pids=$(server_pids)
    for pid in $pids; do
        kill -s "$STOP" "$pid" 2>/dev/null || :
    done
    # shellcheck disable=SC2086 # pids
    wait_gone 50 $pids || end_processes 20 $pids ||
        could_not_run "$NAME/$VARIANT: processes $pids could not be stopped"
    strays=$(session_pids)
    # shellcheck disable=SC2086
    end_processes 20 $strays || could_not_run "$NAME/$VARIANT: processes $strays could not be stopped"
}

# bed_stop: no process is left, the folder stays.
bed_stop() {
    stop_servers
    RUNNEL_PREFIX=$BED/origin "$ROOT/scripts/down" --now >"$BED/origin.out" 2>&1 9>&- || {
        cat "$BED/origin.out" >&2
        could_not_run "$NAME/$VARIANT: the responder could not be stopped"
    }
    rm -f -- "$BED/answer" "$BED/servers"
}

bed_down() {
    [ -d "$BED" ] || return 0
    bed_stop
    rm -rf -- "$BED"
    rmdir -- "$FOLDER/$NAME" 2>/dev/null || :
}

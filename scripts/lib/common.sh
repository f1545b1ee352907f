# Shared by all scripts; sourced after `set -eu`. The caller sets $here to its own folder.
# shellcheck shell=sh disable=SC2034,SC2154 # its variables are the callers', and `here` is theirs

LC_ALL=C
export LC_ALL
unset LANGUAGE CDPATH

SCRIPT=${0##*/}
ROOT=$(cd -- "$here/.." && pwd)
# In a source tree nginx.conf is beside scripts/. Installed, this is PREFIX/lib/runnel/scripts, and the
# commands are PREFIX/bin/runnel-NAME.
if [ -f "$ROOT/nginx.conf" ]; then
    INSTALLED=
    RUNNEL_PROGRAM=$ROOT/build/bin/runnel
    GEN_PROGRAM=$ROOT/build/bin/gen
    LOAD_PROGRAM=$ROOT/build/bin/load
    NGINX_CONF=$ROOT/nginx.conf
    WEB_FOLDER=$ROOT/fcgi-app/web
else
    INSTALLED=1
    installed_at=${ROOT%/lib/runnel}
    RUNNEL_PROGRAM=$installed_at/bin/runnel
    GEN_PROGRAM=$installed_at/bin/runnel-gen
    LOAD_PROGRAM=$installed_at/bin/runnel-load
    NGINX_CONF=$installed_at/share/runnel/nginx.conf
    WEB_FOLDER=$installed_at/share/runnel/web
fi
AWK=${RUNNEL_AWK:-awk}
PORT=${RUNNEL_PORT:-8170}

# Exit codes: 0 yes, 1 measured no, 2 usage, 3 could not run.

say() { printf '%s: %s\n' "$SCRIPT" "$*" >&2; }

measured_no() {
    say "$@"
    exit 1
}

usage_error() {
    say "$* (see --help)"
    exit 2
}

could_not_run() {
    say "$@"
    exit 3
}

# command_name NAME: how another script is called here. `up` and `down` have targets of make, too.
command_name() { [ -n "$INSTALLED" ] && echo "runnel-$1" || echo "scripts/$1"; }
make_name() { [ -n "$INSTALLED" ] && echo "runnel-$1" || echo "make $1"; }

build_hint() { [ -n "$INSTALLED" ] || echo ": run make first"; }

# The script's own first comment block is its help.
show_help() {
    sed -n -e '/^# shellcheck/d' -e '2,/^[^#]/{s/^# \{0,1\}//p;}' "$1" |
        if [ -n "$INSTALLED" ]; then
            # shellcheck disable=SC2016 # the help's own quotes
            sed -e 's|scripts/\([a-z]\)|runnel-\1|g' -e 's/`make \([a-z]*\)`/`runnel-\1`/g' -e 's|(build/bin/[^)]*)|(those that were installed)|'
        else
            cat
        fi
    exit 0
}

need_value() {
    [ "$#" -ge 2 ] || usage_error "$1 needs a value"
}

# need_number OPTION VALUE MIN MAX: digits only, no sign, no leading zero (a shell's octal).
need_number() {
    case $2 in
        '' | *[!0-9]* | 0?* | ??????????*) usage_error "$1: '$2' is not a number from $3 to $4" ;;
    esac
    if [ "$2" -lt "$3" ] || [ "$2" -gt "$4" ]; then
        usage_error "$1: $2 is not from $3 to $4"
    fi
}

need_program() {
    command -v "$1" >/dev/null 2>&1 || could_not_run "$1 is not installed: run $(command_name deps)"
}

# run_awk PROGRAM[,PROGRAM...] ARGUMENT...: programs of scripts/awk, by name. RUNNEL_AWK may be two
# words ("busybox awk").
run_awk() {
    command -v "${AWK%% *}" >/dev/null 2>&1 || could_not_run "RUNNEL_AWK: there is no $AWK"
    programs=$1
    shift
    while [ -n "$programs" ]; do
        set -- -f "$here/awk/${programs##*,}.awk" "$@"
        case $programs in
            *,*) programs=${programs%,*} ;;
            *) programs= ;;
        esac
    done
    # shellcheck disable=SC2086
    $AWK "$@"
}

# json FILE PATH: one value of a JSON file; fails if it is not there.
json() {
    # shellcheck disable=SC2086
    $AWK -v path="$2" -f "$here/awk/json.awk" -f "$here/awk/json_get.awk" -- "$1"
}

# figure FILE NAME: one value of a file of NAME=VALUE lines.
figure() { sed -n "s/^$2=//p" "$1"; }

# milliseconds US: 1234 -> 1.234; so also seconds, of milliseconds
milliseconds() { printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)); }

# Milliseconds of the wall clock, for differences.
now_ms() { date +%s%3N; }

# new_id WORD: an X-Request-Id that no other request has.
new_id() { printf '%s-%s-%s' "$1" $$ "$(od -An -N6 -tx1 /dev/urandom | tr -d ' \n')"; }

# Running, and not a zombie.
is_running() {
    case $(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null) in
        '' | Z | X) return 1 ;;
    esac
}

# Pictures are for people's eyes: who has no gnuplot gets the rest.
can_draw() {
    command -v gnuplot >/dev/null 2>&1 && return 0
    say "no pictures: gnuplot is not installed ($(command_name deps))"
    return 1
}

# A private folder, $TMP, and its removal however the script ends. $CHILD, if set, is ended too.
CHILD=
make_tmp() {
    TMP=$(mktemp -d "${TMPDIR:-/tmp}/runnel-${SCRIPT#runnel-}.XXXXXX") || could_not_run "cannot make a temporary folder"
    trap clean_up EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
}

clean_up() {
    [ -z "$CHILD" ] || kill -KILL "$CHILD" 2>/dev/null || :
    rm -rf -- "$TMP"
}

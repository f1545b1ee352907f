#!/bin/sh
# Arrows go down only: which room may include which. TAP.

set -eu
LC_ALL=C
export LC_ALL
cd "$(dirname "$0")/../.."

# A line is FROM:TO, a file's room and the room of a header that it may include; its own room and
# the file's own header are always allowed. `main` is fcgi-app/main.c.
rules='
main:fastcgi main:endpoints main:engine main:base main:config main:access
config:base config:engine/timing.h
access:engine/ledger.h access:base
endpoints:fastcgi/request.h endpoints:wire endpoints:gen/tokgen.h endpoints:engine
endpoints:base endpoints:config
fastcgi:base fastcgi:engine/generation.h
engine:base
wire:base
gen:base
gen/load:gen/tokgen.h gen/load:base
'

room_of() {
    case $1 in
    fcgi-app/main.c) echo main ;;
    fcgi-app/config.*) echo config ;;
    fcgi-app/access.*) echo access ;;
    fcgi-app/*/*) path=${1#fcgi-app/} && echo "${path%%/*}" ;;
    gen/load/*) echo gen/load ;;
    gen/*) echo gen ;;
    esac
}

allowed() { # FROM-ROOM HEADER
    case $2 in
    config.h) to=config ;;
    access.h) to=access ;;
    gen/load/*) to=gen/load ;;
    *) to=${2%%/*} ;;
    esac
    [ "$1" = "$to" ] && return 0
    for rule in $rules; do
        [ "$rule" = "$1:$to" ] && return 0
        [ "$rule" = "$1:$2" ] && return 0
    done
    return 1
}

# shellcheck source=tests/lint/lib/tap.sh
. tests/lint/lib/tap.sh

problems=$(
    find fcgi-app gen -name '*.[ch]' | sort | while read -r file; do
        room=$(room_of "$file")
        sed -n 's/^#include "\([^"]*\)".*/\1/p' "$file" | while read -r header; do
            allowed "$room" "$header" || echo "$file must not include $header"
        done
    done
)
check 'arrows between rooms go down only' "$problems"

problems=$(grep -ln 'fcgiapp\.h\|fcgi_stdio\.h' -r fcgi-app gen | grep -v '^fcgi-app/fastcgi/request\.c$' || true)
check 'request.c alone includes libfcgi' "$problems"

problems=$(
    for file in fcgi-app/endpoints/*.c; do
        own=$(basename "$file" .c)
        sed -n 's/^#include "endpoints\/\([a-z_]*\)\.h".*/\1/p' "$file" |
            grep -vx -e "$own" -e app -e routes -e reply -e controls -e submit \
                -e payload -e resume -e completion -e openai_request -e conversation -e cors -e keys |
            sed "s|^|$file includes the endpoint |"
    done
)
check 'endpoints do not include each other' "$problems"

finish

#!/bin/sh
# No shell file gives shellcheck anything to say. TAP.

set -eu
LC_ALL=C
export LC_ALL
cd "$(dirname "$0")/../.."

files=$(
    find scripts tests .ci -type f ! -path '*/node_modules/*' | sort | while read -r file; do
        case $file in
        *.sh | *.bash | *.bats) echo "$file" ;;
        *) if head -n 1 "$file" | grep -aq '^#!.*sh$'; then echo "$file"; fi ;;
        esac
    done
)
echo 1..1
# shellcheck disable=SC2086 # a list of our own names
if out=$(shellcheck -x $files 2>&1); then
    echo 'ok 1 - shellcheck is silent'
else
    echo 'not ok 1 - shellcheck is silent'
    printf '%s\n' "$out" | sed 's/^/# /' | head -80
    exit 1
fi

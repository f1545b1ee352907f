#!/bin/sh
# What is written about the code: sizes of files, links of the docs, settings that the docs name. TAP.

set -eu
LC_ALL=C
export LC_ALL
cd "$(dirname "$0")/../.."

# shellcheck source=tests/lint/lib/tap.sh
. tests/lint/lib/tap.sh

problems=$(find fcgi-app gen -name '*.c' -exec awk 'END { if (NR > 550) print FILENAME ": " NR " lines" }' {} \;)
check 'no source file has outgrown its one purpose (550 lines)' "$problems"

problems=$(
    for page in README.md CHANGES.md docs/*.md; do
        grep -o '](\([^)#]*\)' "$page" | sed 's/^](//' | while read -r target; do
            case $target in
            '' | http*) continue ;;
            esac
            [ -e "$(dirname "$page")/$target" ] || echo "$page links to $target, which is not there"
        done
    done
)
check 'links of the docs lead somewhere' "$problems"

problems=$(
    sed -n 's/^    {"\([a-z-]*\)", KIND_.*/\1/p' fcgi-app/config.c | while read -r name; do
        grep -q -- "--$name" docs/configuration.md || echo "docs/configuration.md does not name --$name"
    done
)
check 'docs/configuration.md names each setting' "$problems"

problems=$(
    sed -n 's/^    {"\([a-z_]*\)", KIND_.*/\1/p' fcgi-app/endpoints/controls.c | while read -r name; do
        grep -q "\`$name\`" docs/http-api.md || echo "docs/http-api.md does not name $name"
    done
)
check 'docs/http-api.md names each control' "$problems"

finish

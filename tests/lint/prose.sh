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

# Lines that are indented under `From [...](../tests/proxies/NAME/VARIANT/FILE)` are quoted from there.
quoted=$(
    awk '
        match($0, /\]\(\.\.\/tests\/proxies\/[^)]*\)/) { file = substr($0, RSTART + 5, RLENGTH - 6) }
        /^[#-]/ { file = "" }
        /^    / && file != "" {
            sub(/^ +/, "")
            print file "\t" $0
        }
    ' docs/proxies.md
)
problems=$(
    printf '%s\n' "$quoted" | while IFS='	' read -r file line; do
        sed 's/^[[:space:]]*//' "$file" | grep -Fqx -- "$line" ||
            echo "docs/proxies.md: '$line' is not a line of $file"
    done
    for bed in tests/proxies/*/tuned; do
        printf '%s\n' "$quoted" | grep -q "^$bed/" || echo "docs/proxies.md quotes nothing of $bed"
    done
)
check 'docs/proxies.md quotes what the tuned proxies really have' "$problems"

problems=$(
    {
        grep -v '^#' scripts/lib/directives.tsv | cut -f 1
        sed -n 's/.*finding.* \(fault\|limit\) \([a-z-]*\) .*"$/\2/p' scripts/lib/probes*.sh
    } | sort -u | while read -r code; do
        for proxy in - nginx Apache lighttpd HAProxy Caddy h2o Varnish; do
            rows=$(awk -F '\t' -v code="$code" -v proxy="$proxy" '
                $1 == code && $2 == proxy && $3 != "" && NF == 3 { n++ } END { print n + 0 }' scripts/lib/directives.tsv)
            [ "$rows" -eq 1 ] || echo "scripts/lib/directives.tsv has $rows rows for $code and $proxy"
        done
    done
)
check 'for each fault and limit of the doctor there is a directive for each proxy' "$problems"

finish

#!/bin/sh
# The man pages are well-formed, and say of options, variables, exit statuses and the version what the
# programs say in their --help. TAP.

set -eu
LC_ALL=C
export LC_ALL
cd "$(dirname "$0")/../.."

# shellcheck source=tests/lint/lib/tap.sh
. tests/lint/lib/tap.sh

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

[ -x build/bin/runnel ] || {
    echo 'Bail out! build/bin/runnel is not there: run make first'
    exit 3
}

# name:command to ask for help; a script is its own command.
programs=$(
    for program in build/bin/*; do
        case ${program##*/} in
            runnel) echo "runnel:$program" ;;
            *) echo "runnel-${program##*/}:$program" ;;
        esac
    done
    find scripts -maxdepth 1 -type f -perm -u+x | sort | sed 's|scripts/\(.*\)|runnel-\1:scripts/\1|'
)

page_of() { echo "docs/man/$1.1"; }

# What is defined: in a help the lines that begin with an option (or a URL that is one), in a page the
# lines after .TP (man) or those with .It Fl (mdoc). Of --help and -h, most helps do not speak.
options() { grep -oE '(^|[ ,])(-[A-Za-z]|--[a-z0-9][a-z0-9-]*)' | tr -d ' ,' | grep -vx -e --help -e -h | sort -u; }
options_of_help() { grep -E '^ {1,8}(URL, )?-' "$1" | sed 's/\([^ ]\)   *.*/\1/' | options; }
options_of_page() { sed -n -e '/^\.TP$/{n;p;}' -e 's/^\.It Fl/ Fl/p' "$1" | unescape | options; }
unescape() { sed -e 's/\\f[BIRP]//g' -e 's/\\-/-/g' -e 's/Fl \([^ ]\)/-\1/g' -e 's/"//g'; }

# The statuses that a help lists after "Exit:" or "exit status:", each before its meaning.
statuses_of_help() { tr '\n' ' ' <"$1" | sed -n 's/.*[Ee]xit\( status\)\{0,1\}: //p' | grep -oE '(^|[,;] )[0-3] ' | tr -dc '0-3\n'; }
statuses_of_page() { awk '/^\.S[Hh] /{ on = /EXIT STATUS/ } on' "$1" | unescape | sed -n 's/^\(\.B \|\.It \)\{0,1\}\([0-9]\)$/\2/p'; }

variables() { grep -oE 'RUNNEL_[A-Z_]+[A-Z]' | sort -u; }

compare() { # KIND HELP PAGE
    case $1 in
        options)
            options_of_help "$2" >"$tmp/a" || :
            options_of_page "$3" >"$tmp/b" || :
            ;;
        statuses)
            statuses_of_help "$2" >"$tmp/a" || :
            statuses_of_page "$3" >"$tmp/b" || :
            ;;
    esac
    comm -23 "$tmp/a" "$tmp/b" | sed "s|.*|$name: & is in its --help and not in $3|"
    comm -13 "$tmp/a" "$tmp/b" | sed "s|.*|$name: & is in $3 and not in its --help|"
}

problems=$(
    for entry in $programs; do
        name=${entry%%:*}
        page=$(page_of "$name")
        [ -f "$page" ] || echo "$name has no $page"
    done
    for page in docs/man/*.1; do
        name=$(basename "$page" .1)
        echo "$programs" | grep -q "^$name:" || echo "$page describes nothing that is there"
    done
)
check 'each program and script has a page, and each page a program' "$problems"

problems=$(
    for page in docs/man/*.1; do
        mandoc -T lint -W warning "$page" 2>&1 || :
        groff -man -ww -Tutf8 -z "$page" 2>&1
    done
)
check 'mandoc and groff have nothing to say about them' "$problems"

for kind in options statuses; do
    problems=$(
        for entry in $programs; do
            name=${entry%%:*}
            page=$(page_of "$name")
            [ -f "$page" ] || continue
            "${entry#*:}" --help >"$tmp/help" || echo "$name --help fails"
            compare $kind "$tmp/help" "$page"
        done
    )
    check "$kind: the same in a page and in the --help" "$problems"
done

problems=$(
    cat scripts/* scripts/lib/* 2>/dev/null | variables >"$tmp/known"
    build/bin/runnel --help | variables >>"$tmp/known"
    sort -u "$tmp/known" >"$tmp/all"
    for entry in $programs; do
        name=${entry%%:*}
        page=$(page_of "$name")
        [ -f "$page" ] || continue
        "${entry#*:}" --help | variables >"$tmp/a" || :
        unescape <"$page" | variables >"$tmp/b" || :
        comm -23 "$tmp/a" "$tmp/b" | sed "s|.*|$name: & is in its --help and not in $page|"
        comm -13 "$tmp/all" "$tmp/b" | sed "s|.*|$page: nothing reads &|"
    done
)
check 'variables: what a --help names is in the page, and what a page names is read' "$problems"

version=$(build/bin/runnel --version)
problems=$(
    for page in docs/man/*.1; do
        grep -E '^\.(TH|Os) ' "$page" | grep -qF "\"$version\"" || echo "$page is not of $version"
    done
)
check 'the pages are of this version' "$problems"

finish

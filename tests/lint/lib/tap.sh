# shellcheck shell=sh
# One TAP line a check, its problems as comments behind it.

count=0
failed=0
check() { # DESCRIPTION PROBLEMS
    count=$((count + 1))
    if [ -z "$2" ]; then
        echo "ok $count - $1"
        return
    fi
    failed=1
    echo "not ok $count - $1"
    printf '%s\n' "$2" | sed 's/^/# /'
}

finish() {
    echo "1..$count"
    exit "$failed"
}

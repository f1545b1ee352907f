# The code blocks of docs/clients.md, as the tests run them.
#
# Each begins with a comment line that has its name. SC2154: ROOT is harness.bash's.
# shellcheck shell=bash disable=SC2154

CLIENTS_PAGE=$ROOT/docs/clients.md

# snippet_names ENDING...: those of the page whose names end so.
snippet_names() {
    local ending

    for ending in "$@"; do
        sed -n "s,^\(#\|//\) \([a-z_]*\.$ending\)\$,\2,p" "$CLIENTS_PAGE"
    done
}

# snippet NAME PORT: writes the block to the file NAME, with this port instead of the lab's; fails
# when there is no such block, or it does not name the lab's address.
snippet() {
    awk -v name="$1" '
        /^```/ { inside = 0; fence = !fence; next }
        fence && ($0 == "# " name || $0 == "// " name) { inside = 1 }
        inside { print }' "$CLIENTS_PAGE" >"$1"
    grep -q '127\.0\.0\.1:8170' "$1" || {
        echo "docs/clients.md has no block $1 that names 127.0.0.1:8170"
        return 1
    }
    sed -i "s/127\.0\.0\.1:8170/127.0.0.1:$2/" "$1"
}

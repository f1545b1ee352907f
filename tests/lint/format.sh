#!/bin/sh
# The C files are as clang-format leaves them (`make format`). TAP.

set -eu
LC_ALL=C
export LC_ALL
cd "$(dirname "$0")/../.."

echo 1..1
if out=$(find fcgi-app gen tests -name '*.[ch]' -exec clang-format --dry-run -Werror {} + 2>&1); then
    echo 'ok 1 - clang-format has nothing to change'
else
    echo 'not ok 1 - clang-format has nothing to change'
    printf '%s\n' "$out" | sed 's/^/# /' | head -40
    exit 1
fi

#!/bin/bash
# Runs the tests with the given arguments of `swift test`. The output is long: what failed is named again at its end.
set -uo pipefail
cd "$(dirname "$0")/.." || exit

# The clients of Tests/install-clients.sh, which other programs of these names take the place of.
PATH=$PATH:$PWD/.build/clients/bin
log=$(mktemp)
trap 'rm -f "$log"' EXIT
swift test "$@" 2>&1 | tee "$log"
code=${PIPESTATUS[0]}
if [[ $code -ne 0 ]]; then
    echo "== failed: swift test exited with $code"
    grep -aE '^(✘|.*: error: )|Fatal error|signal code' "$log" | cut -c1-600 | awk '!seen[$0]++' | head -n 60
fi
exit "$code"

#!/bin/bash
# Whether the time that wrong credentials take tells anything: Benchmarks/Secrets/run.sh
# Counts the instructions of one judgement for each case, and compares the cases of a family: where the first wrong digit is, and
# whether there is such a user. Exit 1 if two cases of a family differ by more than `allowed`.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
# Per judgement. The bound on chance: where a table has to look twice, and what the allocator finds free.
allowed=${ALLOWED:-16}
swift build -c release --package-path "$here" --product SecretBenchmark "$@" >&2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# valgrind can not read the debugging information of the compiler.
objcopy --strip-debug "$here/.build/release/SecretBenchmark" "$work/bench"
# The order in a table must not differ from run to run.
export SWIFT_DETERMINISTIC_HASHING=1

instructions() { # instructions FAMILY CASE COUNT
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$work/bench" "$@" 2>&1 >/dev/null | sed -n 's/.*Collected : //p'
}
"$work/bench" | while read -r family case; do
    few=$(instructions "$family" "$case" 1000)
    many=$(instructions "$family" "$case" 3000)
    echo "$family $case $few $many"
done | awk -v allowed="$allowed" '
    {
        # bcrypt is computed once in a thousand.
        judgements = $1 == "password" ? 2 : 2000
        cost = ($4 - $3) / judgements
        printf "%-14s %-14s %14.2f instructions\n", $1, $2, cost
        if (!($1 in least) || cost < least[$1]) least[$1] = cost
        if (!($1 in most) || cost > most[$1]) most[$1] = cost
    }
    END {
        for (family in least) {
            # The rounds of bcrypt are 2 ^ 10: what surrounds them is less than a millionth.
            bound = family == "password" ? least[family] / 100000 : allowed
            if (most[family] - least[family] > bound) {
                printf "%s: %.2f instructions between two cases, more than %.2f\n", family, most[family] - least[family], bound
                failed = 1
            }
        }
        exit failed
    }'

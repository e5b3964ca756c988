#!/bin/sh
# Instructions and allocations for each request, from its bytes to its cache key: Benchmarks/Parser/run.sh
# The difference of two runs of different length; so what happens once is not counted.
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
swift build -c release --package-path "$here" --product ParserBenchmark >&2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# valgrind can not read the debugging information of the compiler.
objcopy --strip-debug "$here/.build/release/ParserBenchmark" "$work/bench"

instructions() { # instructions REQUEST PART ITERATIONS
    valgrind --tool=callgrind --callgrind-out-file="$work/$1.$2.$3" "$work/bench" "$@" 2>&1 >/dev/null |
        sed -n 's/.*Collected : //p'
}
allocations() { # allocations REQUEST PART ITERATIONS
    valgrind --tool=memcheck "$work/bench" "$@" 2>&1 >/dev/null | sed -n 's/.*usage: \([0-9,]*\) allocs.*/\1/p' | tr -d ,
}
for request in short browser; do
    for part in parse uri key all; do
        few=$(instructions $request $part 1000)
        many=$(instructions $request $part 3000)
        echo "$request $part: $(((many - few) / 2000)) instructions"
    done
    few=$(allocations $request all 10)
    many=$(allocations $request all 1010)
    echo "$request all: $((many - few)) allocations in 1000 requests"
done

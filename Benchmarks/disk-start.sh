#!/bin/bash
# What a disk tier with many objects costs at the start: time until ready, time until all of it is known, memory an object.
#
#   disk-start.sh LARDER [COUNT] [BODY_BYTES]      a million objects of 256 bytes, where nothing else is said
#
# The store is made in $DISK_START_DIR, or in a directory of its own below $TMPDIR (/var/tmp) that is removed afterwards. A second and a
# third start are measured, with what they read in the page cache; DROP=1 (root) measures one without.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
larder=${1:?usage: disk-start.sh LARDER [COUNT] [BODY_BYTES]}
count=${2:-1000000}
body=${3:-256}
give_up() { echo "disk-start: $*" >&2; exit 2; }
command -v curl >/dev/null || give_up "not installed: curl"

if [ -n "${DISK_START_DIR:-}" ]; then
    work=$DISK_START_DIR
    mkdir -p "$work"
else
    work=$(TMPDIR=${TMPDIR:-/var/tmp} mktemp -d)
    trap 'rm -rf "$work"' EXIT
fi
if [ -n "${DISK_BENCHMARK:-}" ]; then
    bench=$DISK_BENCHMARK
else
    swift build -c release --package-path "$here" --product DiskBenchmark >&2
    bench=$(swift build -c release --package-path "$here" --show-bin-path)/DiskBenchmark
fi
milliseconds() { echo $(($(date +%s%N) / 1000000)); }
resident() { sed -n "s/^$1:[[:space:]]*\([0-9]*\) kB/\1/p" "/proc/$pid/status"; }

# start STORE OBJECTS: prints ready, loaded and memory; sets anon and file (KiB)
start() {
    cat >"$work/larder.yaml" <<YAML
listen: [ { address: "127.0.0.1:0" } ]
admin: { address: "off", socket: $work/admin.sock }
cache: { memory: 64MiB, disk: { path: $1, size: 64GiB } }
log: { access: off, level: warning }
YAML
    : >"$work/ready"
    local begin ready loaded
    begin=$(milliseconds)
    "$larder" serve --config "$work/larder.yaml" >"$work/ready" 2>"$work/errors" &
    pid=$!
    until grep -q 'serves on' "$work/ready"; do
        kill -0 "$pid" 2>/dev/null || give_up "larder ended: $(cat "$work/errors")"
        sleep 0.002
    done
    ready=$(milliseconds)
    until curl -s --unix-socket "$work/admin.sock" http://larder/stats | grep -q "\"objects\":$2,"; do
        kill -0 "$pid" 2>/dev/null || give_up "larder ended: $(cat "$work/errors")"
        sleep 0.01
    done
    loaded=$(milliseconds)
    anon=$(resident RssAnon)
    file=$(resident RssFile)
    echo "$3: ready after $((ready - begin)) ms, loaded after $((loaded - begin)) ms, RssAnon $anon KiB, RssFile $file KiB"
    kill -TERM "$pid"
    wait "$pid" || true
}

mkdir -p "$work/empty"
start "$work/empty" 0 "an empty store"
anon_empty=$anon file_empty=$file
if [ ! -e "$work/store/larder-store" ]; then "$bench" fill "$work/store" "$count" "$body"; fi
if [ "${DROP:-}" = 1 ]; then
    sync
    echo 3 >/proc/sys/vm/drop_caches
    start "$work/store" "$count" "$count objects, nothing in the page cache"
fi
start "$work/store" "$count" "$count objects"
start "$work/store" "$count" "$count objects, once more"
echo "an object: $(((anon - anon_empty) * 1024 / count)) bytes RssAnon, $(((file - file_empty) * 1024 / count)) bytes RssFile"
"$bench" open "$work/store"

#!/bin/bash
# Our own benchmarks: what one request costs in instructions, allocations and system calls. None of them depends on how
# busy the machine is, so each is compared with a limit of thresholds.txt; exit 1 when one is exceeded.
#
#   run.sh LARDER [--keep DIR]      DIR then holds the callgrind dumps, for callgrind_annotate
#   CASES="miss-pass hit-log" run.sh …      measures these cases alone, prints their figures and compares nothing
#
# docs/performance.md says how the figures come about.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
larder=${1:?usage: run.sh LARDER [--keep DIR]}
# Counted twice, at N and at 6 N: the difference is free of what is paid once. (System calls are not; few requests show more.)
requests=${REQUESTS:-1000}

if [ "${2:-}" = --keep ]; then
    work=$(mkdir -p "$3" && cd "$3" && pwd)
else
    work=$(mktemp -d)
fi
finish() {
    for pid in $(jobs -p); do kill -9 "$pid" 2>/dev/null || true; done  # only what still runs
    wait 2>/dev/null || true
    [ "${2:-}" = --keep ] || rm -rf "$work"
}
trap 'finish "$@"' EXIT
give_up() { echo "bench: $*" >&2; exit 2; }

missing=""
for tool in cc valgrind strace objcopy; do command -v $tool >/dev/null || missing+=" $tool"; done
[ -z "$missing" ] || give_up "not installed:$missing (make packages WANT=\"gcc valgrind strace binutils\")"

# Prints the port that follows the last colon on the first line of a file, once there is one.
port_in() {
    for _ in $(seq 600); do
        if grep -q . "$1"; then sed -n '1s/.*[^0-9]//;1p' "$1"; return; fi
        sleep 0.1
    done
    give_up "no ready line in $1: $(cat "$1".err 2>/dev/null)"
}

# Starts larder with the configuration of a setup, behind the rest of "$@" (a tool, or nothing); sets pid and port.
start_larder() {
    configure "$1" >"$work/larder.yaml"
    shift
    "$@" serve --config "$work/larder.yaml" >"$work/ready" 2>"$work/ready.err" &
    pid=$!
    port=$(port_in "$work/ready")
}
stop_larder() {
    kill -TERM "$pid"
    wait "$pid" || true
}

cc -O2 -o "$work/load" "$here/load.c" -lcrypto
cc -O2 -o "$work/origin" "$here/origin.c"
"$work/origin" >"$work/origin.port" &
origin=127.0.0.1:$(port_in "$work/origin.port")

# A list for `hosts`: none of its names is asked for.
seq -f 'h%.0f.listed.example' 500000 >"$work/hosts"
echo s3cret | "$larder" passwd "$work/users" alice >/dev/null
echo s3cret | "$larder" passwd --digest --realm bench "$work/users.digest" alice >/dev/null
token=$("$larder" passwd --token "$work/tokens" builder)

# Prints the configuration of a setup: `open` has nothing that looks at requests, each of the others adds one thing.
configure() {
    local cache="" access="" limits="" log=off disk=0
    case $1 in
        rules)
            access='rules: [ { deny: { host: [ "*.example.org", example.net ], port: [ 22, 25 ] } },
                { allow: { host: [ "*.example.com" ], method: [ GET ] } }, { allow: { address: [ 127.0.0.0/8 ] } } ],'
            cache='rules: [ { match: { host: "*.example.org", path: "/pool/*" }, policy: cache-first },
                { match: { path: "*/never/*" }, ttl: 1m } ],' ;;
        many)
            access="rules: [ $(seq -f '{ deny: { host: "*.h%g.example", port: [ 80, 443 ] } },' 10000)
                { allow: { address: [ 127.0.0.0/8 ] } } ]," ;;
        basic) access="authentication: { basic: { realm: bench, users: $work/users, remember: 1h } }," ;;
        digest) access="authentication: { digest: { realm: bench, users: $work/users.digest, md5: no } }," ;;
        bearer) access="authentication: { bearer: { tokens: $work/tokens } }," ;;
        hosts) access="rules: [ { deny: { host: { file: $work/hosts } } }, { allow: { address: [ 127.0.0.0/8 ] } } ]," ;;
        limits)
            # None of them is reached, and none lets a hit wait.
            limits='limits: { rules: [ { name: rate, requests: 1000000/s }, { name: places, per: all, concurrent: 1000 },
                { name: line, bandwidth: 1TiB/s } ] }' ;;
        log) log=$work/access.log ;;
        disk) disk=1GiB ;;
    esac
    cat <<YAML
listen: [ { address: "127.0.0.1:0" } ]
workers: 1
admin: { address: "127.0.0.1:0", socket: $work/admin.sock }
cache: { $cache memory: 256MiB, disk: { path: $work/store, size: $disk } }
access: { $access private_destinations: allow, connect_ports: [ ${origin##*:} ] }
log: { access: $log, level: warning }
$limits
YAML
}

# The requests. A short one is 69 bytes long, a browser's is 509 with 12 fields; origin ports have five digits.
short() { printf 'GET http://%s%s HTTP/1.1\r\nHost: %s\r\n%s\r\n' "$origin" "$1" "$origin" "${2:-}"; }
browser() {
    printf 'GET http://%s%s HTTP/1.1\r\n' "$origin" "$1"
    printf '%s\r\n' "Host: $origin" \
        'User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0' \
        'Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' 'Accept-Language: en-US,en;q=0.5' \
        'Accept-Encoding: gzip, deflate' "Referer: http://$origin/" 'Connection: keep-alive' \
        'Cookie: session=0123456789abcdef0123456789abcdef; theme=a; consent=012345678' 'Upgrade-Insecure-Requests: 1' 'DNT: 1' \
        'Sec-Fetch-Mode: navigate' 'Priority: u=0, i' ''
}
short /hit-1k >"$work/hit-short.request"
browser /hit-1k >"$work/hit-browser.request"
short /hit-16k >"$work/hit-16k.request"
short /hit-256k >"$work/hit-256k.request"
for case in hit-rules hit-many hit-hosts hit-limits hit-log hit-digest; do short /hit-1k >"$work/$case.request"; done
short /hit-1k $'Proxy-Authorization: Basic YWxpY2U6czNjcmV0\r\n' >"$work/hit-basic.request"
short /hit-1k "Proxy-Authorization: Bearer $token"$'\r\n' >"$work/hit-bearer.request"
for case in miss-pass miss-rules miss-many; do short /pass >"$work/$case.request"; done
short /store-@@@@@@@@ >"$work/miss-store.request"
short /store-@@@@@@@@ >"$work/miss-disk.request"
short /revalidate >"$work/revalidate.request"
printf 'CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n' "$origin" "$origin" >"$work/connect.request"
# The cases of a setup.
setups="open rules many hosts limits basic digest bearer log disk"
cases_of() {
    local all
    case $1 in
        open) all="hit-short hit-browser hit-16k hit-256k miss-pass miss-store revalidate connect" ;;
        rules | many) all="hit-$1 miss-$1" ;;
        disk) all=miss-disk ;;
        *) all="hit-$1" ;;
    esac
    for case in $all; do
        case " ${CASES:-$case} " in *" $case "*) echo "$case" ;; esac
    done
}
[ "$(wc -c <"$work/hit-short.request")" = 69 ] || give_up "the short request is not 69 bytes long"
[ "$(wc -c <"$work/hit-browser.request")" = 509 ] \
    || give_up "the browser request is $(wc -c <"$work/hit-browser.request") bytes long, not 509"

next=0  # the number of the next URL that was never asked for
load() {  # load CASE COUNT
    case $1 in
        connect) "$work/load" --connect 127.0.0.1 "$port" "$2" "$work/connect.request" ;;
        hit-digest) "$work/load" --digest 127.0.0.1 "$port" "$2" "$next" "$work/$1.request" ;;
        *) "$work/load" 127.0.0.1 "$port" "$2" "$next" "$work/$1.request" ;;
    esac
    next=$((next + $2))
}

figures=$work/figures
: >"$figures"

# 1. and 3.: user-space instructions and allocations. valgrind 3.19 can not read the compiler's DWARF 5.
objcopy --strip-debug "$larder" "$work/larder.stripped"
counted() {  # counted CASE COUNT: loads, and prints what callgrind counted meanwhile
    callgrind_control --zero "$pid" >/dev/null 2>&1
    load "$1" "$2"
    callgrind_control --dump="$1" "$pid" >/dev/null 2>&1
    dumps=$((dumps + 1))
    # One file for each thread. That of the worker counts: what other threads do depends on the time, and not on the requests.
    worker=$(grep -H '^summary:' "$work/callgrind.$dumps"-* | sort -t: -k3 -n | tail -1)
    mv "${worker%%:*}" "$work/callgrind.$1.$2"
    rm -f "$work/callgrind.$dumps"-*
    awk -f "$here/callgrind.awk" "$work/callgrind.$1.$2"
}
for setup in $setups; do
    [ -n "$(cases_of $setup)" ] || continue
    # Instructions of the start are not counted: reading half a million hosts takes a minute otherwise.
    start_larder $setup valgrind --tool=callgrind --instr-atstart=no --callgrind-out-file="$work/callgrind" \
        --separate-threads=yes "$work/larder.stripped"
    callgrind_control --instr=on "$pid" >/dev/null 2>&1
    dumps=0
    for case in $(cases_of $setup); do
        n=$requests
        [ $case = connect ] && n=$((requests / 4))
        load $case 50
        counted $case "$n" >"$work/once"
        counted $case $((6 * n)) >"$work/more"
        paste -d' ' "$work/once" "$work/more" \
            | awk -v case=$case -v n="$n" '{ printf "%s.%s %.2f\n", case, $1, ($4 - $2) / (5 * n) }' >>"$figures"
    done
    stop_larder
done

# 2.: system calls, of a warm process.
without=""
for setup in $setups; do
    [ -n "$(cases_of $setup)" ] || continue
    start_larder $setup "$larder"
    for case in $(cases_of $setup); do
        load $case 200
        n=$((2 * requests))
        [ $case = connect ] && n=$((requests / 5))
        strace -f -c -q -o "$work/strace.$case" -p "$pid" &
        tracer=$!
        for _ in $(seq 100); do  # attached to every thread?
            traced=1
            for task in /proc/$pid/task/*; do
                grep -q '^TracerPid:[[:space:]]*0$' "$task/status" && traced=0
            done
            [ $traced = 1 ] && break
            sleep 0.05
        done
        if [ $traced = 0 ]; then
            echo "bench: strace may not attach to processes here: system calls are not counted" >&2
            without=syscalls
            kill -9 $tracer 2>/dev/null || true
            break 2
        fi
        load $case "$n"
        kill -INT $tracer
        wait $tracer || true
        # Without epoll_wait: how many connections one of them serves depends on the load.
        awk -v case=$case -v n="$n" '
            $NF == "total" { total = $4 }
            $NF == "epoll_wait" { waits = $4 }
            END { printf "%s.syscalls %.2f\n", case, (total - waits) / n }' "$work/strace.$case" >>"$figures"
    done
    stop_larder
done

if [ -n "${CASES:-}" ]; then
    cat "$figures"
    exit
fi
awk -v without="$without" -f "$here/compare.awk" "$here/thresholds.txt" "$figures"

#!/bin/bash
# Proves the package list of the image's runtime stage without a container engine: installs a bare Debian tree with only
# those packages, puts the release binary in, and has it print its version, check its configuration and serve one request.
#
#   docker/prove-runtime.sh PATH-TO-LARDER          needs root, debootstrap and curl
set -euo pipefail

larder=${1:?usage: docker/prove-runtime.sh PATH-TO-LARDER}
here=$(cd "$(dirname "$0")" && pwd)
[[ $(id -u) -eq 0 ]] || { echo "chroot needs root" >&2; exit 1; }
"$here/install-packages.sh" debootstrap curl python3

packages=$(sed -n 's/^ARG RUNTIME_PACKAGES="\(.*\)"$/\1/p' "$here/Dockerfile")
[[ -n $packages ]] || { echo "docker/Dockerfile names no RUNTIME_PACKAGES" >&2; exit 1; }

tree=$(mktemp -d)
chmod 755 "$tree"   # its root is entered by another user
work=$(mktemp -d)
pids=()
cleanup() {
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null || true; done
    umount "$tree/proc" 2>/dev/null || true
    rm -rf --one-file-system "$tree" "$work"
}
trap cleanup EXIT

echo "== a bare tree with: $packages"
debootstrap --variant=minbase --include="${packages// /,}" bookworm "$tree" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"} \
    >"$work/debootstrap.log" 2>&1 || { tail -20 "$work/debootstrap.log" >&2; exit 1; }
install -D "$larder" "$tree/usr/local/bin/larder"
install -D -m 644 "$here/larder.yaml" "$tree/etc/larder/image.yaml"
inside() { chroot --userspec=3128:3128 "$tree" "$@"; }
install -d -o 3128 -g 3128 "$tree/run/larder" "$tree/var/lib/larder"

# As in every container: a Swift program reads its arguments from there.
mount -t proc proc "$tree/proc"

echo "== libraries"
missing=$(chroot "$tree" ldd /usr/local/bin/larder | grep 'not found' || true)
[[ -z $missing ]] || { echo "not in the runtime packages:" >&2; echo "$missing" >&2; exit 1; }

echo "== larder version"
inside larder version

echo "== larder check"
inside larder check --config /etc/larder/image.yaml

# Free ports, so that the proof disturbs nobody; the rest is as in the image.
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
proxy_port=$(free_port)
admin_port=$(free_port)
origin_port=$(free_port)
cat >"$tree/etc/larder/proof.yaml" <<END
listen:
  - address: 127.0.0.1:$proxy_port
admin:
  address: 127.0.0.1:$admin_port
  socket: /run/larder/admin.sock
access:
  clients: [ 127.0.0.0/8 ]
  private_destinations: allow
END
mkdir "$work/origin"
echo "from the larder" >"$work/origin/file"
python3 -m http.server --bind 127.0.0.1 --directory "$work/origin" "$origin_port" >/dev/null 2>&1 &
pids+=($!)
# Started by the shell itself, so that its process id is the one to end.
chroot --userspec=3128:3128 "$tree" larder serve --config /etc/larder/proof.yaml >"$work/larder.log" 2>&1 &
pids+=($!)

echo "== one request through it"
answer=$(curl --silent --show-error --fail --retry 20 --retry-delay 1 --retry-all-errors --max-time 30 \
    --proxy "http://127.0.0.1:$proxy_port" "http://127.0.0.1:$origin_port/file") \
    || { cat "$work/larder.log" >&2; exit 1; }
[[ $answer == "from the larder" ]] || { echo "wrong answer: $answer" >&2; exit 1; }

echo "== larder stats"
inside larder stats --config /etc/larder/proof.yaml | head -4
echo "== the runtime packages suffice"

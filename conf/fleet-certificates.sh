#!/bin/sh
# Makes the authority of a fleet and a certificate for its nodes, in the present directory:
#   fleet-ca.pem, fleet-ca.key   the authority; keep the key away from the nodes
#   node.pem, node.key           for all nodes
# The arguments are what the nodes are called in fleet.peers, without the port: names, and addresses.
set -eu
test $# -gt 0 || { echo "usage: $0 NAME-OR-ADDRESS..." >&2; exit 2; }
names=
for name in "$@"; do
    case $name in
        *:*|*[0-9].[0-9]*.[0-9]*.[0-9]*) kind=IP ;;
        *) kind=DNS ;;
    esac
    names=$names${names:+,}$kind:$name
done
make() {
    said=$(openssl req -x509 -config /dev/null -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes "$@" 2>&1) || { echo "$said" >&2; exit 1; }
}
umask 077
test -e fleet-ca.pem || make -days 3650 -subj "/CN=Larder fleet" -addext basicConstraints=critical,CA:TRUE \
    -keyout fleet-ca.key -out fleet-ca.pem
make -days 825 -subj "/CN=Larder node" -addext basicConstraints=critical,CA:FALSE -addext "subjectAltName=$names" \
    -CA fleet-ca.pem -CAkey fleet-ca.key -keyout node.key -out node.pem
chmod 644 fleet-ca.pem node.pem
echo "node.pem is for $names"

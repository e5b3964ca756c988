#!/bin/bash
# Installs the named clients from PyPI into .build/clients, unless they are there. Tests/run.sh puts its programs behind all others.
# Without PyPI their tests are left out.
set -euo pipefail
cd "$(dirname "$0")/.."

clients=.build/clients
missing=()
for package in "$@"; do
    compgen -G "$clients/lib/python3*/site-packages/${package//-/_}-*.dist-info" >/dev/null || missing+=("$package")
done
[[ ${#missing[@]} -eq 0 ]] && exit 0

echo "installing ${missing[*]}"
[[ -x $clients/bin/pip ]] || python3 -m venv "$clients"
"$clients/bin/pip" install --quiet --disable-pip-version-check "${missing[@]}" \
    || echo "these clients are not tested: ${missing[*]}" >&2

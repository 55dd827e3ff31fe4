#!/usr/bin/env bash
# Tests the conformance kit: that its page matches the interface, that its runner can fail, and that
# the host written from the page passes every golden vector. Needs Python 3.11 and the built
# dist/lcm.wasm; uses the Python environment of ../python, which has wasmtime. The last line is
# `N passed, N failed`.
set -euo pipefail
cd "$(dirname "$0")"
(cd ../python && . ./environment.sh && make_environment)
python=../python/.venv/bin/python
log=$(mktemp)
trap 'rm -f "$log"' EXIT
"$python" -m unittest -v test_kit 2>&1 | tee "$log"
claims=$(grep -c '\.\.\. ok$' "$log")
"$python" host.py | tee "$log"
read -r passed _ failed _ < <(tail -n 1 "$log")
echo "$((passed + claims)) passed, $failed failed"

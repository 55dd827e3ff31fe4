#!/usr/bin/env bash
# Tests the Python host: makes its environment and the wheel, runs the unit tests and every golden
# vector, in asyncio also over a slow store that refuses commits. Needs Python 3.11 and the built
# dist/lcm.wasm. The last line is `N passed, N failed`.
set -euo pipefail
cd "$(dirname "$0")"

bash package.sh

passed=0
failed=0
count() {
    local line
    line=$(tail -n 1 "$1")
    if [[ $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
        passed=$((passed + BASH_REMATCH[1]))
        failed=$((failed + BASH_REMATCH[2]))
    else
        failed=$((failed + 1))
    fi
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
PYTHONPATH=src .venv/bin/python -W error::ResourceWarning -m tests | tee "$log" || status=1
count "$log"
.venv/bin/python run_vectors.py | tee "$log" || status=1
count "$log"
.venv/bin/python run_vectors.py --delay-ms 5 --conflicts-permille 300 | tee "$log" || status=1
count "$log"
.venv/bin/python run_vectors.py --sqlite ../../tests/vectors/ingest | tee "$log" || status=1
count "$log"
echo "$passed passed, $failed failed"
exit "$status"

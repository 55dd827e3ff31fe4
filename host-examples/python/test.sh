#!/usr/bin/env bash
# Tests the Python host: makes its environment, runs the unit tests and every golden vector.
# Needs Python 3.11 and the built dist/lcm.wasm. The last line is `N passed, N failed`.
set -euo pipefail
cd "$(dirname "$0")"

find_python() {
    local name
    for name in "${PYTHON:-}" python3.11 python3.12 python3.13 python3; do
        [ -n "$name" ] && "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
            && { echo "$name"; return; }
    done
    echo "test.sh: needs Python 3.11 or newer" >&2
    return 1
}

make_environment() {
    local python wanted
    python=$(find_python)
    wanted="$("$python" -c 'import sys; print(sys.version)') $(cat requirements.txt)"
    [ -f .venv/stamp ] && [ "$(cat .venv/stamp)" = "$wanted" ] && return
    rm -rf .venv
    if ! "$python" -m venv .venv >/dev/null 2>&1; then
        # Debian keeps venv in a package of its own.
        rm -rf .venv
        local sudo=""
        [ "$(id -u)" = 0 ] || sudo="sudo"
        $sudo apt-get update -qq && $sudo apt-get install -qq -y python3-venv
        "$python" -m venv .venv
    fi
    .venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
    echo "$wanted" >.venv/stamp
}

make_environment
if [ ! -f ../../dist/lcm.wasm ]; then
    echo "test.sh: dist/lcm.wasm is not built" >&2
    exit 1
fi

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
echo "$passed passed, $failed failed"
exit "$status"

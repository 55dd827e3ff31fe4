# Sourced by the scripts here. `make_environment` makes `.venv` with the packages of
# requirements.txt, and `.venv/wheels` with the packages that our wheel needs in an empty
# environment. Needs Python 3.11. Existing files are kept, so a second run needs no network.

find_python() {
    local name
    for name in "${PYTHON:-}" python3.11 python3.12 python3.13 python3; do
        [ -n "$name" ] && "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
            && { echo "$name"; return; }
    done
    echo "needs Python 3.11 or newer" >&2
    return 1
}

make_environment() {
    local python wanted
    python=$(find_python)
    wanted="$("$python" -c 'import sys; print(sys.version)') $(cat requirements.txt)"
    [ -f .venv/stamp ] && [ "$(cat .venv/stamp)" = "$wanted" ] && return
    rm -rf .venv
    if ! "$python" -m venv .venv >/dev/null 2>&1; then
        # On Debian, venv is in a separate package.
        rm -rf .venv
        local sudo=""
        [ "$(id -u)" = 0 ] || sudo="sudo"
        $sudo apt-get update -qq && $sudo apt-get install -qq -y python3-venv
        "$python" -m venv .venv
    fi
    local pip=".venv/bin/python -m pip --quiet --disable-pip-version-check"
    $pip install -r requirements.txt
    $pip wheel --wheel-dir .venv/wheels "$(grep '^wasmtime==' requirements.txt)"
    echo "$wanted" >.venv/stamp
}

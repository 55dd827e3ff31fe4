#!/usr/bin/env bash
# Installs the npm packages of a folder, as its lock file says: install.sh [FOLDER]
#
# Needs Node 20 or newer with its npm. Install scripts of packages do not run: the packages contain
# all needed files, and npm 10 and 11 treat such scripts differently.
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"

if ! node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 20 ? 0 : 1)'; then
    echo "Node 20 or newer is needed" >&2
    exit 1
fi
stamp=node_modules/.lock-sha256
wanted=$(sha256sum <package-lock.json)
if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
    # Not `npm ci`: it refuses a lock file that leaves out optional packages of other platforms.
    npm install --no-save --ignore-scripts --no-audit --no-fund --loglevel=error
    printf '%s\n' "$wanted" >"$stamp"
fi

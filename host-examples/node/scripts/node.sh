#!/usr/bin/env bash
# Prints the path of a Node of the given major version: the machine's where it has that one, else
# that of a package: node.sh 20|22|26
set -euo pipefail
cd "$(dirname "$0")/.."

major=$1
if [ "$(node -p 'process.versions.node.split(".")[0]')" = "$major" ]; then
    command -v node
    exit
fi
case $major in
20) version=20.20.2 ;;
22) version=22.23.3 ;;
26) version=26.10.0 ;;
*)
    echo "node.sh: no version is pinned for Node $major" >&2
    exit 1
    ;;
esac
platform=$(node -p '`${process.platform}-${process.arch}`')
# The packages of one platform have another name than those of the others.
[ "$platform" = darwin-arm64 ] && name=node-bin-$platform || name=node-$platform
folder=node_modules/.nodes/$version
program=$folder/node_modules/$name/bin/node
if [ ! -x "$program" ]; then
    mkdir -p "$folder"
    # The program is in the package; no install script of it runs.
    npm install --prefix "$folder" --ignore-scripts --no-save --no-audit --no-fund \
        --loglevel=error "$name@$version" >&2
fi
echo "$PWD/$program"

#!/usr/bin/env bash
# Prints the path of a Node with the given major version, usage: node.sh 20|22|26
# The installed Node is used if its version is right, else a pinned Node from an npm package.
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
# The npm package for darwin-arm64 has another form of name than the packages of other platforms.
[ "$platform" = darwin-arm64 ] && name=node-bin-$platform || name=node-$platform
folder=node_modules/.nodes/$version
program=$folder/node_modules/$name/bin/node
if [ ! -x "$program" ]; then
    mkdir -p "$folder"
    # The package contains the program, so its install script need not run.
    npm install --prefix "$folder" --ignore-scripts --no-save --no-audit --no-fund \
        --loglevel=error "$name@$version" >&2
fi
echo "$PWD/$program"

#!/usr/bin/env bash
# Tests the edge worker in workerd: sets itself up, builds from dist/lcm.wasm, runs the golden
# vectors and the walkthrough in Durable Objects. The last line is `N passed, N failed`.
set -euo pipefail
cd "$(dirname "$0")"

if [ ! -f ../../dist/lcm.wasm ]; then
    echo "dist/lcm.wasm is missing: run ./build.sh" >&2
    exit 1
fi
bash ../node/scripts/install.sh ../node
bash ../node/scripts/install.sh .
node ../node/scripts/build.mjs
node run-vectors.mjs

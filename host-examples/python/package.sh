#!/usr/bin/env bash
# Builds the wheel, with dist/lcm.wasm inside, into dist/.
set -euo pipefail
cd "$(dirname "$0")"
trap 'rm -rf src/lcm_engine/lcm.wasm src/lcm_engine.egg-info build' EXIT
cp ../../dist/lcm.wasm src/lcm_engine/lcm.wasm
"${PYTHON:-python3}" -m pip wheel --quiet --no-deps --wheel-dir ../../dist .

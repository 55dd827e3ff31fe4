#!/usr/bin/env bash
# ./build.sh [build|demo|test|bench]: what there is to do, on a machine with rustup. No verb means
# build. Each verb installs what it needs; the steps themselves are in crates/xtask.
set -euo pipefail
cd "$(dirname "$0")"
export PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin"

if ! { command -v cc && command -v c++ && command -v make; } >/dev/null && [ "$(id -u)" = 0 ]; then
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq gcc g++ make
fi
if ! rustup target list --installed | grep -qx wasm32-unknown-unknown; then
    rustup target add wasm32-unknown-unknown
fi
exec cargo run --release --package xtask -- "${@:-build}"

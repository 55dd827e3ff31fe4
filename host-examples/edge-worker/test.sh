#!/usr/bin/env bash
# Tests the edge worker in workerd: installs dependencies, builds from dist/lcm.wasm, runs the
# tests, and the golden vectors and the walkthrough in Durable Objects. The last line is
# `N passed, N failed`.
set -euo pipefail
cd "$(dirname "$0")"

if [ ! -f ../../dist/lcm.wasm ]; then
    echo "dist/lcm.wasm is missing: run ./build.sh" >&2
    exit 1
fi
bash ../node/scripts/install.sh ../node
bash ../node/scripts/install.sh .
node ../node/scripts/build.mjs
mkdir -p build

# Prints the number of a line such as `# pass 12` in the report of Node's test runner.
count() { sed -n "s/^# $1 //p" build/tests.tap | tail -n 1; }

# Failed tests and vectors do not end this script: they are counted and printed in the last line.
node --test \
    --test-reporter=tap --test-reporter-destination=build/tests.tap test/*.test.js || true
sed -n '/^ *not ok/,/^ *\.\.\.$/p' build/tests.tap
echo "tests: $(count pass) passed, $(count skipped) skipped"
node run-vectors.mjs | tee build/vectors.log || true
read -r vectors_passed _ vectors_failed _ < <(tail -n 1 build/vectors.log)

passed=$(($(count pass) + vectors_passed))
failed=$(($(count fail) + $(count cancelled) + vectors_failed))
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]

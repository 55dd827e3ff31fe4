#!/usr/bin/env bash
# Tests the Node package: installs dependencies, builds from dist/lcm.wasm, and runs all tests. On
# every supported version of Node it runs the golden vectors and the tests that depend on the
# version. The last line is `N passed, N failed`.
set -euo pipefail
cd "$(dirname "$0")"

if [ ! -f ../../dist/lcm.wasm ]; then
    echo "dist/lcm.wasm is missing: run ./build.sh" >&2
    exit 1
fi
bash scripts/install.sh
node scripts/build.mjs

passed=0
failed=0

# Runs tests with a Node and counts them; the report is build/tests.tap.
run_tests() {
    # A failed test does not end this script: failures are counted and printed in the last line.
    "$1" --test --test-reporter=tap --test-reporter-destination=build/tests.tap "${@:2}" || true
    sed -n '/^ *not ok/,/^ *\.\.\.$/p' build/tests.tap
    echo "tests: $(count pass) passed, $(count skipped) skipped"
    passed=$((passed + $(count pass)))
    failed=$((failed + $(count fail) + $(count cancelled)))
}

# Prints the number of a line such as `# pass 12` in the report of Node's test runner.
count() { sed -n "s/^# $1 //p" build/tests.tap | tail -n 1; }

run_vectors() {
    "$1" run-vectors.mjs | tee build/vectors.log || true
    local vectors_passed vectors_failed
    read -r vectors_passed _ vectors_failed _ < <(tail -n 1 build/vectors.log)
    passed=$((passed + vectors_passed))
    failed=$((failed + vectors_failed))
}

run_tests node test/*.test.js
for major in 20 22 26; do
    program=$(bash scripts/node.sh $major)
    echo "Node $("$program" --version)"
    run_vectors "$program"
    # These tests depend on the version: only some have `node:sqlite`, and threads share compiled
    # modules.
    [ "$program" = "$(command -v node)" ] ||
        run_tests "$program" test/stores.test.js test/thread.test.js test/engine.test.js
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]

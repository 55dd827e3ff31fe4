"""Tests that `judge.py` finds each fault: a good life has no fault, a broken life has one."""

import talk
import judge

GOOD = {"text": "They spoke of a garden.", "model": "default", "provisional": False}
SOUND = {
    "host": "node", "interface": "chat", "mode": "500", "codes": ["unavailable"], "rules": [],
    "failures": ["unavailable"], "asked": [[9, 3], [14, 3], [24, 3]], "tokens": talk.BUDGET,
    "provisional": 7, "owes": True, "maintains": 1, "left": 0, "still_owes": False,
    "stored": talk.SAID, "summaries": [GOOD], "asked_for": [GOOD], "texts": [], "refused": [],
}  # fmt: skip
SPOKEN = SOUND | {
    "mode": "apology", "codes": [None], "rules": ["blank"], "failures": [],
    "summaries": [GOOD | {"model": "offline", "provisional": True}],
    "texts": ["I'm sorry, but I can't assist with that request."],
}  # fmt: skip
BROKEN = [
    SOUND | {"codes": ["other"]},
    SOUND | {"codes": ["unavailable", None]},
    SOUND | {"failures": []},
    SOUND | {"asked": []},
    SOUND | {"asked": [[9, 3], [13, 3]]},
    SOUND | {"asked": [[9, 3], [14, 3], [23, 3]]},
    SOUND | {"asked": [[1, 1], [6, 1], [16, 1], [35, 1]]},
    SOUND | {"tokens": talk.BUDGET + 1},
    SOUND | {"provisional": 0},
    SOUND | {"owes": False},
    SOUND | {"left": 1},
    SOUND | {"still_owes": True},
    SOUND | {"stored": talk.SAID[1:]},
    SOUND | {"stored": [talk.SAID[0], *talk.SAID]},
    SOUND | {"refused": ["no API key"]},
    SPOKEN | {"rules": []},
    SPOKEN | {"failures": ["other"]},
    SPOKEN | {"summaries": [GOOD | {"text": f"{SPOKEN['texts'][0]} So it is."}]},
    SPOKEN | {"texts": ["OK."], "summaries": [GOOD | {"text": "OK."}]},
    SPOKEN | {"asked_for": [GOOD | {"model": "offline"}]},
    SOUND | {"summaries": [GOOD | {"model": "offline"}]},
    SOUND | {"summaries": [GOOD | {"provisional": True}]},
    SOUND | {"summaries": [GOOD | {"text": "Here is it: they spoke of a garden."}]},
]

if __name__ == "__main__":
    for life in (SOUND, SPOKEN):
        if faults := list(judge.find_faults(life)):
            raise SystemExit(f"a sound life has faults: {faults}")
    for life in BROKEN:
        if not list(judge.find_faults(life)):
            raise SystemExit(f"no fault was found in {life}")
    if not list(judge.find_missing([SOUND])):
        raise SystemExit("no life is missing")
    print(f"{len(BROKEN)} broken lives found")

"""The offsets of a time zone to UTC as a list, which the engine takes as `time_offsets`.

The table of time zones is that of the machine. Equal lists give equal texts in every host.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

from .errors import LcmError
from .results import TimeOffset

FIRST, LAST = (datetime(year, 1, 1, tzinfo=timezone.utc) for year in (2000, 2038))
"""The years of a list; before and after, its first and its last offset apply."""
MINUTE = timedelta(minutes=1)
STEP = timedelta(days=7)
"""A week: no zone changes its offset twice within this time."""


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError) as error:
        # If the system has no time zone tables, the package `tzdata` provides them.
        message = f"`timezone` must be the name of a time zone of this machine, got `{name}`"
        raise LcmError("invalid-input", message) from error


def offsets_of(name: str) -> list[TimeOffset]:
    """Returns the offsets of a time zone by its name, ascending."""
    zone = _zone(name)

    def minutes_at(time: datetime) -> int:
        ahead = time.astimezone(zone).utcoffset() or timedelta()
        return ahead // MINUTE

    def change_between(before: datetime, after: datetime) -> datetime:
        wanted = minutes_at(after)
        while after - before > MINUTE:
            middle = before + (after - before) // MINUTE // 2 * MINUTE
            if minutes_at(middle) == wanted:
                after = middle
            else:
                before = middle
        return after

    offsets: list[TimeOffset] = [{"since": 0, "minutes": minutes_at(FIRST)}]
    at = FIRST
    while at < LAST:
        then = min(at + STEP, LAST)
        minutes = minutes_at(then)
        if minutes != offsets[-1]["minutes"]:
            since = int(change_between(at, then).timestamp()) * 1000
            offsets.append({"since": since, "minutes": minutes})
        at = then
    return offsets

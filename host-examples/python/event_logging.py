"""Events as lines of Python's `logging`: `lcm_engine.open(..., on_event=log_events(logger))`.

A line has the kind and the members of an event; its `extra` has the event, for formatters that
write JSON. Events that a person should see are warnings: a rejected answer, a failed model, a
failed attempt at deferred compaction.
"""

from __future__ import annotations

import logging

from lcm_engine import EventListener, StoreEvent


def log_events(logger: logging.Logger) -> EventListener:
    """Returns a listener that logs to `logger`."""

    def listen(event: StoreEvent) -> None:
        members = {name: value for name, value in event.items() if name != "kind"}
        line = " ".join(f"{name}={value}" for name, value in members.items())
        logger.log(level_of(event), "%s %s", event["kind"], line, extra={"lcm": event})

    return listen


def level_of(event: StoreEvent) -> int:
    """Returns the level of the line of an event."""
    if event["kind"] == "summary-rejected":
        return logging.WARNING
    if event["kind"] == "model-called":
        return logging.WARNING if event["error"] else logging.DEBUG
    if event["kind"] == "compaction-debt":
        return logging.WARNING if event["failures"] else logging.INFO
    is_routine = event["kind"] in ("messages-skipped", "summary-asked", "conflict-repeated")
    return logging.DEBUG if is_routine else logging.INFO

"""Events as spans of OpenTelemetry: `open(..., on_event=trace_events(tracer, "openai"))`.

Names of attributes follow OpenTelemetry's conventions for generative AI. Where the conventions have
no name, the name is `lcm.` with the member of the event. Needs `opentelemetry-api`.
"""

from __future__ import annotations

import time
from typing import Any

from lcm_engine import EventListener, StoreEvent, ModelCalled
from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer, get_current_span


def trace_events(tracer: Tracer, provider: str) -> EventListener:
    """Returns a listener that makes a span of each call of a model.

    Any other event belongs to the span of the program in which it happened, such as its request.
    `provider` is the `gen_ai.provider.name` of the models.
    """

    def listen(event: StoreEvent) -> None:
        if event["kind"] == "model-called":
            trace_call(tracer, provider, event)
            return
        members = {name: value for name, value in event.items() if value is not None}
        attributes: dict[str, Any] = {f"lcm.{name}": value for name, value in members.items()}
        attributes["gen_ai.conversation.id"] = attributes.pop("lcm.conversation")
        get_current_span().add_event(f"lcm.{attributes.pop('lcm.kind')}", attributes)

    return listen


def trace_call(tracer: Tracer, provider: str, event: ModelCalled) -> None:
    """Creates the span of a model call that has just ended."""
    end = time.time_ns()
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider,
        "gen_ai.conversation.id": event["conversation"],
        "lcm.purpose": event["purpose"],
        "lcm.attempt": event["attempt"],
    }
    if event["model"] is not None:
        attributes["gen_ai.request.model"] = event["model"]
    if event["finish"] is not None:
        attributes["gen_ai.response.model"] = event["model"]
        attributes["gen_ai.response.finish_reasons"] = [event["finish"]]
    if event["input_tokens"]:
        attributes["gen_ai.usage.input_tokens"] = event["input_tokens"]
        attributes["gen_ai.usage.output_tokens"] = event["output_tokens"]
    span = tracer.start_span(
        f"chat {event['model'] or ''}".rstrip(),
        kind=SpanKind.CLIENT,
        attributes=attributes,
        start_time=end - event["ms"] * 1_000_000,
    )
    if event["error"] is not None:
        span.set_attribute("error.type", event["error"])
        span.set_status(Status(StatusCode.ERROR))
    span.end(end)

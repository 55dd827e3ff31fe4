"""The refusal of a model that ended a task.

In: the error or result that the engine reports for a task, and the answers that the host gave.
Out: the same with the model's own code and message; the engine reports only `completion-failed`.
"""

from __future__ import annotations

from collections.abc import Mapping

from .completions import Answered, failure_code
from .errors import LcmError
from .flows import Fields, read_failure
from .results import ModelFailure

REFUSALS = ("auth", "policy")
"""Failures with which a model refuses: the task ends."""


def _refusal(error: Fields, answers: Mapping[int, Answered]) -> ModelFailure | None:
    if error["code"] != "completion-failed":
        return None
    refused = [one["failed"] for one in answers.values() if failure_code(one) in REFUSALS]
    return read_failure(refused[-1] if refused else None)


def task_error(error: Fields, answers: Mapping[int, Answered]) -> LcmError:
    """Returns the error of a task; its `failure` is the failure of the refusing model, if any."""
    return LcmError(error["code"], error["message"], _refusal(error, answers))


def task_result(result: Fields, answers: Mapping[int, Answered]) -> Fields:
    """Returns the result of a task; its `failure` is the failure of the refusing model, if any."""
    failure = result.get("failure")
    return result | {"failure": _refusal(failure, answers) or failure} if failure else result

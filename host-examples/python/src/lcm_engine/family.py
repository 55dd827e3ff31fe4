"""`maintain` for every conversation of a family.

In: the key of the family, and the compaction that a caller requests. Out: a report for each
conversation.
"""

from __future__ import annotations

from dataclasses import replace

from . import compaction, paging, results
from .errors import LcmError
from .flows import Flow


def maintain_family(family: str, work: compaction.Work) -> Flow[results.FamilyReport]:
    """Serves the conversations of a family one after the other, the latest to join first.

    After a failure of a model the rest is not served, because the model would fail there, too. Any
    other failure concerns one conversation, except a mistake of the caller.
    """
    arguments = {"family": family}
    members = (yield from paging.life("", "live", arguments, work.now()))["members"]
    reports: list[results.MemberReport] = []
    for conversation in members:
        try:
            asking = work.asking.about(conversation)
            one = replace(work, conversation=conversation, asking=asking)
            report = yield from compaction.maintain(one)
        except LcmError as error:
            if error.code == "invalid-input":
                raise
            failure = results.ModelFailure(code=error.code, message=error.message)
            report = results.MaintainReport(debt=None, compacted=None, failure=failure)
            is_over = False
        else:
            compacted = report["compacted"]
            is_over = bool(report["failure"] or (compacted and compacted["failure"]))
        reports.append({"conversation": conversation, **report})
        if is_over:
            break
    return {"reports": reports, "unserved": members[len(reports) :]}

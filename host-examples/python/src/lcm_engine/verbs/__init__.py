"""The verbs of an open store by subject, each described once for `Lcm` and `AsyncLcm`."""

from .compacting import Compacting
from .intake import Intake
from .keeping import Keeping
from .reading import Reading


class Verbs(Intake, Compacting, Reading, Keeping):
    """All verbs.

    In the examples `lcm` is an open store with a conversation `chat`. With an `AsyncLcm`, every
    call must be awaited.
    """


__all__ = ["Verbs"]

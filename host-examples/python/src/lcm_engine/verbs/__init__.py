"""What can be done with an open store, by subject; each is described once for both packages."""

from .compacting import Compacting
from .intake import Intake
from .keeping import Keeping
from .reading import Reading


class Verbs(Intake, Compacting, Reading, Keeping):
    """All verbs.

    In the examples `lcm` is an open store with a conversation `chat`; of an `AsyncLcm` every call
    is awaited.
    """


__all__ = ["Verbs"]

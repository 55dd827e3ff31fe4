"""What can be done with an open store, by subject; each is described once for both packages."""

from .compacting import Compacting
from .intake import Intake
from .keeping import Keeping
from .reading import Reading


class Verbs(Intake, Compacting, Reading, Keeping):
    """All verbs."""


__all__ = ["Verbs"]

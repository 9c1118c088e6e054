"""A rewording, and a rule that finds rewordings."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.edits import Edit


@dataclass(frozen=True, kw_only=True, slots=True)
class Rewording:
    """Edits after which a caption says the same in other words.

    Attributes:
      rule: name of the rule that found it.
      edits: in order, not overlapping; at least one, and together they change the caption.
    """

    rule: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """A way to reword captions.

    Attributes:
      name: the rule's name.
      reverse: name of the rule that undoes it; None if none does.
      ground: why the rewording says the same, with a source.
      find: yields the rewordings of a caption, in the order of their places.
    """

    name: str
    reverse: str | None
    ground: str
    find: Callable[[Analysis], Iterator[Rewording]]

"""A rewording, and the rule that finds it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.edits import Edit


@dataclass(frozen=True, kw_only=True, slots=True)
class Rewording:
    """Edits after which a caption says what it said before.

    Attributes:
      rule: name of the rule that found it.
      edits: in order, apart.
      original, replacement: the words exchanged where the rule is one of a list of words.
    """

    rule: str
    edits: tuple[Edit, ...]
    original: str | None = None
    replacement: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """A way to reword captions.

    Attributes:
      name: of the rule.
      reverse: of the rule that undoes it; None for none.
      ground: why both texts say the same: a grammar or dictionary, and its section.
      find: yields every place of a caption, in order.
    """

    name: str
    reverse: str | None
    ground: str
    find: Callable[[Analysis], Iterator[Rewording]]

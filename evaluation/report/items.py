"""What a page shows of a row: its pictures, its texts with what differs marked, and what it is."""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

Tone = Literal["", "true", "false"]
"""Whether a text is true of its picture or false; empty where neither is said."""

Part = str | tuple[str]
"""A piece of a text; in a tuple it is marked."""


class Text(msgspec.Struct, frozen=True, kw_only=True):
    """A text and what part it plays.

    Attributes:
      role: what it is, such as `hard negative`; empty where that is plain.
      parts: its pieces in order; those that differ from another text are marked.
      tone: whether it is true of the picture.
    """

    role: str = ""
    parts: tuple[Part, ...]
    tone: Tone = ""

    @property
    def plain(self) -> str:
        """The text without marks."""
        return "".join(part if isinstance(part, str) else part[0] for part in self.parts)


class Box(msgspec.Struct, frozen=True, kw_only=True):
    """A box in a picture, in pixels of the stored picture.

    Attributes:
      label: what it is around.
      x, y, width, height: its left and top edge and its size.
      tone: which of several kinds of boxes it is, from 0.
    """

    label: str
    x: float
    y: float
    width: float
    height: float
    tone: int = 0


class Pane(msgspec.Struct, frozen=True, kw_only=True):
    """A picture and what belongs to it alone.

    Attributes:
      name: what tells it from the others of the item, such as `image 0`.
      image_id: key into the pictures; None where there is none.
      texts: its texts.
      boxes: what is drawn around objects.
      mask_id: key into the masks; None where there is none.
    """

    name: str = ""
    image_id: str | None = None
    texts: tuple[Text, ...] = ()
    boxes: tuple[Box, ...] = ()
    mask_id: str | None = None


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """Why a reject was refused; as in `eqforge.schemas.records.books.Reject`."""

    stage: str
    reason: str
    meaning: str = ""
    detail: str = ""
    value: float | None = None
    threshold: float | None = None


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """A row, or several rows that belong together.

    Attributes:
      id: of the row, or of what the rows have in common.
      facts: short facts, by name.
      panes: the pictures.
      texts: texts about the item as a whole.
      why: why it was refused; None for samples.
      comparable: whether its pictures, two by two, show the same but for one thing.
      rows: the whole rows that it was made of, by table.
    """

    id: str
    facts: tuple[tuple[str, str], ...] = ()
    panes: tuple[Pane, ...] = ()
    texts: tuple[Text, ...] = ()
    why: Why | None = None
    comparable: bool = False
    rows: tuple[tuple[str, dict[str, Any]], ...] = ()

    def all_texts(self) -> Sequence[Text]:
        """Returns its texts, those of the pictures first."""
        return [*(text for pane in self.panes for text in pane.texts), *self.texts]


def plain(text: Any, role: str = "", tone: Tone = "") -> Text:
    """Returns a text without marks."""
    return Text(role=role, parts=(str(text),), tone=tone)


def marked(text: str, spans: Sequence[tuple[int, int]], role: str = "", tone: Tone = "") -> Text:
    """Returns a text with some characters marked.

    Args:
      text: the text.
      spans: the characters [start, end), in code points; what lies outside the text is left out.
      role: as in Text.
      tone: as in Text.
    """
    parts: list[Part] = []
    done = 0
    for start, end in sorted(spans):
        start, end = max(start, done), min(end, len(text))
        if start >= end:
            continue
        parts += [text[done:start]] if start > done else []
        parts.append((text[start:end],))
        done = end
    parts += [text[done:]] if done < len(text) or not parts else []
    return Text(role=role, parts=tuple(parts), tone=tone)

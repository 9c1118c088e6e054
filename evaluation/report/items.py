"""The content of a page for a row: images, texts with differences marked, and facts."""

import difflib
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

import msgspec

Tone = Literal["", "true", "false"]
"""Whether a text is true of its image or false; empty if unknown."""

Part = str | tuple[str]
"""A piece of a text; a tuple marks it."""

Spans = list[tuple[int, int]]
"""Characters [start, end) of a text, in code points."""

# Words; in scripts without spaces, single characters.
_WORD: Final = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff\u0e00-\u0e7f]|[^\W]+|[^\w\s]")
_MOST_WORDS: Final = 400
"""Maximum length for word-by-word comparison, which takes quadratic time."""


class Text(msgspec.Struct, frozen=True, kw_only=True):
    """A text in pieces, and its role, such as `hard negative`; empty if obvious."""

    role: str = ""
    parts: tuple[Part, ...]
    tone: Tone = ""

    @property
    def plain(self) -> str:
        return "".join(part if isinstance(part, str) else part[0] for part in self.parts)


class Box(msgspec.Struct, frozen=True, kw_only=True):
    """A box in pixels of the stored image; its tone, from 0, distinguishes kinds of boxes."""

    label: str
    x: float
    y: float
    width: float
    height: float
    tone: int = 0


class Pane(msgspec.Struct, frozen=True, kw_only=True):
    """An image with its own texts, boxes and mask; the name is unique in the item."""

    name: str = ""
    image_id: str | None = None
    texts: tuple[Text, ...] = ()
    boxes: tuple[Box, ...] = ()
    mask_id: str | None = None


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """Why a candidate was rejected; as in `eqforge.schemas.records.stages.Reject`."""

    stage: str
    reason: str
    meaning: str = ""
    detail: str = ""
    value: float | None = None
    threshold: float | None = None


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One row, or several rows that belong together.

    Attributes:
      texts: about the item as a whole.
      comparable: whether its images, two by two, show the same scene with one difference.
      rows: the complete source rows, by table.
    """

    id: str
    facts: tuple[tuple[str, str], ...] = ()
    panes: tuple[Pane, ...] = ()
    texts: tuple[Text, ...] = ()
    why: Why | None = None
    comparable: bool = False
    rows: tuple[tuple[str, dict[str, Any]], ...] = ()

    def all_texts(self) -> Sequence[Text]:
        return [*(text for pane in self.panes for text in pane.texts), *self.texts]


def plain(text: Any, role: str = "", tone: Tone = "") -> Text:
    return Text(role=role, parts=(str(text),), tone=tone)


def marked(text: str, spans: Sequence[tuple[int, int]], role: str = "", tone: Tone = "") -> Text:
    """Mark some characters of a text; spans outside the text are ignored."""
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


def differing_words(first: str, second: str) -> tuple[Spans, Spans]:
    """Return the spans of words in which two texts of up to 400 words differ; merge neighbours."""
    words = [list(_WORD.finditer(text)) for text in (first, second)]
    if max(map(len, words)) > _MOST_WORDS:
        return [], []
    keys = [[match[0].casefold() for match in each] for each in words]
    blocks = difflib.SequenceMatcher(None, keys[0], keys[1], autojunk=False).get_opcodes()
    changed = [block for block in blocks if block[0] != "equal"]
    return (
        list(_spans(words[0], [(block[1], block[2]) for block in changed])),
        list(_spans(words[1], [(block[3], block[4]) for block in changed])),
    )


def _spans(words: list[re.Match[str]], runs: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    for start, end in runs:
        if start < end:
            yield words[start].start(), words[end - 1].end()

"""The lexicon of hard positives: words and replacements that keep the meaning.

The paper's lexicon comes with the package; users may name their own file of tab-separated values
with this header:

    kind    group    word    replacement    synonymy    source

`kind` is `relation` or `attribute`; `group` is the name of the VL-CheckList file the entry is for
(`spatial`, `action`, `color`, `size`, `state`), or any other name; `synonymy` is `full`, or `weak`
if the replacement says less or more than the word ("silver", "metallic"). Order matters within a
group: the published rule takes the first match.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Literal, cast, get_args

from eqforge.core.errors import InputError
from eqforge.core.files.checked import read_text_lines, shown
from eqforge.generators.text.parts import inflect_word, lemmatizer

Kind = Literal["relation", "attribute"]
Synonymy = Literal["full", "weak"]

_VERB_TAGS = ("VB", "VBZ", "VBD", "VBN")
_ADJECTIVE_TAGS = ("JJR", "JJS")

COLUMNS = ("kind", "group", "word", "replacement", "synonymy", "source")


@dataclass(frozen=True, kw_only=True, slots=True)
class LexiconEntry:
    """A word or phrase and its replacement in lower case, "weak" if an image may show only one."""

    kind: Kind
    group: str
    word: str
    replacement: str
    synonymy: Synonymy
    source: str


Lexicon = tuple[LexiconEntry, ...]


def load_lexicon(path: str | Path | None = None) -> Lexicon:
    """Return the entries of a lexicon file, in file order.

    Args:
      path: a user's lexicon; None takes the words of the paper's tables, 15 relations and 23
        attributes (its text says 14 and 24), and "riding", which the authors counted under "riding
        on".

    Raises:
      InputError: the file is not a valid lexicon; the message names line and column.

    Source: Kamath et al. 2024, "The Hard Positive Truth about Vision-Language Compositionality",
      appendix A, tables 4 to 6.
    """
    if path is None:
        resource = files("eqforge.generators.text") / "data" / "hard_positive_lexicon.tsv"
        return _parse(resource.read_text(encoding="utf-8").splitlines(), resource.name)
    return _parse(read_text_lines(path), Path(path).name)


def select(lexicon: Lexicon, kind: Kind, group: str | None = None) -> Lexicon:
    return tuple(entry for entry in lexicon if entry.kind == kind and group in (None, entry.group))


def _parse(lines: Sequence[str], file: str) -> Lexicon:
    # Fields are never quoted, so there is no need for the csv module.
    rows = [line.split("\t") for line in lines]
    if not rows or tuple(rows[0]) != COLUMNS:
        found = "an empty file" if not rows else shown(" ".join(rows[0]))
        raise InputError(f"{file}: line 1: expected the columns {' '.join(COLUMNS)}, found {found}")
    entries: dict[tuple[str, str, str], LexiconEntry] = {}
    for line, row in enumerate(rows[1:], start=2):
        entry = _entry(row, f"{file}: line {line}")
        key = (entry.kind, entry.group, entry.word)
        if key in entries:
            raise InputError(f"{file}: line {line}: {shown(' '.join(key))} appears twice")
        entries[key] = entry
    return tuple(entries.values())


def _entry(row: list[str], where: str) -> LexiconEntry:
    if len(row) != len(COLUMNS):
        raise InputError(f"{where}: expected {len(COLUMNS)} columns, found {len(row)}")
    kind, group, word, replacement, synonymy, source = row
    if kind not in get_args(Kind):
        raise InputError(f"{where}: kind: expected relation or attribute, found {shown(kind)}")
    if synonymy not in get_args(Synonymy):
        raise InputError(f"{where}: synonymy: expected full or weak, found {shown(synonymy)}")
    for column, value in (("word", word), ("replacement", replacement)):
        if not value or value != " ".join(value.lower().split()):
            raise InputError(
                f"{where}: {column}: expected lower case with single spaces, found {shown(value)}"
            )
    if word == replacement:
        raise InputError(f"{where}: replacement: expected another word than {shown(word)}")
    return LexiconEntry(
        kind=cast(Kind, kind),
        group=group,
        word=word,
        replacement=replacement,
        synonymy=cast(Synonymy, synonymy),
        source=source,
    )


def with_inflections(lexicon: Lexicon) -> Lexicon:
    """Follow each entry by its other inflected forms: "holds", "grasps".

    An entry is inflected if its word and replacement have the same form: two "-ing" forms of verbs
    are inflected by person and tense, two adjectives by degree. In a phrase the first word is
    inflected. Forms that the lexicon already has are left out; no two entries share kind, group and
    word.
    """
    taken = {(entry.kind, entry.group, entry.word) for entry in lexicon}
    entries: list[LexiconEntry] = []
    for entry in lexicon:
        entries.append(entry)
        for word, replacement in _other_forms(entry):
            if (entry.kind, entry.group, word) not in taken:
                taken.add((entry.kind, entry.group, word))
                source = f"{entry.source}; inflected from {entry.word!r}"
                entries.append(replace(entry, word=word, replacement=replacement, source=source))
    return tuple(entries)


def _other_forms(entry: LexiconEntry) -> Iterator[tuple[str, str]]:
    word, _, word_rest = entry.word.partition(" ")
    replacement, _, replacement_rest = entry.replacement.partition(" ")
    tags: tuple[str, ...] = ()
    lemmas = [word, replacement]
    if word.endswith("ing") and replacement.endswith("ing"):
        found = [lemmatizer().getLemma(w, upos="VERB", lemmatize_oov=False) for w in lemmas]
        lemmas = [own[0] if own else form for own, form in zip(found, lemmas, strict=True)]
        tags = _VERB_TAGS
    elif not (word_rest or replacement_rest) and entry.kind == "attribute":
        tags = _ADJECTIVE_TAGS
    for tag in tags:
        left, right = (inflect_word(lemma, tag) for lemma in lemmas)
        if left is not None and right is not None:
            yield f"{left} {word_rest}".strip(), f"{right} {replacement_rest}".strip()

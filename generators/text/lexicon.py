"""Read the lexicon of hard positives: words and replacements that keep the meaning.

The package includes the paper's lexicon. Users may name their own file of tab-separated values with
this header:

    kind    group    word    replacement    synonymy    source

`kind` is `relation` or `attribute`. `group` is the VL-CheckList file (`spatial`, `action`, `color`,
`size`, `state`), or any other name. `synonymy` is `full`, or `weak` if the replacement says less or
more than the word ("silver", "metallic"). Order matters within a group: the published rule takes
the first match.

In VL-CheckList the negative shows which word matters and in which sense. A free caption has no
negative, so it gets only entries that keep their sense wherever the tag fits. `in`, `by` and
`above` are left out ("a man in a hat" is not "a man within a hat"), and so are weak synonyms.
"""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Literal, cast, get_args

from eqforge.core.errors import InputError
from eqforge.core.files.checked import read_text_lines, shown
from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.contexts import suits_group
from eqforge.generators.text.coordination.conjuncts import may_color_person
from eqforge.generators.text.edits import Edit, EditedText, apply_edits
from eqforge.generators.text.parts import inflect_word, lemmatizer
from eqforge.generators.text.perturbations.synonyms import article_edits
from eqforge.generators.text.words import find_words, is_in_fixed_expression

Kind = Literal["relation", "attribute"]
Synonymy = Literal["full", "weak"]

_VERB_TAGS = ("VB", "VBZ", "VBD", "VBN")

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
      path: a user's lexicon. None takes the words of the paper's tables, 15 relations and 23
        attributes (its text says 14 and 24), and "riding", which the authors counted under "riding
        on".

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
        found = "an empty file" if not rows else shown(", ".join(rows[0]))
        columns = ", ".join(COLUMNS)
        raise InputError(f"{file}: line 1: expected the columns {columns}; found {found}")
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
        raise InputError(f"{where}: replacement: expected a word other than {shown(word)}")
    return LexiconEntry(
        kind=cast(Kind, kind),
        group=group,
        word=word,
        replacement=replacement,
        synonymy=cast(Synonymy, synonymy),
        source=source,
    )


def with_inflections(lexicon: Lexicon) -> Lexicon:
    """Add other inflected forms after each entry: "holds", "grasps".

    An entry is inflected if its word and replacement have the same form: two "-ing" forms by person
    and tense, two adjectives by degree. In a phrase only the first word is inflected. Existing
    forms are left out; no two entries share kind, group and word.
    """
    keys = {(entry.kind, entry.group, entry.word) for entry in lexicon}
    entries: list[LexiconEntry] = []
    for entry in lexicon:
        entries.append(entry)
        for word, replacement in _other_forms(entry):
            if (entry.kind, entry.group, word) not in keys:
                keys.add((entry.kind, entry.group, word))
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
        tags = ("JJR", "JJS")
    for tag in tags:
        left, right = (inflect_word(lemma, tag) for lemma in lemmas)
        if left is not None and right is not None:
            yield f"{left} {word_rest}".strip(), f"{right} {replacement_rest}".strip()


AMBIGUOUS = frozenset(("in", "by", "above"))
_TAGS = {"color": "JJ", "size": "JJ", "state": "JJ", "action": "VB", "spatial": "IN"}
_DIRECTIONS = ("IN", "RB", "RP", ".", ",", "CC")


def reword_caption(
    analysis: Analysis, lexicon: Lexicon
) -> Iterator[tuple[EditedText, LexiconEntry]]:
    usable = _usable(lexicon)
    indices = {token.start: index for index, token in enumerate(analysis.tokens)}
    for start, end, word in find_words(analysis.text, tuple(usable)):
        entry, index = usable[word], indices.get(start)
        if index is None or not analysis.tag(index).startswith(_TAGS[entry.group]):
            continue
        if entry.group == "color" and (
            may_color_person(analysis, index) or not suits_group(analysis, index, "color")
        ):
            continue
        if _has_other_sense(analysis, index) or is_in_fixed_expression(analysis.text, start, end):
            continue
        text = entry.replacement
        if analysis.text[start].isupper():
            text = text[0].upper() + text[1:]
        edits = (
            *article_edits(analysis.tokens, index, entry.replacement),
            Edit(start=start, end=end, replacement=text),
        )
        yield apply_edits(analysis.text, edits), entry


@functools.lru_cache(maxsize=4)
def _usable(lexicon: Lexicon) -> dict[str, LexiconEntry]:
    usable: dict[str, LexiconEntry] = {}
    for entry in with_inflections(lexicon):
        if entry.synonymy == "full" and entry.group in _TAGS and entry.word not in AMBIGUOUS:
            usable.setdefault(entry.word, entry)
    return usable


def _has_other_sense(analysis: Analysis, index: int) -> bool:
    """Return True if a verb names no action: "a nice looking tray", "a man looking old"."""
    token = analysis.tokens[index]
    before, behind = analysis.tokens[:index][-1:], analysis.tokens[index + 1 :][:1]
    if token.lemma == "look" and behind:
        return behind[0].tag not in _DIRECTIONS or behind[0].text.lower() in ("for", "like", "to")
    is_modifier = token.tag == "VBG" and bool(behind) and behind[0].tag.startswith("NN")
    return is_modifier and bool(before) and before[0].tag in ("DT", "JJ")

"""Lint a stream of text pairs; the kinds of findings are a closed list."""

import dataclasses
import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, cast

from eqforge.core.identity import picture_key
from eqforge.generators.text.caption_lint import (
    CONTEXT_TOKENS,
    count_clip_tokens,
    normalize_caption,
)
from eqforge.generators.text.edits import agree_articles, common_ends
from eqforge.generators.text.language import is_known_word
from eqforge.generators.text.lints.word_edits import (
    PartialEdit,
    exchanged_words,
    find_partial_edits,
    stays_true,
    swaps_sides,
    words_of,
)
from eqforge.generators.text.words import read_table
from eqforge.sources.labelled_captions import LabelledCaptions, label_pair
from eqforge.sources.text_pairs import TextPair

Severity = Literal["error", "warning", "note"]
"""error: the record cannot be used; warning: it misleads; note: worth a look."""

KINDS: dict[str, tuple[Severity, str]] = {
    row["kind"]: (cast(Severity, row["severity"]), row["meaning"])
    for row in read_table("findings.tsv")
}

ERRORS = tuple(kind for kind, (severity, _) in KINDS.items() if severity == "error")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """A defect in a record.

    Attributes:
      field: caption with the defect: "positive", "negative", "hard_positive", "perturbed" or
        "other_caption" (of a second image).
      twin: id of the first record that this record duplicates, or empty if there is none.
    """

    record_id: str
    kind: str
    field: str
    detail: str
    twin: str = ""

    severity: Severity = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "severity", KINDS[self.kind][0])


def lint_records(records: Iterable[TextPair | LabelledCaptions]) -> Iterator[Finding]:
    """Yield the findings of the records of one file or dataset.

    A record's findings come as it is read, contradictions between records at the end.

    Source: defects found in VL-CheckList, ARO and the published hard-positive sets.
    """
    set_checks = SetChecks()
    for entry in records:
        record = _composed(label_pair(entry) if isinstance(entry, TextPair) else entry)
        yield from check_record(record)
        yield from set_checks.add(record)
    yield from set_checks.finish()


def _composed(record: LabelledCaptions) -> LabelledCaptions:
    """Return the record with its image and texts in Unicode's composed form (NFC)."""
    texts = {"image": record.image, **captions_of(record)}
    forms: dict[str, Any] = {
        name: unicodedata.normalize("NFC", text) for name, text in texts.items()
    }
    return record if forms == texts else dataclasses.replace(record, **forms)


_LENGTH_GAP_WORDS = 4
_LENGTH_GAP_RATIO = 1.5
# Grammar words that never repeat in a sentence, unlike "that that" and "had had".
_TWICE = re.compile(
    r"\b(a|an|and|at|by|for|from|his|is|it|near|of|or|the|their|to|with)\s+\1\b(?![-\w'])",
    re.IGNORECASE,
)
# No article stands before these: a word is missing, or the article is written twice.
_MISSING_NOUN = re.compile(r"\s+(a|an|and|are|as|at|if|in|into|is|of|on|onto|or)\b", re.IGNORECASE)
_EQUAL_KINDS = {
    ("positive", "negative"): "negative_equals_positive",
    ("positive", "hard_positive"): "unchanged",
    ("positive", "perturbed"): "unchanged",
    ("negative", "hard_positive"): "hard_positive_equals_negative",
}


def captions_of(record: LabelledCaptions) -> dict[str, str]:
    fields = ("positive", "negative", "hard_positive", "perturbed")
    texts = ((field, getattr(record, field)) for field in fields)
    return {field: text for field, text in texts if text is not None}


def check_record(record: LabelledCaptions) -> Iterator[Finding]:
    """Yield the findings that a single record gives.

    Edits inside words that only other records can prove are left to `SetChecks`. A perturbed
    caption may have any words and grammar.
    """
    captions = captions_of(record)
    for (left, right), kind in _EQUAL_KINDS.items():
        if not (left in captions and right in captions):
            continue
        texts = captions[left], captions[right]
        if texts[0] == texts[1]:
            yield _finding(record, kind, right, texts[1])
        elif not exchanged_words(*texts):
            yield _finding(record, "case_or_spacing_only", right, f"{texts[0]!r} | {texts[1]!r}")
    for field, text in captions.items():
        if field != "perturbed":
            for edit in agree_articles(text):
                if not _MISSING_NOUN.match(text, edit.end):
                    yield _finding(record, "article", field, text[edit.start : edit.end + 20])
            for match in _TWICE.finditer(text):
                yield _finding(record, "word_twice", field, match[0])
        if field != "positive" and text != record.positive:
            yield from _check_edit(record, field, text)


def _finding(record: LabelledCaptions, kind: str, field: str, detail: str) -> Finding:
    field_name = record.finding_field(field)
    return Finding(record_id=record.record_id, kind=kind, field=field_name, detail=detail)


def _check_edit(record: LabelledCaptions, field: str, text: str) -> Iterator[Finding]:
    exchanges = exchanged_words(record.positive, text)
    if exchanges and is_cut_off(record.positive, text):
        yield _finding(record, "edit_beyond_context", field, text[-60:])
    if field == "perturbed":
        return
    if field == "negative" and exchanges:
        words, other = words_of(record.positive), words_of(text)
        if len(words) == len(other) and sorted(words) == sorted(other):
            kind = "sides_swapped" if swaps_sides(words, other) else "word_order_only"
            yield _finding(record, kind, "negative", text)
        elif stays_true(words, exchanges):
            detail = "; ".join(f"{' '.join(e.before)} -> {' '.join(e.after)}" for e in exchanges)
            yield _finding(record, "near_synonym_negative", "negative", detail)
    if record.is_made or field != "negative":  # words that no dictionary has, unless only moved
        new_words = (word for exchange in exchanges for word in exchange.after)
        unknown = [word for word in new_words if word.isascii() and not is_known_word(word)]
        caption_words = (
            {word.removesuffix("s") for word in words_of(record.positive)} if unknown else ()
        )
        for word in unknown:
            if word.removesuffix("s") not in caption_words:
                yield _finding(record, "invented_word", field, word)
    lengths = sorted((len(record.positive.split()), len(text.split())))
    gap = lengths[1] - lengths[0]
    if gap >= _LENGTH_GAP_WORDS and lengths[1] >= _LENGTH_GAP_RATIO * lengths[0]:
        yield _finding(record, "length_gap", field, f"{lengths[0]} and {lengths[1]} words")


def is_cut_off(left: str, right: str) -> bool:
    """Return True if two texts differ only beyond the tokens that CLIP reads."""
    shared, _ = common_ends(left, right)
    if shared < CONTEXT_TOKENS - 2:  # a token has at least one character
        return False
    prefix = left[: left.rfind(" ", 0, shared + 1) + 1]
    return count_clip_tokens(prefix) >= CONTEXT_TOKENS


# Records with equal positives are duplicates if the first of these fields they have is equal too.
_MADE = ("negative", "perturbed", "hard_positive")


@dataclass(slots=True)
class SetChecks:
    """Checks records against each other; holds digests and ids, about 600 bytes per record."""

    _pairs: dict[bytes, str] = dataclasses.field(default_factory=dict)
    _normal_pairs: dict[bytes, str] = dataclasses.field(default_factory=dict)
    _true: dict[bytes, str] = dataclasses.field(default_factory=dict)
    _false: dict[bytes, str] = dataclasses.field(default_factory=dict)
    _negatives: list[tuple[bytes, str, str]] = dataclasses.field(default_factory=list)
    _hard_positives: list[tuple[bytes, str, str]] = dataclasses.field(default_factory=list)
    _whole_words: set[tuple[str, str]] = dataclasses.field(default_factory=set)
    _partial_edits: list[tuple[str, str, PartialEdit]] = dataclasses.field(default_factory=list)

    def add(self, record: LabelledCaptions) -> Iterator[Finding]:
        captions = captions_of(record)
        normal = {name: normalize_caption(text) for name, text in captions.items()}
        role = next((name for name in _MADE if name in captions), "positive")
        picture = _picture(record)
        exact = _digest(picture, role, record.positive, captions[role])
        near = _digest(picture, role, normal["positive"], normal[role])
        if near in self._normal_pairs:
            kind = "duplicate" if exact in self._pairs else "near_duplicate"
            yield Finding(
                record_id=record.record_id,
                kind=kind,
                field="positive",
                detail=f"{record.image}: {record.positive} | {captions[role]}",
                twin=self._pairs.get(exact, self._normal_pairs[near]),
            )
        self._pairs.setdefault(exact, record.record_id)
        self._normal_pairs.setdefault(near, record.record_id)
        record_id = record.record_id
        self._true.setdefault(_digest(picture, normal["positive"]), record_id)
        negative, field_name = normal.get("negative"), record.finding_field("negative")
        if negative is not None:
            self._false.setdefault(_digest(picture, negative), record_id)
            if negative != normal["positive"]:
                self._negatives.append((_digest(picture, negative), record_id, field_name))
        if "hard_positive" in normal and normal["hard_positive"] != negative:
            digest = _digest(picture, normal["hard_positive"])
            self._hard_positives.append((digest, record_id, "hard_positive"))
        for name in ("negative", "hard_positive") if record.is_made else ("hard_positive",):
            text, field_name = getattr(record, name), record.finding_field(name)
            for exchange in () if text is None else exchanged_words(record.positive, text):
                self._whole_words.add((" ".join(exchange.before), " ".join(exchange.after)))
                for edit in find_partial_edits(exchange):
                    if edit.damaged == "after":
                        yield _inside_word(record.record_id, field_name, edit)
                    else:
                        self._partial_edits.append((record.record_id, field_name, edit))

    def finish(self) -> Iterator[Finding]:
        for kind, mine, others in (
            ("negative_true_elsewhere", self._negatives, self._true),
            ("hard_positive_false_elsewhere", self._hard_positives, self._false),
        ):
            for digest, record_id, name in mine:
                if digest in others:
                    detail = f"as record {others[digest]} says"
                    yield Finding(record_id=record_id, kind=kind, field=name, detail=detail)
        for record_id, name, edit in self._partial_edits:
            parts = edit.part_before, edit.part_after
            if edit.damaged == "before" and {parts, parts[::-1]} & self._whole_words:
                yield _inside_word(record_id, "positive", edit)
            elif edit.damaged == "neither" and parts in self._whole_words:
                yield _inside_word(record_id, name, edit, "edit_maybe_inside_word")


def _picture(record: LabelledCaptions) -> str:
    box, image = record.box, picture_key(record.image, record.record_id)
    return image if box is None else f"{image}\0{box.x0},{box.y0},{box.x1},{box.y1}"


def _inside_word(
    record_id: str, name: str, edit: PartialEdit, kind: str = "edit_inside_word"
) -> Finding:
    detail = f"{edit.before} -> {edit.after} ({edit.part_before} -> {edit.part_after})"
    return Finding(record_id=record_id, kind=kind, field=name, detail=detail)


def _digest(*texts: str) -> bytes:
    digest = hashlib.blake2b(digest_size=12)
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.digest()

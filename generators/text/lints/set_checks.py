"""The checks that need the other records of a file: repetition and contradiction.

They keep digests, not captions: some 200 bytes a record.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from eqforge.generators.text.caption_lint import normalize_caption
from eqforge.generators.text.lints.findings import Finding
from eqforge.generators.text.lints.pair_checks import captions_of
from eqforge.generators.text.lints.word_edits import (
    PartialEdit,
    exchanged_words,
    find_partial_edits,
)
from eqforge.schemas.text_pairs import TextPair


@dataclass(slots=True)
class SetChecks:
    """Collects what records say of their images, and judges at the end."""

    _pairs: set[bytes] = field(default_factory=set)
    _normal_pairs: set[bytes] = field(default_factory=set)
    _true: dict[bytes, str] = field(default_factory=dict)
    _false: dict[bytes, str] = field(default_factory=dict)
    _negatives: list[tuple[bytes, str]] = field(default_factory=list)
    _hard_positives: list[tuple[bytes, str]] = field(default_factory=list)
    _whole_words: set[tuple[str, str]] = field(default_factory=set)
    _partial_edits: list[tuple[str, str, PartialEdit]] = field(default_factory=list)

    def add(self, pair: TextPair) -> Iterator[Finding]:
        """Takes a record; yields what the records before it show already."""
        normal = {name: normalize_caption(text) for name, text in captions_of(pair).items()}
        exact = _digest(pair.image, pair.positive, pair.negative)
        near = _digest(pair.image, normal["positive"], normal["negative"])
        kind = "duplicate" if exact in self._pairs else "near_duplicate"
        if near in self._normal_pairs:
            detail = f"{pair.image}: {pair.positive} | {pair.negative}"
            yield Finding(record_id=pair.pair_id, kind=kind, field="positive", detail=detail)
        self._pairs.add(exact)
        self._normal_pairs.add(near)
        self._remember_captions(pair, normal)
        yield from self._add_edits(pair)

    def _remember_captions(self, pair: TextPair, normal: dict[str, str]) -> None:
        self._true.setdefault(_digest(pair.image, normal["positive"]), pair.pair_id)
        negative = _digest(pair.image, normal["negative"])
        self._false.setdefault(negative, pair.pair_id)
        if normal["negative"] != normal["positive"]:
            self._negatives.append((negative, pair.pair_id))
        if normal.get("hard_positive", normal["negative"]) != normal["negative"]:
            hard_positive = _digest(pair.image, normal["hard_positive"])
            self._hard_positives.append((hard_positive, pair.pair_id))

    def _add_edits(self, pair: TextPair) -> Iterator[Finding]:
        for name, text in captions_of(pair).items():
            for exchange in exchanged_words(pair.positive, text):
                self._whole_words.add((" ".join(exchange.before), " ".join(exchange.after)))
                for edit in find_partial_edits(exchange):
                    if edit.is_certain:
                        yield _inside_word(pair.pair_id, name, edit)
                    else:
                        self._partial_edits.append((pair.pair_id, name, edit))

    def finish(self) -> Iterator[Finding]:
        """Yields what only all records together show, in the order of the records."""
        for kind, name, mine, others in (
            ("negative_true_elsewhere", "negative", self._negatives, self._true),
            ("hard_positive_false_elsewhere", "hard_positive", self._hard_positives, self._false),
        ):
            for digest, record_id in mine:
                if digest in others:
                    detail = f"as record {others[digest]} says"
                    yield Finding(record_id=record_id, kind=kind, field=name, detail=detail)
        for record_id, name, edit in self._partial_edits:
            if (edit.part_before, edit.part_after) in self._whole_words:
                yield _inside_word(record_id, name, edit)


def _inside_word(record_id: str, name: str, edit: PartialEdit) -> Finding:
    detail = f"{edit.before} -> {edit.after} ({edit.part_before} -> {edit.part_after})"
    return Finding(record_id=record_id, kind="edit_inside_word", field=name, detail=detail)


def _digest(*texts: str) -> bytes:
    digest = hashlib.blake2b(digest_size=12)
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.digest()

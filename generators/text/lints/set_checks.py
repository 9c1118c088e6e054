"""The checks that need the other records of a file: repetition and contradiction.

They store digests and ids, not captions: some 600 bytes per record.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from eqforge.core.identity import picture_key
from eqforge.generators.text.caption_lint import normalize_caption
from eqforge.generators.text.lints.findings import Finding
from eqforge.generators.text.lints.pair_checks import captions_of
from eqforge.generators.text.lints.word_edits import (
    PartialEdit,
    exchanged_words,
    find_partial_edits,
)
from eqforge.sources.labelled_captions import LabelledCaptions

# Records with equal positives are duplicates if the first of these that they have is equal too.
_MADE = ("negative", "perturbed", "hard_positive")


@dataclass(slots=True)
class SetChecks:
    """Collects what records say of their images, and checks it at the end."""

    _pairs: dict[bytes, str] = field(default_factory=dict)
    _normal_pairs: dict[bytes, str] = field(default_factory=dict)
    _true: dict[bytes, str] = field(default_factory=dict)
    _false: dict[bytes, str] = field(default_factory=dict)
    _negatives: list[tuple[bytes, str, str]] = field(default_factory=list)
    _hard_positives: list[tuple[bytes, str, str]] = field(default_factory=list)
    _whole_words: set[tuple[str, str]] = field(default_factory=set)
    _partial_edits: list[tuple[str, str, PartialEdit]] = field(default_factory=list)

    def add(self, record: LabelledCaptions) -> Iterator[Finding]:
        """Adds a record; yields the findings that it gives with the records before it."""
        captions = captions_of(record)
        normal = {name: normalize_caption(text) for name, text in captions.items()}
        made = next((name for name in _MADE if name in captions), "positive")
        picture = _picture(record)
        exact = _digest(picture, made, record.positive, captions[made])
        near = _digest(picture, made, normal["positive"], normal[made])
        if near in self._normal_pairs:
            kind = "duplicate" if exact in self._pairs else "near_duplicate"
            yield Finding(
                record_id=record.record_id,
                kind=kind,
                field="positive",
                detail=f"{record.image}: {record.positive} | {captions[made]}",
                twin=self._pairs.get(exact, self._normal_pairs[near]),
            )
        self._pairs.setdefault(exact, record.record_id)
        self._normal_pairs.setdefault(near, record.record_id)
        self._remember(record, normal)
        yield from self._add_edits(record)

    def _remember(self, record: LabelledCaptions, normal: dict[str, str]) -> None:
        image, record_id = _picture(record), record.record_id
        self._true.setdefault(_digest(image, normal["positive"]), record_id)
        negative, called = normal.get("negative"), record.called("negative")
        if negative is not None:
            self._false.setdefault(_digest(image, negative), record_id)
            if negative != normal["positive"]:
                self._negatives.append((_digest(image, negative), record_id, called))
        if "hard_positive" in normal and normal["hard_positive"] != negative:
            digest = _digest(image, normal["hard_positive"])
            self._hard_positives.append((digest, record_id, "hard_positive"))

    def _add_edits(self, record: LabelledCaptions) -> Iterator[Finding]:
        for name in ("negative", "hard_positive") if record.is_made else ("hard_positive",):
            text, called = getattr(record, name), record.called(name)
            for exchange in () if text is None else exchanged_words(record.positive, text):
                self._whole_words.add((" ".join(exchange.before), " ".join(exchange.after)))
                for edit in find_partial_edits(exchange):
                    if edit.damaged == "after":
                        yield _inside_word(record.record_id, called, edit)
                    else:
                        self._partial_edits.append((record.record_id, called, edit))

    def finish(self) -> Iterator[Finding]:
        """Yields the findings that need all records: each kind in the order of the records."""
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
    """Returns a key of the picture: the image, with the box if it is a part of it."""
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

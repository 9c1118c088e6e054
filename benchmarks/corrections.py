"""Counts what corrected mode changes in the published REPLACE sets, as Markdown tables.

python benchmarks/corrections.py VL-CheckList/data
"""

import argparse
import collections
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eqforge.generators.text.hard_positives.corrected import mend_caption, record_id, reword_foil
from eqforge.generators.text.hard_positives.published import (
    PUBLISHED_GROUPS,
    PublishedTriple,
    replace_as_published,
)
from eqforge.generators.text.hard_positives.reconcile import reconcile_image
from eqforge.generators.text.hard_positives.records import REFUSALS, REPAIRS, HardPositive, Refusal
from eqforge.generators.text.inflection import with_inflections
from eqforge.generators.text.lexicon import Kind, Lexicon, load_lexicon
from eqforge.pipelines.hard_positives import FOLDERS
from eqforge.schemas.sources.vl_checklist import VlChecklistRecord, read_vl_checklist

Records = Mapping[str, Sequence[VlChecklistRecord]]
Result = HardPositive | Refusal

CHANGES: dict[str, str] = {
    "same": "Kept to the letter.",
    **{f"mended: {repair}": text for repair, text in REPAIRS.items()},
    "hard positive: whole words": "The published edit is inside a longer word.",
    "hard positive: foiled word": "The published edit is not, or not only, of the foiled word.",
    "hard positive: article": "The published edit left 'a' before a vowel, or 'an' before none.",
    **{f"dropped: {reason}": text for reason, text in REFUSALS.items()},
    "added": "Corrected mode has a hard positive where the published set has no row.",
}
"""What can happen to a row between the two modes; a row may be mended in several ways."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModeComparison:
    """How many rows of one kind the two modes have, and how many each change touched.

    Attributes:
      published: rows of the published set.
      corrected: rows of corrected mode.
      touched: rows by change, a key of CHANGES.
    """

    published: int
    corrected: int
    touched: Mapping[str, int]

    def as_markdown(self) -> str:
        """Returns the counts as a Markdown table."""
        lines = ["| change | rows | |", "|---|---:|---|"]
        lines.append(f"| published | {self.published:,} | |")
        lines += (
            f"| {change} | {self.touched[change]:,} | {text} |"
            for change, text in CHANGES.items()
            if change in self.touched
        )
        return "\n".join([*lines, f"| corrected | {self.corrected:,} | |"])


def correct_all(records: Records, kind: Kind, lexicon: Lexicon) -> Iterator[Result]:
    """Yields the result of corrected mode for every record of one kind, image by image.

    Args:
      records: the records of each group's file.
      kind: whether the files are of relations or attributes.
      lexicon: the lexicon without inflections; they are added here.
    """
    inflected = with_inflections(lexicon)
    candidates: dict[str, list[HardPositive]] = collections.defaultdict(list)
    true: dict[str, list[str]] = collections.defaultdict(list)
    for group in PUBLISHED_GROUPS[kind]:
        for record in records[group]:
            true[record.image].append(record.positives[0])
            result = reword_foil(record, kind, group, inflected)
            if isinstance(result, Refusal):
                yield result
            else:
                candidates[record.image].append(result)
    for image, found in candidates.items():
        by_id = {candidate.record_id: candidate for candidate in found}
        yield from (by_id | reconcile_image(by_id, true[image])).values()


def compare_modes(records: Records, kind: Kind, lexicon: Lexicon) -> ModeComparison:
    """Compares the published rule with corrected mode on the same records.

    Args:
      records: the records of each group's file.
      kind: whether the files are of relations or attributes.
      lexicon: the paper's lexicon, or another.
    """
    results = {result.record_id: result for result in correct_all(records, kind, lexicon)}
    touched: collections.Counter[str] = collections.Counter()
    published = 0
    for group in PUBLISHED_GROUPS[kind]:
        for record in records[group]:
            result = results[record_id(record, kind, group)]
            triples = replace_as_published(record, kind, group, lexicon)
            published += len(triples)
            touched.update(change for row in triples for change in _changes(row, result))
            touched["added"] += not triples and isinstance(result, HardPositive)
    corrected = sum(isinstance(result, HardPositive) for result in results.values())
    return ModeComparison(published=published, corrected=corrected, touched=dict(touched))


def _changes(row: PublishedTriple, result: Result) -> Iterable[str]:
    if isinstance(result, Refusal):
        return [f"dropped: {result.reason}"]
    found = [f"mended: {repair}" for repair in result.repairs]
    return [*found, *_edit_changes(row, result)] or ["same"]


def _edit_changes(row: PublishedTriple, result: HardPositive) -> Iterator[str]:
    """Yields how the published edit of a row differs from the corrected one."""
    word, replacement = row.entry.word, row.entry.replacement
    words = row.caption.split(" ")
    whole = " ".join(replacement if found == word else found for found in words)
    if row.kind == "attribute" and row.hard_positive != whole:
        yield "hard positive: whole words"
    elif mend_caption(row.hard_positive)[0] != result.hard_positive:
        yield "hard positive: foiled word"
    if len(result.caption_spans) > 1:
        yield "hard positive: article"


def main() -> None:
    """Prints one table for attributes and one for relations."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="VL-CheckList's folder `data`")
    folder = parser.parse_args().folder
    for kind, groups in PUBLISHED_GROUPS.items():
        files = {group: folder / FOLDERS[kind] / f"{group}.json" for group in groups}
        records = {group: read_vl_checklist(path) for group, path in files.items()}
        print(f"## {kind.title()}s\n")
        print(f"{compare_modes(records, kind, load_lexicon()).as_markdown()}\n")


if __name__ == "__main__":
    main()

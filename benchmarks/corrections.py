"""Counts what corrected mode changes in the published REPLACE sets, as Markdown tables.

python benchmarks/corrections.py VL-CheckList/data
"""

import argparse
import collections
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eqforge.generators.text.hard_positives.corrected import repair_caption
from eqforge.generators.text.hard_positives.published import (
    PUBLISHED_GROUPS,
    PublishedTriple,
    record_id,
    replace_as_published,
)
from eqforge.generators.text.hard_positives.reconcile import REFUSALS, REPAIRS, reconcile_image
from eqforge.generators.text.lexicon import Kind, Lexicon, load_lexicon
from eqforge.schemas.records.scores import Rejection
from eqforge.schemas.tables.texts import HardPositiveSample
from eqforge.sources.vl_checklist import VlChecklistRecord, read_vl_checklist
from eqforge.transforms.text.caption_edits import EditRules
from eqforge.transforms.text.hard_positive_samples import (
    HardPositiveRules,
    Outcome,
    corrected_sample,
)
from eqforge.transforms.text.image_texts import FOLDERS, FoilRecord

Records = Mapping[str, Sequence[VlChecklistRecord]]

CHANGES: dict[str, str] = {
    "same": "Kept to the letter.",
    **{f"mended: {repair}": text for repair, text in REPAIRS.items()},
    "hard positive: by rules": "The caption is reworded by rules in place of the lexicon.",
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


def correct_all(records: Records, kind: Kind, lexicon: Lexicon | None = None) -> dict[str, Outcome]:
    """Returns what corrected mode makes of every record of one kind, by id.

    Args:
      records: the records of each group's file.
      kind: whether the files are of relations or attributes.
      lexicon: as --lexicon names it, without inflections; None for the rules.
    """
    rules = HardPositiveRules(
        published=False,
        lexicon=load_lexicon(),
        allow_weak=True,
        edits=EditRules(seed=0, lexicon=lexicon),
        images=None,
    )
    found: dict[str, Outcome] = {}
    candidates: dict[str, dict[str, HardPositiveSample]] = collections.defaultdict(dict)
    true: dict[str, list[str]] = collections.defaultdict(list)
    for group in PUBLISHED_GROUPS[kind]:
        for record in records[group]:
            name = record_id(record, kind, group)
            true[record.image].append(record.positives[0])
            foil = FoilRecord(kind=kind, group=group, record=record)
            found[name] = made = corrected_sample(foil, rules)
            if isinstance(made, HardPositiveSample):
                candidates[record.image][name] = made
    for image, samples in candidates.items():
        for name, refusal in reconcile_image(samples, true[image]).items():
            found[name] = Rejection(reason=refusal.reason, detail=refusal.detail)
    return found


def compare_modes(records: Records, kind: Kind, lexicon: Lexicon | None = None) -> ModeComparison:
    """Compares the published rule with corrected mode on the same records.

    Args:
      records: the records of each group's file.
      kind: whether the files are of relations or attributes.
      lexicon: as in `correct_all`.
    """
    results = correct_all(records, kind, lexicon)
    touched: collections.Counter[str] = collections.Counter()
    published = 0
    for group in PUBLISHED_GROUPS[kind]:
        for record in records[group]:
            result = results[record_id(record, kind, group)]
            triples = replace_as_published(record, kind, group, load_lexicon())
            published += len(triples)
            touched.update(change for row in triples for change in _changes(row, result))
            touched["added"] += not triples and isinstance(result, HardPositiveSample)
    corrected = sum(isinstance(result, HardPositiveSample) for result in results.values())
    return ModeComparison(published=published, corrected=corrected, touched=dict(touched))


def _changes(row: PublishedTriple, result: Outcome) -> Iterable[str]:
    if isinstance(result, Rejection):
        return [f"dropped: {result.reason}"]
    found = [f"mended: {repair}" for repair in result.repairs]
    return [*found, *_edit_changes(row, result)] or ["same"]


def _edit_changes(row: PublishedTriple, result: HardPositiveSample) -> Iterator[str]:
    """Yields how the published edit of a row differs from the corrected one."""
    word, replacement = row.entry.word, row.entry.replacement
    words = row.caption.split(" ")
    whole = " ".join(replacement if found == word else found for found in words)
    if result.original is None:
        yield "hard positive: by rules"
        return
    if row.kind == "attribute" and row.hard_positive != whole:
        yield "hard positive: whole words"
    elif repair_caption(row.hard_positive)[0] != result.hard_positive:
        yield "hard positive: foiled word"
    if len(result.caption_spans) > 1:
        yield "hard positive: article"


def main() -> None:
    """Prints the tables of attributes and of relations, by rules and by the paper's lexicon."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="VL-CheckList's folder `data`")
    folder = parser.parse_args().folder
    for title, lexicon in (("By rules", None), ("By the paper's lexicon", load_lexicon())):
        print(f"## {title}\n")
        for kind, groups in PUBLISHED_GROUPS.items():
            files = {group: folder / FOLDERS[kind] / f"{group}.json" for group in groups}
            records = {group: read_vl_checklist(path) for group, path in files.items()}
            print(f"### {kind.title()}s\n")
            print(f"{compare_modes(records, kind, lexicon).as_markdown()}\n")


if __name__ == "__main__":
    main()

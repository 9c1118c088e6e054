"""Writes the precision of the rules that edit captions, by kind, from hand-labelled rows.

    python -m tools.rule_precision

reads tests/generators/captions/labels.jsonl and writes generators/text/data/rule_precision.tsv. A
hard positive is right where every reader called it `ok` and none found that it nearly says what the
hard negative says; a hard negative where every reader called it `false`.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from eqforge.generators.text.rule_precision import COLUMNS, ENOUGH, PATH, family_of
from eqforge.schemas.sources.row_labels import RowLabel, read_labels

LABELS: Final = Path(__file__).parents[1] / "tests/generators/captions/labels.jsonl"
SAMPLE: Final = "after"
"""The rows that were drawn when the rules were done; the others were read before."""


def counted(labels: Iterable[RowLabel]) -> dict[tuple[str, str], tuple[int, int]]:
    """Returns how many were read and right, by text and kind or family."""
    found: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for label in labels:
        for part, kind in (
            ("hard_positive", label.positive_kind),
            ("hard_negative", label.negative_kind),
        ):
            right = label.is_right(part)
            for name in {kind, family_of(kind)} if right is not None else ():
                found[part, name].append(bool(right))
    return {
        (part, name): (len(rights), sum(rights))
        for (part, name), rights in sorted(found.items())
        if len(rights) >= ENOUGH or name == family_of(name)
    }


def lines(counts: dict[tuple[str, str], tuple[int, int]]) -> Iterator[str]:
    """Yields the lines of the table."""
    yield "\t".join(COLUMNS)
    for (part, kind), numbers in counts.items():
        yield "\t".join((part, kind, *map(str, numbers)))


def main() -> int:
    """Writes the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--labels", type=Path, default=LABELS, help="hand-labelled rows")
    parser.add_argument("--sample", default=SAMPLE, help="of which sample")
    parser.add_argument("--output", type=Path, default=PATH, help="the table")
    options = parser.parse_args()
    labels = (label for label in read_labels(options.labels) if label.sample == options.sample)
    text = "".join(f"{line}\n" for line in lines(counted(labels)))
    options.output.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

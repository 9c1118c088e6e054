"""Writes the precision of the rules that edit captions, by kind, from hand-labelled rows.

    python -m tools.rule_precision

reads tests/generators/captions/labels.jsonl and writes generators/text/data/rule_precision.tsv. A
hard positive is right where every reader called it `ok` and none found that it nearly says what the
hard negative says; a hard negative where every reader called it `false`.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Final

from eqforge.core.errors import InputError
from eqforge.core.files.checked import shown
from eqforge.generators.text.rule_precision import COLUMNS, PATH, Counts
from tools.row_labels import RowLabel, read_labels

LABELS: Final = Path(__file__).parents[1] / "tests/generators/captions/labels.jsonl"
SAMPLES: Final = ("after", "swaps")
"""The rows that were read of today's rules."""


def counted(labels: Iterable[RowLabel], samples: Collection[str] = SAMPLES) -> Counts:
    """Returns how many texts of some samples were read and right, by text and kind.

    Raises:
      InputError: no label is of these samples.
    """
    reads: Counter[tuple[str, str]] = Counter()
    rights: Counter[tuple[str, str]] = Counter()
    for label in labels:
        kinds = {"hard_positive": label.positive_kind, "hard_negative": label.negative_kind}
        for part, kind in kinds.items() if label.sample in samples else ():
            right = label.is_right(part)
            reads[part, kind] += right is not None
            rights[part, kind] += bool(right)
    if not reads:
        raise InputError(f"no label is of a sample {shown(', '.join(samples))}")
    return {key: (read, rights[key]) for key, read in sorted(reads.items()) if read}


def lines(counts: Counts) -> Iterator[str]:
    """Yields the lines of the table."""
    yield "\t".join(COLUMNS)
    for (part, kind), numbers in counts.items():
        yield "\t".join((part, kind, *map(str, numbers)))


def main() -> int:
    """Writes the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--labels", type=Path, default=LABELS, help="hand-labelled rows")
    parser.add_argument("--samples", nargs="+", default=SAMPLES, help="of which samples")
    parser.add_argument("--output", type=Path, default=PATH, help="the table")
    options = parser.parse_args()
    try:
        found = counted(read_labels(options.labels), options.samples)
    except InputError as error:
        parser.error(str(error))
    text = "".join(f"{line}\n" for line in lines(found))
    options.output.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Counts what corrected mode changes in the published REPLACE sets, as Markdown tables.

python benchmarks/corrections.py VL-CheckList/data
"""

import argparse
from pathlib import Path

from eqforge.generators.text.hard_positives.comparison import compare_modes
from eqforge.generators.text.hard_positives.published import PUBLISHED_GROUPS
from eqforge.generators.text.lexicon import load_lexicon
from eqforge.pipelines.hard_positives import FOLDERS
from eqforge.schemas.sources.vl_checklist import read_vl_checklist


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

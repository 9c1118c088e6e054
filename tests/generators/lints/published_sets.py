"""The published sets whose findings were labelled, as lint reads them.

Those that lint does not read as they are come as `LabelledCaptions` from here.
"""

import ast
import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from eqforge.generators.text.lints.lint import Finding, lint_records
from eqforge.sources.labelled_captions import LabelledCaptions, read_labelled_captions

FILES = {
    "hard_positives": "hard_positives/worked_examples.json",
    "simat/captions": "simat/captions.txt",
    "simat/transfos_dev": "simat/transfos_dev.csv",
    "sugarcrepe/swap_att": "published/sugarcrepe/swap_att.json",
    "sugarcrepe/swap_obj": "published/sugarcrepe/swap_obj.json",
    "sugarcrepe_pp/swap_obj": "published/sugarcrepe_pp/swap_obj.json",
    "valse/actant-swap": "published/valse/actant-swap.json",
    "valse/existence": "published/valse/existence.json",
    "valse/foil-it": "published/valse/foil-it.json",
}
"""The files that lint reads, below the folder of real data; those of VL-CheckList come beside."""

WHOLE = frozenset({*FILES, "bivlc", "negclip"} - {"simat/transfos_dev"})
"""The sets of which every error and warning is labelled."""


def findings_of(folder: Path) -> dict[str, list[Finding]]:
    return {name: list(lint_records(records)) for name, records in _sets(folder).items()}


def _sets(folder: Path) -> Mapping[str, Iterator[LabelledCaptions]]:
    published = folder / "published"
    vl_checklist = folder / "vl_checklist" / "data"
    files = {name: folder / file for name, file in FILES.items()}
    for file in sorted(vl_checklist.rglob("*.json")):
        name = file.relative_to(vl_checklist).with_suffix("").as_posix()
        files[f"vl_checklist/{name}"] = file
    return {
        **{name: read_labelled_captions(file) for name, file in files.items()},
        "bivlc": _bivlc(published / "bivlc" / "BiVLC_negative_imgs_first500.csv"),
        "negclip": _negclip(published / "negclip" / "valid_neg_clip_first300.tsv"),
        "gebplus": _gebplus(folder / "gebplus" / "val.json"),
    }


def _bivlc(path: Path) -> Iterator[LabelledCaptions]:
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            yield LabelledCaptions(
                record_id=row["index"],
                image=row["filename"],
                positive=row["caption"],
                negative=row["negative_caption"],
            )


def _negclip(path: Path) -> Iterator[LabelledCaptions]:
    with path.open(encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.DictReader(file, delimiter="\t")):
            for position, negative in enumerate(ast.literal_eval(row["neg_caption"])):
                yield LabelledCaptions(
                    record_id=f"{number}/{position}",
                    image=row["filepath"],
                    positive=row["title"],
                    negative=negative,
                )


def _gebplus(path: Path) -> Iterator[LabelledCaptions]:
    """Yields what the frames before and after each boundary show."""
    for boundaries in json.loads(path.read_bytes()).values():
        for each in boundaries:
            if each["status_before"] and each["status_after"]:
                subject = each["subject"] or ""
                yield LabelledCaptions(
                    record_id=each["boundary_id"],
                    image=each["boundary_id"],
                    positive=f"{subject} {each['status_before']}",
                    negative=f"{subject} {each['status_after']}",
                    is_made=False,
                )

"""The benchmarks that can be imported, and the forms of their records.

To add a benchmark, add an entry here and in `schemas/tables/benchmarks.py`. If records are not
objects, or several make one item, a function in a separate module reads them. Sources:

  winoground       Thrush et al. 2022; huggingface.co/datasets/facebook/winoground
  coco-counterfactuals  Le et al. 2023; huggingface.co/datasets/Intel/COCO-Counterfactuals
  valse            Parcalabescu et al. 2022, section 4.1: an item counts if at least two of three
                   annotators chose the caption; github.com/Heidelberg-NLP/VALSE
  sugar-crepe      Hsieh et al. 2023; github.com/RAIVNLab/sugar-crepe
  sugar-crepe-plus Dumpala et al. 2024, with a second true caption; github.com/Sri-Harsha/scpp
  aro-*            Yuksekgonul et al. 2023; github.com/mertyg/vision-language-models-are-bows,
                   dataset_zoo/aro_datasets.py. Boxes are padded with black, as Pillow crops
  bivlc            Miranda et al. 2024; huggingface.co/datasets/imirandam/BiVLC
  vismin           Awal et al. 2024; huggingface.co/datasets/mair-lab/vismin-bench
  conme            Huang et al. 2024; github.com/jmiemirza/ConMe, COMBINED_LLM. `image` is a path on
                   the authors' machine; the images are those of COCO's val2017

Your own pairs, foils, rewordings or questions have the columns of eqforge's tables, or columns
that you name. `id`, `split` and `kind` are optional, and so is the image of a foil or a question.
Exported rows are restored: the id loses the dataset's name, the image regains its source name, and
`annotation` is kept.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files.checked import Node
from eqforge.schemas.records.scores import compact_json
from eqforge.sources.benchmarks import lists, replace_swap
from eqforge.sources.benchmarks.eqben import EQBEN_FORM
from eqforge.sources.benchmarks.form import (
    NOT_CONFIRMED,
    BenchmarkItem,
    Entry,
    Fields,
    Form,
    read_fields,
)

OPTIONAL: Final = ("id", "split", "kind", "image", "source_id", "group_id", "options")
_OWN: Final = Fields(
    ids=("id",),
    kind=("kind",),
    group=("group_id",),
    negatives=("hard_negative",),
    unnoted=OPTIONAL,
    may_lack_image=True,
)
_TEXTS: Final = ("sample_id", "dataset", "annotation")
"""Columns of all datasets."""
_IDS: Final = ("item_id", "group_id")
_PICTURES: Final = ("image", "image_0", "image_1")
_NULLS: Final = (None, "null")
"""Empty values of a nested column; the second in an ImageFolder, where it is JSON."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Exported:
    """Fields of an exported row that differ from a user's record.

    Attributes:
      names: of its images in their source, by the columns of images.
      annotation: of the row.
      dataset: its name, unless the row was the user's own.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    annotation: str
    dataset: str = ""


def as_own(entry: Entry) -> tuple[Entry, Exported | None]:
    """Return a record with the user's own columns, and the rest if an export wrote it."""
    row = entry.node.value
    if not _is_exported(row):
        return entry, None
    start = f"{row['dataset']}/"
    columns = {name: value for name, value in row.items() if name not in (*_TEXTS, *_IDS)}
    columns |= {"id": row["sample_id"].removeprefix(start)}
    group = next((row[name] for name in _IDS if isinstance(row.get(name), str)), row["sample_id"])
    columns |= {"group_id": group.removeprefix(start)} if group != row["sample_id"] else {}
    names = {each: columns.pop(f"{each}_name", None) for each in _PICTURES}
    for each in _PICTURES:
        columns.pop(f"{each}_id", None)
    dataset = "" if row["dataset"].startswith("own-") else row["dataset"]
    named = {column: name for column, name in names.items() if isinstance(name, str)}
    exported = Exported(names=named, annotation=row["annotation"], dataset=dataset)
    return replace(entry, node=replace(entry.node, value=columns)), exported


def _is_exported(row: Any) -> bool:
    if not isinstance(row, dict) or "id" in row:
        return False
    if not all(isinstance(row.get(name), str) for name in _TEXTS):
        return False
    try:
        msgspec.json.decode(row["annotation"], type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def as_it_was(item: BenchmarkItem, exported: Exported, columns: tuple[str, ...]) -> BenchmarkItem:
    shown = tuple(
        exported.names.get(column, name) for column, name in zip(columns, item.images, strict=True)
    )
    left = msgspec.json.decode(item.annotation, type=dict[str, Any])
    left = {name: value for name, value in left.items() if value not in _NULLS}
    left |= {"dataset": exported.dataset} if exported.dataset else {}
    fields = msgspec.json.decode(exported.annotation, type=dict[str, Any])
    annotation = compact_json(left | fields) if left else exported.annotation
    names = shown if shown != item.images else ()
    return replace(item, shown=names, annotation=annotation)


def _read(fields: Fields, entry: Entry) -> Iterator[BenchmarkItem]:
    entry, exported = as_own(entry)
    for item in read_fields(fields, entry):
        yield item if exported is None else as_it_was(item, exported, fields.images)


def _form(fields: Fields) -> tuple[Form]:
    form = fields.form(optional=OPTIONAL, is_one_file=True)
    return (replace(form, read=partial(_read, fields)),)


OWN_FORMS: Final = {
    "own-pairs": _form(
        Fields(
            images=("image_0", "image_1"),
            texts=("caption_0", "caption_1"),
            ids=("id",),
            kind=("kind",),
            source=("source_id",),
            unnoted=OPTIONAL,
        )
    ),
    "own-foils": _form(_OWN),
    "own-rewordings": _form(replace(_OWN, texts=("caption", "hard_positive"))),
    "own-questions": _form(
        replace(_OWN, texts=("question",), negatives=(), answer=("answer",), options="options")
    ),
}


CONFIRMED: Final = 2
"""Minimum of VALSE's three annotators who must confirm an item."""


def _valse(node: Node) -> str:
    return "" if node["mturk"]["caption"].integer() >= CONFIRMED else NOT_CONFIRMED


def _bivlc(node: Node) -> str:
    if "text_score_i0" in node.mapping():
        raise InputError(
            f"{node.place}: the record contains results, not pairs; to evaluate results, use "
            "`eqforge metrics`"
        )
    return ""


def _sugar_crepe(image: str, *captions: str) -> Fields:
    return Fields(
        images=(image,),
        texts=captions,
        negatives=("negative_caption",),
        ids=("id",),
        unnoted=("filename", "image"),
    )


def _aro(kind: str) -> Fields:
    return Fields(
        images=("image_path",),
        texts=("true_caption",),
        negatives=("false_caption",),
        kind=(kind,),
        noted=(kind,),
        has_box=True,
    )


def _pairs(texts: str, kind: str, suffix: str = "") -> Fields:
    return Fields(
        images=("image_0", "image_1"),
        texts=(f"{texts}_0", f"{texts}_1"),
        ids=("id",),
        kind=(kind,),
        suffix=suffix,
    )


WINOGROUND: Final = _pairs("caption", "tag", ".png")
SUGAR_CREPE: Final = _sugar_crepe("filename", "caption")
SUGAR_CREPE_PLUS: Final = _sugar_crepe("filename", "caption", "caption2")
RELATION: Final = _aro("relation_name")
_EXAMPLES: Final = {"patterns": ("examples.jsonl",), "is_one_file": True}

FORMS: Final[Mapping[str, tuple[Form, ...]]] = {
    "winoground": (WINOGROUND.form("tag", **_EXAMPLES),),
    "coco-counterfactuals": (_pairs("caption", "tag", ".jpg").form(**_EXAMPLES),),
    "eqben": (EQBEN_FORM,),
    "valse": (
        Fields(
            images=("image_file",),
            negatives=("foil",),
            split=(),  # what the record calls its split is that of the dataset it was made from
            check=_valse,
        ).form("mturk"),
    ),
    "sugar-crepe": (SUGAR_CREPE.form(), _sugar_crepe("image", "caption").form()),
    "sugar-crepe-plus": (
        SUGAR_CREPE_PLUS.form(),
        _sugar_crepe("image", "caption", "caption2").form(),
    ),
    "aro-relation": (
        RELATION.form("relation_name", patterns=("visual_genome_relation.json",), is_one_file=True),
    ),
    "aro-attribution": (
        _aro("attributes").form(
            "attributes", patterns=("visual_genome_attribution.json",), is_one_file=True
        ),
    ),
    "aro-order": (lists.ORDER_FORM,),
    "vl-checklist": (lists.CHECKLIST_FORM,),
    "bivlc": (
        Fields(
            images=("image", "negative_image"),
            texts=("caption", "negative_caption"),
            ids=("id",),
            kind=("type", "subtype"),
            check=_bivlc,
        ).form(is_one_file=True),
        lists.CANDIDATES_FORM,
    ),
    "natural-bench": lists.NATURAL_BENCH,
    "vismin": (_pairs("text", "category").form(is_one_file=True),),
    "mmvp": (lists.QUESTION_FORM,),
    "mmvp-vlm": (lists.PAIR_FORM,),
    "conme": (
        Fields(
            texts=("orig_pos",),
            negatives=("new_neg",),
            kind=lambda entry: entry.part.removesuffix("_combined"),
            group=("orig_ind",),
            noted=("orig_ind",),
            without_folder=True,
        ).form(),
    ),
    "negclip": (lists.NEGCLIP_FORM,),
    "replace-swap": (replace_swap.FORM,),
    **OWN_FORMS,
}

"""The benchmarks that can be imported: the forms of their records, of most by the fields' names.

A further benchmark is an entry here and in `schemas/tables/benchmarks.py`. Where records are no
objects, or several of them make an item, a function in a module of its own reads them. Sources:

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
"""

from collections.abc import Mapping
from typing import Final

from eqforge.core.errors import InputError
from eqforge.core.files.checked import Node
from eqforge.sources.benchmarks import lists, mmvp, natural_bench, own, replace_swap
from eqforge.sources.benchmarks.eqben import EQBEN_FORM
from eqforge.sources.benchmarks.form import NOT_CONFIRMED, Entry, Fields, Form

CONFIRMED: Final = 2
"""Of three annotators of VALSE."""


def _valse(node: Node) -> str:
    return "" if node["mturk"]["caption"].integer() >= CONFIRMED else NOT_CONFIRMED


def _bivlc(node: Node) -> str:
    if "text_score_i0" in node.mapping():
        raise InputError(
            f"{node.file}: {node.where}: holds results, which `eqforge metrics` reads, and no pairs"
        )
    return ""


def _conme_kind(entry: Entry) -> str:
    return entry.part.removesuffix("_combined")


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
            split=("split", "original_split"),
            noted=("original_split",),
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
    "natural-bench": natural_bench.FORMS,
    "vismin": (_pairs("text", "category").form(is_one_file=True),),
    "mmvp": (mmvp.QUESTION_FORM,),
    "mmvp-vlm": (mmvp.PAIR_FORM,),
    "conme": (
        Fields(
            texts=("orig_pos",),
            negatives=("new_neg",),
            kind=_conme_kind,
            group=("orig_ind",),
            noted=("orig_ind",),
            without_folder=True,
        ).form(),
    ),
    "negclip": (lists.NEGCLIP_FORM,),
    "replace-swap": (replace_swap.FORM,),
    **own.FORMS,
}

"""The benchmarks that can be imported: each has a kind of rows."""

from collections.abc import Mapping
from typing import Final

from eqforge.schemas.tables import citations
from eqforge.schemas.tables.benchmark_rows import FOILS, PAIRS, QUESTIONS, REWORDINGS
from eqforge.schemas.tables.description import KnownDataset

BENCHMARKS: Final[Mapping[str, KnownDataset]] = {
    "winoground": KnownDataset(
        type=PAIRS,
        summary="Pairs of images whose two captions have the same words in a different order.",
        made_from="its Hugging Face folder, or `examples.jsonl` and its images: 400 pairs",
        citation=citations.WINOGROUND,
    ),
    "eqben": KnownDataset(
        type=PAIRS,
        summary="Pairs of similar images from five sources, each with a caption.",
        made_from="the authors' annotation files for one or more subsets, and the image folders",
        citation=citations.EQBEN,
    ),
    "valse": KnownDataset(
        type=FOILS,
        summary="Captions and foils for six linguistic phenomena.",
        made_from="its JSON files; confirmed items: 505 existence, 949 actant swap, 943 nouns",
        licence="MIT",
        citation=citations.VALSE,
    ),
    "sugar-crepe": KnownDataset(
        type=FOILS,
        summary="COCO captions with a word replaced, swapped or added.",
        made_from="its seven JSON files, and COCO's val2017",
        licence="MIT",
        collection="coco",
        citation=citations.SUGAR_CREPE,
    ),
    "sugar-crepe-plus": KnownDataset(
        type=REWORDINGS,
        summary="SugarCrepe with a second true caption that rewords the first.",
        made_from="its JSON files, and COCO's val2017",
        licence="MIT",
        collection="coco",
        citation=citations.SUGAR_CREPE_PLUS,
    ),
    "aro-relation": KnownDataset(
        type=FOILS,
        summary="Visual Genome regions with the two objects of a relation swapped.",
        made_from="`visual_genome_relation.json` and its images: 23,937 rows",
        licence="MIT",
        collection="vg",
        citation=citations.ARO,
    ),
    "aro-attribution": KnownDataset(
        type=FOILS,
        summary="Visual Genome regions with the attributes of two objects swapped.",
        made_from="`visual_genome_attribution.json` and its images: 28,748 rows",
        licence="MIT",
        collection="vg",
        citation=citations.ARO,
    ),
    "aro-order": KnownDataset(
        type=FOILS,
        summary="COCO or Flickr30k captions with their words in a different order.",
        made_from="records with `image_path` and `caption_options`, the true caption first",
        citation=citations.ARO,
    ),
    "vl-checklist": KnownDataset(
        type=FOILS,
        summary="Captions with an object, an attribute or a relation replaced.",
        made_from="its folders of JSON files, and the images of VG, SWiG and HAKE",
        citation=citations.VL_CHECKLIST,
    ),
    "bivlc": KnownDataset(
        type=PAIRS,
        summary="SugarCrepe captions with an image generated for each false caption.",
        made_from="its Hugging Face folder, or the CSV of generated candidates",
        citation=citations.BIVLC,
    ),
    "natural-bench": KnownDataset(
        type=QUESTIONS,
        summary="Pairs of images with two questions whose answers differ between the images.",
        made_from="`test_set.json` and its images, or its Hugging Face folder: 4 rows per group",
        collection="flickr",
        citation=citations.NATURAL_BENCH,
    ),
    "vismin": KnownDataset(
        type=PAIRS,
        summary="Minimal pairs that differ in an object, an attribute, a count or a relation.",
        made_from="its Hugging Face folder: 2,084 pairs",
        licence="CC-BY-4.0",
        citation=citations.VISMIN,
    ),
    "conme": KnownDataset(
        type=FOILS,
        summary="SugarCrepe captions with harder negatives from language models.",
        made_from="its CSV files, and COCO's val2017",
        collection="coco",
        citation=citations.CONME,
    ),
    "mmvp": KnownDataset(
        type=QUESTIONS,
        summary="Questions about pairs of images that CLIP cannot distinguish.",
        made_from="`Questions.csv` and `MMVP Images`: 300 questions in 150 pairs",
        citation=citations.MMVP,
    ),
    "mmvp-vlm": KnownDataset(
        type=PAIRS,
        summary="Pairs of images and statements for nine visual patterns.",
        made_from="`Questions.csv` and `MLLM_VLM Images`: 135 pairs",
        citation=citations.MMVP,
    ),
    "coco-counterfactuals": KnownDataset(
        type=PAIRS,
        summary="Generated pairs of images whose captions differ in one noun.",
        made_from="`examples.jsonl` and its images, or its Hugging Face folder",
        licence="CC-BY-4.0",
        citation=citations.COCO_COUNTERFACTUALS,
    ),
    "negclip": KnownDataset(
        type=FOILS,
        summary="COCO captions with two phrases swapped, for training NegCLIP.",
        made_from="its TSV files, and COCO's 2014 images",
        licence="MIT",
        collection="coco",
        citation=citations.ARO,
    ),
    "replace-swap": KnownDataset(
        type=REWORDINGS,
        summary="The published hard-positive sets REPLACE and SWAP.",
        made_from="the folder with `data` and `swapped_data`",
        citation=citations.HARD_POSITIVES,
    ),
    "own-pairs": KnownDataset(
        type=PAIRS,
        summary="Your own pairs of two images and two captions.",
        made_from="a table, JSON, or a Hugging Face folder; --columns names its columns",
    ),
    "own-foils": KnownDataset(
        type=FOILS,
        summary="Your own captions, each with a false caption.",
        made_from="a table, JSON, or a Hugging Face folder; --columns names its columns",
    ),
    "own-rewordings": KnownDataset(
        type=REWORDINGS,
        summary="Your own captions, each with a rewording and a false caption.",
        made_from="a table, JSON, or a Hugging Face folder; --columns names its columns",
    ),
    "own-questions": KnownDataset(
        type=QUESTIONS,
        summary="Your own questions about images, in groups.",
        made_from="a table, JSON, or a Hugging Face folder; --columns names its columns",
    ),
}


EQBEN: Final = "eqben"
EQBEN_SIZES: Final[Mapping[str, int]] = {
    "ag": 195_872,
    "youcook2": 45_849,
    "gebc": 1_814,
    "kubric-location": 2_000,
    "kubric-counting": 2_000,
    "kubric-attribute": 2_000,
    "sd": 1_513,
}
"""Number of samples of EqBen's subsets, in the order of its published score vectors."""

EQBEN_FOLDERS: Final[Mapping[str, str]] = {
    "ag": "eqbenag",
    "youcook2": "eqbenyoucook2",
    "gebc": "eqbengebc",
    "kubric-location": "eqbenkubric_loc",
    "kubric-counting": "eqbenkubric_cnt",
    "kubric-attribute": "eqbenkubric_attr",
    "sd": "eqbensd",
}
"""The folder of each subset in the published image tree."""

_SUBSETS: Final = {
    "eq-ag": "ag",
    "eq-youcook2": "youcook2",
    "eq-gebc": "gebc",
    "eq-kubric/location": "kubric-location",
    "eq-kubric/counting": "kubric-counting",
    "eq-kubric/attribute": "kubric-attribute",
    "eq-sd": "sd",
    **{folder: subset for subset, folder in EQBEN_FOLDERS.items()},
}


def eqben_subset(kind: str) -> str:
    """Return the subset of EqBen of a kind of pairs; an empty name for other kinds."""
    path = kind.removeprefix(f"{EQBEN}/")
    return _SUBSETS.get(path) or _SUBSETS.get(path.partition("/")[0], "")

"""The galleries of datasets for retrieval: images, their captions, and perturbed captions."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.evaluation.metrics.retrieval import Recall
from eqforge.evaluation.tables.samples import column_names, read_columns
from eqforge.schemas.dataset.reader import Dataset


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Perturbed:
    """The captions of one perturbation.

    Attributes:
      caption_of: which caption each was made from [m].
      texts: the perturbed captions [m].
      changed: whether its words differ from the original's [m].
    """

    caption_of: NDArray[np.int64]
    texts: NDArray[Any]
    changed: NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Gallery:
    """The images and captions to retrieve, sorted by id.

    Attributes:
      entries: ids of the entries [n], each an image with its captions. Texts and ids are Python
        objects: with a fixed width, one long caption would make all long.
      image_ids: the image of each entry [n].
      texts: the captions [m].
      entry_of: the entry of each caption [m].
      perturbed: the captions of each perturbation; empty if the dataset has none.
      published_recall: what R@k counts in the authors' evaluation of the dataset. Source:
        `recall_at_k` of mariyahendriksen/evaluating-cmr-in-vl for perturbed captions, a share;
        `itm_eval` of X-VLM, with which VLUE's repository evaluates, for VLUE's, any.
    """

    entries: NDArray[Any]
    image_ids: NDArray[Any]
    texts: NDArray[Any]
    entry_of: NDArray[np.int64]
    perturbed: dict[str, Perturbed]
    published_recall: Recall


def has_gallery(dataset: Dataset) -> bool:
    """Tells whether a dataset is one for retrieval.

    Raises:
      InputError: a file is missing or damaged.
    """
    if is_vlue(dataset):
        return True
    return {"caption_id", "perturbation"} <= set(column_names(dataset, "samples"))


def is_vlue(dataset: Dataset) -> bool:
    """Tells whether a retrieval dataset is VLUE's or like it: captions without perturbations."""
    return "retrieval" in dataset.manifest.tables


def read_gallery(dataset: Dataset) -> Gallery:
    """Reads entries, captions and perturbed captions.

    Raises:
      InputError: a file is missing or damaged, or an entry has no image.
    """
    if is_vlue(dataset):
        table, key, entry = "retrieval", "sample_id", "gallery_id"
    else:
        table, key, entry = "captions", "caption_id", "image"
    found = read_columns(dataset, table, [key, entry, "image_id", "caption"])
    if not found[key]:
        raise InputError(f"{dataset.folder}: has no captions to retrieve")
    if None in found["image_id"]:
        raise InputError(f"{dataset.folder}: names no images; build it with --images FOLDER")
    columns = {name: np.array(values, dtype=object) for name, values in found.items()}
    order = np.argsort(columns[key])
    columns = {name: values[order] for name, values in columns.items()}
    entries, first, entry_of = np.unique(columns[entry], return_index=True, return_inverse=True)
    perturbed = {} if is_vlue(dataset) else _read_perturbed(dataset, columns[key])
    return Gallery(
        entries=entries,
        image_ids=columns["image_id"][first],
        texts=columns["caption"],
        entry_of=entry_of.astype(np.int64),
        perturbed=perturbed,
        published_recall="any" if is_vlue(dataset) else "share",
    )


def _read_perturbed(dataset: Dataset, captions: NDArray[Any]) -> dict[str, Perturbed]:
    told = "words_changed" in column_names(dataset, "samples")
    changed = "words_changed" if told else "applied"  # all that earlier versions wrote
    names = ["sample_id", "caption_id", "perturbation", "perturbed_caption", changed]
    found = read_columns(dataset, "samples", names)
    columns = {name: np.array(values, dtype=object) for name, values in found.items()}
    order = np.argsort(columns["sample_id"])
    columns = {name: values[order] for name, values in columns.items()}
    places = np.searchsorted(captions, columns["caption_id"]).clip(max=len(captions) - 1)
    if (captions[places] != columns["caption_id"]).any():
        raise InputError(f"{dataset.folder}: a perturbed caption is of no caption in the dataset")
    return {
        str(name): Perturbed(
            caption_of=places[columns["perturbation"] == name].astype(np.int64),
            texts=columns["perturbed_caption"][columns["perturbation"] == name],
            changed=columns[changed][columns["perturbation"] == name].astype(bool),
        )
        for name in np.unique(columns["perturbation"])
    }

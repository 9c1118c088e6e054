"""What a SIMAT dataset says: its queries, its gallery, its captions, and which regions match."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.evaluation.metrics.score_rows import Indices
from eqforge.evaluation.metrics.simat import SUCCESS
from eqforge.evaluation.tables.crossed_scores import read_crossed
from eqforge.evaluation.tables.sample_scores import places_in
from eqforge.evaluation.tables.samples import column_names, read_columns
from eqforge.models.score_matrix import MatrixFiles, read_table
from eqforge.models.spec import parse_specs
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.dataset.score_tables import open_scores

PARTS = ("subject", "relation", "object")
QUERY_COLUMNS = (
    *("split", "region_id", "source_id", "part", "source_word", "target_word"),
    *("target_triplet_id", "weight"),
)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Simat:
    """The tables of a SIMAT dataset, in the order of their ids.

    Attributes:
      regions: ids of the gallery [regions].
      sources: the image that each region is cropped from [regions].
      image_ids: the image id of each crop [regions].
      boxes: x0, y0, x1, y1 of each [regions, 4].
      triplet_of: the caption of each [regions].
      triplets: subject, relation, object of each caption [captions].
      texts: the captions [captions].
      queries: columns of the queries, by name [queries].
      region_of: the region each query asks about [queries].
      target_of: the caption each query asks for [queries].
    """

    regions: NDArray[Any]
    sources: NDArray[Any]
    image_ids: NDArray[Any]
    boxes: NDArray[np.float64]
    triplet_of: Indices
    triplets: list[tuple[str, str, str]]
    texts: NDArray[Any]
    queries: dict[str, NDArray[Any]]
    region_of: Indices
    target_of: Indices


def is_simat(dataset: Dataset) -> bool:
    """Tells whether a dataset is one of SIMAT queries.

    Raises:
      InputError: a file is missing or damaged.
    """
    names = set(column_names(dataset, "samples"))
    return "gallery" in dataset.manifest.tables and {"source_word", "target_word"} <= names


def read_simat(dataset: Dataset) -> Simat:
    """Reads the tables and joins them by key.

    Raises:
      InputError: a file is missing or damaged, a key is unknown, or there are no crops.
    """
    gallery = _columns(
        dataset, "gallery", "region_id", ["source_id", "image_id", "triplet_id", "box"]
    )
    if None in gallery["image_id"]:
        raise InputError(f"{dataset.folder}: has no crops; build it with --images FOLDER")
    captions = _columns(dataset, "captions", "caption_id", [*PARTS, "caption"])
    queries = _columns(
        dataset,
        "samples",
        "sample_id",
        [*QUERY_COLUMNS],
    )
    boxes = [[box[name] for name in ("x0", "y0", "x1", "y1")] for box in gallery["box"]]
    where = dataset.folder
    return Simat(
        regions=gallery["region_id"],
        sources=gallery["source_id"],
        image_ids=gallery["image_id"],
        boxes=np.array(boxes, dtype=np.float64),
        triplet_of=_joined(where, gallery["triplet_id"], captions["caption_id"]),
        triplets=list(zip(*(captions[part].tolist() for part in PARTS), strict=True)),
        texts=captions["caption"],
        queries=queries,
        region_of=_joined(where, queries["region_id"], gallery["region_id"]),
        target_of=_joined(where, queries["target_triplet_id"], captions["caption_id"]),
    )


def _columns(dataset: Dataset, table: str, key: str, names: list[str]) -> dict[str, NDArray[Any]]:
    found = read_columns(dataset, table, [key, *names])
    if not found[key]:
        raise InputError(f"{dataset.folder}: its table {table} is empty")
    order = np.argsort(np.array(found[key]))
    return {name: _array(values)[order] for name, values in found.items()}


def _array(values: list[Any]) -> NDArray[Any]:
    # Boxes and rows without a value stay Python objects.
    plain = all(isinstance(value, (str, float, int)) for value in values)
    return np.array(values) if plain else np.array(values, dtype=object)


def _joined(where: str, wanted: NDArray[Any], keys: NDArray[Any]) -> Indices:
    places = places_in(wanted, keys)
    lost = np.flatnonzero(places < 0)
    if len(lost):
        raise InputError(f"{where}: the key {str(wanted[lost[0]])!r} leads nowhere")
    return places


def by_annotation(simat: Simat) -> NDArray[np.bool_]:
    """Returns which regions are annotated with which captions' triplets [regions, captions]."""
    found = np.zeros((len(simat.regions), len(simat.texts)), dtype=bool)
    found[np.arange(len(simat.regions)), simat.triplet_of] = True
    return found


def by_oracle(simat: Simat, dataset: Dataset, oracle: str) -> tuple[NDArray[np.bool_], str]:
    """Returns which regions match which captions by an oracle, and its name.

    Args:
      simat: the tables.
      dataset: the dataset.
      oracle: `matrix:FILE,rows=FILE,columns=FILE`, whose rows are named by region id and whose
        columns by caption, or a folder of scores of the dataset, a grid of probabilities or logits.

    Returns:
      P(match) > 0.5 [regions, captions], and the oracle's name.

    Raises:
      InputError: the oracle has no score of a region with a caption that a query asks for.
    """
    if Path(oracle).is_dir():
        probabilities, name = _from_grid(simat, dataset, oracle)
    else:
        probabilities, name = _from_matrix(simat, oracle)
    asked = np.unique(simat.target_of)
    row, column = np.nonzero(np.isnan(probabilities[:, asked]))
    if len(row):
        region, text = simat.regions[row[0]], simat.texts[asked[column[0]]]
        raise InputError(f"{oracle}: no score of region {str(region)!r} with {str(text)!r}")
    return probabilities > SUCCESS, name


def _from_matrix(simat: Simat, oracle: str) -> tuple[NDArray[np.float64], str]:
    specs = parse_specs(oracle)
    if len(specs) != 1 or specs[0].kind != "matrix":
        raise InputError(
            f"{oracle}: expected a folder of scores, or matrix:FILE,rows=FILE,columns=FILE"
        )
    files = MatrixFiles(
        scores=Path(specs[0].source), rows=specs[0].path("rows"), columns=specs[0].path("columns")
    )
    table = read_table(files)
    size = (len(table.images), len(table.captions))
    if table.cells is None:
        known = table.probabilities.reshape(size).astype(np.float64)
    else:
        known = np.full(size, np.nan)
        known.flat[table.cells] = table.probabilities
    rows = np.array([table.images.get(str(region), -1) for region in simat.regions])
    columns = np.array([table.captions.get(str(text).strip(), -1) for text in simat.texts])
    return _taken(known, rows, columns), files.scores.name


def _from_grid(simat: Simat, dataset: Dataset, folder: str) -> tuple[NDArray[np.float64], str]:
    quantity = open_scores(folder).manifest.quantity
    scores = read_crossed(folder, dataset)
    if scores.grid is None or quantity not in ("logit", "probability"):
        raise InputError(f"{folder}: an oracle has to say P(match); these are {quantity}s")
    known = scores.grid.scores.astype(np.float64)
    known[np.isneginf(known)] = np.nan
    if quantity == "logit":  # above 0 where the probability is above one half
        known = np.where(np.isnan(known), np.nan, (known > 0).astype(np.float64))
    rows = places_in(simat.image_ids, scores.grid.images)
    columns = places_in(simat.texts, scores.grid.captions)
    return _taken(known, rows, columns), scores.model


def _taken(known: NDArray[np.float64], rows: Indices, columns: Indices) -> NDArray[np.float64]:
    found = known[np.ix_(rows.clip(0), columns.clip(0))]
    found[rows < 0] = np.nan
    found[:, columns < 0] = np.nan
    return found


def column_of(simat: Simat, name: str) -> NDArray[Any]:
    """Returns a column of the queries.

    Raises:
      InputError: there is none of that name.
    """
    if name not in simat.queries:
        raise InputError(f"column {name}: expected one of {', '.join(sorted(simat.queries))}")
    return simat.queries[name]


def splits_of(simat: Simat, by: str) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Yields the queries of each value of a column, in order.

    Raises:
      InputError: there is no such column.
    """
    values = column_of(simat, by)
    for value in np.unique(values):
        yield str(value), values == value

"""SIMAT's table: the score of moved images for several strengths, and of the baselines."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.core.visible import counted
from eqforge.evaluation.metrics.retrieval import Indices, Truths
from eqforge.evaluation.metrics.simat import (
    SUCCESS,
    chance,
    judge_queries,
    moved,
    nearest,
    same_crops,
    sentence_deltas,
)
from eqforge.evaluation.metrics.ties import Flags
from eqforge.evaluation.tables.crossed import CrossedScores, read_crossed
from eqforge.evaluation.tables.render import Measure, Report
from eqforge.evaluation.tables.report import Judged, compare_judged, measure, model_names
from eqforge.evaluation.tables.samples import sorted_columns
from eqforge.evaluation.tables.scores import places_in
from eqforge.evaluation.tables.settings import MetricsSettings
from eqforge.models.score_matrix import MatrixFiles, read_table
from eqforge.models.spec import parse_specs
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.dataset.score_tables import open_scores

PARTS: Final = ("subject", "relation", "object")
QUERY_COLUMNS: Final = (
    *("sample_id", "split", "region_id", "source_id", "part", "source_word", "target_word"),
    *("target_triplet_id", "weight"),
)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Simat:
    """The tables of a SIMAT dataset, in the order of their ids.

    Attributes:
      regions: columns of the gallery, by name [regions].
      boxes: x0, y0, x1, y1 of each region [regions, 4].
      triplet_of: the caption of each region [regions].
      triplets: subject, relation, object of each caption [captions].
      texts: the captions [captions].
      queries: columns of the queries, by name [queries].
      region_of, target_of: the region each query asks about, and the caption it asks for [queries].
    """

    regions: dict[str, NDArray[Any]]
    boxes: NDArray[np.float64]
    triplet_of: Indices
    triplets: list[tuple[str, str, str]]
    texts: NDArray[Any]
    queries: dict[str, NDArray[Any]]
    region_of: Indices
    target_of: Indices

    def column(self, name: str) -> NDArray[Any]:
        if name not in self.queries:
            raise InputError(f"column {name}: expected one of {', '.join(sorted(self.queries))}")
        return self.queries[name]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Space:
    """One model's vectors; items without a vector are left out."""

    regions: Indices
    queries: Indices
    captioned: NDArray[np.float32]
    """The caption vector of each query's region [queries, d]."""
    gallery: NDArray[np.float32]
    captions: NDArray[np.float32]
    images: NDArray[np.float32]
    source: NDArray[np.float32]
    target: NDArray[np.float32]
    aim: NDArray[np.float32]


def is_simat(dataset: Dataset) -> bool:
    names = set(dataset.columns("samples"))
    return "gallery" in dataset.manifest.tables and {"source_word", "target_word"} <= names


def simat_report(dataset: Dataset, paths: Sequence[Path], settings: MetricsSettings) -> Report:
    settings.check_read("SIMAT")
    simat = read_simat(dataset)
    matched, judge = by_annotation(simat), "the annotation"
    if settings.oracle is not None:
        matched, judge = by_oracle(simat, dataset, settings.oracle)
    scores = [read_crossed(str(path), dataset) for path in paths]
    names = model_names([found.model for found in scores], paths)
    judged = {
        name: dict(_judge(simat, matched, _space(simat, found, settings), settings))
        for name, found in zip(names, scores, strict=True)
    }
    measures: list[Measure] = []
    for name, subsets in judged.items():
        # Sorting keeps the methods in their order within a split.
        for subset in sorted(subsets, key=lambda subset: subset.partition(": ")[0]):
            measures += measure(name, subset, subsets[subset], settings.rules)[1]
    excluded = "its own region" if settings.mode == "paper" else "itself or a crop like it"
    warned = zip(names, scores, strict=True)
    return Report(
        title=f"{dataset.manifest.dataset}: SIMAT score, {len(simat.region_of):,} queries, "
        f"{len(simat.boxes):,} regions, in per cent",
        rules=settings.rules,
        measures=tuple(measures),
        comparisons=tuple(compare_judged(judged, settings.rules)),
        notes=(
            f"{judge} decides what a region shows. A query cannot retrieve {excluded}.",
            *(f"{name}: {warning}" for name, found in warned for warning in found.warnings),
        ),
    )


def read_simat(dataset: Dataset) -> Simat:
    names = ("region_id", "source_id", "image_id", "triplet_id", "box")
    gallery = sorted_columns(dataset, "gallery", names)
    if None in gallery["image_id"]:
        raise InputError(
            f"{dataset.folder} contains no crops; build the dataset with --images FOLDER"
        )
    captions = sorted_columns(dataset, "captions", ("caption_id", *PARTS, "caption"))
    queries = sorted_columns(dataset, "samples", QUERY_COLUMNS)
    for table, columns in {"gallery": gallery, "captions": captions, "samples": queries}.items():
        if not len(next(iter(columns.values()))):
            raise InputError(f"{dataset.folder}: its table {table} is empty")
    boxes = [[box[name] for name in ("x0", "y0", "x1", "y1")] for box in gallery["box"]]

    def joined(wanted: NDArray[Any], keys: NDArray[Any]) -> Indices:
        places = places_in(wanted, keys)
        lost = np.flatnonzero(places < 0)
        if len(lost):
            raise InputError(f"{dataset.folder}: no row has the key {str(wanted[lost[0]])!r}")
        return places

    return Simat(
        regions=gallery,
        boxes=np.array(boxes, dtype=np.float64),
        triplet_of=joined(gallery["triplet_id"], captions["caption_id"]),
        triplets=list(zip(*(captions[part].tolist() for part in PARTS), strict=True)),
        texts=captions["caption"],
        queries=queries,
        region_of=joined(queries["region_id"], gallery["region_id"]),
        target_of=joined(queries["target_triplet_id"], captions["caption_id"]),
    )


def by_annotation(simat: Simat) -> Flags:
    """Return which regions show which captions by the annotation [regions, captions]."""
    found = np.zeros((len(simat.boxes), len(simat.texts)), dtype=bool)
    found[np.arange(len(simat.boxes)), simat.triplet_of] = True
    return found


def by_oracle(simat: Simat, dataset: Dataset, oracle: str) -> tuple[Flags, str]:
    """Return the regions that match each caption by an oracle, and its name.

    Args:
        oracle: `matrix:FILE,rows=FILE,columns=FILE` with region and caption ids, or a score folder
            of the dataset: a grid of probabilities or logits.

    Returns:
        P(match) > 0.5 [regions, captions], and the oracle's name.
    """
    is_grid = Path(oracle).is_dir()
    known, rows, columns, name = (_of_grid if is_grid else _of_matrix)(simat, dataset, oracle)
    probabilities = known[np.ix_(rows.clip(0), columns.clip(0))]
    probabilities[rows < 0] = np.nan
    probabilities[:, columns < 0] = np.nan
    targets = np.unique(simat.target_of)
    row, column = np.nonzero(np.isnan(probabilities[:, targets]))
    if len(row):
        region, text = simat.regions["region_id"][row[0]], simat.texts[targets[column[0]]]
        raise InputError(
            f"{oracle} contains no score for the region {str(region)!r} and the text {str(text)!r}"
        )
    return probabilities > SUCCESS, name


_Known = tuple[NDArray[np.float64], Indices, Indices, str]
"""P(match), NaN if unknown; the row of each region and column of each caption; a name."""


def _of_matrix(simat: Simat, dataset: Dataset, oracle: str) -> _Known:
    del dataset
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
    regions = simat.regions["region_id"]
    rows = np.array([table.images.get(str(region), -1) for region in regions])
    columns = np.array([table.captions.get(str(text).strip(), -1) for text in simat.texts])
    return known, rows, columns, files.scores.name


def _of_grid(simat: Simat, dataset: Dataset, oracle: str) -> _Known:
    quantity = open_scores(oracle).manifest.quantity
    scores = read_crossed(oracle, dataset)
    if scores.grid is None:
        raise InputError(f"--oracle {oracle}: found vectors; pass scores of a fusion encoder")
    if quantity not in ("logit", "probability"):
        raise InputError(
            f"--oracle {oracle}: expected probabilities or logits, but the scores are {quantity}s"
        )
    known = scores.grid.astype(np.float64)
    known[np.isneginf(known)] = np.nan
    if quantity == "logit":  # above 0 if the probability is above one half
        known = np.where(np.isnan(known), np.nan, (known > 0).astype(np.float64))
    rows = scores.places("images", simat.regions["image_id"])
    return known, rows, scores.places("captions", simat.texts), scores.model


def _space(simat: Simat, scores: CrossedScores, settings: MetricsSettings) -> _Space:
    if scores.grid is not None:
        raise InputError(f"{scores.model}: SIMAT needs vectors; pass the scores of a dual encoder")
    pictures, texts = scores.vectors["images"], scores.vectors["captions"]
    of_regions = scores.places("images", simat.regions["image_id"])
    of_captions = scores.places("captions", simat.texts)
    of_source, of_target = (
        scores.places("captions", simat.queries[f"{end}_word"]) for end in ("source", "target")
    )
    complete = (of_regions[simat.region_of] >= 0) & (of_source >= 0) & (of_target >= 0)
    lost = [int(flags.sum()) for flags in (~complete, of_captions < 0, of_regions < 0)]
    if any(lost) and not settings.allow_missing:
        raise InputError(
            f"{scores.model}: vectors are missing for {counted(lost[0], 'queries')}, "
            f"{counted(lost[1], 'captions')} and {counted(lost[2], 'regions')}{scores.why}; "
            "pass --allow-missing to skip these queries and regions"
        )
    if lost[1]:
        raise InputError(
            f"{scores.model}: {lost[1]:,} captions have no vector, but the baselines need a "
            "vector for every caption. Score the dataset again."
        )
    queries, regions = np.flatnonzero(complete), np.flatnonzero(of_regions >= 0)
    return _Space(
        regions=regions,
        queries=queries,
        captioned=texts[of_captions[simat.triplet_of[simat.region_of[queries]]]],
        gallery=pictures[of_regions[regions]],
        captions=texts[of_captions],
        images=pictures[of_regions[simat.region_of[queries]]],
        source=texts[of_source[queries]],
        target=texts[of_target[queries]],
        aim=texts[of_captions[simat.target_of[queries]]],
    )


def _points(
    simat: Simat, space: _Space, lambdas: Sequence[float]
) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Yield each method and its moved queries [queries, d]."""
    for strength in lambdas:
        points = moved(space.images, space.source, space.target, strength)
        yield f"delta, lambda {strength:g}", points
    places = [PARTS.index(str(part)) for part in simat.queries["part"][space.queries]]
    words = [simat.queries[f"{end}_word"][space.queries].tolist() for end in ("source", "target")]
    exchanges = list(zip(places, *words, strict=True))
    deltas = sentence_deltas(simat.triplets, space.captions, exchanges)
    nothing = np.zeros(space.images.shape[1], dtype=np.float32)
    steps = np.stack([deltas.get(exchange, nothing) for exchange in exchanges])
    for strength in lambdas:
        yield f"sentence average, lambda {strength:g}", space.images + np.float32(strength) * steps
    texts = space.captions[nearest(space.images, space.captions)]
    yield "image to text to image", moved(texts, space.source, space.target, 1.0)
    yield "text to image", space.aim
    yield "bare delta", moved(np.zeros_like(space.images), space.source, space.target, 1.0)


def _judge(
    simat: Simat, matched: Flags, space: _Space, settings: MetricsSettings
) -> Iterator[tuple[str, Judged]]:
    excluded = _excluded(simat, space, settings.mode == "paper")
    truths = _truths(simat, matched, space, excluded)
    points = _points(simat, space, settings.lambdas)
    yield from _judged(simat, space, settings, points, space.gallery, truths, excluded)
    # Captions are moved among captions; a query never finds its own (section 5.3, table 2).
    queries = np.arange(len(space.queries))
    triplets, aims = (
        simat.triplet_of[simat.region_of[space.queries]],
        simat.target_of[space.queries],
    )
    yield from _judged(
        simat,
        space,
        settings,
        [
            (
                f"text delta, lambda {strength:g}",
                moved(space.captioned, space.source, space.target, strength),
            )
            for strength in settings.lambdas
        ],
        space.captions,
        {int(query): aims[query : query + 1] for query in queries},
        Truths.of_pairs(queries, triplets, len(queries)),
    )


def _judged(
    simat: Simat,
    space: _Space,
    settings: MetricsSettings,
    methods: Iterable[tuple[str, NDArray[np.float32]]],
    gallery: NDArray[np.float32],
    truths: Mapping[int, Indices],
    excluded: Truths,
) -> Iterator[tuple[str, Judged]]:
    weights = simat.queries["weight"].astype(np.float64)[space.queries]
    clusters = simat.column(settings.cluster or "source_id")[space.queries]
    values = simat.column(settings.by or "split")
    subsets = {str(value): values == value for value in np.unique(values)}
    chances = {}
    for name, members in subsets.items():
        of_them = np.where(members[space.queries], weights, 0.0)
        is_present = members[space.queries].any()
        chances[name] = chance(truths, excluded, len(gallery), of_them) if is_present else {}
    for method, points in methods:
        credits, tied = judge_queries(points, gallery, truths, excluded, settings.ties)
        for name, everyone in subsets.items():
            members = everyone[space.queries]
            yield (
                f"{name}: {method}",
                Judged(
                    credits={metric: found[members] for metric, found in credits.items()},
                    chance=chances[name],
                    tied=tied[members],
                    clusters=clusters[members],
                    expected=int(everyone.sum()),
                    weights=weights[members],
                    keys=simat.queries["sample_id"][space.queries][members],
                ),
            )


def _excluded(simat: Simat, space: _Space, only_own: bool) -> Truths:
    """Return the regions each query must not retrieve, by index in the space."""
    place_of = np.full(len(simat.boxes), -1)
    place_of[space.regions] = np.arange(len(space.regions))
    own_regions = place_of[simat.region_of[space.queries]]
    if only_own:
        return Truths.of_pairs(np.arange(len(own_regions)), own_regions, len(own_regions))
    sources = simat.regions["source_id"][space.regions]
    return same_crops(sources, simat.boxes[space.regions]).of(own_regions)


def _truths(simat: Simat, matched: Flags, space: _Space, excluded: Truths) -> Mapping[int, Indices]:
    """Return the matching regions of each query, without excluded ones; none is empty."""
    right = {
        int(target): np.flatnonzero(matched[space.regions, target])
        for target in np.unique(simat.target_of[space.queries])
    }
    found = {}
    for query, target in enumerate(simat.target_of[space.queries]):
        banned = excluded.index[excluded.start[query] : excluded.start[query + 1]]
        allowed = right[int(target)][~np.isin(right[int(target)], banned)]
        if len(allowed):
            found[query] = allowed
    return found

"""A gallery of images and captions, and one model's retrieval results in both directions."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.evaluation.metrics.retrieval import (
    DEPTH,
    KS,
    SHARE_TOTALS,
    Indices,
    Recall,
    ScoreRows,
    Truths,
    chance_of_recall,
    dcg_cm,
    rank,
    recall_at,
    relevance_of,
    share_at,
    vector_rows,
)
from eqforge.evaluation.metrics.ties import Flags
from eqforge.evaluation.statistics.bootstrap import Numbers
from eqforge.evaluation.tables.crossed import CrossedScores, What
from eqforge.evaluation.tables.samples import sorted_columns
from eqforge.evaluation.tables.settings import MetricsSettings
from eqforge.schemas.dataset.reader import Dataset

Direction = Literal["i2t", "t2i"]
RSUM = "rsum"
DCG = "DCG_CM"


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Perturbed:
    """The captions of one perturbation."""

    caption_of: Indices
    texts: NDArray[Any]
    changed: Flags


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Gallery:
    """The images and captions to retrieve, sorted by id.

    Texts and ids are Python objects: with a fixed width, one long caption would make all long.

    Attributes:
      image_ids: the image of each entry [n], an image with its captions.
      entry_of: the entry of each caption [m].
      perturbed: the captions of each perturbation; empty if the dataset has none.
      published_recall: what R@k counts in the authors' evaluation of the dataset. Source:
        `recall_at_k` of mariyahendriksen/evaluating-cmr-in-vl for perturbed captions, a share;
        `itm_eval` of X-VLM, with which VLUE's repository evaluates, for VLUE's, any.
    """

    image_ids: NDArray[Any]
    texts: NDArray[Any]
    entry_of: Indices
    perturbed: dict[str, Perturbed]
    published_recall: Recall


def has_gallery(dataset: Dataset) -> bool:
    return is_vlue(dataset) or {"caption_id", "perturbation"} <= set(dataset.columns("samples"))


def is_vlue(dataset: Dataset) -> bool:
    """Return True for VLUE's retrieval datasets: captions without perturbations."""
    return "retrieval" in dataset.manifest.tables


def read_gallery(dataset: Dataset) -> Gallery:
    if is_vlue(dataset):
        table, key, entry = "retrieval", "sample_id", "gallery_id"
    else:
        table, key, entry = "captions", "caption_id", "image"
    columns = sorted_columns(dataset, table, [key, entry, "image_id", "caption"])
    if not len(columns[key]):
        raise InputError(f"{dataset.folder} contains no captions to retrieve")
    if None in columns["image_id"].tolist():
        raise InputError(
            f"{dataset.folder} contains no image names; build the dataset with --images FOLDER"
        )
    _, first, entry_of = np.unique(columns[entry], return_index=True, return_inverse=True)
    return Gallery(
        image_ids=columns["image_id"][first],
        texts=columns["caption"],
        entry_of=entry_of.astype(np.int64),
        perturbed={} if is_vlue(dataset) else _read_perturbed(dataset, columns[key]),
        published_recall="any" if is_vlue(dataset) else "share",
    )


def _read_perturbed(dataset: Dataset, captions: NDArray[Any]) -> dict[str, Perturbed]:
    has_words_changed = "words_changed" in dataset.columns("samples")
    changed = "words_changed" if has_words_changed else "applied"  # all that earlier versions wrote
    names = ["sample_id", "caption_id", "perturbation", "perturbed_caption", changed]
    columns = sorted_columns(dataset, "samples", names)
    places = np.searchsorted(captions, columns["caption_id"]).clip(max=len(captions) - 1)
    if (captions[places] != columns["caption_id"]).any():
        raise InputError(
            f"{dataset.folder} lacks the original of a perturbed caption; build the dataset again"
        )
    found = {}
    for name in np.unique(columns["perturbation"]):
        of_it = columns["perturbation"] == name
        found[str(name)] = Perturbed(
            caption_of=places[of_it].astype(np.int64),
            texts=columns["perturbed_caption"][of_it],
            changed=columns[changed][of_it].astype(bool),
        )
    return found


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Side:
    """Queries or candidates.

    Attributes:
      keys: ids of images, or texts [n].
      places: index of each query in the truths, and of each candidate in the gallery [n].
      entries: entry of each image or caption [n].
    """

    keys: NDArray[Any]
    places: Indices
    entries: Indices


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Retrieved:
    """The credits of each query.

    Attributes:
      credits: credits of R@1, R@5, R@10 and their sum, and of DCG_CM if a relevance is given [q].
      chance: chance level of each metric that has one.
      tied: a false candidate ties with the best true one [q]; false if no true one has a score.
      lost: no true candidate has a score [q], as when a fusion encoder scored only some pairs;
        such a query counts 0.
      shared: number of queries with several true candidates.
    """

    credits: dict[str, Numbers]
    chance: dict[str, float]
    tied: Flags
    lost: Flags
    shared: int


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Damaged:
    """Text-to-image retrieval with the captions of one perturbation.

    Attributes:
      of: gallery index of each query's original caption [queries].
      expected: number of captions, scored or not.
    """

    queries: Side
    of: Indices
    found: Retrieved
    expected: int


class Contest:
    """One model on a gallery, in both retrieval directions."""

    def __init__(
        self,
        model: str,
        gallery: Gallery,
        scores: CrossedScores,
        relevance: CrossedScores | None,
        settings: MetricsSettings,
    ) -> None:
        self.model, self.gallery, self.scores, self.settings = model, gallery, scores, settings
        self._relevance = relevance
        self.recall: Recall = gallery.published_recall if settings.mode == "paper" else "any"
        pictured = (scores.places("images", gallery.image_ids) >= 0)[gallery.entry_of]
        self.scored = (scores.places("captions", gallery.texts) >= 0) & pictured
        missing = int((~self.scored).sum())
        if not self.scored.any() or (missing and not settings.allow_missing):
            raise InputError(
                f"{model}: {missing:,} of {len(self.scored):,} captions have no score for their "
                f"image{scores.why}; pass --allow-missing to skip them"
            )
        entries = np.unique(gallery.entry_of[self.scored])
        self.images = Side(keys=gallery.image_ids[entries], places=entries, entries=entries)
        captions = np.flatnonzero(self.scored)
        self.captions = Side(
            keys=gallery.texts[captions], places=captions, entries=gallery.entry_of[captions]
        )
        images = self._images_of(gallery.texts, gallery.entry_of)
        described, by = images.pairs()
        texts = Truths.of_pairs(by, described, len(gallery.image_ids))
        self.to_text = self._retrieve("i2t", texts, self.images, self.captions)
        self.to_image = self._retrieve("t2i", images, self.captions, self.images)
        self.damaged = dict(self._damage())

    def _damage(self) -> Iterator[tuple[str, Damaged]]:
        for name, perturbed in self.gallery.perturbed.items():
            kept = perturbed.changed | (self.settings.mode == "paper")
            scored = self.scores.places("captions", perturbed.texts) >= 0
            expected = kept & self.scored[perturbed.caption_of]
            missing = int((expected & ~scored).sum())
            if missing and not self.settings.allow_missing:
                raise InputError(
                    f"{self.model}: {missing:,} perturbed captions have no score; pass "
                    "--allow-missing to skip them"
                )
            chosen = np.flatnonzero(expected & scored)
            of = perturbed.caption_of[chosen]
            entry_of = self.gallery.entry_of
            originals = len(entry_of)
            queries = Side(
                keys=perturbed.texts[chosen], places=originals + chosen, entries=entry_of[of]
            )
            if len(of):
                images = self._images_of(
                    np.concatenate([self.gallery.texts, perturbed.texts]),
                    np.concatenate([entry_of, entry_of[perturbed.caption_of]]),
                )
                found = self._retrieve("t2i", images, queries, self.images)
                yield name, Damaged(queries=queries, of=of, found=found, expected=int(kept.sum()))

    def _images_of(self, texts: NDArray[Any], entries: Indices) -> Truths:
        """Return the true entries of each text, given the entry it was written for [n].

        As published, this is its own entry. Otherwise images with the same bytes count as one
        image, and equal texts as one text.
        """
        captions = np.arange(len(texts))
        if self.settings.mode == "paper":
            return Truths.of_pairs(captions, entries, len(texts))
        image = np.unique(self.gallery.image_ids, return_inverse=True)[1]
        text = np.unique(texts, return_inverse=True)[1]
        distinct, shown = np.unique(np.stack([text, image[entries]]), axis=1)
        images_of_text = Truths.of_pairs(distinct, shown, int(text.max()) + 1)
        entries_of_image = Truths.of_pairs(image, np.arange(len(image)), int(image.max()) + 1)
        captions, images = images_of_text.of(text).pairs()
        rows, entries = entries_of_image.of(images).pairs()
        return Truths.of_pairs(captions[rows], entries, len(texts))

    def _retrieve(
        self, direction: Direction, truths: Truths, queries: Side, candidates: Side
    ) -> Retrieved:
        """Rank all candidates and credit the true ones; in shares and DCG_CM, ties lose."""
        truths = _among(truths, queries, candidates)
        deep = self.recall == "share" or self._relevance is not None
        rows = _rows(direction, self.scores, queries, candidates)
        ranking = rank(rows, truths, depth=DEPTH if deep else 0)
        total, size = SHARE_TOTALS[direction], len(candidates.keys)
        credits, chance = {}, {}
        for k in KS:
            name = f"{direction} R@{k}"
            if self.recall == "share":
                depth = min(k, ranking.top.shape[1])
                credits[name] = share_at(ranking, depth, total)
                expected = depth * np.diff(truths.start) / size / min(total, depth)
            else:
                credits[name] = recall_at(ranking, k, self.settings.ties)
                expected = chance_of_recall(truths, size, k)
            chance[name] = float(expected.mean())
        credits[f"{direction} {RSUM}"] = np.sum(list(credits.values()), axis=0)
        chance[f"{direction} {RSUM}"] = sum(chance.values())
        if (judge := self._relevance) is not None:
            if judge.grid is not None:
                raise InputError(
                    f"--relevance: {DCG} needs vectors, but {judge.model} wrote a grid of scores; "
                    "pass the scores of a dual encoder"
                )
            vectors = (
                judge.vectors[kind][_found(judge, kind, side.keys)]
                for kind, side in zip(_SIDES[direction], (queries, candidates), strict=True)
            )
            credits[f"{direction} {DCG}"] = dcg_cm(ranking, relevance_of(ranking, *vectors))
        return Retrieved(
            credits=credits,
            chance=chance,
            tied=ranking.level > 0,
            lost=~ranking.scored,
            shared=int((np.diff(truths.start) > 1).sum()),
        )


def _among(truths: Truths, queries: Side, candidates: Side) -> Truths:
    """Return the truths of these queries among these candidates, as positions in them."""
    asking, places = truths.of(queries.places).pairs()
    position = np.full(int(max(places.max(), candidates.places.max())) + 1, -1)
    position[candidates.places] = np.arange(len(candidates.places))
    found = position[places] >= 0
    return Truths.of_pairs(asking[found], position[places[found]], len(queries.places))


_SIDES: Final[Mapping[Direction, tuple[What, What]]] = {
    "i2t": ("images", "captions"),
    "t2i": ("captions", "images"),
}


def _rows(
    direction: Direction, scores: CrossedScores, queries: Side, candidates: Side
) -> ScoreRows:
    asking, answering = _SIDES[direction]
    query_of = _found(scores, asking, queries.keys)
    candidate_of = _found(scores, answering, candidates.keys)
    if scores.grid is not None:
        matrix = scores.grid if direction == "i2t" else scores.grid.T
        return ScoreRows(
            len(query_of),
            len(candidate_of),
            lambda start, stop: matrix[query_of[start:stop]][:, candidate_of],
        )
    distinct, of = np.unique(candidate_of, return_inverse=True)
    shared = len(distinct) < len(of)
    vectors = scores.vectors[answering][distinct if shared else candidate_of]
    places = of.astype(np.int64) if shared else None
    return vector_rows(scores.vectors[asking], vectors, query_of, places)


def _found(scores: CrossedScores, kind: What, keys: NDArray[Any]) -> Indices:
    places = scores.places(kind, keys)
    lost = np.flatnonzero(places < 0)
    if len(lost):
        raise InputError(
            f"{scores.model}: {len(lost):,} of {len(keys):,} {kind} have no score, for example "
            f"{str(keys[lost[0]])!r}"
        )
    return places

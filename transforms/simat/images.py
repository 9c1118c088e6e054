"""Makes the crops, queries and captions of one source image of a SIMAT dataset.

Source: SIMAT, section 3.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from eqforge.core.files.pictures import read_pixels
from eqforge.core.ledger import Ledger
from eqforge.schemas.records.scores import Rejection
from eqforge.schemas.records.stages import Reject
from eqforge.schemas.tables.pairs import ImageRow
from eqforge.schemas.tables.simat import CaptionRow, GalleryRow, QueryRow
from eqforge.transforms.dataset.plan import is_wanted
from eqforge.transforms.oracle.judges import Oracle, refuse_query
from eqforge.transforms.oracle.scores import Answer, ask_captions, name_cells
from eqforge.transforms.simat.crops import Crop, Cutter, cut_regions
from eqforge.transforms.simat.plan import region_name
from eqforge.transforms.simat.planned import (
    RELATIONS_STAGE,
    PlannedImage,
    PlannedQuery,
    PlannedRegion,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True, slots=True)
class SimatRules:
    """How planned images become rows.

    Attributes:
      published: whether a weight counts the source word over both splits, as published; else over
        the queries of the split that change the same part.
      only: ids of the regions and queries whose rows are written; empty writes all.
    """

    cutter: Cutter
    oracle: Oracle
    published: bool
    only: tuple[str, ...] = ()

    @property
    def has_images(self) -> bool:
        return self.cutter.root is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedQuery:
    """A query whose row lacks frequency and weight; a frequency of None must be counted."""

    row: QueryRow
    frequency: int | None
    rejection: Rejection | None
    is_wanted: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class SimatWork:
    """The results for one source image.

    Attributes:
      shown: the triplets of all successful crops, whether or not their rows are written.
      candidates, kept: counts of its regions.
    """

    gallery: tuple[GalleryRow, ...] = ()
    images: tuple[ImageRow, ...] = ()
    captions: tuple[CaptionRow, ...] = ()
    rejects: tuple[Reject, ...] = ()
    shown: tuple[str, ...] = ()
    queries: tuple[AskedQuery, ...] = ()
    candidates: int = 0
    kept: int = 0


def show_image(image: PlannedImage, rules: SimatRules) -> SimatWork:
    regions = [planned.region for planned in image.regions]
    crops = cut_regions(regions, image.size, image.paths, rules.cutter)
    captions = {row.caption_id: row.caption for row in image.captions}
    gallery: list[GalleryRow] = []
    images: dict[str, ImageRow] = {}
    rejects = [reject for reject in image.rejects if is_wanted(reject.candidate_id, rules.only)]
    shown: list[str] = []
    queries: list[AskedQuery] = []
    for planned, crop in zip(image.regions, crops, strict=True):
        region, name = planned.region, region_name(planned.region.region_id)
        wanted = is_wanted(name, rules.only)
        if isinstance(crop, Rejection):
            if wanted:
                rejects.append(RELATIONS_STAGE.reject(name, crop, source_id=region.image_id))
            refused = Rejection(reason="region_refused")
            queries += (
                replace(_query(planned, query, None, rules), rejection=refused)
                for query in planned.queries
            )
            continue
        scores = _scores(planned, crop, captions, rules)
        shown.append(region.triplet.triplet_id)
        queries += _asked(planned, crop, scores, captions, rules)
        if wanted:
            source_scores = scores.get(captions[region.triplet.triplet_id], ())
            gallery.append(
                GalleryRow(
                    region_id=region.region_id,
                    source_id=region.image_id,
                    source_path=crop.source_path,
                    source_sha256=crop.source_sha256,
                    triplet_id=region.triplet.triplet_id,
                    image_id=None if crop.image is None else crop.image.image_id,
                    subject_box=region.subject_box,
                    object_box=region.object_box,
                    box=crop.box,
                    scores=() if isinstance(source_scores, Rejection) else source_scores,
                )
            )
            images |= {} if crop.image is None else {crop.image.image_id: crop.image}
    used = {row.triplet_id for row in gallery}
    used |= {query.row.target_triplet_id for query in queries if query.is_wanted}
    return SimatWork(
        gallery=tuple(gallery),
        images=tuple(images.values()),
        captions=tuple(row for row in image.captions if row.caption_id in used),
        rejects=tuple(rejects),
        shown=tuple(shown),
        queries=tuple(queries),
        candidates=len(gallery) + sum(reject.stage == RELATIONS_STAGE.name for reject in rejects),
        kept=len(gallery),
    )


def _scores(
    planned: PlannedRegion, crop: Crop, captions: Mapping[str, str], rules: SimatRules
) -> dict[str, Answer]:
    if not rules.oracle.judges:
        return {}
    targets = [query.change.target for query in planned.queries if query.rejection is None]
    names = [planned.region.triplet.triplet_id, *(triplet.triplet_id for triplet in targets)]
    texts = list(dict.fromkeys(captions[name] for name in names))

    def pixels(_: str) -> "NDArray[np.uint8]":
        if crop.image is None:
            raise ValueError("the oracle needs images; pass their folder with --images")
        return read_pixels(rules.cutter.store.get(crop.image.image_id, crop.image.suffix))

    found = ask_captions(
        planned.region.region_id,
        None if crop.image is None else crop.image.image_id,
        texts,
        rules.oracle.scorer(pixels),
        Ledger(root=rules.cutter.ledger_root, step="match", basis=rules.oracle.basis()),
    )
    return dict(zip(texts, found, strict=True))


def _asked(
    planned: PlannedRegion,
    crop: Crop,
    scores: Mapping[str, Answer],
    captions: Mapping[str, str],
    rules: SimatRules,
) -> Iterator[AskedQuery]:
    source = scores.get(captions[planned.region.triplet.triplet_id])
    for query in planned.queries:
        asked_query = _query(planned, query, crop, rules)
        target = scores.get(captions[query.change.target.triplet_id])
        if asked_query.rejection is not None or source is None or target is None:
            yield asked_query
        elif isinstance(source, Rejection):
            yield replace(asked_query, rejection=source)
        elif isinstance(target, Rejection):
            yield replace(asked_query, rejection=target)
        else:
            found = name_cells((source, target), ("source", "target"))
            yield replace(
                asked_query,
                row=replace(asked_query.row, scores=found),
                rejection=refuse_query(found, rules.oracle.settings),
            )


def _query(
    planned: PlannedRegion, query: PlannedQuery, crop: Crop | None, rules: SimatRules
) -> AskedQuery:
    change = query.change
    row = QueryRow(
        sample_id=query.sample_id,
        split=query.split,
        region_id=planned.region.region_id,
        source_id=planned.region.image_id,
        image_id=None if crop is None or crop.image is None else crop.image.image_id,
        part=change.part,
        source_word=change.words[0],
        target_word=change.words[1],
        source_triplet_id=change.source.triplet_id,
        target_triplet_id=change.target.triplet_id,
        frequency=0,
        weight=0.0,
        scores=(),
    )
    return AskedQuery(
        row=row,
        frequency=query.frequency,
        rejection=query.rejection,
        is_wanted=is_wanted(query.sample_id, rules.only),
    )

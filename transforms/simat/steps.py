"""Makes the gallery, the queries and the captions of a SIMAT dataset, image by image.

A query's weight, and whether any crop shows its target, depend on the whole dataset: both are
counted in the pipeline, and joined by word and by triplet.

Source: SIMAT, section 3.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import apache_beam as beam

from eqforge.schemas.records.scores import Rejection
from eqforge.schemas.records.stages import Reject
from eqforge.schemas.tables.simat import QueryRow
from eqforge.transforms.engines.counted_step import CountedStep
from eqforge.transforms.simat.images import AskedQuery, SimatRules, SimatWork, show_image
from eqforge.transforms.simat.planned import CUT, QUERIES_STAGE, RELATIONS_STAGE, PlannedImage


def judge_query(query: AskedQuery, shown: Mapping[str, int]) -> AskedQuery:
    target = query.row.target_triplet_id
    if query.rejection is not None or target in shown:
        return query
    return replace(query, rejection=Rejection(reason="target_without_crop", detail=target))


def word_key(row: QueryRow, published: bool) -> str:
    """Return the key under which queries are counted together.

    Source: `norm2` of transfos.csv counts the word over subjects, objects and both splits.
    """
    return row.source_word if published else f"{row.split}/{row.part}/{row.source_word}"


def weigh_query(query: AskedQuery, counts: Mapping[str, int], published: bool) -> QueryRow:
    """Return the row of a kept query; a score is divided by the sum of its queries' weights."""
    counted = counts[word_key(query.row, published)]
    frequency = counted if query.frequency is None else query.frequency
    return replace(query.row, frequency=frequency, weight=1 / math.sqrt(frequency))


class ShowImages(CountedStep[SimatRules]):
    """Crops the regions of planned images, and scores each crop with the oracle."""

    counted = CUT

    @property
    def uses_gpu(self) -> bool:
        return self.rules.oracle.uses_gpu

    def make(self, image: PlannedImage) -> SimatWork:
        return show_image(image, self.rules)


class JudgeQueries(beam.PTransform):
    """Returns the queries of all images, with a rejection if no crop shows the target."""

    def expand(self, works: beam.PCollection[SimatWork]) -> beam.PCollection[AskedQuery]:
        shown = works | "Shown" >> beam.FlatMap(getattr, "shown").with_output_types(str)
        found = beam.pvalue.AsDict(shown | "CountShown" >> beam.combiners.Count.PerElement())
        return (
            works
            | "Asked" >> beam.FlatMap(getattr, "queries").with_output_types(AskedQuery)
            | "JudgeQuery" >> beam.Map(judge_query, found).with_output_types(AskedQuery)
        )


@dataclass
class WeighQueries(beam.PTransform):
    """Returns the rows of the kept queries, each weighted by how often its word is changed."""

    rules: SimatRules

    def expand(self, queries: beam.PCollection[AskedQuery]) -> beam.PCollection[QueryRow]:
        kept = queries | "Kept" >> beam.Filter(lambda query: query.rejection is None)
        words = kept | "Words" >> beam.Map(self._word).with_output_types(str)
        counts = beam.pvalue.AsDict(words | "CountWords" >> beam.combiners.Count.PerElement())
        return (
            kept
            | "Wanted" >> beam.Filter(getattr, "is_wanted")
            | "WeighQuery" >> beam.Map(weigh_query, counts, self.rules.published)
        )

    def _word(self, query: AskedQuery) -> str:
        return word_key(query.row, self.rules.published)


def rows_of(
    works: beam.PCollection[SimatWork],
    queries: beam.PCollection[AskedQuery],
    samples: beam.PCollection[QueryRow],
    has_images: bool,
) -> tuple[beam.PCollection, ...]:
    rejects = (
        works | "RefusedRegions" >> beam.FlatMap(getattr, "rejects").with_output_types(Reject),
        queries | "RefusedQueries" >> beam.FlatMap(_refusal).with_output_types(Reject),
    )
    tallies = (
        works | "RegionBooks" >> beam.FlatMap(_region_tallies),
        queries | "QueryBooks" >> beam.FlatMap(_query_tally),
    )
    images = (works | "Images" >> beam.FlatMap(getattr, "images"),) if has_images else ()
    return (
        samples,
        works | "Gallery" >> beam.FlatMap(getattr, "gallery"),
        works | "Captions" >> beam.FlatMap(getattr, "captions"),
        *images,
        rejects | "Rejects" >> beam.Flatten(),
        tallies | "Tallies" >> beam.Flatten(),
    )


def _refusal(query: AskedQuery) -> Iterator[Reject]:
    if query.is_wanted and query.rejection is not None:
        yield QUERIES_STAGE.reject(
            query.row.sample_id, query.rejection, source_id=query.row.source_id
        )


def _region_tallies(work: SimatWork) -> Iterator[tuple[str, tuple[int, int]]]:
    yield RELATIONS_STAGE.name, (work.candidates, work.kept)
    refused = sum(reject.stage == QUERIES_STAGE.name for reject in work.rejects)
    yield QUERIES_STAGE.name, (refused, 0)


def _query_tally(query: AskedQuery) -> Iterator[tuple[str, tuple[int, int]]]:
    if query.is_wanted:
        yield QUERIES_STAGE.name, (1, int(query.rejection is None))

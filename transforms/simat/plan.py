"""Plans a SIMAT dataset: its regions, their queries, and rejections."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from more_itertools import map_reduce

from eqforge.core.errors import InputError
from eqforge.core.identity import Namer, derive_seed, is_sampled, short_digest
from eqforge.generators.simat.triplets import (
    Change,
    TripletSettings,
    changes_of,
    clean_name,
    clean_predicate,
    load_vocabulary,
    select_triplets,
)
from eqforge.generators.simat.wording import Synonyms, are_synonyms, write_caption
from eqforge.schemas.records.scores import Rejection
from eqforge.schemas.records.stages import Reject, Stage
from eqforge.schemas.tables.simat import CaptionRow, SimatSplit
from eqforge.sources.simat import (
    PublishedQuery,
    Region,
    Triplet,
    read_retrieval_db,
    read_simat_captions,
    read_transfos,
    read_triplets,
)
from eqforge.sources.visual_genome import (
    ImageData,
    read_aliases,
    read_image_data,
    read_relationships,
    read_scene_graphs,
)
from eqforge.transforms.dataset.plan import Selection
from eqforge.transforms.simat.planned import (
    QUERIES_STAGE,
    RELATIONS_STAGE,
    PlannedImage,
    PlannedQuery,
    PlannedRegion,
)

NAME = "simat"
FOLDERS = ("", "VG_100K/", "VG_100K_2/")  # the folders of Visual Genome's two archives


@dataclass(frozen=True, kw_only=True)
class SimatFiles:
    """Annotation files, and optional files that select triplets and queries."""

    relationships: Path | None = None
    """Visual Genome's relationships.json."""

    scene_graphs: Path | None = None
    """Visual Genome's scene_graphs.json, used instead of relationships.json."""

    retrieval_db: Path | None = None
    """SIMAT's retrieval_db.tsv, used instead of Visual Genome's annotations."""

    triplets: Path | None = None
    """SIMAT's triplets.csv, whose regions form the gallery (default: eqforge selects triplets)."""

    transfos: Path | None = None
    """SIMAT's transfos.csv with the queries (default: all changes that lead to another triplet)."""

    captions: Path | None = None
    """Captions for triplets, as JSON Lines or SIMAT's captions.txt (needs --triplets). Each JSON
    line has the fields subject, relation, object and caption. Triplets without a caption get one
    from a template."""

    image_data: Path | None = None
    """Visual Genome's image_data.json, which lets eqforge reject images of a different size."""

    object_aliases: Path | None = None
    """Visual Genome's object_alias.txt."""

    relation_aliases: Path | None = None
    """Visual Genome's relationship_alias.txt."""

    vocabulary: Path | None = None
    """JSON file of subjects and relations (default: SIMAT's 15 subjects and 20 relations)."""

    synonyms: Path | None = None
    """File of your own synonyms, with one comma-separated group per line."""

    def check_source(self) -> None:
        sources = (self.relationships, self.scene_graphs, self.retrieval_db)
        if sum(source is not None for source in sources) != 1:
            raise InputError(
                "pass one source: --relationships FILE, --scene-graphs FILE or --retrieval-db FILE"
            )

    def regions(self) -> Iterator[Region]:
        words = load_vocabulary(self.vocabulary)
        if self.retrieval_db is not None:
            yield from read_retrieval_db(self.retrieval_db)
            return
        if self.object_aliases is not None:
            words = replace(words, objects=read_aliases(self.object_aliases, clean_name))
        if self.relation_aliases is not None:
            aliases = read_aliases(self.relation_aliases, clean_predicate)
            words = replace(words, predicates=aliases)
        if self.relationships is not None:
            yield from words.regions(read_relationships(self.relationships))
        if self.scene_graphs is not None:
            yield from words.regions(read_scene_graphs(self.scene_graphs))

    def read(self) -> dict[str, Any]:
        chosen = None if self.triplets is None else read_triplets(self.triplets)
        order = () if chosen is None else tuple(dict.fromkeys(chosen.values()))
        captions = None if self.captions is None else read_simat_captions(self.captions, order)
        return {
            "chosen": chosen,
            "queries": None if self.transfos is None else tuple(read_transfos(self.transfos)),
            "captions": captions or {},
            "images": None if self.image_data is None else read_image_data(self.image_data),
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanRules:
    """How a plan is made.

    Attributes:
      published: whether to count and split regions, and name relations, as published.
      chosen: the regions of triplets.csv with their triplets; None chooses by `triplets`.
      queries: those of transfos.csv; None takes every change to another triplet.
      captions: a user's, by triplet; a template writes the others.
      synonyms: words with the same meaning, which make no query; None allows all.
    """

    triplets: TripletSettings
    published: bool
    chosen: Mapping[str, Triplet] | None = None
    queries: Sequence[PublishedQuery] | None = None
    captions: Mapping[Triplet, str]
    synonyms: Synonyms | None
    images: Mapping[str, ImageData] | None = None
    seed: int


def region_name(region_id: str) -> str:
    """Return the id of a region's reject, which `--only` accepts."""
    return f"{NAME}/{region_id}"


def plan_images(source: Iterable[Region], rules: PlanRules) -> Iterator[PlannedImage]:
    first, again = _unique(source)
    regions = first | again
    shown, counts, rejects = _choose(first, rules)
    rejects |= {name: Rejection(reason="region_twice") for name in again}
    if rules.queries is not None:
        by_region = _published_queries(rules.queries, shown, regions, rules)
    else:
        changes = changes_of(counts)
        by_region = {
            name: tuple(
                _planned(region, change, _split(region, rules), None, rules, None)
                for change in changes[region.triplet]
            )
            for name, region in shown.items()
        }
    refused = Rejection(reason="region_refused")
    for image_id, names in map_reduce(regions, lambda name: regions[name].image_id).items():
        planned = tuple(
            PlannedRegion(region=shown[name], queries=by_region.get(name, ()))
            for name in names
            if name in shown
        )
        lost = [
            _reject(regions[name], name, RELATIONS_STAGE, rejects[name])
            for name in names
            if name in rejects
        ]
        lost += [
            _reject(regions[name], query.sample_id, QUERIES_STAGE, refused)
            for name in names
            if name not in shown
            for query in by_region.get(name, ())
        ]
        yield _image(image_id, planned, tuple(lost), counts, rules)


def _unique(source: Iterable[Region]) -> tuple[dict[str, Region], dict[str, Region]]:
    named = map_reduce(source, lambda region: region_name(region.region_id))
    first, again, namer = {}, {}, Namer()
    for name, regions in named.items():
        first[name], *others = sorted(regions, key=_digest) if len(regions) > 1 else regions
        again.update({namer(f"{name}#{_digest(region)}"): region for region in others})
    return first, again


def _digest(region: Region) -> str:
    return short_digest(asdict(region))


def _choose(
    first: Mapping[str, Region], rules: PlanRules
) -> tuple[dict[str, Region], dict[Triplet, int], dict[str, Rejection]]:
    if rules.chosen is None:
        counts, refused = select_triplets(
            tuple(first.values()), rules.triplets, published=rules.published
        )
        shown = {name: region for name, region in first.items() if region.triplet in counts}
        rejects = {name: refused[r.triplet] for name, r in first.items() if r.triplet in refused}
        return shown, counts, rejects
    for region_id, triplet in rules.chosen.items():
        found = first.get(region_name(region_id))
        if found is None or found.triplet != triplet:
            description = (
                "no region with this id" if found is None else repr(found.triplet.triplet_id)
            )
            raise InputError(
                f"--triplets: region {region_id}: expected {triplet.triplet_id!r} in the source, "
                f"found {description}"
            )
    shown = {name: region for name, region in first.items() if region.region_id in rules.chosen}
    rejects = {name: Rejection(reason="not_chosen") for name in first if name not in shown}
    return shown, dict(Counter(rules.chosen.values())), rejects


def _published_queries(
    published: Sequence[PublishedQuery],
    shown: Mapping[str, Region],
    regions: Mapping[str, Region],
    rules: PlanRules,
) -> dict[str, tuple[PlannedQuery, ...]]:
    triplets = {region.triplet for region in shown.values()}
    by_region: defaultdict[str, list[PlannedQuery]] = defaultdict(list)
    keys = Counter((query.region_id, query.part, query.target) for query in published)
    if twice := [key for key, n in keys.items() if n > 1]:
        raise InputError(
            f"--transfos: the query {'/'.join(twice[0])} appears twice; remove one of them"
        )
    for query in published:
        name = region_name(query.region_id)
        region = regions.get(name)
        if region is None or region.triplet.word(query.part) != query.source:
            raise InputError(
                f"--transfos: a query changes the {query.part} {query.source!r} of the region "
                f"{query.region_id}, but the source has no such region or word. Remove the query, "
                "or pass the matching source."
            )
        change = Change(
            part=query.part,
            source=region.triplet,
            target=region.triplet.changed(query.part, query.target),
        )
        split = query.split if rules.published else _split(region, rules)
        frequency = query.norm2 if rules.published else None
        by_region[name].append(_planned(region, change, split, frequency, rules, triplets))
    return {name: tuple(queries) for name, queries in by_region.items()}


def _planned(
    region: Region,
    change: Change,
    split: SimatSplit,
    frequency: int | None,
    rules: PlanRules,
    known: set[Triplet] | None,
) -> PlannedQuery:
    rejection = None
    if known is not None and change.target not in known:
        rejection = Rejection(reason="target_without_crop", detail=change.target.triplet_id)
    elif rules.synonyms is not None and are_synonyms(change.part, *change.words, rules.synonyms):
        rejection = Rejection(reason="synonym", detail=" = ".join(change.words))
    return PlannedQuery(
        sample_id=f"{region_name(region.region_id)}/{change.part}/{change.words[1]}",
        change=change,
        split=split,
        frequency=frequency,
        rejection=rejection,
    )


def _split(region: Region, rules: PlanRules) -> SimatSplit:
    """Return the split: by region as published, or by source image, so that none is in both."""
    key = region_name(region.region_id) if rules.published else region.image_id
    return "test" if derive_seed(rules.seed, key, "simat split", 1) % 2 else "dev"


def _reject(region: Region, name: str, stage: Stage, rejection: Rejection) -> Reject:
    detailed = replace(rejection, detail=rejection.detail or region.triplet.triplet_id)
    return stage.reject(name, detailed, source_id=region.image_id)


def _image(
    image_id: str,
    planned: tuple[PlannedRegion, ...],
    rejects: tuple[Reject, ...],
    counts: Mapping[Triplet, int],
    rules: PlanRules,
) -> PlannedImage:
    data = None if rules.images is None else rules.images.get(image_id)
    named = () if data is None else (data.path,)
    needed = {each.region.triplet for each in planned}
    needed |= {query.change.target for each in planned for query in each.queries}
    return PlannedImage(
        image_id=image_id,
        paths=tuple(dict.fromkeys((*named, *(f"{folder}{image_id}.jpg" for folder in FOLDERS)))),
        size=None if data is None else (data.width_px, data.height_px),
        regions=planned,
        captions=tuple(_caption(triplet, counts, rules) for triplet in sorted(needed)),
        rejects=rejects,
    )


def _caption(triplet: Triplet, counts: Mapping[Triplet, int], rules: PlanRules) -> CaptionRow:
    written = rules.captions.get(triplet)
    return CaptionRow(
        caption_id=triplet.triplet_id,
        subject=triplet.subject,
        relation=triplet.relation,
        object=triplet.object,
        caption=(write_caption(triplet, published=rules.published) if written is None else written),
        origin="template" if written is None else "file",
        regions=counts.get(triplet, 0),
    )


def select_planned(images: Iterable[PlannedImage], selection: Selection) -> Iterator[PlannedImage]:
    """Yield the selected images; the limit counts regions, and the last image is kept whole.

    Weights are counted over the whole dataset, so `only` leaves no image out here.
    """
    missing, number = set(selection.only), 0
    known: set[Triplet] = set()
    for image in images:
        if not is_sampled(image.image_id, selection.sample):
            continue
        if selection.limit is not None and number >= selection.limit:
            continue
        number += len(image.regions) + image.refused_regions
        missing -= {reject.candidate_id for reject in image.rejects}
        missing -= {region_name(each.region.region_id) for each in image.regions}
        missing -= {query.sample_id for each in image.regions for query in each.queries}
        new = {each.region.triplet for each in image.regions} - known
        known |= new
        yield replace(image, new_triplets=len(new))
    if missing:
        raise InputError(
            f"--only: the plan has no region or query {min(missing)!r}; ids have the form "
            f"{NAME}/REGION or {NAME}/REGION/PART/WORD"
        )

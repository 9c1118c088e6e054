"""Rejects of a dataset by reason, with the images that the build stored."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import more_itertools
import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.visible import nearest, series
from eqforge.evaluation.report.items import Item, Pane, plain
from eqforge.evaluation.report.kinds import Whys
from eqforge.evaluation.report.of_rows import of_pair
from eqforge.evaluation.report.pictures import Stored
from eqforge.generators.diffusion.prompts import PromptPair
from eqforge.pipelines.base.identity import plan_name
from eqforge.schemas.dataset.manifest import WORK
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.dataset.shelf import check_picture_id, check_suffix
from eqforge.schemas.records.frames import Clip, StoredImage
from eqforge.transforms.dataset.media import MediaStore
from eqforge.transforms.dataset.plan import read_plan
from eqforge.transforms.generated.diffuse import DRAWINGS_STAGE
from eqforge.transforms.generated.draw_work import seed_of
from eqforge.transforms.generated.pairs import MOST_SEEDS
from eqforge.transforms.generated.render import RENDERS_STAGE, PlannedPair
from eqforge.transforms.generated.work import MadePair
from eqforge.transforms.video.clip_work import Extraction

Row = dict[str, Any]
T = TypeVar("T")
Image = TypeVar("Image", bound=StoredImage)

_MAKING: Final = (DRAWINGS_STAGE.name, RENDERS_STAGE.name)
_UNMADE: Final = ("error:", "safety_checker")
"""Prefixes of reasons for pairs without images."""

_LIST: Final = "; to list the rejects, omit --sheet"


def read_rejects(dataset: Dataset, reason: str) -> list[Row]:
    found = [row for row in dataset.rows("rejects") if row["reason"] == reason]
    if not found:
        stages = dataset.manifest.stages.values()
        reasons = sorted({reason for stage in stages for reason in stage.reasons})
        there = (
            f"; its reasons are {', '.join(reasons)}" if reasons else "; the dataset has no rejects"
        )
        hint = nearest(reason, reasons) or there
        raise InputError(
            f"--rejects {reason}: {dataset.folder} has no rejects with this reason{hint}"
        )
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class _Pair:
    """A planned pair: the ids of its images, their captions, and objects if known."""

    names: tuple[str, str]
    captions: tuple[str, str]
    objects: tuple[Any, Any] = ((), ())


class StoredRejects:
    """The images of rejects that are left in the work folder of a dataset.

    Videos leave extracted frames, drawn and rendered pairs their images; other datasets leave none.
    Ids or suffixes that might lead elsewhere raise an InputError.
    """

    def __init__(self, dataset: Dataset) -> None:
        work = storage.join(dataset.folder, WORK)
        # The plan of this dataset; the folder may hold others.
        folder = storage.join(work, "plan", plan_name(dataset.manifest))
        plan = [storage.join(folder, file) for file in storage.list_files(folder)]
        self._dataset, self._work = dataset, work
        self._media = MediaStore(storage.join(work, "media"))
        self._images: dict[str, StoredImage] = {}
        self._pairs: dict[str, _Pair] = {}
        for extraction in _done(work, "extract", Extraction):
            for frame in _checked(work, extraction.stored):
                self._images[frame.frame_id] = frame
        with contextlib.suppress(msgspec.DecodeError):  # the plan of another kind of dataset
            for clip in read_plan(Clip, plan):
                for pair in clip.pairs:
                    names, captions = (
                        (pair.frame_0_id, pair.frame_1_id),
                        (pair.caption_0, pair.caption_1),
                    )
                    self._pairs[pair.sample_id] = _Pair(names=names, captions=captions)
        for name, captions, made_pair in _generated_pairs(work, plan, dataset):
            names = f"{name}/0", f"{name}/1"
            self._images |= dict(zip(names, made_pair.images, strict=True))
            self._pairs[name] = _Pair(names=names, captions=captions, objects=made_pair.objects)

    def panes(self, row: Mapping[str, Any]) -> list[Pane]:
        """Return the images of a reject with their captions; none unless all are stored."""
        pair = self._pairs.get(row["candidate_id"])
        images = self._stored(row)
        if pair is None:
            return [Pane(name="image", image_id=image.image_id) for image in images]
        shown: Row = {"sample_id": row["candidate_id"]}
        for side, image in enumerate(images):
            shown[f"image_{side}_id"] = image.image_id
            shown[f"caption_{side}"] = pair.captions[side]
            shown[f"objects_{side}"] = msgspec.to_builtins(pair.objects[side])
        return list(of_pair(shown).panes) if images else []

    def stored(self, rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, Stored]]:
        for image in self._each(rows):
            width, height = image.width_px, image.height_px
            yield image.image_id, Stored(suffix=image.suffix, width_px=width, height_px=height)

    def pictures(self, rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, bytes]]:
        for image in self._each(rows):
            yield image.image_id, self._media.get(image.image_id, image.suffix)

    def _each(self, rows: Iterable[Mapping[str, Any]]) -> Iterator[StoredImage]:
        images = (image for row in rows for image in self._stored(row))
        yield from more_itertools.unique_everseen(images, key=lambda image: image.image_id)

    def _stored(self, row: Mapping[str, Any]) -> list[StoredImage]:
        if row["stage"] in _MAKING and row["reason"].startswith(_UNMADE):
            return []
        pair = self._pairs.get(row["candidate_id"])
        names = (row["candidate_id"],) if pair is None else pair.names
        found = [self._images[name] for name in names if name in self._images]
        there = all(self._media.exists(image.image_id, image.suffix) for image in found)
        return found if len(found) == len(names) and there else []

    def items(self, rejects: Sequence[Row], whys: Whys) -> list[Item]:
        items = [
            Item(id=row["candidate_id"], panes=tuple(panes), texts=(plain(whys.why_of(row)),))
            for row in rejects
            if (panes := self.panes(row))
        ]
        if not items:
            raise InputError(f"{self._dataset.folder}: {self._why_none(rejects)}")
        return items

    def _why_none(self, rejects: Sequence[Row]) -> str:
        if not rejects:
            return "--rows selects no rejects to draw; raise --rows"
        if not storage.list_names(self._work):
            return (
                f"the images of rejected candidates no longer exist, because the folder {WORK} "
                f"is missing{_LIST}"
            )
        if not self._pairs and not self._images:
            return (
                "eqforge keeps the images of rejected candidates only for datasets from "
                f"videos, drawings or renderings{_LIST}"
            )
        reasons = series(sorted({row["reason"] for row in rejects}), "or")
        return f"eqforge stored no images for rejects with the reason {reasons}{_LIST}"


def _generated_pairs(
    work: str, plan: Sequence[str], dataset: Dataset
) -> Iterator[tuple[str, tuple[str, str], MadePair]]:
    """Yield the id, the captions and the images of each drawn or rendered pair.

    Seeds identify images. If the folder holds different images of a seed, made with other settings,
    none of them are yielded.
    """
    pairs: dict[int, MadePair | None] = {}
    for step in ("draw", "render"):
        for each in _done(work, step, MadePair):
            _checked(work, each.images)
            known = pairs.setdefault(each.generation.seed, each)
            if known is not None and known.images != each.images:
                pairs[each.generation.seed] = None
    settings = dataset.manifest.config.get("settings")
    ranking = settings.get("ranking") if isinstance(settings, dict) else None
    count = ranking.get("seeds") if isinstance(ranking, dict) else None
    seeds = min(count, MOST_SEEDS) if isinstance(count, int) else 1
    for name, captions, seed in _requests(plan, seeds) if pairs else ():
        if (found := pairs.get(seed)) is not None:
            yield name, captions, found


def _requests(plan: Sequence[str], seeds: int) -> Iterator[tuple[str, tuple[str, str], int]]:
    with contextlib.suppress(msgspec.DecodeError):  # the plan of another kind of dataset
        for prompts in read_plan(PromptPair, plan):
            name, captions, seed = prompts.sample_id, prompts.captions, prompts.seed
            yield name, captions, seed
            for number in range(seeds if seeds > 1 else 0):
                yield f"{name}/seed-{number}", captions, seed_of(seed, number)
    with contextlib.suppress(msgspec.DecodeError):
        for planned in read_plan(PlannedPair, plan):
            if (scenes := planned.pair) is not None:
                yield scenes.sample_id, scenes.captions, scenes.scenes[0].seed


def _done(work: str, step: str, kind: type[T]) -> Iterator[T]:
    root = storage.join(work, "done", step)
    for name in storage.list_names(root):
        folder = storage.join(root, name)
        for file in storage.list_files(folder):
            with contextlib.suppress(msgspec.DecodeError, FileNotFoundError):
                yield msgspec.json.decode(storage.read_bytes(storage.join(folder, file)), type=kind)


def _checked(work: str, images: Sequence[Image]) -> Sequence[Image]:
    """Check ids and suffixes of stored images, which become file names."""
    for image in images:
        check_picture_id(image.image_id, work)
        check_suffix(image.suffix, work)
    return images

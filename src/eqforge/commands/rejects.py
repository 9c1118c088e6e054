"""The rejects of a dataset by reason, with the pictures that the build has stored of them."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from eqforge.evaluation.report.differing import differing_words
from eqforge.evaluation.report.items import Item, Pane, marked, plain
from eqforge.evaluation.report.pictures import Stored
from eqforge.evaluation.report.rejects import Whys
from eqforge.schemas.dataset.manifest import WORK
from eqforge.schemas.dataset.picture_names import check_picture_id, check_suffix
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.errors import InputError
from eqforge.schemas.io import storage
from eqforge.schemas.records.clips import Clip, PairCandidate
from eqforge.schemas.records.frames import StoredFrame
from eqforge.schemas.visible import nearest
from eqforge.transforms.dataset.media import MediaStore
from eqforge.transforms.dataset.plan import read_plan
from eqforge.transforms.video.clip_work import Extraction

Row = dict[str, Any]

_LIST: Final = "; without --sheet they are listed"


def read_rejects(dataset: Dataset, reason: str) -> list[Row]:
    """Returns the rejects with a reason, in the order of the dataset.

    Raises:
      InputError: the dataset has none; the message names its reasons.
    """
    found = [row for row in dataset.rows("rejects") if row["reason"] == reason]
    if not found:
        books = dataset.manifest.stages.values()
        reasons = sorted({reason for stage in books for reason in stage.reasons})
        there = f"; it has {', '.join(reasons)}" if reasons else "; it has no rejects at all"
        hint = nearest(reason, reasons) or there
        raise InputError(f"--rejects {reason}: {dataset.folder} has no such reject{hint}")
    return found


class StoredRejects:
    """The pictures of rejects that are left in the work folder of a dataset made of videos.

    Args:
      dataset: the dataset, with its work folder.

    Raises:
      InputError: a picture there has an id or a suffix that is none, and might lie elsewhere.
    """

    def __init__(self, dataset: Dataset) -> None:
        work = storage.join(dataset.folder, WORK)
        self._dataset, self._work = dataset, work
        self._media = MediaStore(storage.join(work, "media"))
        self._frames = {frame.frame_id: frame for frame in _stored_frames(work)}
        self._pairs = {pair.sample_id: pair for pair in _planned_pairs(work)}

    def panes(self, row: Mapping[str, Any]) -> list[Pane]:
        """Returns the pictures of a reject with their captions; none unless all are stored."""
        pair = self._pairs.get(row["candidate_id"])
        frames = self._stored(row)
        if pair is None:
            return [Pane(name="frame", image_id=frame.image_id) for frame in frames]
        captions = pair.caption_0, pair.caption_1
        spans = differing_words(*captions)
        return [
            Pane(
                name=f"image {side}",
                image_id=frame.image_id,
                texts=(marked(captions[side], spans[side]),),
            )
            for side, frame in enumerate(frames)
        ]

    def stored(self, rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, Stored]]:
        """Yields the pictures of rejects by their ids, without their bytes, each once."""
        for frame in self._each(rows):
            yield (
                frame.image_id,
                Stored(
                    suffix=frame.suffix,
                    width_px=frame.width_px,
                    height_px=frame.height_px,
                    num_bytes=frame.num_bytes,
                ),
            )

    def pictures(self, rows: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, bytes]]:
        """Yields the ids and bytes of the pictures of rejects, each once."""
        for frame in self._each(rows):
            yield frame.image_id, self._media.get(frame.image_id, frame.suffix)

    def read(self, rows: Iterable[Mapping[str, Any]]) -> dict[str, bytes]:
        """Returns the pictures of rejects by their ids."""
        return dict(self.pictures(rows))

    def _each(self, rows: Iterable[Mapping[str, Any]]) -> Iterator[StoredFrame]:
        """Yields the frames of rejects, each picture once."""
        done = set()
        for row in rows:
            for frame in self._stored(row):
                if frame.image_id not in done:
                    done.add(frame.image_id)
                    yield frame

    def _stored(self, row: Mapping[str, Any]) -> list[StoredFrame]:
        """Returns the frames of a reject; none unless all are stored."""
        names = _frame_ids(row, self._pairs.get(row["candidate_id"]))
        found = [self._frames[name] for name in names if name in self._frames]
        there = all(self._media.exists(frame.image_id, frame.suffix) for frame in found)
        return found if len(found) == len(names) and there else []

    def items(self, rejects: Sequence[Row], whys: Whys) -> list[Item]:
        """Returns what is drawn of the rejects whose pictures are stored.

        Raises:
          InputError: none is; the message says why.
        """
        items = [
            Item(id=row["candidate_id"], panes=tuple(panes), texts=(plain(whys.why_of(row)),))
            for row in rejects
            if (panes := self.panes(row))
        ]
        if not items:
            raise InputError(f"{self._dataset.folder}: {self._why_none(rejects)}")
        return items

    def _why_none(self, rejects: Sequence[Row]) -> str:
        """Returns why there is no picture of any of some rejects."""
        if not rejects:
            return "no rejects to draw; --rows asks for some"
        if not storage.list_names(self._work):
            return f"the build left no folder {WORK}, where the pictures of rejects lie{_LIST}"
        if not self._pairs and not self._frames:
            return f"pictures of rejects are kept where a dataset is made of videos{_LIST}"
        reasons = ", ".join(sorted({row["reason"] for row in rejects}))
        return f"nothing to draw of {reasons}: no frame of these was taken from a video{_LIST}"


def _frame_ids(row: Mapping[str, Any], pair: PairCandidate | None) -> tuple[str, ...]:
    return (row["candidate_id"],) if pair is None else (pair.frame_0_id, pair.frame_1_id)


def _stored_frames(work: str) -> Iterator[StoredFrame]:
    for url in _files(storage.join(work, "done", "extract")):
        with contextlib.suppress(msgspec.DecodeError, FileNotFoundError):
            for frame in msgspec.json.decode(storage.read_bytes(url), type=Extraction).stored:
                check_picture_id(frame.image_id, work)
                check_suffix(frame.suffix, work)
                yield frame


def _planned_pairs(work: str) -> Iterator[PairCandidate]:
    with contextlib.suppress(msgspec.DecodeError):  # the plan of another kind of dataset
        for clip in read_plan(Clip, _files(storage.join(work, "plan"))):
            yield from clip.pairs


def _files(folder: str) -> Iterator[str]:
    """Yields the files in the folders of a folder."""
    for name in storage.list_names(folder):
        inner = storage.join(folder, name)
        yield from (storage.join(inner, file) for file in storage.list_files(inner))

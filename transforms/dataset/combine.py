"""Plans which rows of finished datasets a combined dataset takes, and writes it.

The plan reads every sample once and keeps a few dozen bytes of it. So it finds equal samples, and
ids that two parts use for different samples, before anything is written.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.core.identity import sample_rank
from eqforge.core.visible import counted
from eqforge.schemas.dataset.compare import digests
from eqforge.schemas.tables.benchmark_rows import PAIRS_NAME
from eqforge.schemas.tables.datasets import dataset_type
from eqforge.schemas.tables.pairs import ImageRow
from eqforge.transforms.dataset.part_pictures import Part
from eqforge.transforms.dataset.parts import CombineRules, Piece, read_group
from eqforge.transforms.dataset.plan import Selection, is_wanted, no_sample

Flags = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Group:
    """A row group of a part's samples, at [start, stop) of the scan."""

    part: int
    path: str
    number: int
    start: int
    stop: int


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Scan:
    """The samples of all parts, in order.

    Attributes:
      keys, rows: digests of the samples' ids and of their whole content [n].
      ranks: the order in which samples are drawn [n].
      images: digests of image ids [n, images]; the digest of None where there is no image.
    """

    groups: tuple[_Group, ...]
    keys: NDArray[np.bytes_]
    rows: NDArray[np.bytes_]
    ranks: NDArray[np.uint64]
    subsets: NDArray[np.int32]
    images: NDArray[np.bytes_]
    wanted: Flags


def plan_pieces(
    rules: CombineRules, selection: Selection, dropped: Collection[str] = ()
) -> Iterator[Piece]:
    """Yield the rows to take from each part.

    Args:
      selection: `limit` and `sample` apply to each subset, and keep the samples of lowest rank.
      dropped: ids of samples that errata drop later; images that only these show are left out.
    """
    scan = _scan(rules, selection.only)
    doubles = _doubles(scan, rules)
    chosen = _select(scan, doubles, selection)
    shown = chosen & ~doubles & ~np.isin(scan.keys, digests(sorted(dropped)))
    for number in range(len(rules.parts)):
        yield Piece(part=number, table="")
    for group in scan.groups:
        yield from _samples(group, chosen, doubles)
    for number, part in enumerate(rules.parts):
        is_own = np.zeros(len(scan.keys), dtype=bool)
        for group in scan.groups:
            is_own[group.start : group.stop] = group.part == number
        wanted = scan.keys[chosen & ~doubles & is_own]
        yield from _rows_with(number, part, "judgements", "sample_id", wanted)
        yield from _images(number, part, scan.images[shown & is_own])
        yield from _whole(number, part, "rejects")


def _scan(rules: CombineRules, only: tuple[str, ...]) -> _Scan:
    groups: list[_Group] = []
    keys, rows, ranks, subsets, images, wanted = [], [], [], [], [], []
    numbers: dict[tuple[str, str], int] = {}
    seen: list[str] = []
    references = dataset_type(rules.kind).table("samples").references
    columns = [column for column, table in references.items() if table == "images"]
    for part, path, group in _groups(rules.parts, "samples"):
        dataset = rules.parts[part].open()
        found = list(read_group(dataset, rules.kind, "samples", path, group))
        start = groups[-1].stop if groups else 0
        stop = start + len(found)
        groups.append(_Group(part=part, path=path, number=group, start=start, stop=stop))
        names = [record.sample_id for record in found]
        keys.append(digests(names))
        rows.append(digests(map(msgspec.json.encode, found)))
        ranks.append(np.array([sample_rank(name) for name in names], dtype=np.uint64))
        label = rules.parts[part].label
        kinds = [(label, record.kind if rules.kind == PAIRS_NAME else "") for record in found]
        subsets.append(np.array([numbers.setdefault(k, len(numbers)) for k in kinds], np.int32))
        ids = [[getattr(record, column) for record in found] for column in columns]
        images.append(np.stack([digests(each) for each in ids], axis=1))
        wanted.append(np.array([is_wanted(name, only) for name in names], dtype=bool))
        seen += names if only else ()
    if not groups:
        raise InputError("the datasets to combine contain no samples")
    missing = [name for name in only if not any(is_wanted(each, (name,)) for each in seen)]
    if missing:
        raise InputError(no_sample(min(missing), seen))
    return _Scan(
        groups=tuple(groups),
        keys=np.concatenate(keys),
        rows=np.concatenate(rows),
        ranks=np.concatenate(ranks),
        subsets=np.concatenate(subsets),
        images=np.concatenate(images),
        wanted=np.concatenate(wanted),
    )


def _groups(parts: Sequence[Part], table: str) -> Iterator[tuple[int, str, int]]:
    for number, part in enumerate(parts):
        dataset = part.open()
        for file in dataset.files(table):
            with dataset.open_file(file.path) as opened:
                rows = opened.group_rows
            yield from ((number, file.path, group) for group, count in enumerate(rows) if count)


def _doubles(scan: _Scan, rules: CombineRules) -> Flags:
    """Flag the samples that an earlier part has as well [n]."""
    order = np.argsort(scan.keys, kind="stable")  # of equal ones, that of the first part is first
    again = scan.keys[order[1:]] == scan.keys[order[:-1]]
    differs = again & (scan.rows[order[1:]] != scan.rows[order[:-1]])
    if differs.any():
        place = int(np.flatnonzero(differs)[0])
        both = [_sample_at(scan, rules, int(order[n])) for n in (place, place + 1)]
        (name, one), (_, other) = both
        if one == other:
            raise InputError(
                f"{one}: two samples have the id {name}; run eqforge verify for details"
            )
        raise InputError(
            f"{one} and {other} have {counted(int(differs.sum()), 'samples')} with the same id but "
            f"different contents; the first is {name}. To compare them, run eqforge diff {one} "
            f"{other}"
        )
    doubles = np.zeros(len(scan.keys), dtype=bool)
    doubles[order[1:][again]] = True
    return doubles


def _sample_at(scan: _Scan, rules: CombineRules, place: int) -> tuple[str, str]:
    group = next(each for each in scan.groups if each.start <= place < each.stop)
    dataset, rows = rules.parts[group.part].open(), (place - group.start,)
    (found,) = read_group(dataset, rules.kind, "samples", group.path, group.number, rows)
    return found.sample_id, dataset.folder


def _select(scan: _Scan, doubles: Flags, selection: Selection) -> Flags:
    """Flag the selected samples [n]; equal samples are all selected or all left out."""
    chosen = scan.wanted.copy()
    if selection.sample < 1:
        chosen &= scan.ranks.astype(object) < selection.sample * 2**64
    if selection.limit is not None:
        once = np.flatnonzero(chosen & ~doubles)
        once = once[np.lexsort((scan.keys[once], scan.ranks[once]))]
        kept = np.zeros(0, dtype=scan.keys.dtype)
        for subset in np.unique(scan.subsets[once]):
            first = once[scan.subsets[once] == subset][: selection.limit]
            kept = np.concatenate([kept, scan.keys[first]])
        chosen &= np.isin(scan.keys, kept)
    return chosen


def _samples(group: _Group, chosen: Flags, doubles: Flags) -> Iterator[Piece]:
    wanted, again = chosen[group.start : group.stop], doubles[group.start : group.stop]
    kept, double = np.flatnonzero(wanted & ~again), np.flatnonzero(wanted & again)
    if len(kept) or len(double):
        is_whole = len(kept) == group.stop - group.start
        yield Piece(
            part=group.part,
            table="samples",
            path=group.path,
            group=group.number,
            size=len(kept),
            rows=None if is_whole else tuple(kept.tolist()),
            duplicates=tuple(double.tolist()),
        )


def _images(number: int, part: Part, shown: NDArray[np.bytes_]) -> Iterator[Piece]:
    wanted, num_found = np.setdiff1d(shown.ravel(), digests([None])), 0
    for piece in _rows_with(number, part, "images", "image_id", wanted):
        num_found += piece.size
        yield piece
    if num_found != len(wanted):
        raise InputError(
            f"{part.folder} lacks {len(wanted) - num_found:,} of the {len(wanted):,} images that "
            "its samples use; run eqforge verify to list the missing images"
        )


def _rows_with(
    number: int, part: Part, table: str, column: str, wanted: NDArray[np.bytes_]
) -> Iterator[Piece]:
    dataset = part.open()
    for _, path, place in _groups([part], table):
        for group in dataset.groups(path, [column], [place]):
            ids = digests(group.column(column).to_pylist())
            found = np.flatnonzero(np.isin(ids, wanted))
            if len(found):
                rows = None if len(found) == len(ids) else tuple(found.tolist())
                yield Piece(
                    part=number, table=table, path=path, group=place, size=len(found), rows=rows
                )


def _whole(number: int, part: Part, table: str) -> Iterator[Piece]:
    dataset = part.open()
    for _, path, group in _groups([part], table):
        with dataset.open_file(path) as opened:
            size = opened.group_rows[group]
        yield Piece(part=number, table=table, path=path, group=group, size=size)


def merge_images(image_id: str, rows: Iterable[ImageRow]) -> ImageRow:
    del image_id
    first, *others = sorted(set(rows), key=msgspec.json.encode)
    if not others:
        return first
    scores = {score for row in (first, *others) for score in row.scores}
    return replace(first, scores=tuple(sorted(scores, key=msgspec.json.encode)))

"""Writes the measures of pairs of frames of a folder of clips, and sheets of them to look at.

    python -m tools.video_pairs FOLDER OUTPUT --frames 6 --seed 1

takes frames from all over each clip, by a hash of its name and the seed, and writes their pairs
(`--gaps 1 2` adds pairs 1 s and 2 s apart): OUTPUT/pairs.csv with every measure of `eq-video`, and
OUTPUT/sheet-NNN.png with the pairs in the order of another hash. The number under a pair is its
line in the table, from 1.
"""

import argparse
import csv
import functools
import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import av
import numpy as np
import numpy.typing as npt
from more_itertools import chunked
from PIL import Image, ImageDraw

from eqforge.core.identity import sha256_hex
from eqforge.schemas.records.frames import VIDEO_SUFFIXES, FrameSettings
from eqforge.transforms.filters import cuts, minimality, registration
from eqforge.transforms.video.frames.answers import DecodedFrame
from eqforge.transforms.video.frames.decode import decode_frames

THUMBNAIL: Final = (232, 174)
COLUMNS, ROWS = 3, 8
Pixels = npt.NDArray[np.uint8]
Times = tuple[float, float]


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two frames of a clip, and what was measured on them."""

    clip: str
    times_s: tuple[float, float]
    frames: tuple[Pixels, Pixels]
    measures: dict[str, Any]

    @property
    def half(self) -> str:
        """Return the half of the clip: limits are chosen on one and judged on the other."""
        return "judge" if int(sha256_hex(self.clip.encode()), 16) % 2 else "choose"

    def row(self) -> dict[str, Any]:
        """Return the pair's line of the table."""
        first, second = (round(time_s, 3) for time_s in self.times_s)
        where = {"clip": self.clip, "half": self.half, "first_s": first, "second_s": second}
        return where | self.measures


def length_of(path: Path) -> float:
    with av.open(str(path)) as container:
        return (container.duration or 0) / 1_000_000


def drawn_times(path: Path, number: int, gaps_s: Sequence[float], seed: int) -> list[Times]:
    """Return the times of pairs: of all pairs of frames from all over a clip, then of near frames.

    A clip's parts of equal length each give a time, by hash. For each gap, two more times are the
    first of a pair.
    """
    length_s = length_of(path)
    digest = sha256_hex(f"{seed}/{path.name}".encode())
    places = [int(digest[4 * n : 4 * n + 4], 16) / 65536 for n in range(16)]
    spread = [length_s * (n + place) / number for n, place in enumerate(places[:number])]
    fitting = [gap for gap in gaps_s for _ in range(2) if gap < length_s]
    starts = itertools.cycle(reversed(places))
    near = [((length_s - gap) * place, gap) for gap, place in zip(fitting, starts, strict=False)]
    return [*itertools.combinations(spread, 2), *((start, start + gap) for start, gap in near)]


def listed_times(table: Path) -> dict[str, list[Times]]:
    """Return the times of the pairs of a table, by clip: 1 ms after the stored, rounded ones."""
    times: dict[str, list[Times]] = {}
    with open(table, newline="") as file:
        for row in csv.DictReader(file):
            first, second = (float(row[name]) + 0.001 for name in ("first_s", "second_s"))
            times.setdefault(row["clip"], []).append((first, second))
    return times


def pairs_of(path: Path, times: Sequence[Times]) -> Iterator[Pair]:
    """Yield the pairs of distinct frames of a clip, measured as `eq-video` does."""
    wanted = sorted({time_s for pair in times for time_s in pair})
    frames = {
        wanted[answer.request]: answer
        for answer in decode_frames(str(path), wanted, FrameSettings())
        if isinstance(answer, DecodedFrame)
    }

    @functools.cache
    def views(time_s: float) -> tuple[minimality.PairView, cuts.CutView, Pixels]:
        pixels = frames[time_s].pixels
        return minimality.view(pixels), cuts.cut_view(pixels), registration.view(pixels)

    shown: set[tuple[int, int]] = set()
    for first, second in times:
        if not {first, second} <= frames.keys():
            continue
        ends = (frames[first].pts, frames[second].pts)
        if ends[0] >= ends[1] or ends in shown:
            continue
        shown.add(ends)
        (pair_0, cut_0, seen_0), (pair_1, cut_1, seen_1) = views(first), views(second)
        scores = [
            *cuts.score_cut(cut_0, cut_1),
            *registration.score_registered(seen_0, seen_1, cut_0, cut_1),
        ]
        yield Pair(
            clip=path.name,
            times_s=(frames[first].timestamp_s, frames[second].timestamp_s),
            frames=(thumbnail(frames[first].pixels), thumbnail(frames[second].pixels)),
            measures=asdict(minimality.measure_pair(pair_0, pair_1))
            | {score.name: score.value for score in scores},
        )


def thumbnail(pixels: Pixels) -> Pixels:
    image = Image.fromarray(pixels)
    image.thumbnail(THUMBNAIL)
    return np.asarray(image)


def sheets(pairs: Sequence[Pair], seed: int) -> Iterator[Image.Image]:
    """Yield pictures of pairs, first and second side by side, in an order of their own."""
    numbered = sorted(
        enumerate(pairs, start=1), key=lambda each: sha256_hex(f"{seed}-{each[0]}".encode())
    )
    width, height = 2 * THUMBNAIL[0] + 10, THUMBNAIL[1] + 18
    for some in chunked(numbered, COLUMNS * ROWS):
        sheet = Image.new("RGB", (COLUMNS * width, ROWS * height), "white")
        for place, (number, pair) in enumerate(some):
            left, top = place % COLUMNS * width, place // COLUMNS * height
            for side, pixels in enumerate(pair.frames):
                sheet.paste(Image.fromarray(pixels), (left + side * (THUMBNAIL[0] + 2), top))
            ImageDraw.Draw(sheet).text((left + 4, top + THUMBNAIL[1] + 2), str(number), "black")
        yield sheet


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the table and the sheets."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="clips, also in folders below")
    parser.add_argument("output", type=Path, help="where the table and the sheets go")
    parser.add_argument("--frames", type=int, default=6, help="frames of each clip")
    parser.add_argument("--gaps", type=float, nargs="*", default=(), help="pairs this near, in s")
    parser.add_argument("--pairs", type=Path, help="a table whose pairs to measure instead")
    parser.add_argument("--seed", type=int, default=1, help="which frames, in which order")
    parser.add_argument("--order", type=int, default=1, help="another order of the sheets")
    options = parser.parse_args(arguments)
    clips = [path for path in options.folder.rglob("*") if path.suffix.lower() in VIDEO_SUFFIXES]
    listed = listed_times(options.pairs) if options.pairs else None
    pairs: list[Pair] = []
    for path in sorted(clips):
        try:
            if listed is None:
                times = drawn_times(path, options.frames, options.gaps, options.seed)
            else:
                times = listed.get(path.name, [])
            pairs += pairs_of(path, times)
        except av.error.FFmpegError as error:
            print(f"{path}: {error}", file=sys.stderr)
    if not pairs:
        print(f"{options.folder}: no clip with two frames", file=sys.stderr)
        return 1
    options.output.mkdir(parents=True, exist_ok=True)
    with open(options.output / "pairs.csv", "w", newline="") as file:
        table = csv.DictWriter(file, ["number", *pairs[0].row()])
        table.writeheader()
        table.writerows({"number": n} | pair.row() for n, pair in enumerate(pairs, start=1))
    for n, sheet in enumerate(sheets(pairs, options.order)):
        sheet.save(options.output / f"sheet-{n:03}.png")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

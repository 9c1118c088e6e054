"""What is fuzzed of people's own captions: every form of files, and Hugging Face's folders."""

import functools
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from eqforge.generators.text.caption_lint import CaptionSettings
from eqforge.schemas.records.frames import Clip
from eqforge.sources.caption_sources import read_captions
from eqforge.sources.text_pairs import read_text_pairs
from eqforge.sources.video_captions import read_captioned_videos
from eqforge.transforms.text.image_texts import ImageTexts, TextsBatch
from eqforge.transforms.text.work import CaptionBatch
from eqforge.transforms.video.segments import propose_segment_pairs
from tests.fuzz import mutate
from tests.fuzz.takes import Outcome, file_of, planned

LIMITS = CaptionSettings()
_MOMENTS: list[dict[str, Any]] = [
    {"video": "k/a.mp4", "start_s": 2.0, "end_s": 5.5, "caption": "cut the onion", "split": "val"},
    {"video": "k/a.mp4", "timestamp_s": 9.25, "caption": "fry it", "id": "fry", "split": "val"},
    {"video": "b.mp4", "timestamp_s": 1.0, "caption": "eat it", "licence": "CC0", "take": [1, 2]},
]
_TIMES: list[dict[str, Any]] = [
    {"video": "b.mp4", "start_s": "0:01.5", "end_s": "00:00:03", "caption": "wash it"},
    {"video": "b.mp4", "timestamp_s": "0:04", "caption": "turn it"},
    {"video": "c.mp4", "frame": 240, "caption": "dry it"},
]
_CAPTIONS: list[dict[str, Any]] = [
    {"image": {"bytes": b"no picture", "path": "1.jpg"}, "text": ["two dogs", "a dog"], "id": 3},
    {"image": {"bytes": None, "path": "2.jpg"}, "text": ["a cat"], "id": 4},
]
_PAIRS: list[dict[str, Any]] = [
    {"image_path": "1.jpg", "true_caption": "a", "false_caption": "b", "bbox_x": 1, "bbox_y": 2}
    | {"bbox_w": 3, "bbox_h": 4, "relation_name": "on"},
    {"image_path": "2.jpg", "true_caption": "c", "false_caption": "d"},
]
_TABLE = (
    b"video,start_s,end_s,timestamp_s,caption,take\n"
    b'k/a.mp4,2,5.5,,"cut, ""finely""",3\nk/a.mp4,,,9.25,fry it,\n'
)
_TABS = b"video\ttimestamp_s\tcaption\ttake\nk/a.mp4\t2\tcut it\t3\nk/a.mp4\t9.25\tfry it\t\n"
_SRT = (
    b"1\n00:00:01,000 --> 00:00:02,500\n<b>cut</b> the\nonion\n\n"
    b"2\n00:01:09,250 --> 01:00:10,500\nfry it\n"
)
_VTT = (
    b"WEBVTT - mine\n\nNOTE x\n\n00:01.000 --> 00:02.000 align:start\n<v Al>R&amp;B\n\n"
    b"00:05.000 --> 00:06.000\nfry it\n"
)
_TXT = b"0:01 cut the onion\n00:00:01.5 - 0:04 fry it\n[0:05 --> 0:06] wash it\n"
_FRAMES = b"frame 12 wash it\nframes 240-300 dry it\n"
_METADATA = b"file_name,text,split\n1.jpg,two dogs,test\nsub/2.jpg,a cat,val\n"
_OWN: list[dict[str, Any]] = [
    {"id": 391895, "image": "1.jpg", "caption": ["two dogs", "dogs"], "source": "Ann"},
    {"id": "7", "text": "a cat", "split": "val", "file_name": "2.jpg"},
    {"caption": "a cow"},
]
_OWN_TABLE = b"cap_id,image,caption,id\nc1,1.jpg,two dogs,7\nc2,,a cat,\n"
_STATE = {
    "_data_files": [{"filename": "data-00000-of-00001.arrow"}],
    "_fingerprint": "9f699d7f1b1334be",
    "_indices_data_files": None,
    "_split": "train",
}
_SHARD = "data/train-00000-of-00001.parquet"
_ARROW = "data-00000-of-00001.arrow"

Take = Callable[[bytes, Path], Outcome]


def _moments(path: Path) -> Outcome:
    videos = read_captioned_videos(path, 1.0)
    return planned((propose_segment_pairs("d", video, LIMITS) for video in videos), Clip)


def _captions(path: Path) -> Outcome:
    records = read_captions(path)
    return planned((CaptionBatch(captions=(record,)) for record in records), CaptionBatch)


def _pairs(path: Path) -> Outcome:
    pairs = read_text_pairs(path)
    batches = (TextsBatch(images=(ImageTexts(image=p.image, pairs=(p,)),)) for p in pairs)
    return planned(batches, TextsBatch)


def _own(name: str, data: bytes, folder: Path) -> Outcome:
    return _captions(file_of(data, folder, name))


def _alone(name: str, data: bytes, folder: Path) -> Outcome:
    return _moments(file_of(data, folder, name))


def _below(read: Callable[[Path], Outcome], name: str, data: bytes, folder: Path) -> Outcome:
    """Reads the folder of a file that is one of its kind."""
    there = folder / "own"
    if name == _ARROW:
        file_of(json.dumps(_STATE).encode(), there, "state.json")
    if name == "state.json":
        file_of(_arrow(_MOMENTS), there, _ARROW)
    file_of(data, there, name)
    return read(there)


def _arrow(rows: list[dict[str, Any]]) -> bytes:
    table, stream = pa.Table.from_pylist(_even(rows)), io.BytesIO()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    return stream.getvalue()


def _parquet(rows: list[dict[str, Any]]) -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(_even(rows)), stream)
    return stream.getvalue()


def _even(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Gives all rows the same columns, as Arrow goes by the first."""
    names = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name) for name in names} for row in rows]


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


CAPTION_TARGETS: dict[str, tuple[Take, tuple[bytes, ...], mutate.Mutator]] = {
    **{
        f"moments-{form}": (functools.partial(_alone, f"talk.{form}"), (seed,), way)
        for form, seed, way in (
            ("csv", _TABLE, mutate.damage),
            (
                "tsv",
                _TABLE.replace(b'"cut, ""finely"""', b"cut").replace(b",", b"\t"),
                mutate.damage,
            ),
            ("json", _json(_MOMENTS + _TIMES), mutate.json_text),
            ("srt", _SRT, mutate.damage),
            ("vtt", _VTT, mutate.damage),
        )
    },
    **{
        f"own-captions-{form}": (functools.partial(_own, f"own.{form}"), (seed,), way)
        for form, seed, way in (
            ("csv", _OWN_TABLE, mutate.damage),
            ("tsv", _OWN_TABLE.replace(b",", b"\t"), mutate.damage),
            ("json", _json(_OWN), mutate.json_text),
        )
    },
    "moments-txt": (functools.partial(_alone, "talk.txt"), (_TXT, _FRAMES), mutate.damage),
    "moments-state": (
        functools.partial(_below, _moments, "state.json"),
        (_json(_STATE),),
        mutate.json_text,
    ),
    "captions-metadata": (
        functools.partial(_below, _captions, "metadata.csv"),
        (_METADATA,),
        mutate.damage,
    ),
    **{
        f"{what}-{form}": (functools.partial(_below, read, name), (write(rows),), mutate.damage)
        for what, read, rows in (
            ("moments", _moments, _MOMENTS),
            ("captions", _captions, _CAPTIONS),
            ("text-pairs", _pairs, _PAIRS),
        )
        for form, name, write in (("arrow", _ARROW, _arrow), ("parquet", _SHARD, _parquet))
    },
}

"""What is fuzzed: each reader of annotations, and the steps that get a user's images and captions.

A target takes the bytes of a file and does with them what a build does: it reads them, plans from
what it read, and takes the plan to JSON and back. Allowed are records, rejects and an InputError of
one short printable sentence; every other exception is a finding.
"""

import functools
import gzip
import io
import itertools
import json
import pickle
import shutil
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from PIL import Image

from eqforge.core.errors import InputError
from eqforge.core.files.checked import clipped
from eqforge.core.files.source_folder import SourceFolder
from eqforge.core.visible import visible
from eqforge.generators.scenes.assets import BadArchive, unpack_archive
from eqforge.generators.text.caption_lint import CaptionSettings
from eqforge.generators.text.lexicon import load_lexicon
from eqforge.generators.text.perturbations.record import PerturbationSettings
from eqforge.models.score_matrix import MatrixFiles, read_table
from eqforge.schemas.records.frames import Clip
from eqforge.schemas.tables.pairs import ImageRow
from eqforge.sources.action_genome import read_action_genome
from eqforge.sources.caption_sources import CaptionRecord, Source, read_captions
from eqforge.sources.captioned_videos import read_gebplus, read_youcook2
from eqforge.sources.text_pairs import read_text_pairs
from eqforge.sources.video_captions import read_captioned_videos
from eqforge.sources.vl_checklist import read_vl_checklist
from eqforge.transforms.dataset.failures import guarded
from eqforge.transforms.dataset.image_folder import ImageFolder
from eqforge.transforms.dataset.tables import BatchWork
from eqforge.transforms.text.caption_edits import EditRules
from eqforge.transforms.text.hard_positive_samples import HardPositiveRules
from eqforge.transforms.text.hard_positives import make_hard_positives
from eqforge.transforms.text.image_texts import FoilRecord, ImageTexts, TextsBatch
from eqforge.transforms.text.perturb import PerturbationRules, perturb_batch
from eqforge.transforms.text.work import CaptionBatch
from eqforge.transforms.video.boundaries import BoundaryRules, propose_boundary_pairs
from eqforge.transforms.video.scene_graphs import SceneGraphRules, propose_scene_graph_pairs
from eqforge.transforms.video.segments import propose_segment_pairs
from tests.fuzz import mutate
from tests.fuzz.benchmark_targets import BENCHMARK_TARGETS
from tests.fuzz.caption_targets import CAPTION_TARGETS
from tests.fuzz.harness_targets import HARNESS_TARGETS
from tests.fuzz.limits import refuse_without_memory
from tests.fuzz.review_targets import REVIEW_TARGETS
from tests.fuzz.score_targets import SCORE_TARGETS
from tests.fuzz.takes import Outcome, file_of, planned

LONGEST_MESSAGE = 1_000
LIMITS = CaptionSettings()
_NAMES = itertools.count()


@dataclass(frozen=True, kw_only=True)
class Target:
    """Something that takes a file.

    Attributes:
      take: gets the file's bytes and a folder to work in; tells whether records came of it.
      seeds: good files.
      mutate: makes a bad file of a good one.
    """

    take: Callable[[bytes, Path], Outcome]
    seeds: tuple[bytes, ...]
    mutate: mutate.Mutator


def outcome_of(target: Target, data: bytes, folder: Path) -> Outcome:
    """Returns what came of an input; whatever is not allowed is raised."""
    try:
        return target.take(data, folder)
    except InputError as error:
        refuse_without_memory(error)
        text = visible(str(error).replace(str(folder), ""))  # as the command line says it
        is_one_sentence = len(text) <= LONGEST_MESSAGE
        assert is_one_sentence, f"not one sentence: {text[:LONGEST_MESSAGE]!r}"
        return "refused"


def _youcook2(data: bytes, folder: Path) -> Outcome:
    videos = read_youcook2(file_of(data, folder, "youcook2.json"))
    return planned((propose_segment_pairs("d", video, LIMITS) for video in videos), Clip)


def _captioned_videos(data: bytes, folder: Path) -> Outcome:
    videos = read_captioned_videos(file_of(data, folder, "captions.jsonl"), 1.0)
    return planned((propose_segment_pairs("d", video, LIMITS) for video in videos), Clip)


_BOUNDARIES = BoundaryRules(
    dataset="d",
    split="val",
    action_words=("run",),
    with_subject=True,
    at_middle=False,
    captions=LIMITS,
)
_GRAPHS = SceneGraphRules(dataset="d", min_changed_relations=2, skip_frames=1, english=True)


def _gebplus(data: bytes, folder: Path) -> Outcome:
    videos = read_gebplus(file_of(data, folder, "val.json"))
    return planned((propose_boundary_pairs(video, _BOUNDARIES) for video in videos), Clip)


def _action_genome(
    folder: Path, objects: bytes, persons: bytes | None = None, frames: bytes | None = None
) -> Outcome:
    videos = read_action_genome(
        file_of(objects, folder, "objects.pkl"),
        None if persons is None else file_of(persons, folder, "persons.pkl"),
        None if frames is None else file_of(frames, folder, "frames.txt"),
    )
    return planned((propose_scene_graph_pairs(video, _GRAPHS) for video in videos), Clip)


def _captions(name: str, source: Source, data: bytes, folder: Path) -> Outcome:
    records = read_captions(file_of(data, folder, name), source)
    return planned((CaptionBatch(captions=(record,)) for record in records), CaptionBatch)


def _vl_checklist(data: bytes, folder: Path) -> Outcome:
    records = read_vl_checklist(file_of(data, folder, "color.json"))
    foils = (FoilRecord(kind="attribute", group="color", record=record) for record in records)
    batches = (TextsBatch(images=(ImageTexts(image=f.image, foils=(f,)),)) for f in foils)
    return planned(batches, TextsBatch)


def _text_pairs(name: str, data: bytes, folder: Path) -> Outcome:
    pairs = read_text_pairs(file_of(data, folder, name))
    batches = (TextsBatch(images=(ImageTexts(image=p.image, pairs=(p,)),)) for p in pairs)
    return planned(batches, TextsBatch)


def _scores(name: str, data: bytes, folder: Path) -> Outcome:
    table = None if name.endswith(".parquet") else file_of(b"a.jpg\nb.jpg\n", folder, "rows.txt")
    columns = None if table is None else file_of(b"a cat\na dog\na cow\n", folder, "columns.txt")
    read_table(MatrixFiles(scores=file_of(data, folder, name), rows=table, columns=columns))
    return "records"


def _image(data: bytes, folder: Path) -> Outcome:
    path = file_of(data, folder, f"{next(_NAMES)}.img")
    images = ImageFolder(SourceFolder(str(folder)), str(folder / "media"), max_pixels=2**20)
    try:
        found = guarded(lambda: images.find(path.name))
    finally:
        path.unlink()
    if isinstance(found, ImageRow):
        (folder / "media" / found.image_id[:2] / f"{found.image_id}{found.suffix}").unlink()
        assert found.width_px * found.height_px <= 2**20
        return "records"
    assert not found.reason.startswith("error:"), f"{found.reason}: {found.detail}"
    return "rejects"


@functools.cache
def _rules() -> tuple[PerturbationRules, HardPositiveRules]:
    lexicon = load_lexicon(None)
    perturbations = PerturbationRules(
        seed=0, spacy_model=None, perturbations=PerturbationSettings(), captions=LIMITS, images=None
    )
    reworded = HardPositiveRules(
        published=False,
        lexicon=lexicon,
        allow_weak=True,
        edits=EditRules(seed=0, lexicon=lexicon),
        images=None,
    )
    return perturbations, reworded


def _text_work(work: BatchWork) -> Outcome:
    for reject in work.rejects:
        assert not reject.reason.startswith("error:"), f"{reject.reason}: {reject.detail}"
    for tally in work.tallies:
        refused = sum(reject.stage == tally.stage for reject in work.rejects)
        assert tally.candidates == tally.kept + refused, (
            f"the counts of {tally.stage} do not add up"
        )
    msgspec.json.encode(work)
    return "records" if work.samples else "rejects"


def _record(data: bytes) -> CaptionRecord:
    text = data.decode("utf-8", "replace")
    return CaptionRecord(caption_id="c", image="a.jpg", caption=text)


def _perturbed(data: bytes, _: Path) -> Outcome:
    return _text_work(perturb_batch(CaptionBatch(captions=(_record(data),)), _rules()[0]))


def _reworded(data: bytes, _: Path) -> Outcome:
    texts = ImageTexts(image="a.jpg", captions=(_record(data),))
    return _text_work(make_hard_positives(TextsBatch(images=(texts,)), _rules()[1]))


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _json_rows(*values: Any) -> bytes:
    return b"\n".join(_json(value) for value in values)


def _pickles(value: Any) -> tuple[bytes, ...]:
    made = tuple(pickle.dumps(value, protocol) for protocol in (2, 3, 4, 5))
    mutate.GOOD_PICKLES.update(made)
    return made


def _step(number: int, sentence: str) -> dict[str, Any]:
    return {"segment": [9 * number, 9 * number + 5], "id": number, "sentence": sentence}


def _moment(number: int, annotator: str) -> dict[str, Any]:
    return {
        "boundary_id": f"abc_{number}{annotator}",
        "timestamp": 2.0 + number,
        "prev_timestamp": 1.0 + number,
        "next_timestamp": 3.0 + number,
        "label": "Change of Action",
        "subject": "a man",
        "status_before": f"stands {number}",
        "status_after": f"sits {number}",
    }


def _seen(looking: str, contact: str) -> dict[str, Any]:
    return {
        "class": "closet/cabinet",
        "bbox": (1.0, 2.0, 3.5, 4.5),
        "attention_relationship": [looking],
        "spatial_relationship": ["in_front_of", "behind"],
        "contacting_relationship": [contact],
        "visible": True,
        "metadata": {"tag": "a.mp4/closet/000001", "set": "train"},
    }


_HIDDEN = {
    "class": "broom",
    "bbox": None,
    "attention_relationship": None,
    "spatial_relationship": None,
    "contacting_relationship": None,
    "visible": False,
    "metadata": {"tag": "a.mp4/broom/000001", "set": "train"},
}
_OBJECTS = {
    "a.mp4/000001.png": [_seen("looking_at", "holding"), _HIDDEN],
    "a.mp4/000004.png": [_seen("unsure", "touching")],
    "b.mp4/000002.png": [],
}
_PERSONS = {
    key: {"bbox": np.ones((1, 4), np.float32), "bbox_mode": "xyxy", "bbox_score": np.float32(0.9)}
    for key in _OBJECTS
}
_FRAME_LIST = b"a.mp4/000001.png\na.mp4/000004.png\n"
_GOOD_OBJECTS = _pickles(_OBJECTS)
_COCO = {
    "info": {"year": 2017},
    "images": [{"id": 7, "file_name": "000007.jpg", "height": 4}],
    "annotations": [{"id": 1, "image_id": 7, "caption": "A dog."}],
}
_KARPATHY = {
    "dataset": "coco",
    "images": [
        {
            "filename": "7.jpg",
            "filepath": "val2014",
            "split": "test",
            "sentences": [{"raw": "A dog.", "sentid": 3, "tokens": ["a", "dog"]}],
        }
    ],
}
_PAIRS: tuple[Any, ...] = (
    [["VG/1.jpg", {"POS": ["a red car", "a cat"], "NEG": ["a blue car", "a dog"]}]],
    [{"image_path": "1.jpg", "true_caption": "a", "false_caption": "b", "relation_name": "on"}],
    {"0": {"filename": "1.jpg", "caption": "a", "negative_caption": "b", "caption2": "c"}},
    {"k": {"image_file": "1.jpg", "caption": "a", "foil": "b", "linguistic_phenomena": "c"}},
    [{"id": 5, "image_0": "x", "image_1": "y", "caption_0": "a", "caption_1": "b", "tag": "t"}],
    {"v": [{"image0": "v/0.png", "image1": "v/1.png", "caption0": "a", "caption1": "b"}]},
    {"v": {"s": [{"image0": "0.png", "image1": "1.png", "caption0": ["a"], "caption1": ["b"]}]}},
    [{"id": "q", "image": "x", "caption": "a", "hard_negative": "b", "hard_positive": "c"}],
)
_CAPTIONS = (
    b"A man in a red hat and a woman with two small dogs sit on a wooden bench next to a car.",
    b"Two cats are sleeping behind the white table.",
    b"A bowl of soup on a tray.",
    b"a dog",
)


def _images() -> tuple[bytes, ...]:
    made = []
    noise = np.random.default_rng(0).integers(0, 255, (12, 16, 3), dtype=np.uint8)
    picture = Image.fromarray(noise)
    saved: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("RGB", "PNG", {}),
        ("P", "PNG", {"transparency": 3}),
        ("I;16", "PNG", {}),
        ("RGB", "JPEG", {"quality": 80}),
        ("RGB", "JPEG", {"progressive": True, "exif": b"Exif\0\0MM\0*\0\0\0\x08\0\0\0\0\0\0"}),
        ("CMYK", "JPEG", {}),
        ("P", "GIF", {"save_all": True, "append_images": [picture.convert("P").rotate(90)]}),
        ("RGB", "WEBP", {"lossless": True}),
        ("RGB", "BMP", {}),
        ("RGB", "TIFF", {"compression": "tiff_deflate"}),
        ("RGB", "ICO", {"sizes": [(16, 12)]}),
    )
    for mode, kind, settings in saved:
        image = Image.fromarray(noise[..., 0].astype("u2") * 257) if mode == "I;16" else picture
        stream = io.BytesIO()
        (image if mode == "I;16" else image.convert(mode)).save(stream, kind, **settings)
        made.append(stream.getvalue())
    return tuple(made)


def _npy() -> tuple[bytes, ...]:
    made = []
    for order in ("C", "F"):
        stream = io.BytesIO()
        np.save(stream, np.asarray(np.full((2, 3), 0.25), order=order))
        made.append(stream.getvalue())
    return tuple(made)


def _pt() -> tuple[bytes, ...]:
    import torch

    made = []
    for as_zip in (True, False):
        stream = io.BytesIO()
        torch.save(torch.full((2, 3), 0.25), stream, _use_new_zipfile_serialization=as_zip)
        made.append(stream.getvalue())
    return tuple(made)


def _parquet() -> tuple[bytes, ...]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    stream = io.BytesIO()
    columns = {"image": ["a", "b"], "caption": ["x", "x"], "probability": [0.5, 0.25]}
    pq.write_table(pa.table(columns), stream)
    return (stream.getvalue(),)


def _with_objects(data: bytes, folder: Path) -> Outcome:
    return _action_genome(folder, _GOOD_OBJECTS[0], persons=data)


def _with_frames(data: bytes, folder: Path) -> Outcome:
    return _action_genome(folder, _GOOD_OBJECTS[0], frames=data)


def _objects(data: bytes, folder: Path) -> Outcome:
    return _action_genome(folder, data)


_YOUCOOK2 = {
    "database": {
        "xyz": {
            "subset": "training",
            "duration": 99.5,
            "recipe_type": "101",
            "annotations": [_step(0, "cut the onion"), _step(1, "fry it"), _step(2, "eat it")],
        }
    }
}
_VIDEO_LINES = _json_rows(
    {"video": "k/a.mp4", "start_s": 2.0, "end_s": 5.5, "caption": "cut the onion", "split": "val"},
    {"video": "k/a.mp4", "timestamp_s": 9.25, "caption": "fry it", "id": "fry", "split": "val"},
    {"video": "b.mp4", "timestamp_s": 1, "caption": "eat it", "licence": "CC0"},
)
_CAPTION_LINES = _json_rows(
    {"image": "holiday/1.jpg", "caption": "two dogs", "id": "1", "split": "test"},
    {"image": "2.jpg", "caption": "a cat"},
)
_TOKENS = b"100.jpg#0\tTwo dogs .\n100.jpg#1\tA dog .\n"
_PIPES = b"image_name| comment_number| comment\n1.jpg| 0| Two dogs .\n1.jpg| 4   A dog .\n"
_TABLE = (
    b'raw,sentids,split,filename,img_id\n"[""Two dogs ."", ""A dog .""]","[0, 1]",test,1.jpg,0\n'
)

# Tensors are made by torch, which takes seconds to import: only where they are asked for.
TARGETS: dict[str, Callable[[], Target]] = {
    name: functools.cache(functools.partial(Target, take=take, seeds=seeds, mutate=mutator))
    for name, take, seeds, mutator in (
        ("youcook2", _youcook2, (_json(_YOUCOOK2),), mutate.json_text),
        (
            "gebplus",
            _gebplus,
            (_json({"abc": [_moment(0, "A"), _moment(1, "A"), _moment(1, "B")]}),),
            mutate.json_text,
        ),
        ("captioned-videos", _captioned_videos, (_VIDEO_LINES,), mutate.json_lines),
        ("action-genome-objects", _objects, _GOOD_OBJECTS, mutate.pickled),
        ("action-genome-persons", _with_objects, _pickles(_PERSONS), mutate.pickled),
        ("action-genome-frames", _with_frames, (_FRAME_LIST,), mutate.damage),
        (
            "captions-coco",
            functools.partial(_captions, "captions_val2017.json", "coco"),
            (_json(_COCO),),
            mutate.json_text,
        ),
        (
            "captions-karpathy",
            functools.partial(_captions, "dataset_coco.json", "karpathy"),
            (_json(_KARPATHY),),
            mutate.json_text,
        ),
        (
            "captions-flickr-token",
            functools.partial(_captions, "results.token", "flickr30k-token"),
            (_TOKENS,),
            mutate.damage,
        ),
        (
            "captions-flickr-csv",
            functools.partial(_captions, "results.csv", "flickr30k-csv"),
            (_PIPES, _TABLE),
            mutate.damage,
        ),
        (
            "captions-lines",
            functools.partial(_captions, "own.jsonl", "own"),
            (_CAPTION_LINES,),
            mutate.json_lines,
        ),
        ("vl-checklist", _vl_checklist, (_json(_PAIRS[0]),), mutate.json_text),
        (
            "text-pairs",
            functools.partial(_text_pairs, "pairs.json"),
            tuple(_json(pairs) for pairs in _PAIRS),
            mutate.json_text,
        ),
        (
            "text-pair-lines",
            functools.partial(_text_pairs, "pairs.jsonl"),
            tuple(_json_rows(*pairs) for pairs in _PAIRS if isinstance(pairs, list)),
            mutate.json_lines,
        ),
        ("scores-npy", functools.partial(_scores, "m.npy"), _npy(), mutate.damage),
        ("scores-parquet", functools.partial(_scores, "m.parquet"), _parquet(), mutate.damage),
        ("images", _image, _images(), mutate.png_or_other),
        ("captions-perturbed", _perturbed, _CAPTIONS, mutate.caption),
        ("captions-reworded", _reworded, _CAPTIONS, mutate.caption),
    )
}


@functools.cache
def _tensors() -> Target:
    return Target(take=functools.partial(_scores, "m.pt"), seeds=_pt(), mutate=mutate.zipped)


@functools.cache
def _datasets(mutator: mutate.Mutator) -> Target:
    from tests.fuzz import datasets

    return Target(take=datasets.read, seeds=datasets.seeds(), mutate=mutator)


def _of_datasets(name: str) -> Target:
    from tests.fuzz import datasets

    return _datasets(getattr(datasets, name))


def _archive(data: bytes, folder: Path) -> Outcome:
    there = Path(tempfile.mkdtemp(dir=folder))
    try:
        return "records" if unpack_archive(data, there, "thing") else "rejects"
    except BadArchive as error:
        raise InputError(clipped(str(error))) from error
    finally:
        shutil.rmtree(there)


def _archives() -> tuple[bytes, ...]:
    found = []
    for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT):
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w", format=form) as archive:
            for name in ("thing/a.obj", "thing/b.mtl", f"thing/{'c' * 120}"[:95]):
                member = tarfile.TarInfo(name)
                member.size = len(_MESH)
                member.pax_headers = {"comment": "é" * 40}
                archive.addfile(member, io.BytesIO(_MESH))
        found.append(gzip.compress(stream.getvalue(), mtime=0))
    return tuple(found)


_MESH = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n" * 20

TARGETS["assets"] = functools.cache(
    lambda: Target(take=_archive, seeds=_archives(), mutate=mutate.archived)
)
TARGETS["dataset-manifests"] = functools.partial(_of_datasets, "spoil_manifest")
TARGETS["dataset-tables"] = functools.partial(_of_datasets, "spoil_tables")
TARGETS["scores-pt"] = _tensors
TARGETS |= {
    name: functools.cache(functools.partial(Target, take=take, seeds=seeds, mutate=way))
    for name, (take, seeds, way) in CAPTION_TARGETS.items()
}
TARGETS |= {
    name: functools.cache(lambda t=take, s=seeds, m=way: Target(take=t, seeds=s(), mutate=m))
    for name, (take, seeds, way) in (SCORE_TARGETS | HARNESS_TARGETS | REVIEW_TARGETS).items()
}
TARGETS |= {
    name: functools.cache(lambda t=take, s=seeds, m=way: Target(take=t(), seeds=s(), mutate=m()))
    for name, (take, seeds, way) in BENCHMARK_TARGETS.items()
}

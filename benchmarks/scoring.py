"""What it saves to encode each image and caption once, on a set shaped like Eq-YouCook2.

Example:
    python benchmarks/scoring.py
    python benchmarks/scoring.py --videos 1771 --device cuda:0 --size vit-b-32 --workers 12

Makes frames and captions whose pairs are as many to a frame as in Eq-YouCook2 (1,771 videos make
12,650 frames and 45,793 pairs; the published set has 12,635 and 45,849), and a CLIP of random
weights. Scores the pairs with `eqforge score`, and as the published toolkit does: a sample after
the other, both images and both captions of each encoded anew, here in batches of 32 samples. Says
whether the two agree. The last lines compare the whole run with the model alone, on tensors that
are on the device already.
"""

import argparse
import io
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eqforge.core.files import storage
from eqforge.core.files.pictures import read_pixels
from eqforge.evaluation.scoring.command import ScoreSettings
from eqforge.evaluation.scoring.run import score_dataset
from eqforge.models.scorer import Picture
from eqforge.models.spec import load_model
from eqforge.schemas.dataset.manifest import DataFile, Manifest, to_json
from eqforge.schemas.dataset.reader import open_dataset
from eqforge.schemas.dataset.score_tables import open_scores

FRAMES = (3, 4, 7, 7, 8, 9, 12)
WIDTH_PX, HEIGHT_PX = 340, 256
TOOLKIT_BATCH = 32
LETTERS = [chr(code) for code in range(ord("a"), ord("z") + 1)]
WORDS = ["cut", "the", "onion", "into", "small", "pieces", "and", "fry", "them", "in", "a", "pan"]


def write_dataset(folder: Path, videos: int) -> None:
    """Writes a dataset of pairs: every two frames of a video."""
    from PIL import Image

    rng = np.random.default_rng(0)
    samples: list[dict[str, Any]] = []
    images: list[dict[str, Any]] = []
    for video in range(videos):
        count = FRAMES[video % len(FRAMES)]
        captions = [" ".join(rng.choice(WORDS, rng.integers(5, 15))) for _ in range(count)]
        for frame in range(count):
            stream = io.BytesIO()
            rough = rng.integers(0, 256, (16, 20, 3), dtype=np.uint8)
            Image.fromarray(rough).resize((WIDTH_PX, HEIGHT_PX)).save(stream, "JPEG", quality=90)
            image = {"bytes": stream.getvalue(), "path": None}
            images.append({"image_id": f"{video}-{frame}", "image": image})
        samples += [
            {
                "sample_id": f"{video}/{i}-{j}",
                "image_0_id": f"{video}-{i}",
                "image_1_id": f"{video}-{j}",
                "caption_0": captions[i],
                "caption_1": captions[j],
            }
            for i in range(count)
            for j in range(i + 1, count)
        ]
    (folder / "data").mkdir(parents=True)
    tables = {}
    for name, rows in {"samples": samples, "images": images}.items():
        path = f"data/{name}-00000-of-00001.parquet"
        pq.write_table(pa.Table.from_pylist(rows), folder / path, row_group_size=1_000)
        size, digest = storage.digest(str(folder / path))
        tables[name] = [DataFile(path=path, rows=len(rows), num_bytes=size, sha256=digest)]
    manifest = Manifest(
        dataset="shape", mode="paper", config={}, inputs=[], versions={}, stages={}, tables=tables
    )
    (folder / "dataset.json").write_bytes(to_json(manifest))


def save_clip(folder: Path, size: str) -> None:
    """Saves a CLIP of random weights: a tiny one, or of the size of ViT-B/32."""
    import torch
    from transformers import CLIPConfig, CLIPImageProcessorPil, CLIPModel, CLIPTokenizer

    torch.manual_seed(0)
    letters = [*LETTERS, *(f"{letter}</w>" for letter in LETTERS)]
    fill = 49_406 - len(letters) if size == "vit-b-32" else 0
    words = [*letters, *(f"<unused{n}>" for n in range(fill)), "<|startoftext|>", "<|endoftext|>"]
    CLIPTokenizer(vocab={word: n for n, word in enumerate(words)}, merges=[]).save_pretrained(
        folder
    )
    if size == "vit-b-32":
        config = CLIPConfig()
    else:
        small = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
        heads = {"num_attention_heads": 4}
        ends = {"vocab_size": len(words), "bos_token_id": len(words) - 2}
        config = CLIPConfig(
            text_config=small | heads | ends | {"eos_token_id": len(words) - 1},
            vision_config=small | heads,
            projection_dim=64,
        )
    CLIPModel(config).save_pretrained(folder)
    CLIPImageProcessorPil().save_pretrained(folder)


def toolkit_scores(dataset: str, model: str, device: str) -> Iterator[tuple[str, Any]]:
    """Yields every sample's scores as the published toolkit computes them."""
    scorer: Any = load_model(model, device)
    opened = open_dataset(dataset)
    stored = {row["image_id"]: row["image"]["bytes"] for row in opened.rows("images")}
    samples = list(opened.rows("samples"))
    for start in range(0, len(samples), TOOLKIT_BATCH):
        batch = samples[start : start + TOOLKIT_BATCH]
        sides = []
        for side in (0, 1):
            keys = [row[f"image_{side}_id"] for row in batch]
            pixels = [read_pixels(stored[key], 2**26) for key in keys]
            prepared = [
                scorer.prepare(Picture(key=key, pixels=one))
                for key, one in zip(keys, pixels, strict=True)
            ]
            images = np.stack(scorer.encode_images(prepared))
            captions = scorer.encode_captions([row[f"caption_{side}"] for row in batch])
            sides.append((images, captions))
        for place, row in enumerate(batch):
            yield (
                row["sample_id"],
                [float(sides[i][0][place] @ sides[c][1][place]) for i in (0, 1) for c in (0, 1)],
            )


def bare_images_per_second(model: str, device: str, batch: int, seconds: float = 3.0) -> float:
    """Returns how many images the model encodes that are on the device already."""
    import torch

    scorer: Any = load_model(model, device)
    picture = Picture(key="", pixels=np.zeros((HEIGHT_PX, WIDTH_PX, 3), np.uint8))
    pixels = torch.from_numpy(np.stack([scorer.prepare(picture)] * batch)).to(device)
    scorer.encode_images(pixels)
    start, done = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        scorer.encode_images(pixels)  # ends with the vectors on the CPU, so it is synchronised
        done += batch
    return done / (time.perf_counter() - start)


def main() -> None:
    """Makes data and model in a temporary folder and prints the times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--videos", type=int, default=140)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--size", choices=["tiny", "vit-b-32"], default="tiny")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--image-batch", type=int, default=64)
    arguments = parser.parse_args()
    try:
        import torch
    except ImportError:
        print("scoring: not run, it needs 'eqforge[models]'")
        return
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_dataset(folder / "set", arguments.videos)
        save_clip(folder / "clip", arguments.size)
        model, dataset = f"clip:{folder / 'clip'}", str(folder / "set")
        load_model(model, arguments.device)  # imports and the first use of a device count for none
        start, start_cpu = time.perf_counter(), time.process_time()
        manifest = score_dataset(
            ScoreSettings(
                dataset=dataset,
                model=model,
                output=folder / "scores",
                devices=(arguments.device,),
                workers=arguments.workers,
                image_batch=arguments.image_batch,
            )
        )
        once_s, once_cpu_s = time.perf_counter() - start, time.process_time() - start_cpu
        counts = manifest.counts
        print(
            f"{counts['samples'].expected:,} pairs, {counts['images'].expected:,} images, "
            f"{counts['captions'].expected:,} captions, {arguments.size} CLIP on {arguments.device}"
        )
        start, start_cpu = time.perf_counter(), time.process_time()
        theirs = dict(toolkit_scores(dataset, model, arguments.device))
        toolkit_s, toolkit_cpu_s = time.perf_counter() - start, time.process_time() - start_cpu
        ours = {
            row["sample_id"]: row["values"]
            for batch in open_scores(str(folder / "scores")).batches("scores")
            for row in batch.to_pylist()
        }
        furthest = max(
            np.abs(np.subtract(ours[sample], values)).max() for sample, values in theirs.items()
        )
        # Without workers the seconds of the CPU say it too, and do not depend on other programs.
        print(f"{'':>40}  {'seconds':>8}  {'CPU':>8}")
        print(f"{'eqforge score':>40}  {once_s:8.1f}  {once_cpu_s:8.1f}")
        print(f"{'four encodings a sample':>40}  {toolkit_s:8.1f}  {toolkit_cpu_s:8.1f}")
        times, times_cpu = toolkit_s / once_s, toolkit_cpu_s / once_cpu_s
        print(f"{'times as fast':>40}  {times:8.1f}  {times_cpu:8.1f}")
        print(f"{'largest difference of a score':>40}  {furthest:8.1e}")
        bare = bare_images_per_second(model, arguments.device, arguments.image_batch)
        whole = counts["images"].expected / once_s
        print(f"{'images a second, the whole run':>40}  {whole:8.0f}")
        print(f"{'the model alone, on the device':>40}  {bare:8.0f}")
        if arguments.device.startswith("cuda"):
            peak = torch.cuda.max_memory_allocated(arguments.device) / 2**20
            print(f"{'peak memory of the device':>40}  {peak:8.0f} MiB")


if __name__ == "__main__":
    main()

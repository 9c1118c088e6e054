"""What an oracle of real size costs on one core: the models' sizes are real, their weights random.

Example:
    python benchmarks/oracle.py

Prints CPU seconds to encode an image, to score a pair of images on their encodings, and to score a
pair as a model would that encodes both images anew for each of its pairs.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from eqforge.models.scorer import Picture, Scorer
from eqforge.models.spec import load_scorer, parse_specs
from eqforge.transforms.oracle.scores import PAIR_CELLS

CAPTIONS = ["a man cuts an onion on the board", "a man puts an onion into the pan"]
REPEATS = 5
LETTERS = [chr(code) for code in range(ord("a"), ord("z") + 1)]


def save_blip(folder: Path) -> None:
    """Saves a BLIP of the size of blip-itm-base-coco: ViT-B/16 at 384 pixels, BERT base."""
    from transformers import (
        BertTokenizer,
        BlipConfig,
        BlipForImageTextRetrieval,
        BlipImageProcessorPil,
    )

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS]
    words += [f"##{letter}" for letter in LETTERS]
    words += [f"[unused{number}]" for number in range(30_524 - len(words))]
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(words))
    BertTokenizer.from_pretrained(folder).save_pretrained(folder)
    config = BlipConfig(text_config={"vocab_size": len(words)}, vision_config={"image_size": 384})
    BlipForImageTextRetrieval(config).save_pretrained(folder)
    BlipImageProcessorPil(size={"height": 384, "width": 384}).save_pretrained(folder)


def save_clip(folder: Path) -> None:
    """Saves a CLIP of the size of ViT-B/32."""
    from transformers import CLIPConfig, CLIPImageProcessorPil, CLIPModel, CLIPTokenizer

    words = [*LETTERS, *(f"{letter}</w>" for letter in LETTERS)]
    words += [f"<unused{number}>" for number in range(49_406 - len(words))]
    words += ["<|startoftext|>", "<|endoftext|>"]
    tokenizer = CLIPTokenizer(vocab={word: n for n, word in enumerate(words)}, merges=[])
    tokenizer.save_pretrained(folder)
    CLIPModel(CLIPConfig()).save_pretrained(folder)
    CLIPImageProcessorPil().save_pretrained(folder)


def seconds(call: Callable[[], object]) -> float:
    """Returns the median CPU seconds of a call."""
    call()
    taken = []
    for _ in range(REPEATS):
        start = time.process_time()
        call()
        taken.append(time.process_time() - start)
    return sorted(taken)[REPEATS // 2]


def report(name: str, scorer: Scorer) -> None:
    """Prints the costs of a model."""
    rng = np.random.default_rng(0)
    pictures = [
        Picture(key=str(n), pixels=rng.integers(0, 256, (720, 1280, 3), dtype=np.uint8))
        for n in range(2)
    ]
    crossings = np.array([*PAIR_CELLS.values()])

    def encode(picture: Picture) -> object:
        return scorer.encode_images([scorer.prepare(picture)])[0]

    images = [encode(picture) for picture in pictures]
    image_s = seconds(lambda: encode(pictures[0]))
    pair_s = seconds(lambda: scorer.match(images, CAPTIONS, crossings))
    print(f"{name:>22}  {image_s:8.2f}  {pair_s:8.2f}  {pair_s + 2 * image_s:8.2f}")


def main() -> None:
    """Makes the models in a temporary folder and prints a table."""
    try:
        import torch
    except ImportError:
        print("oracle: not run, it needs 'eqforge[models]'")
        return
    torch.set_num_threads(1)
    print(f"{'CPU seconds':>22}  {'image':>8}  {'pair':>8}  {'anew':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for name, kind, save in (
            ("BLIP base, 384 px", "blip-itm", save_blip),
            ("CLIP ViT-B/32", "clip", save_clip),
        ):
            save(Path(folder) / kind)
            (spec,) = parse_specs(f"{kind}:{folder}/{kind}")
            report(name, load_scorer(spec))


if __name__ == "__main__":
    main()

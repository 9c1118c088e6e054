"""Times a pair under prompt-to-prompt against two independent pictures as one batch of two.

    python benchmarks/diffusion.py

Both run through the same loaded pipeline, in turn, with the same prompts, latent, steps and
guidance; the plain one is diffusers' own call. Prints the medians' ratio for either edit, with and
without local blend. The tiny model always, at the CPU's pace; a model of the size of Stable
Diffusion 1.4 with random weights in half precision, 512x512 and 50 steps where there is a CUDA
device, or where `--large` asks for it. Goal: at most 1.15.
"""

import argparse
import functools
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from eqforge.generators.diffusion.generate import PairGenerator, initial_latents
from eqforge.generators.diffusion.load import deterministic, quiet_libraries
from eqforge.generators.diffusion.settings import DiffusionSettings, EditSettings
from eqforge.generators.diffusion.tiny import make_tiny_pipeline
from tests.prompted import ADD, pair_of

SWAP = ("a photo of a horse on the grass", "a photo of a zebra on the grass")
PAIRS = {
    "replace": (pair_of(SWAP), EditSettings()),
    "replace, blend": (pair_of(SWAP, blended=((4,), (4,))), EditSettings()),
    "refine": (pair_of(ADD), EditSettings()),
    "refine, reweight": (pair_of(ADD), EditSettings(reweight=2.0)),
}


def make_large_pipeline(folder: Path, device: str, precision: str) -> Path:
    """Saves a pipeline of the size of Stable Diffusion 1.4 with random weights."""
    import torch
    from diffusers import (
        AutoencoderKL,
        DDIMScheduler,
        StableDiffusionPipeline,
        UNet2DConditionModel,
    )
    from transformers import CLIPTextConfig, CLIPTextModel

    from eqforge.generators.diffusion.tiny import make_tokenizer

    tokenizer = make_tokenizer(77)
    text = CLIPTextConfig(
        vocab_size=len(tokenizer),
        hidden_size=768,
        intermediate_size=3072,
        num_hidden_layers=12,
        num_attention_heads=12,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    dtype = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}[precision]
    blocks = (128, 256, 512, 512)
    with quiet_libraries(), torch.device(device):
        vae: Any = AutoencoderKL(
            block_out_channels=blocks,
            down_block_types=("DownEncoderBlock2D",) * 4,
            up_block_types=("UpDecoderBlock2D",) * 4,
            latent_channels=4,
            layers_per_block=2,
            sample_size=512,
        )
        # The defaults of diffusers are the sizes of Stable Diffusion 1, but for the prompt's width.
        unet: Any = UNet2DConditionModel(sample_size=64, cross_attention_dim=768)
        encoder: Any = CLIPTextModel(text)
        pipeline: Any = StableDiffusionPipeline(
            vae=vae.to(dtype),
            text_encoder=encoder.to(dtype),
            tokenizer=tokenizer,
            unet=unet.to(dtype),
            scheduler=DDIMScheduler(
                beta_start=0.00085,
                beta_end=0.012,
                beta_schedule="scaled_linear",
                clip_sample=False,
                set_alpha_to_one=False,
                steps_offset=1,
            ),
            safety_checker=None,
            feature_extractor=None,
            requires_safety_checker=False,
        )
        pipeline.save_pretrained(folder)
    return folder


def draw_plainly(generator: PairGenerator, prompts: tuple[str, str]) -> None:
    """Draws two pictures from one latent by diffusers' own call, computing as ours does."""
    with deterministic(generator.settings.cpu_threads):
        generator.pipeline(
            prompt=list(prompts),
            latents=initial_latents(generator.pipeline, generator.size_px, 0),
            height=generator.size_px,
            width=generator.size_px,
            num_inference_steps=generator.settings.steps,
            guidance_scale=generator.settings.guidance_scale,
            output_type="np",
        )


def time_in_turn(
    methods: dict[str, Callable[[], object]], rounds: int, on_gpu: bool
) -> dict[str, float]:
    """Returns each method's median seconds; the methods take turns.

    By the wall clock on a GPU; on the CPU those it computed, for other work may share it.
    """
    import torch

    def now() -> float:
        if not on_gpu:
            return time.process_time()
        torch.cuda.synchronize()
        return time.perf_counter()

    seconds: dict[str, list[float]] = {name: [] for name in methods}
    for turn in range(rounds + 1):
        for name, method in methods.items():
            began = now()
            method()
            if turn > 0:  # the first turn chooses kernels and fills caches
                seconds[name].append(now() - began)
    return {name: statistics.median(found) for name, found in seconds.items()}


def compare(settings: DiffusionSettings, rounds: int) -> dict[str, Any]:
    """Times every kind of edit against two independent pictures."""
    generator = PairGenerator(settings)
    methods: dict[str, Callable[[], object]] = {
        "independent": lambda: draw_plainly(generator, SWAP)
    }
    for name, (pair, edit) in PAIRS.items():
        methods[name] = functools.partial(generator.generate, pair, edit)
    seconds = time_in_turn(methods, rounds, generator.pipeline.device.type == "cuda")
    plain = seconds["independent"]
    return {
        "device": str(generator.pipeline.device),
        "size_px": generator.size_px,
        "steps": settings.steps,
        "seconds_per_pair": {name: round(found, 3) for name, found in seconds.items()},
        "to_independent": {
            name: round(found / plain, 3) for name, found in seconds.items() if found is not plain
        },
    }


def main() -> None:
    """Runs the comparison and prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="pairs of each kind")
    parser.add_argument("--steps", type=int, default=50, help="denoising steps")
    parser.add_argument("--cpu-threads", type=int, default=1, help="threads on the CPU")
    parser.add_argument("--large", action="store_true", help="the large model on the CPU too")
    parser.add_argument("--large-steps", type=int, default=50, help="its denoising steps")
    parser.add_argument("--large-size", type=int, default=512, help="its pictures' width")
    args = parser.parse_args()
    try:
        import torch
    except ImportError:
        print("torch is not installed; run pip install 'eqforge[models]'")
        return
    report = {}
    with tempfile.TemporaryDirectory() as folder:
        tiny = make_tiny_pipeline(Path(folder) / "tiny")
        common = {"cpu_threads": args.cpu_threads}
        report["tiny"] = compare(
            DiffusionSettings(model=str(tiny), steps=args.steps, **common), args.rounds
        )
        if torch.cuda.is_available() or args.large:
            on_gpu = torch.cuda.is_available()
            device = "cuda" if on_gpu else "cpu"
            precision: Literal["fp16", "fp32"] = "fp16" if on_gpu else "fp32"
            large = make_large_pipeline(Path(folder) / "large", device, precision)
            settings = DiffusionSettings(
                model=str(large),
                device=device,
                precision=precision,
                steps=args.large_steps,
                size_px=args.large_size,
                **common,
            )
            report["size of stable diffusion 1.4"] = compare(settings, args.rounds)
    print(json.dumps(report))


if __name__ == "__main__":
    main()

"""Pairs of prompts by hand, and a tiny model with a safety checker."""

from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from eqforge.generators.diffusion.prompts import PromptPair
from eqforge.generators.diffusion.tiny import make_tiny_pipeline

SWAP = ("a photo of a horse on the grass", "a photo of a hippopotamus on the grass")
ADD = ("a photo of a beach", "a photo of a beach at sunset")
ANIMAL = ((4,), (4,))
"""The words that SWAP exchanges, by number."""


def pair_of(
    prompts: tuple[str, str] = SWAP,
    blended: tuple[tuple[int, ...], tuple[int, ...]] = ((), ()),
    seed: int = 5,
) -> PromptPair:
    first, second = (prompt.split() for prompt in prompts)
    changed: tuple[list[int], list[int]] = ([], [])
    for tag, a, b, c, d in SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        if tag != "equal":
            changed[0].extend(range(a, b))
            changed[1].extend(range(c, d))
    return PromptPair(
        sample_id="eq-sd/object/000000",
        kind="object",
        change="object",
        group="animals",
        thing="horse",
        captions=prompts,
        prompts=prompts,
        control="replace" if len(first) == len(second) else "refine",
        changed=(tuple(changed[0]), tuple(changed[1])),
        blended=blended,
        seed=seed,
    )


def make_prudish(
    folder: Path, flag_above: float, pipeline: str = "StableDiffusionPipeline"
) -> Path:
    """Saves a tiny pipeline whose checker flags pictures that are more like one of its concepts."""
    import diffusers
    import torch
    from diffusers.pipelines.stable_diffusion.safety_checker import StableDiffusionSafetyChecker
    from transformers import CLIPConfig, CLIPImageProcessor

    vision = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "image_size": 32,
        "patch_size": 8,
        "projection_dim": 32,
    }
    torch.manual_seed(0)
    checker = StableDiffusionSafetyChecker(CLIPConfig(vision_config=vision, projection_dim=32))
    checker.concept_embeds.data.normal_()
    checker.concept_embeds_weights.data.fill_(flag_above)
    checker.special_care_embeds_weights.data.fill_(1.0)
    plain = getattr(diffusers, pipeline).from_pretrained(make_tiny_pipeline(folder, pipeline))
    parts: Any = plain.components | {
        "safety_checker": checker,
        "feature_extractor": CLIPImageProcessor(size=32, crop_size=32),
    }
    type(plain)(**parts).save_pretrained(folder)
    return folder

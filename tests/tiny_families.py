"""Tiny models of the families that only the evaluation runs, saved as transformers saves them."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.tiny_models import (
    IMAGE_PX,
    WORDS,
    bert_tokenizer,
    clip_tokenizer,
    save_blip,
)

SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    # Weights so large that scores differ from one image and caption to the next.
    "initializer_range": 0.3,
}
VISION: dict[str, Any] = {"image_size": IMAGE_PX, "patch_size": 8}
REGION_FEATURES = 12
_SQUARE = {"height": IMAGE_PX, "width": IMAGE_PX}


def save_align(folder: Path) -> Path:
    from transformers import AlignConfig, AlignModel, EfficientNetImageProcessorPil

    tokenizer = _bert(folder)
    config = AlignConfig(
        text_config=SIZES | {"vocab_size": len(tokenizer), "pad_token_id": 0},
        vision_config={
            "image_size": IMAGE_PX,
            "width_coefficient": 0.1,
            "depth_coefficient": 0.1,
            "hidden_dim": 32,
            "depth_divisor": 4,
        },
        projection_dim=32,
    )
    model = AlignModel(config)
    _give_statistics(model)
    return _save(folder, model, EfficientNetImageProcessorPil(size=_SQUARE))


def save_altclip(folder: Path) -> Path:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import (
        AltCLIPConfig,
        AltCLIPModel,
        CLIPImageProcessorPil,
        PreTrainedTokenizerFast,
    )

    _seed()
    words = ["<s>", "<pad>", "</s>", "<unk>", *WORDS]
    core = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, "<unk>"))
    core.normalizer, core.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.Whitespace()
    core.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        bos_token="<s>",
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
    )
    places = {"max_position_embeddings": 42, "pad_token_id": 1, "project_dim": 24}
    config = AltCLIPConfig(
        text_config=SIZES | places | {"vocab_size": len(words)},
        vision_config=SIZES | VISION | {"projection_dim": 16},
        projection_dim=16,
    )
    tokenizer.save_pretrained(folder)
    processor = CLIPImageProcessorPil(size={"shortest_edge": IMAGE_PX}, crop_size=_SQUARE)
    return _save(folder, AltCLIPModel(config), processor)


def save_groupvit(folder: Path) -> Path:
    from transformers import CLIPImageProcessorPil, GroupViTConfig, GroupViTModel

    _seed()
    tokenizer = clip_tokenizer()
    ends = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    places = {"vocab_size": len(tokenizer), "max_position_embeddings": 24, "pad_token_id": 0}
    stages = {"depths": [1, 1, 1], "num_group_tokens": [4, 2, 0], "num_output_groups": [4, 2, 0]}
    config = GroupViTConfig(
        text_config=SIZES | ends | places,
        vision_config=SIZES | VISION | stages | {"num_hidden_layers": 3},
        projection_dim=16,
        projection_intermediate_dim=32,
    )
    tokenizer.save_pretrained(folder)
    processor = CLIPImageProcessorPil(size=_SQUARE, crop_size=_SQUARE)
    model = GroupViTModel(config)
    _give_statistics(model)
    return _save(folder, model, processor)


def save_vision_text(folder: Path, resnet: bool = False) -> Path:
    """Save an image encoder and a BERT, whose projections are not trained."""
    from transformers import (
        BertConfig,
        CLIPImageProcessorPil,
        CLIPVisionConfig,
        ResNetConfig,
        VisionTextDualEncoderConfig,
        VisionTextDualEncoderModel,
    )

    tokenizer = _bert(folder)
    image: Any = CLIPVisionConfig(**SIZES, **VISION)
    if resnet:
        layers: dict[str, Any] = {"hidden_sizes": [16, 24], "depths": [1, 1], "hidden_size": 24}
        image = ResNetConfig(embedding_size=8, layer_type="basic", **layers)
    text = BertConfig(**SIZES, vocab_size=len(tokenizer), pad_token_id=0)
    both = VisionTextDualEncoderConfig.from_vision_text_configs(image, text, projection_dim=16)
    model = VisionTextDualEncoderModel(both)
    _give_statistics(model)
    processor = CLIPImageProcessorPil(size={"shortest_edge": IMAGE_PX}, crop_size=_SQUARE)
    return _save(folder, model, processor)


def save_flava(folder: Path) -> Path:
    from transformers import FlavaConfig, FlavaForPreTraining, FlavaImageProcessorPil

    tokenizer = _bert(folder)
    config = FlavaConfig(
        text_config=SIZES | {"vocab_size": len(tokenizer), "pad_token_id": 0},
        image_config=SIZES | VISION,
        multimodal_config=SIZES,
        image_codebook_config={"hidden_size": 8, "num_groups": 1, "vocab_size": 8},
        hidden_size=32,
        projection_dim=16,
        initializer_range=0.3,
    )
    processor = FlavaImageProcessorPil(size=_SQUARE, crop_size=_SQUARE)
    return _save(folder, FlavaForPreTraining(config), processor)


def save_vilt(folder: Path) -> Path:
    from transformers import ViltConfig, ViltForImageAndTextRetrieval, ViltImageProcessorPil

    tokenizer = _bert(folder)
    config = ViltConfig(**SIZES, **VISION, vocab_size=len(tokenizer), max_position_embeddings=40)
    read: dict[str, Any] = {"size": {"shortest_edge": IMAGE_PX}, "size_divisor": 8}
    return _save(folder, ViltForImageAndTextRetrieval(config), ViltImageProcessorPil(**read))


def save_blip2(folder: Path) -> Path:
    from transformers import Blip2Config, Blip2ForImageTextRetrieval, BlipImageProcessorPil

    tokenizer = _bert(folder)
    read = {"vocab_size": len(tokenizer), "encoder_hidden_size": 32, "cross_attention_frequency": 1}
    config = Blip2Config(
        vision_config=SIZES | VISION,
        qformer_config=SIZES | read | {"use_qformer_text_input": True, "pad_token_id": 0},
        text_config={"model_type": "opt", "vocab_size": len(tokenizer)},
        num_query_tokens=5,
        image_text_hidden_size=16,
        initializer_range=0.3,
    )
    model = Blip2ForImageTextRetrieval(config)
    model.query_tokens.data.normal_()  # zeros in a new model, and then all alike
    return _save(folder, model, BlipImageProcessorPil(size=_SQUARE))


def save_blip2_t5(folder: Path) -> Path:
    """Save a BLIP-2 that answers by an encoder-decoder."""
    from transformers import (
        Blip2Config,
        Blip2ForConditionalGeneration,
        Blip2Processor,
        BlipImageProcessorPil,
    )

    tokenizer = _bert(folder)
    tokenizer.add_tokens(["<image>", "yes"])
    read = {"vocab_size": len(tokenizer), "encoder_hidden_size": 32, "cross_attention_frequency": 1}
    text = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
    ends = {"decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 3}
    config = Blip2Config(
        vision_config=SIZES | VISION,
        qformer_config=SIZES | read,
        text_config={"model_type": "t5", "vocab_size": len(tokenizer), **text, **ends},
        num_query_tokens=5,
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
    )
    model = Blip2ForConditionalGeneration(config)
    model.query_tokens.data.normal_()
    processor = Blip2Processor(BlipImageProcessorPil(size=_SQUARE), tokenizer, num_query_tokens=5)
    return _save(folder, model, processor)


def save_lxmert(folder: Path, architecture: str = "LxmertForPreTraining", **more: Any) -> Path:
    import transformers

    tokenizer = _bert(folder)
    sizes = {name: SIZES[name] for name in ("hidden_size", "intermediate_size")}
    config = transformers.LxmertConfig(
        **sizes,
        **more,
        num_attention_heads=4,
        vocab_size=len(tokenizer),
        l_layers=1,
        x_layers=1,
        r_layers=1,
        visual_feat_dim=REGION_FEATURES,
        max_position_embeddings=40,
        initializer_range=0.3,
    )
    return _save(folder, getattr(transformers, architecture)(config), None)


def save_yolos(folder: Path) -> Path:
    from transformers import YolosConfig, YolosForObjectDetection, YolosImageProcessorPil

    _seed()
    config = YolosConfig(**SIZES, **VISION | {"image_size": [32, 48]}, num_detection_tokens=3)
    processor = YolosImageProcessorPil(size={"shortest_edge": 32, "longest_edge": 48})
    return _save(folder, YolosForObjectDetection(config), processor)


def write_regions(path: Path, keys: list[str], width: int = REGION_FEATURES + 6) -> np.ndarray:
    """Writes a file of region features, 2 + n regions for image n; returns the first image's."""
    rng = np.random.default_rng(3)
    lines, arrays = [], []
    for number, key in enumerate(keys):
        array = rng.random((2 + number, width), dtype=np.float32)
        encoded = base64.b64encode(array.astype("<f4").tobytes()).decode()
        lines.append(f"{key}\t{len(array)}\t{encoded}\n")
        arrays.append(array)
    path.write_text("".join(lines))
    return arrays[0]


def _bert(folder: Path) -> Any:
    _seed()
    tokenizer = bert_tokenizer(folder)
    tokenizer.save_pretrained(folder)
    return tokenizer


def _seed() -> None:
    import torch

    torch.manual_seed(0)


def _give_statistics(model: Any) -> None:
    # A new model's layers of batch normalisation have counted nothing and change nothing.
    for name, buffer in model.named_buffers():
        if name.endswith("running_mean"):
            buffer.normal_(std=0.1)
        if name.endswith("running_var"):
            buffer.uniform_(0.5, 2)


def _save(folder: Path, model: Any, processor: Any) -> Path:
    model.save_pretrained(folder)
    if processor is not None:
        processor.save_pretrained(folder)
    return folder


SAVE: dict[str, Callable[[Path], Any]] = {
    "align": save_align,
    "altclip": save_altclip,
    "groupvit": save_groupvit,
    "flava": save_flava,
    "vision-text": save_vision_text,
    "blip-itc": lambda folder: save_blip(folder, spread=0.3),
    "blip-itm": lambda folder: save_blip(folder, spread=0.3),
    "vilt": save_vilt,
    "blip2-itm": save_blip2,
    "lxmert": save_lxmert,
}
"""A tiny model of each kind. Dual encoders among them are scored and trained by the tests."""

"""A tiny LLaVA with a real processor, which can be taught to say one thing whatever it is asked.

Tests that have a model saved are skipped where torch is not installed.
"""

from pathlib import Path
from typing import Any

import pytest

IMAGE_PX = 32
CHAT_TEMPLATE = (
    "{% for message in messages %}USER: {% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<image>\n{% else %}{{ part['text'] }}{% endif %}"
    "{% endfor %}{% endfor %}{% if add_generation_prompt %} ASSISTANT:{% endif %}"
)


def processor() -> Any:
    """Letters are its tokens."""
    from tokenizers import Tokenizer, decoders
    from tokenizers.models import BPE
    from transformers import CLIPImageProcessorPil, LlavaProcessor, PreTrainedTokenizerFast

    tokens = ["<pad>", "<unk>", "<s>", "</s>", "<image>", "\n", *map(chr, range(32, 127))]
    core = Tokenizer(BPE({t: n for n, t in enumerate(tokens)}, [], unk_token="<unk>"))
    core.decoder = decoders.Fuse()
    specials = {name: f"<{name}>" for name in ("pad", "unk")} | {"bos": "<s>", "eos": "</s>"}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        extra_special_tokens={"image_token": "<image>"},
        **{f"{name}_token": token for name, token in specials.items()},
    )
    size = {"height": IMAGE_PX, "width": IMAGE_PX}
    return LlavaProcessor(
        image_processor=CLIPImageProcessorPil(size={"shortest_edge": IMAGE_PX}, crop_size=size),
        tokenizer=tokenizer,
        patch_size=16,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=CHAT_TEMPLATE,
    )


def save_llava(folder: Path, says: str | None = None, reads: int = 1024) -> Path:
    """Saves a LLaVA of random weights, or one that has learnt to answer one thing."""
    torch = pytest.importorskip("torch")
    from transformers import (
        CLIPVisionConfig,
        LlamaConfig,
        LlavaConfig,
        LlavaForConditionalGeneration,
    )

    torch.manual_seed(0)
    made = processor()
    sizes: dict[str, Any] = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4}
    text = sizes | heads | {"vocab_size": len(made.tokenizer), "max_position_embeddings": reads}
    ends: dict[str, Any] = {"bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0}
    vision = sizes | heads | {"image_size": IMAGE_PX, "patch_size": 16}
    model = LlavaForConditionalGeneration(
        LlavaConfig(
            vision_config=CLIPVisionConfig(**vision).to_dict(),
            text_config=LlamaConfig(**text, **ends).to_dict(),
            image_token_index=4,
        )
    )
    if says is not None:
        teach(model, made, says)
    model.save_pretrained(folder)
    made.save_pretrained(folder)
    return folder


def save_idefics(folder: Path) -> Path:
    """Saves an Idefics3 of random weights, which cuts an image into tiles."""
    torch = pytest.importorskip("torch")
    from transformers import (
        Idefics3Config,
        Idefics3ForConditionalGeneration,
        Idefics3ImageProcessorPil,
        Idefics3Processor,
    )

    torch.manual_seed(0)
    marks = ["<fake_token_around_image>", "<end_of_utterance>", "<global-img>"]
    tokenizer = processor().tokenizer
    tokenizer.add_special_tokens({"additional_special_tokens": marks})
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4}
    text = sizes | heads | {"vocab_size": len(tokenizer), "max_position_embeddings": 1024}
    ends = {"bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0}
    config = Idefics3Config(
        image_token_id=4,
        scale_factor=2,
        vision_config=sizes | heads | {"image_size": IMAGE_PX, "patch_size": 8},
        text_config=text | ends | {"model_type": "llama"},
    )
    Idefics3ForConditionalGeneration(config).save_pretrained(folder)
    images = Idefics3ImageProcessorPil(
        size={"longest_edge": 2 * IMAGE_PX}, max_image_size={"longest_edge": IMAGE_PX}
    )
    template = CHAT_TEMPLATE.replace("<image>\n", "<image>")
    Idefics3Processor(
        image_processor=images, tokenizer=tokenizer, image_seq_len=4, chat_template=template
    ).save_pretrained(folder)
    return folder


def teach(model: Any, made: Any, says: str) -> None:
    """Trains the language model on short prompts until it gives the same answer to each."""
    import torch

    tokens = made.tokenizer(f"red; blue right one ASSISTANT:{says}</s>", return_tensors="pt")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    ids = tokens["input_ids"]
    labels = ids.clone()
    labels[:, : -(len(says) + 1)] = -100
    for step in range(120):
        noise = torch.randint(6, 90, ids.shape, generator=torch.Generator().manual_seed(step))
        mixed = torch.where((labels == -100) & (torch.arange(ids.shape[1]) < 15), noise, ids)
        loss = model(input_ids=mixed, attention_mask=tokens["attention_mask"], labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if loss.item() < 0.01:
            break

"""Multimodal language models of transformers: image and question in, decoded text or a yes out."""

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.core.identity import fingerprint
from eqforge.models.pretrained import (
    Weights,
    first_line,
    import_torch,
    load_model,
    tokenizer_digest,
)
from eqforge.models.text_models import YesNoTokens
from eqforge.schemas.records.scores import Identity

ARCHITECTURE = "AutoModelForImageTextToText"


class QuestionTooLong(ValueError):
    """Question and answer do not fit into the model's context length."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ChatModel:
    """A model that answers one question at a time, so that answers do not depend on batches."""

    model: Any
    processor: Any
    identity: Identity

    def prompt(self, question: str) -> str:
        """Return the question after one image, in the model's chat template."""
        content = [{"type": "image"}, {"type": "text", "text": question}]
        return self.processor.apply_chat_template(
            [{"role": "user", "content": content}], add_generation_prompt=True
        )

    def answer(self, pixels: NDArray[np.uint8], prompt: str, max_tokens: int) -> str:
        """Return the greedily decoded answer to a `prompt`, at most `max_tokens` long.

        The generation config in the model's folder (sampling, penalties, beams) is ignored.

        Args:
          pixels: uint8 of shape (height, width, 3), RGB.

        Raises:
          QuestionTooLong: there is no room for the answer.
          ValueError: the model cannot take the image.
        """
        found, length, question = self._generate(pixels, prompt, max_tokens)
        # Most models repeat the question before they answer; encoder-decoders do not.
        sequence = found.sequences[0]
        repeats = import_torch().equal(sequence[:length], question)
        new = sequence[length:] if repeats else sequence
        return self.processor.decode(new, skip_special_tokens=True).strip()

    def yes(self, pixels: NDArray[np.uint8], prompt: str) -> float:
        """Return P(yes) by the first token of the answer, of all that begins with a yes or a no.

        Raises:
          QuestionTooLong, ValueError: see `answer`.
        """
        found, _, _ = self._generate(pixels, prompt, max_tokens=1)
        return self._yes_no.share(found.logits[0][0])

    def check_yes_no(self) -> None:
        """Check that the first token of an answer tells a yes from a no."""
        _ = self._yes_no

    @property
    def _yes_no(self) -> YesNoTokens:
        return YesNoTokens(self.processor.tokenizer, self.identity.model)

    def _generate(
        self, pixels: NDArray[np.uint8], prompt: str, max_tokens: int
    ) -> tuple[Any, int, Any]:
        """Return what the model generates, the length of the question, and its tokens."""
        from PIL import Image

        torch = import_torch()
        inputs = self.processor(
            images=Image.fromarray(pixels, "RGB"), text=prompt, return_tensors="pt"
        )
        length = inputs["input_ids"].shape[1]
        limit = getattr(self.model.config.get_text_config(), "max_position_embeddings", None)
        if limit is not None and length + max_tokens > limit:
            raise QuestionTooLong(f"{length} + {max_tokens} tokens, the model reads {limit}")
        inputs = inputs.to(self.model.device, dtype=self.model.dtype)
        with torch.inference_mode():
            found = self.model.generate(**inputs, generation_config=self._greedy(max_tokens))
        return found, length, inputs["input_ids"][0]

    def _greedy(self, max_tokens: int) -> Any:
        transformers: Any = importlib.import_module("transformers")
        own, tokenizer = self.model.generation_config, self.processor.tokenizer
        ends = own.eos_token_id if own.eos_token_id is not None else tokenizer.eos_token_id
        padding = own.pad_token_id if own.pad_token_id is not None else tokenizer.pad_token_id
        if padding is None:
            padding = ends[0] if isinstance(ends, list) else ends
        return transformers.GenerationConfig(
            do_sample=False,
            num_beams=1,
            max_new_tokens=max_tokens,
            eos_token_id=ends,
            pad_token_id=padding,
            bos_token_id=own.bos_token_id,
            decoder_start_token_id=own.decoder_start_token_id,
            output_logits=True,
            return_dict_in_generate=True,
        )


def load_chat_model(weights: Weights, chat_template: Path | None = None) -> ChatModel:
    """Load a model and its processor, from safetensors only and without running its folder's code.

    `chat_template` is a Jinja file that replaces the model's own template.
    """
    import_torch()
    transformers: Any = importlib.import_module("transformers")
    try:
        # Always Pillow's resampling: torchvision, where installed, gives different pixels.
        processor = transformers.AutoProcessor.from_pretrained(
            weights.source, revision=weights.revision, trust_remote_code=False, backend="pil"
        )
    except Exception as error:
        raise InputError(
            f"{weights.source}: its processor cannot be loaded: {first_line(error)}"
        ) from error
    if getattr(processor, "tokenizer", None) is None or not hasattr(processor, "image_processor"):
        raise InputError(
            f"{weights.source}: holds no processor of images and text: it is no model that answers "
            "questions about images"
        )
    if chat_template is not None:
        processor.chat_template = _read(chat_template)
    if not processor.chat_template:
        raise InputError(
            f"{weights.source}: does not say what its conversations look like; name a Jinja file "
            "with --chat-template"
        )
    model = load_model(weights, ARCHITECTURE)
    parts = [processor.image_processor.to_json_string(), tokenizer_digest(processor.tokenizer)]
    digest = fingerprint([*parts, str(processor.chat_template)])
    identity = weights.identity("chat", model.config.model_type, digest)
    return ChatModel(model=model, processor=processor, identity=identity)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--chat-template {path}: cannot be read: {error}") from error

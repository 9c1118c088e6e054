"""Models that answer a question about an image, and VQAScore from their answers."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from eqforge.core.errors import InputError, first_line
from eqforge.core.files.checked import shown
from eqforge.core.identity import fingerprint
from eqforge.models.language_models import YesNoTokens
from eqforge.models.pretrained import (
    Weights,
    import_torch,
    load_model,
    tokenizer_digest,
)
from eqforge.models.scorer import IndexPairs, Matches, Picture
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
        """Return the question after one image, in the model's chat template if it has one."""
        if not self.processor.chat_template:
            return question
        content = [{"type": "image"}, {"type": "text", "text": question}]
        return self.processor.apply_chat_template(
            [{"role": "user", "content": content}], add_generation_prompt=True
        )

    def answer(self, pixels: NDArray[np.uint8], prompt: str, max_tokens: int) -> str:
        """Return the greedily decoded answer to a `prompt`, up to `max_tokens` long.

        The generation config in the model's folder (sampling, penalties, beams) is ignored.

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
        """Return P(yes) among answers that begin with yes or no, from the first token."""
        found, _, _ = self._generate(pixels, prompt, max_tokens=1)
        return self._yes_no.share(found.logits[0][0])

    def respond(
        self, questions: Sequence[tuple[NDArray[np.uint8], str]], max_tokens: int
    ) -> list[str | ValueError]:
        """Answer questions about an image each, one at a time; an error is returned in place."""
        found: list[str | ValueError] = []
        for pixels, prompt in questions:
            try:
                found.append(self.answer(pixels, prompt, max_tokens))
            except ValueError as error:
                found.append(error)
        return found

    def log_chance(self, pixels: NDArray[np.uint8], prompt: str, word: str) -> float:
        """Return log P of an answer: of its first token, or the mean of an encoder-decoder's."""
        tokenizer, torch = self.processor.tokenizer, import_torch()
        if not self.model.config.get_text_config().is_encoder_decoder:
            found, _, _ = self._generate(pixels, prompt, max_tokens=1)
            token = tokenizer(word, add_special_tokens=False)["input_ids"][0]
            return float(found.logits[0][0].double().log_softmax(-1)[token])
        labels = tokenizer(word, return_tensors="pt")["input_ids"].to(self.model.device)
        with torch.inference_mode():
            logits = self.model(**self._inputs(pixels, prompt, 0), labels=labels).logits[0]
        chances = logits.double().log_softmax(-1).gather(1, labels[0][:, None])
        return float(chances.mean())

    def check_yes_no(self) -> None:
        _ = self._yes_no

    @property
    def _yes_no(self) -> YesNoTokens:
        return YesNoTokens(self.processor.tokenizer, self.identity.model)

    def _generate(
        self, pixels: NDArray[np.uint8], prompt: str, max_tokens: int
    ) -> tuple[Any, int, Any]:
        inputs = self._inputs(pixels, prompt, max_tokens)
        with import_torch().inference_mode():
            found = self.model.generate(**inputs, generation_config=self._greedy(max_tokens))
        return found, inputs["input_ids"].shape[1], inputs["input_ids"][0]

    def _inputs(self, pixels: NDArray[np.uint8], prompt: str, max_tokens: int) -> Any:
        inputs = self.processor(
            images=Image.fromarray(pixels, "RGB"), text=prompt, return_tensors="pt"
        )
        length = inputs["input_ids"].shape[1]
        limit = getattr(self.model.config.get_text_config(), "max_position_embeddings", None)
        if limit is not None and length + max_tokens > limit:
            raise QuestionTooLong(
                f"question and answer need {length + max_tokens} tokens; the limit is {limit}"
            )
        return inputs.to(self.model.device, dtype=self.model.dtype)

    def _greedy(self, max_tokens: int) -> Any:
        transformers: Any = importlib.import_module("transformers")
        config, tokenizer = self.model.generation_config, self.processor.tokenizer
        ends = config.eos_token_id if config.eos_token_id is not None else tokenizer.eos_token_id
        padding = config.pad_token_id if config.pad_token_id is not None else tokenizer.pad_token_id
        if padding is None:
            padding = ends[0] if isinstance(ends, list) else ends
        return transformers.GenerationConfig(
            do_sample=False,
            num_beams=1,
            max_new_tokens=max_tokens,
            eos_token_id=ends,
            pad_token_id=padding,
            bos_token_id=config.bos_token_id,
            decoder_start_token_id=config.decoder_start_token_id,
            output_logits=True,
            return_dict_in_generate=True,
        )


def load_chat_model(
    weights: Weights, chat_template: Path | None = None, *, needs_template: bool = True
) -> ChatModel:
    """Load a model and its processor from safetensors, without running code in its folder.

    Args:
      chat_template: a Jinja file that replaces the model's own template.
      needs_template: whether a model without a template is rejected; otherwise its prompt is the
        plain question.
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
            f"cannot load the processor of {weights.source}: {first_line(error)}"
        ) from error
    if getattr(processor, "tokenizer", None) is None or not hasattr(processor, "image_processor"):
        raise InputError(
            f"{weights.source} has no processor for images and text, so it cannot answer "
            "questions about images; choose a different model"
        )
    if chat_template is not None:
        try:
            processor.chat_template = chat_template.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            message = f"--chat-template {chat_template} cannot be read: {error}"
            raise InputError(message) from error
    if needs_template and not processor.chat_template:
        raise InputError(
            f"{weights.source}: found no chat template; pass a Jinja file with --chat-template"
        )
    model = load_model(weights, ARCHITECTURE)
    parts = [processor.image_processor.to_json_string(), tokenizer_digest(processor.tokenizer)]
    digest = fingerprint([*parts, str(processor.chat_template)])
    identity = weights.identity("chat", model.config.model_type, digest)
    return ChatModel(model=model, processor=processor, identity=identity)


class VqaScorer:
    """VQAScore: the probability that a generative model answers Yes to whether a text is shown.

    It is the probability of the first token of "Yes" among all tokens; of an encoder-decoder, the
    geometric mean of the probabilities of "Yes" and of the token that ends the answer.

    Source: Lin et al. 2024, "Evaluating Text-to-Visual Generation with Image-to-Text Generation",
      section 3; `t2v_metrics` asks the same question. For InstructBLIP, it puts "Question: " before
      it and scores "yes".
    """

    QUESTION: Final = 'Does this figure show "{}"? Please answer yes or no.'
    ANSWER: Final = "Yes"
    reads_pixels = True
    gives_log_odds = True

    def __init__(self, weights: Weights) -> None:
        self._chat = load_chat_model(weights, needs_template=False)
        identity = self._chat.identity
        family = identity.family.replace("-", "")  # Transformers says blip-2
        self.identity = weights.identity(
            "vqascore", family, identity.preprocessing, f"P({self.ANSWER}), {self.QUESTION}"
        )

        self._score(np.full((64, 64, 3), 127, dtype=np.uint8), "a square")

    def _score(self, pixels: NDArray[np.uint8], caption: str) -> float:
        prompt = self._chat.prompt(self.QUESTION.replace("{}", caption))
        try:
            return self._chat.log_chance(pixels, prompt, self.ANSWER)
        except ValueError as error:
            raise InputError(
                f"{self.identity.model} cannot be asked about {shown(caption)}: {error}"
            ) from error

    def prepare(self, picture: Picture) -> NDArray[np.uint8]:
        if picture.pixels is None:
            raise ValueError(f"{picture.key}: the image has no pixels")
        return picture.pixels

    def encode_images(self, prepared: Sequence[Any]) -> list[NDArray[np.uint8]]:
        """Return the images: the model reads each together with a caption."""
        return [np.asarray(one) for one in prepared]

    def match(self, images: Sequence[Any], captions: Sequence[str], pairs: IndexPairs) -> Matches:
        """Score pairs one at a time, so that scores do not depend on batches."""
        found = [self._score(images[image], captions[caption]) for image, caption in pairs]
        chances = np.array(found, dtype=np.float64)
        # log(p / (1 - p)); 1 - p is not 0, however near p is to 1.
        complements = np.log(np.maximum(-np.expm1(chances), np.finfo(np.float64).tiny))
        return Matches(
            logits=(chances - complements).astype(np.float32), probabilities=np.exp(chances)
        )

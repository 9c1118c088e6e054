"""Models that answer VLUE's tasks: ViLT's, LXMERT's and BLIP's heads, and chat models.

Each image and text is answered alone, so that answers do not depend on batches.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from eqforge.core.errors import InputError, first_line
from eqforge.core.files.checked import shown
from eqforge.models.chat import ARCHITECTURE, load_chat_model
from eqforge.models.fusion import Lxmert, run_head
from eqforge.models.pretrained import (
    Weights,
    import_torch,
    load_model,
    load_preprocessor,
    unloadable,
)
from eqforge.models.scorer import Picture
from eqforge.schemas.records.scores import Identity

Pixels = NDArray[np.uint8]
Box = tuple[float, float, float, float]
MAX_TOKENS: Final = 64
_ANSWERS_AT_ONCE = 256


class Answerer(Protocol):
    """A model that answers one task, or several."""

    @property
    def identity(self) -> Identity: ...

    @property
    def reads_pixels(self) -> bool:
        """Whether `answer` takes the pixels of images rather than their keys."""

    def answer(self, images: Sequence[Any], text: str) -> str:
        """Answer a text about one or two images.

        Raises:
          ValueError: the model cannot read the text or an image.
        """
        ...


class _Head:
    """A model of Transformers with a tokenizer and an image processor of its own."""

    reads_pixels = True

    def __init__(self, weights: Weights, architecture: str, answers: Sequence[str]) -> None:
        self._torch = import_torch()
        self._preprocessor = load_preprocessor(weights)
        self._model = load_model(weights, architecture)
        self._answers = tuple(sorted(answers))
        read = getattr(self._model.config, "text_config", self._model.config)
        self._max_tokens = int(read.max_position_embeddings)
        family = self._model.config.model_type
        self.identity = weights.identity(architecture, family, self._preprocessor.digest)

    def _generate(self, **inputs: Any) -> str:
        limit = min(MAX_TOKENS, self._max_tokens - 2)
        found = self._model.generate(**inputs, max_new_tokens=limit, do_sample=False)
        return str(self._preprocessor.tokenizer.decode(found[0], skip_special_tokens=True).strip())

    def _inputs(self, images: Sequence[Pixels], text: str) -> dict[str, Any]:
        from PIL import Image

        pictures = [Image.fromarray(pixels, "RGB") for pixels in images]
        pixels = self._preprocessor.image(images=pictures, return_tensors="pt")
        tokens = self._preprocessor.tokenizer(
            text,
            truncation=True,
            max_length=self._max_tokens,
            return_tensors="pt",
        )
        model = self._model
        found = {name: value.to(model.device) for name, value in (pixels | tokens).items()}
        found["pixel_values"] = found["pixel_values"].to(model.dtype)
        return found


class ViltAnswerer(_Head):
    """ViLT's classifiers: of 3,129 answers for VQA, of true and false for NLVR2's two images."""

    def __init__(self, weights: Weights, architecture: str, answers: Sequence[str]) -> None:
        super().__init__(weights, architecture, answers)
        self._classes = _Classes(self._model.config.id2label, answers)

    def answer(self, images: Sequence[Pixels], text: str) -> str:
        """Return the name of the best class, among the listed answers if there is a list."""
        inputs = self._inputs(images, text)
        if len(images) > 1:
            inputs = {
                name: value[None] if name.startswith("pixel") else value
                for name, value in inputs.items()
            }
        with self._torch.inference_mode():
            logits = self._model(**inputs).logits[0].float()
        return self._classes.best(logits)


class _Classes:
    """A classifier's answers, of which only the listed ones are allowed if there is a list."""

    def __init__(self, names: Mapping[int, str], answers: Sequence[str]) -> None:
        self._names, listed = names, {*answers} or {*names.values()}
        self._allowed = [n for n in sorted(names) if names[n] in listed]
        if not self._allowed:
            raise InputError("--answer-list contains no answer that the model can give")

    def best(self, logits: Any) -> str:
        return str(self._names[self._allowed[int(logits[self._allowed].argmax())]])


class LxmertAnswerer(Lxmert):
    """LXMERT's classifier of answers for VQA, named by a list if its config does not name them."""

    kind = architecture = "LxmertForQuestionAnswering"

    def __init__(self, weights: Weights, answers: Sequence[str], features: Path) -> None:
        super().__init__(weights, features)
        names, count = self.model.config.id2label, int(self.model.config.num_qa_labels)
        if len(names) != count or names == {n: f"LABEL_{n}" for n in range(count)}:
            if len(answers) != count:
                raise InputError(
                    f"{weights.source}: the model has {count:,} answers without names, but "
                    f"--answer-list has {len(answers):,}. Pass all {count:,} answers in the "
                    "model's order, as in LXMERT's trainval_label2ans.json."
                )
            names = dict(enumerate(answers))
        self._classes = _Classes(names, answers)

    def answer(self, images: Sequence[Any], text: str) -> str:
        """Return the name of the best class for an image's key."""
        regions = [self.prepare(Picture(key=key)) for key in images]
        with self._torch.inference_mode():
            tokens = self.captions.encode([text], self.model.device)
            logits = run_head(self.model.answer_head, self.fuse(regions, tokens))[0]
        return self._classes.best(logits)


class BlipAnswerer(_Head):
    """BLIP's answers: generated, or of a list the one with the highest likelihood.

    Source: Li et al. 2022 (BLIP), section 4.3; its repository's `models/blip_vqa.py`, whose
      `rank_answer` sums the log-likelihood of an answer's tokens. It first keeps the 128 answers
      with the likeliest first token; here all are ranked.
    """

    def __init__(self, weights: Weights, architecture: str, answers: Sequence[str]) -> None:
        super().__init__(weights, architecture, answers)
        tokens = self._preprocessor.tokenizer(list(answers))["input_ids"] if answers else []
        for answer, ids in zip(answers, tokens, strict=True):
            if len(ids) > self._max_tokens:
                raise InputError(
                    f"--answer-list: the answer {shown(answer)} has {len(ids):,} tokens, but the "
                    f"model reads at most {self._max_tokens}"
                )

    def answer(self, images: Sequence[Pixels], text: str) -> str:
        inputs = self._inputs(images, text)
        wanted = ("pixel_values", "input_ids", "attention_mask")
        inputs = {name: inputs[name] for name in wanted}
        with self._torch.inference_mode():
            if self._answers:
                return self._answers[int(self._likelihoods(inputs).argmax())]
            return self._generate(**inputs)

    def _likelihoods(self, inputs: Mapping[str, Any]) -> Any:
        """Return the log-likelihood of each listed answer, a tensor [answers]."""
        torch, model, tokenizer = self._torch, self._model, self._preprocessor.tokenizer
        image = model.vision_model(pixel_values=inputs["pixel_values"]).last_hidden_state
        question = model.text_encoder(
            input_ids=inputs["input_ids"],
            attention_mask=inputs["attention_mask"],
            encoder_hidden_states=image,
        ).last_hidden_state
        found = []
        for start in range(0, len(self._answers), _ANSWERS_AT_ONCE):
            batch = list(self._answers[start : start + _ANSWERS_AT_ONCE])
            tokens = tokenizer(batch, padding=True, return_tensors="pt").to(model.device)
            ids, mask = tokens["input_ids"], tokens["attention_mask"]
            ids[:, 0] = model.decoder_start_token_id
            logits = model.text_decoder(
                input_ids=ids,
                attention_mask=mask,
                encoder_hidden_states=question.expand(len(batch), -1, -1),
                encoder_attention_mask=inputs["attention_mask"].expand(len(batch), -1),
            ).logits[:, :-1]
            chances = logits.float().log_softmax(-1).gather(2, ids[:, 1:, None])[..., 0]
            found.append((chances * mask[:, 1:]).sum(1))
        return torch.cat(found)


class BlipCaptioner(_Head):
    """BLIP's captions, decoded greedily."""

    def answer(self, images: Sequence[Pixels], text: str) -> str:
        del text
        pixels = self._inputs(images, "")["pixel_values"]
        with self._torch.inference_mode():
            return self._generate(pixel_values=pixels)


class BlipGrounder(_Head):
    """BLIP's matching head, which chooses the region that its attention points at.

    The model never learnt boxes. Attention to the image in one layer, times its positive gradient
    for "match", is averaged over heads and tokens and scaled to the image. A region's score is its
    sum in the region, over the square root of the region's area.

    Source: Li et al. 2021 (ALBEF), section 6.3 and appendix; its repository's `Grounding.py` and
      `utils.grounding_eval`, which take layer 8 of 12 and regions of a detector.
    """

    LAYER: Final = 8

    def locate(self, pixels: Pixels, phrase: str, regions: Sequence[Box]) -> Box:
        """Return the best of some regions, each x, y, width and height in pixels.

        Raises:
          ValueError: there is no region.
        """
        if not regions:
            raise ValueError("no regions")
        torch, kept = self._torch, list[Any]()
        inputs = self._inputs([pixels], phrase)
        layers = self._model.text_encoder.encoder.layer
        attention = layers[min(self.LAYER, len(layers) - 1)].crossattention.self
        hook = attention.register_forward_hook(lambda _, __, output: kept.append(output[1]))
        try:
            with torch.enable_grad():
                states = self._model.vision_model(
                    pixel_values=inputs["pixel_values"]
                ).last_hidden_state
                fused = self._model.text_encoder(
                    input_ids=inputs["input_ids"],
                    attention_mask=inputs["attention_mask"],
                    encoder_hidden_states=states,
                ).last_hidden_state
                match = self._model.itm_head(fused[:, 0])[0, 1]
                (gradient,) = torch.autograd.grad(match, kept[0])
        finally:
            hook.remove()
        heat = (kept[0] * gradient.clamp(min=0))[0, :, :, 1:].mean((0, 1)).detach().float()
        side = math.isqrt(len(heat))
        shown = torch.nn.functional.interpolate(
            heat.reshape(1, 1, side, side), size=pixels.shape[:2], mode="bicubic"
        )[0, 0].cpu()

        def score(region: Box) -> float:
            x, y, width, height = region
            bottom, right = max(0, int(y + height)), max(0, int(x + width))
            inside = shown[max(0, int(y)) : bottom, max(0, int(x)) : right]
            return float(inside.sum()) / math.sqrt(width * height)

        return max(regions, key=score)


class ChatAnswerer:
    """A chat model, for one image."""

    reads_pixels = True

    def __init__(self, weights: Weights) -> None:
        self._model = load_chat_model(weights)
        self.identity = self._model.identity

    def answer(self, images: Sequence[Pixels], text: str) -> str:
        (picture,) = images
        return self._model.answer(picture, self._model.prompt(text), MAX_TOKENS)


_HEADS = ViltAnswerer | BlipAnswerer | BlipCaptioner | BlipGrounder | LxmertAnswerer
HEADS: Final[Mapping[str, tuple[str, Callable[..., _HEADS]]]] = {
    "ViltForQuestionAnswering": ("vqa", ViltAnswerer),
    "ViltForImagesAndTextClassification": ("nlvr2", ViltAnswerer),
    LxmertAnswerer.architecture: ("vqa", LxmertAnswerer),
    "BlipForQuestionAnswering": ("vqa", BlipAnswerer),
    "BlipForConditionalGeneration": ("captioning", BlipCaptioner),
    "BlipForImageTextRetrieval": ("grounding", BlipGrounder),
}
"""The classes of Transformers that answer one task, with the task."""


def load_answerer(
    weights: Weights, task: str, answers: Sequence[str], features: Path | None = None
) -> tuple[Answerer | BlipGrounder, bool]:
    """Load a model for a task; return it, and whether it is a chat model, which needs prompts.

    Args:
      task: `vqa`, `nlvr2`, `captioning` or `grounding`.
      answers: the answers to choose from; empty for the model's own.
      features: TSV file of region features, for LXMERT alone.
    """
    import_torch()
    transformers: Any = importlib.import_module("transformers")
    try:
        config = transformers.AutoConfig.from_pretrained(
            weights.source, revision=weights.revision, trust_remote_code=False
        )
    except Exception as error:
        raise unloadable(weights, error) from error
    architecture = next(iter(config.architectures or ()), ARCHITECTURE)
    if (architecture == LxmertAnswerer.architecture) != (features is not None):
        raise InputError(
            f"{weights.source}: the model needs region features. Pass their TSV file with "
            "--features FILE; in `eqforge efficiency`, append ,features=FILE to the model."
            if features is None
            else f"{weights.source}: the model reads no region features; omit --features"
        )
    if architecture not in HEADS:
        if type(config) not in transformers.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING:
            raise InputError(
                f"{weights.source}: a {architecture} cannot answer questions about images. Choose "
                f"a chat model for images, or one of {', '.join(HEADS)}."
            )
        if answers:
            raise InputError(
                f"{weights.source} is a chat model. It writes its own answers; omit --answer-list"
            )
        return ChatAnswerer(weights), True
    known, kind = HEADS[architecture]
    if known != task:
        raise InputError(
            f"{weights.source} is a model for the task {known}, not {task} ({architecture})"
        )
    try:
        if features is not None:
            return LxmertAnswerer(weights, answers, features), False
        return kind(weights, architecture, answers), False
    except (KeyError, AttributeError) as error:
        raise InputError(f"{weights.source}: {first_line(error)}") from error

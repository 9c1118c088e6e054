"""Find objects in an image by name: boxes by a detector, and outlines by a segmenter.

The detectors are those in transformers that take text: Grounding DINO, OWL-ViT and OWLv2. The
segmenters take boxes: SAM and SAM 2. Without a segmenter the boxes are the outlines.

Source: Ren et al. 2024, "Grounded SAM", for the order of the two.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from PIL import Image

from eqforge.models.pretrained import Weights, check_device, import_torch, load_auto, load_model

if TYPE_CHECKING:
    from numpy.typing import NDArray

VERSION: Final = 1
DETECTOR: Final = "AutoModelForZeroShotObjectDetection"
SEGMENTER: Final = "AutoModelForMaskGeneration"


@dataclass(frozen=True, kw_only=True, slots=True)
class Detection:
    """A detected object: score in [0, 1], and box x1, y1, x2, y2 in pixels, inside the image."""

    phrase: str
    score: float
    box: tuple[float, float, float, float]


class Grounder:
    """Detect objects by name, with scores of at least `least_score` in [0, 1]; not thread-safe."""

    def __init__(self, detector: Weights, segmenter: Weights | None, least_score: float) -> None:
        self.least_score = least_score
        self._detector = _Loaded(detector, DETECTOR)
        self._segmenter = None if segmenter is None else _Loaded(segmenter, SEGMENTER)
        found = {"detector": detector, "segmenter": segmenter}
        self.identity = {
            kind: None if weights is None else [weights.name, weights.digest(), weights.precision]
            for kind, weights in found.items()
        }

    def detect(self, pixels: NDArray[np.uint8], phrases: Sequence[str]) -> list[Detection]:
        """Return the detections of each phrase, such as "red car", in order, best first.

        Phrases are queried one by one, so that results do not depend on other phrases.
        """
        return [found for phrase in phrases for found in self._detect(pixels, phrase)]

    def outline(self, pixels: NDArray[np.uint8], boxes: Sequence[Detection]) -> NDArray[np.bool_]:
        """Return a mask of the pixels of some objects, bool of shape (height, width)."""
        mask = np.zeros(pixels.shape[:2], dtype=np.bool_)
        if self._segmenter is not None and boxes:
            return self._segment(self._segmenter, pixels, boxes)
        for x0, y0, x1, y1 in (each.box for each in boxes):
            mask[int(y0) : max(int(y0) + 1, round(y1)), int(x0) : max(int(x0) + 1, round(x1))] = (
                True
            )
        return mask

    def _detect(self, pixels: NDArray[np.uint8], phrase: str) -> list[Detection]:
        torch, loaded = import_torch(), self._detector
        text = f"{phrase.strip().rstrip('.').lower()}."  # as Grounding DINO's authors ask
        prompt = text if loaded.reads_ids else [[text]]
        inputs = loaded.inputs(images=Image.fromarray(pixels), text=prompt)
        with torch.inference_mode():
            outputs = loaded.model(**inputs)
        least, sizes = self.least_score, [pixels.shape[:2]]
        post: Any = loaded.processor.post_process_grounded_object_detection
        (found,) = (
            post(outputs, inputs["input_ids"], least, least, target_sizes=sizes)
            if loaded.reads_ids
            else post(outputs, threshold=least, target_sizes=sizes)
        )
        height, width = pixels.shape[:2]
        limits = np.array([width, height, width, height], dtype=np.float64)
        boxes = np.clip(found["boxes"].double().cpu().numpy(), 0, limits).round(2).tolist()
        scores = found["scores"].double().cpu().numpy().round(6)
        return [
            Detection(phrase=phrase, score=float(scores[n]), box=tuple(boxes[n]))
            for n in np.argsort(-scores, kind="stable")
            if boxes[n][0] < boxes[n][2] and boxes[n][1] < boxes[n][3]
        ]

    def _segment(
        self, loaded: _Loaded, pixels: NDArray[np.uint8], boxes: Sequence[Detection]
    ) -> NDArray[np.bool_]:
        torch = import_torch()
        prompt = [[list(map(float, each.box)) for each in boxes]]
        inputs = loaded.inputs(images=Image.fromarray(pixels), input_boxes=prompt)
        sizes = [inputs.pop(name) for name in _SIZES if name in inputs]
        with torch.inference_mode():
            outputs = loaded.model(**inputs, multimask_output=False)
        (masks,) = loaded.processor.post_process_masks(outputs.pred_masks.float().cpu(), *sizes)
        found: NDArray[np.bool_] = masks.reshape(-1, *pixels.shape[:2]).any(dim=0).numpy()
        return found


_SIZES: Final = ("original_sizes", "reshaped_input_sizes")
"""Keys of SAM's processors for the image size before and after scaling."""


class _Loaded:
    def __init__(self, weights: Weights, architecture: str) -> None:
        check_device(weights.device)
        self.model = load_model(weights, architecture)
        self.processor = load_auto("AutoProcessor", weights)
        self.device = weights.device

    @property
    def reads_ids(self) -> bool:
        """True for Grounding DINO, which takes one text; OWL-ViT takes several."""
        post = getattr(self.processor, "post_process_grounded_object_detection", None)
        return post is not None and "input_ids" in inspect.signature(post).parameters

    def inputs(self, **arguments: Any) -> dict[str, Any]:
        torch, encoded = import_torch(), self.processor(return_tensors="pt", **arguments)
        return {
            name: value.to(self.device, self.model.dtype if value.is_floating_point() else None)
            if isinstance(value, torch.Tensor) and name not in _SIZES
            else value
            for name, value in encoded.items()
        }


def weights_of(name: str, device: str) -> Weights:
    source, _, revision = name.rpartition("@")
    if not source or Path(name).is_dir():  # a folder's own name may hold an @
        return Weights(source=name, device=device)
    return Weights(source=source, revision=revision, device=device)

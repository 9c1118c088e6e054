"""What models say of a drawn pair: whether it changes as its captions do, and what it shows.

Source: of the direction, Gal et al. 2022, "StyleGAN-NADA", section 4.2, as Brooks et al. 2023,
  "InstructPix2Pix", section 3.1.2, rank edits by it; of the question and of P(yes) as its answer,
  Lin et al. 2024, "Evaluating Text-to-Visual Generation with Image-to-Text Generation" (VQAScore).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from eqforge.core.errors import BuildError
from eqforge.core.late import numpy as np
from eqforge.models.pretrained import one_thread
from eqforge.models.scorer import Identity, Picture
from eqforge.schemas.records.scores import Score, compact_json
from eqforge.transforms.oracle.scores import PAIR_CELLS, shared_scorer
from eqforge.transforms.ranking.settings import VERSION, RankSettings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from eqforge.generators.text.llm.model import Memory

DIRECTION: Final = "direction"
VQA: Final = "vqa"


def direction_score(
    settings: RankSettings,
    model: Identity,
    pixels: Sequence[NDArray[np.uint8]],
    captions: tuple[str, str],
) -> Score:
    """Returns the cosine between the change of the pictures and that of their captions.

    Every picture and caption is encoded by itself, so that no vector depends on the others.

    Args:
      settings: name the dual encoder.
      model: its identity.
      pixels: of both pictures, uint8 of shape (height, width, 3), RGB.
      captions: caption i describes picture i.

    Returns:
      The cosine, in [-1, 1], to 6 decimals; None where pictures or captions are encoded alike.

    Raises:
      BuildError: the model is another than when the run began.
      ValueError: a picture or a caption cannot be encoded.
    """
    spec = settings.direction_spec
    assert spec is not None
    shared = shared_scorer(spec)
    scorer: Any = shared.scorer
    _check_same(scorer.identity, model)
    prepared = [scorer.prepare(Picture(key="image", pixels=each)) for each in pixels]
    with shared.lock, one_thread():
        images = [scorer.encode_images([each])[0] for each in prepared]
        texts = [scorer.encode_captions([each])[0] for each in captions]
    return _score(DIRECTION, _cosine(images, texts, model), model)


def _cosine(
    images: Sequence[NDArray[np.float32]], texts: Sequence[NDArray[np.float32]], model: Identity
) -> float | None:
    changes = [second.astype(np.float64) - first for first, second in (images, texts)]
    lengths = [float(np.linalg.norm(change)) for change in changes]
    if not all(map(np.isfinite, lengths)):
        raise ValueError(f"{model.name} encodes a picture or a caption as what is not a number")
    return None if 0 in lengths else float(changes[0] @ changes[1]) / (lengths[0] * lengths[1])


def vqa_scores(
    settings: RankSettings,
    model: Identity,
    pixels: Sequence[NDArray[np.uint8]],
    captions: tuple[str, str],
    memory: Memory,
) -> tuple[Score, ...]:
    """Returns P(yes) that each picture shows each caption, `vqa_c0_i1` of caption 0 and picture 1.

    Args:
      settings: name the model that answers.
      model: its identity.
      pixels: of both pictures, uint8 of shape (height, width, 3), RGB.
      captions: caption i describes picture i.
      memory: where a judge may keep what its answers cost.

    Returns:
      Four scores, to 6 decimals; None where the model cannot read a picture or a caption.

    Raises:
      BuildError: the model is another than when the run began.
    """
    from eqforge.transforms.judges.models import Wanted, shared_judge

    spec = settings.vqa_spec
    assert spec is not None
    shared = shared_judge(spec, model)
    asked = [Wanted("shown", (caption,)) for caption in captions]
    found = []
    for each in pixels:
        with shared.lock, one_thread():
            found.append(shared.judge.answer(asked, _giver(each), memory))
    return tuple(
        _score(f"{VQA}_{cell}", found[image][asked[caption]], model)
        for cell, (image, caption) in PAIR_CELLS.items()
    )


def _giver(pixels: NDArray[np.uint8]) -> Callable[[], NDArray[np.uint8]]:
    return lambda: pixels


def _check_same(found: Identity, expected: Identity) -> None:
    if (found.revision, found.preprocessing) != (expected.revision, expected.preprocessing):
        raise BuildError(f"the model {expected.name} changed since the run began")


def _score(name: str, value: float | None, model: Identity) -> Score:
    identity = dataclasses.asdict(model) | {"ranking": VERSION}
    return Score(
        name=name,
        value=None if value is None else round(value, 6),
        scorer=model.kind,
        version=model.revision,
        settings=compact_json(
            {name: value for name, value in identity.items() if name not in ("kind", "revision")}
        ),
    )

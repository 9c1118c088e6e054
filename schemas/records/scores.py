"""Scores of images and pairs, and the rejections to which scores and lints lead.

A filter works in two steps: one function scores, another compares the scores with its settings.
The scores stay in the row with the scorer that made them, so that a threshold can be changed later
without measuring again.
"""

import dataclasses
import json
from collections.abc import Iterable, Mapping
from typing import Any

from eqforge.schemas.records.values import Finite, Text


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """One measurement of an image or a pair, with everything needed to reproduce it.

    Attributes:
      name: name of the measurement, unique among the scores of a record.
      value: measured value, or None if the scorer produced no result.
      scorer: name of the software.
      version: version of the software.
      settings: settings of the scorer, as compact JSON with sorted keys.
    """

    name: Text
    value: Finite | None
    scorer: Text
    version: Text
    settings: str


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """Which model scores: everything that decides a score besides image and caption.

    Attributes:
      kind: how the model is loaded and used, such as `blip-itm`.
      family: models of one family share architecture and training, such as `blip`.
      model: id on the Hugging Face Hub, or the name of a local folder or file.
      revision: commit on the Hub, or `sha256:` and a digest of the local files.
      precision: type of the weights, such as `float32`.
      preprocessing: digest of how images and captions are prepared.
      calibration: how a logit becomes P(match).
    """

    kind: str
    family: str
    model: str
    revision: str
    precision: str
    preprocessing: str
    calibration: str

    @property
    def name(self) -> str:
        return f"{self.kind}:{self.model}@{self.revision}"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Rejection:
    """Why a candidate does not become a sample.

    Attributes:
      reason: one of the reasons of its stage; see `eqforge.schemas.records.stages.Stage`.
      value: the measurement that decided; None where the reason has none.
      threshold: what the measurement was compared with; None where the reason has none.
      detail: what a reader needs beside the numbers, such as the name of the score.
    """

    reason: str
    value: float | None = None
    threshold: float | None = None
    detail: str = ""


def compact_json(settings: Mapping[str, Any]) -> str:
    """Return settings as canonical JSON: without spaces, keys sorted."""
    return json.dumps(settings, sort_keys=True, separators=(",", ":"))


def value_of(scores: Iterable[Score], name: str) -> float | None:
    """Return the value of the score with the given name."""
    found = {score.name: score.value for score in scores}
    if name not in found:
        raise KeyError(f"no score {name!r} among {sorted(found)}")
    return found[name]

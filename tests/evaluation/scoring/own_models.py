"""A user's own model, by the protocol of the manual: captions match pictures of their colour."""

import os
import signal
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from eqforge.models.scorer import Identity, IndexPairs, Matches, Picture, sigmoid


class Redness:
    """Scores by how red a picture is, where the caption says red."""

    reads_pixels = True

    def __init__(self, factor: float) -> None:
        self.factor = factor
        self.identity = Identity(
            kind="own",
            family="own",
            model="redness",
            revision="1",
            precision="float32",
            preprocessing="none",
            calibration=f"{factor}",
        )

    def prepare(self, picture: Picture) -> Any:
        assert picture.pixels is not None
        return picture.pixels[..., 0].mean()

    def encode_images(self, prepared: Sequence[Any]) -> Sequence[Any]:
        return prepared

    def match(self, images: Sequence[Any], captions: Sequence[str], pairs: IndexPairs) -> Matches:
        logits = np.array(
            [self.factor * images[i] * ("red" in captions[c]) for i, c in pairs], np.float32
        )
        return Matches(logits=logits, probabilities=sigmoid(logits))


def make(device: str, factor: str = "1") -> Redness:
    return Redness(float(factor))


class Sure(Redness):
    """Says that 0 parts true from false."""

    gives_log_odds = True


def make_nothing(device: str) -> object:
    return object()


class Unmatched:
    """A dual encoder but for `match`."""

    reads_pixels = True
    identity = Redness(1.0).identity

    def prepare(self, picture: Picture) -> Any:
        return picture.pixels

    def encode_images(self, prepared: Sequence[Any]) -> Any:
        return np.ones((len(prepared), 2), np.float32)

    def encode_captions(self, captions: Sequence[str]) -> Any:
        return np.ones((len(captions), 2), np.float32)

    def compare(self, images: Any, captions: Any) -> Any:
        return (images * captions).sum(axis=1)


def make_unmatched(device: str) -> object:
    return Unmatched()


class Slow(Redness):
    """Takes its time, so that it can be killed."""

    def encode_images(self, prepared: Sequence[Any]) -> Sequence[Any]:
        time.sleep(0.1)
        return prepared


class Short(Redness):
    """Finds no room on its device."""

    def encode_images(self, prepared: Sequence[Any]) -> Sequence[Any]:
        import torch

        raise torch.OutOfMemoryError("tried to allocate 2 GiB")


def ends(picture: Picture) -> Any:
    """Kills the process it runs in."""
    os.kill(os.getpid(), signal.SIGKILL)


def make_deadly(device: str) -> Redness:
    made: Any = Redness(1.0)
    made.preparer = ends
    return made


class Leftness(Redness):
    """Scores by how much brighter a picture is on its left, more so the longer the caption is."""

    def prepare(self, picture: Picture) -> Any:
        assert picture.pixels is not None
        return leftness(picture.pixels)

    def match(self, images: Sequence[Any], captions: Sequence[str], pairs: IndexPairs) -> Matches:
        logits = np.array([images[i] * len(captions[c]) for i, c in pairs], np.float32)
        return Matches(logits=logits, probabilities=sigmoid(logits))


def leftness(pixels: Any) -> float:
    """Returns what a picture turned or cut to 8 bits the wrong way has another value of."""
    middle = pixels.shape[1] // 2
    return float(pixels[:, :middle].mean() - pixels[:, middle:].mean()) / 255


class LeftVectors(Leftness):
    """The same as a dual encoder: an image is an angle, and so is a caption."""

    def encode_images(self, prepared: Sequence[Any]) -> Sequence[Any]:
        return [_direction(left) for left in prepared]

    def encode_captions(self, captions: Sequence[str]) -> Any:
        return np.stack([_direction(len(caption) / 100) for caption in captions])

    def compare(self, images: Any, captions: Any) -> Matches:
        logits = (images * captions).sum(axis=1, dtype=np.float32)
        return Matches(logits=logits, probabilities=sigmoid(logits))


def _direction(angle: float) -> Any:
    return np.array([np.cos(angle), np.sin(angle)], np.float32)


class Unshaped(Redness):
    """Gives another number of logits than there are pairs."""

    def match(self, images: Sequence[Any], captions: Sequence[str], pairs: IndexPairs) -> Matches:
        return Matches(logits=np.zeros(3, np.float32), probabilities=np.zeros(3))


class Lost(Redness):
    """Gives no number."""

    def match(self, images: Sequence[Any], captions: Sequence[str], pairs: IndexPairs) -> Matches:
        nothing = np.full(len(pairs), np.nan, np.float32)
        return Matches(logits=nothing, probabilities=nothing.astype(np.float64))


class Flat(LeftVectors):
    """Gives a number for an image, not a vector."""

    def encode_images(self, prepared: Sequence[Any]) -> Sequence[Any]:
        return list(prepared)


class Fewer(LeftVectors):
    """Encodes one caption, whatever it is given."""

    def encode_captions(self, captions: Sequence[str]) -> Any:
        return np.ones((1, 2), np.float32)


class Single(Redness):
    """Encodes one image, whatever it is given."""

    def encode_images(self, prepared: Sequence[Any]) -> Sequence[Any]:
        return prepared[:1]


def _maker(kind: type[Redness]) -> Callable[[str], Redness]:
    return lambda device: kind(1.0)


make_sure, make_slow, make_short = map(_maker, (Sure, Slow, Short))
make_left, make_left_vectors = map(_maker, (Leftness, LeftVectors))
make_unshaped, make_lost, make_flat = map(_maker, (Unshaped, Lost, Flat))
make_fewer, make_single = map(_maker, (Fewer, Single))

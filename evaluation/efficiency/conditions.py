"""Conditions that two measurements must share for their times to be comparable."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from eqforge.core.errors import InputError
from eqforge.evaluation.efficiency.result import Efficiency

_MACHINE = ("cpu", "gpu", "cuda", "cudnn", "tf32", "torch_threads", "python")
_GPU = ("driver_version", "clocks.max.sm", "power.limit")
_SETTINGS = ("task", "items", "seed", "warm_up", "max_pixels", "decoder")


def check_alike(paths: Sequence[Path], measured: Sequence[Efficiency]) -> None:
    """Checks that models were timed on one kind of machine, with the same images and captions.

    Args:
      paths: the files of the measurements, for the message.
      measured: their content, in the same order.

    Raises:
      InputError: two of them differ in something other than the model that affects times.
    """
    expected = dict(_conditions(measured[0]))
    for path, one in zip(paths[1:], measured[1:], strict=True):
        for name, value in _conditions(one):
            if value != expected[name]:
                raise InputError(
                    f"{path}: its times cannot be compared with those of {paths[0]}: {name} is "
                    f"{value}, there {expected[name]}; measure both again on one machine (numbers "
                    "of other machines can be named in a CSV table)"
                )


def _conditions(found: Efficiency) -> Iterator[tuple[str, Any]]:
    """Yields (name, value) of what has to be equal; None where a machine lacks or hides it."""
    before = found.clocks.get("before") or {}
    yield from ((name, found.machine.get(name)) for name in _MACHINE)
    libraries = found.machine.get("libraries") or {}
    yield "the libraries", ", ".join(f"{name} {libraries[name]}" for name in sorted(libraries))
    yield "the governor", before.get("cpu_governor")
    yield from ((f"the GPU's {name}", (before.get("nvidia_smi") or {}).get(name)) for name in _GPU)
    yield "the dataset's SHA-256", found.dataset_sha256
    yield from ((name, found.settings.get(name)) for name in _SETTINGS)

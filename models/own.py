"""Loads models by name for the evaluation, a user's own Python code among them.

`python:MODULE:FACTORY` names a function of a module that Python can import; it is called with the
options as text and returns a scorer, or a dual encoder, of `eqforge.models.scorer`. Only a command
line can name one: nothing that is read from a file loads code.
"""

import importlib
from collections.abc import Callable
from typing import Any

from eqforge.core.errors import InputError
from eqforge.models.scorer import Identity, Scorer
from eqforge.models.spec import SCORERS, load_scorer, parse_specs

PREFIX = "python:"
_OWN = f"{PREFIX}MODULE:FACTORY[,OPTION=VALUE]..."
_NEEDED = ("identity", "reads_pixels", "prepare", "encode_images", "match")


def device_of(text: str) -> str | None:
    """Returns the device that a model's name asks for; None if it names none.

    Raises:
      InputError: the model is not named as expected.
    """
    if text.startswith(PREFIX):
        return _parse(text)[2].get("device")
    return _one(text).text("device")


def load_model(text: str, device: str) -> Scorer:
    """Loads a model by name onto a device.

    Args:
      text: `KIND:SOURCE[@COMMIT][,OPTION=VALUE]...` or `python:MODULE:FACTORY[,OPTION=VALUE]...`.
      device: as torch names it; a user's own factory gets it as its option `device`.

    Raises:
      InputError: the model is not named as expected, or cannot be loaded.
      MissingExtra: a package is not installed.
    """
    if text.startswith(PREFIX):
        module, factory, options = _parse(text)
        return _call(module, factory, options | {"device": device})
    return load_scorer(_one(text).on(device))


def _one(text: str) -> Any:
    try:
        specs = parse_specs(text)
    except InputError as error:
        if text.partition(":")[0] in SCORERS:
            raise
        end = "" if str(error).endswith("?") else ","
        raise InputError(f"{error}{end} or, for a model of your own, {_OWN}") from error
    if len(specs) != 1:
        raise InputError(f"{text!r}: expected one model; score several one after the other")
    return specs[0]


def _parse(text: str) -> tuple[str, str, dict[str, str]]:
    name, *given = text.removeprefix(PREFIX).split(",")
    module, _, factory = name.partition(":")
    options = dict(option.partition("=")[::2] for option in given)
    if not module or not factory or "" in options:
        raise InputError(f"{text!r}: expected {_OWN}")
    return module, factory, options


def _call(module: str, factory: str, options: dict[str, str]) -> Scorer:
    try:
        make: Callable[..., Any] = getattr(importlib.import_module(module), factory)
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"{PREFIX}{module}:{factory}: {error} (expected a module that Python can import, such "
            "as one in a folder of PYTHONPATH, and a function in it)"
        ) from error
    try:
        scorer = make(**options)
    except TypeError as error:
        raise InputError(f"{PREFIX}{module}:{factory}: {error}") from error
    missing = [name for name in _NEEDED if not hasattr(scorer, name)]
    if missing or not isinstance(scorer.identity, Identity):
        lacks = ", ".join(missing) or "an identity of the class Identity"
        raise InputError(
            f"{PREFIX}{module}:{factory} returned a {type(scorer).__name__} without {lacks}; see "
            "docs/guides/scoring.md for what a model has"
        )
    made: Scorer = scorer
    return made

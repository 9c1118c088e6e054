"""Load parts of text packages without importing the whole packages.

`lemminflect` loads spaCy and with it torch, `textblob` loads NLTK, and `inflect` prepares type
checks: seconds of work that is not needed here.
"""

import functools
import sys
import threading
import warnings
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from eqforge.core.errors import MissingExtra

if TYPE_CHECKING:
    import inflect

_lock = threading.RLock()


@functools.cache
def inflect_engine() -> "inflect.engine":
    try:
        import typeguard

        with _lock:
            checked = typeguard.typechecked
            setattr(typeguard, "typechecked", lambda function: function)  # noqa: B010
            try:
                import inflect
            finally:
                setattr(typeguard, "typechecked", checked)  # noqa: B010
    except ImportError as error:
        raise MissingExtra("inflect", "text") from error
    return inflect.engine()


@functools.cache
def lemmatizer() -> Any:
    return _part("lemminflect.core.Lemmatizer").Lemmatizer()


@functools.cache
def _inflections() -> Any:
    return _part("lemminflect.core.Inflections").Inflections()


@functools.lru_cache(maxsize=65_536)
def inflect_word(lemma: str, tag: str) -> str | None:
    """Return the form of a word for a Penn tag such as `VBZ`, None if the dictionary has none."""
    forms = _inflections().getInflection(lemma, tag=tag, inflect_oov=False)
    return forms[0] if forms else None


@functools.cache
def english() -> Any:
    module = _part("textblob.en")
    with warnings.catch_warnings():
        # Its reader leaves the file open until it is garbage-collected.
        warnings.simplefilter("ignore", ResourceWarning)
        module.lexicon.load()
    return module


def _part(name: str) -> ModuleType:
    """Import a module without running the `__init__` of its package."""
    package = name.partition(".")[0]
    with _lock:
        spec = find_spec(package)
        if spec is None:
            raise MissingExtra(package, "text")
        if package in sys.modules:
            return import_module(name)
        sys.modules[package] = module_from_spec(spec)
        try:
            return import_module(name)
        except ImportError as error:
            raise MissingExtra(package, "text") from error
        finally:
            del sys.modules[package]

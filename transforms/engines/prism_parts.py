"""Prism, Beam's small engine in Go: built from its module into eqforge's cache."""

from collections.abc import Callable
from pathlib import Path

import apache_beam

from eqforge.schemas.cache import cache_folder
from eqforge.schemas.errors import InputError
from eqforge.transforms.engines.install import installing, run_tool

_MODULE = "github.com/apache/beam/sdks/v2/go/cmd/prism"


def _binary() -> Path:
    return cache_folder() / "prism" / apache_beam.__version__ / "prism"


def prism_binary() -> Path:
    """Returns the program.

    Raises:
      InputError: it has not been built.
    """
    if not _binary().is_file():
        raise InputError(
            "Prism is not on this machine: run `eqforge setup prism`, or name a program of your "
            "own by --prism_location"
        )
    return _binary()


def setup_prism(report: Callable[[str], None]) -> str:
    """Makes Prism available to this user; returns where it lies.

    It is built from the module of the installed Beam's version, whose content Go's checksum
    database vouches for.

    Args:
      report: is told what is being done, a line at a time.

    Raises:
      InputError: Go is missing, or could not fetch or build it.
    """
    if not _binary().is_file():
        version = f"v{apache_beam.__version__}"
        report(f"building Prism {version} with Go: fetches 200 MB, takes minutes")
        with installing(_binary().parent) as new:
            run_tool(
                *("go", "install", "-trimpath", f"{_MODULE}@{version}"),
                folder=new,
                needs="Go 1.26 or later",
                GOBIN=str(new),
            )
    return str(prism_binary())

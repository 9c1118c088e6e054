"""Prism, Beam's small engine in Go: built from its module into eqforge's cache."""

import tempfile
from collections.abc import Callable
from pathlib import Path

from eqforge.core.errors import InputError
from eqforge.core.files.cache import cache_folder
from eqforge.transforms.engines.install import installing, run_tool

_MODULE = "github.com/apache/beam/sdks/v2"
# Prism has one port for jobs and workers, without authentication, and no option for the address.
_LISTENER = "go/pkg/beam/runners/prism/internal/jobservices/server.go"
_EVERYWHERE, _LOOPBACK = 'fmt.Sprintf(":%d", port)', 'fmt.Sprintf("localhost:%d", port)'


def _binary() -> Path:
    import apache_beam

    return cache_folder() / "prism" / f"{apache_beam.__version__}-loopback" / "prism"


def is_our_prism(program: str | None) -> bool:
    """Tells whether a program is the one that setup_prism built."""
    return program == str(_binary())


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
    """Installs Prism for this user; returns where it is.

    It is built from the Go module of the installed Beam's version, verified by Go's checksum
    database, with one line changed to listen on the loopback only.

    Args:
      report: called with a line on each step.

    Raises:
      InputError: Go is missing, or could not fetch or build Prism.
    """
    import apache_beam

    if not _binary().is_file():
        report(f"building Prism {apache_beam.__version__} with Go: fetches 200 MB, takes minutes")
        with installing(_binary().parent) as new, tempfile.TemporaryDirectory() as scratch:
            _build(new / "prism", Path(scratch))
    return str(prism_binary())


def _build(program: Path, scratch: Path) -> None:
    import apache_beam

    needs = "Go 1.26 or later"
    variables = {
        "GOPATH": str(scratch / "path"),
        "GOCACHE": str(scratch / "cache"),
        "GOFLAGS": "-modcacherw",  # else the cache could not be deleted
        "GOWORK": "off",
    }
    module = f"{_MODULE}@v{apache_beam.__version__}"
    run_tool("go", "mod", "download", module, folder=scratch, needs=needs, **variables)
    source = scratch / "path" / "pkg" / "mod" / module
    _listen_at_loopback(source / _LISTENER)
    build = ("go", "build", "-trimpath", "-o", str(program), "./go/cmd/prism")
    run_tool(*build, folder=source, needs=needs, **variables)


def _listen_at_loopback(listener: Path) -> None:
    """Changes the line that opens Prism's port.

    Raises:
      InputError: the file has no such line.
    """
    import apache_beam

    text = listener.read_text(encoding="utf-8")
    if text.count(_EVERYWHERE) != 1:
        raise InputError(f"Prism {apache_beam.__version__}: {listener.name} opens no port as known")
    listener.chmod(0o644)
    listener.write_text(text.replace(_EVERYWHERE, _LOOPBACK), encoding="utf-8")

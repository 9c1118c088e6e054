"""The versions of the packages that a result depends on."""

import functools
from importlib import metadata


def versions_of(*packages: str) -> dict[str, str]:
    """Returns the versions of those packages that are installed."""
    found = {package: _version(package) for package in packages}
    return {package: version for package, version in found.items() if version is not None}


@functools.cache
def _version(package: str) -> str | None:
    # Parses the package's metadata anew each time, which takes milliseconds.
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None

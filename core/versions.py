"""The versions of the packages that a result depends on."""

import functools


def versions_of(*packages: str) -> dict[str, str]:
    """Return the versions of the packages that are installed."""
    found = {package: _version(package) for package in packages}
    return {package: one for package, one in found.items() if one is not None}


def version(package: str) -> str:
    from importlib import metadata  # which imports the parser of e-mail

    return metadata.version(package)


@functools.cache
def _version(package: str) -> str | None:
    # Parses the package's metadata anew each time, which takes milliseconds.
    try:
        return version(package)
    except ModuleNotFoundError:  # importlib.metadata's PackageNotFoundError is one
        return None

import importlib.metadata

import eqforge
from eqforge.schemas.versions import versions_of


def test_versions_are_those_of_installed_packages_alone() -> None:
    assert list(versions_of("numpy", "no-such-package", "pillow")) == ["numpy", "pillow"]


def test_the_packages_version_is_that_of_its_metadata() -> None:
    assert eqforge.__version__ == importlib.metadata.version("eqforge")
    assert versions_of("eqforge") == {"eqforge": eqforge.__version__}

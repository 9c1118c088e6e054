from eqforge.schemas.versions import versions_of


def test_versions_are_those_of_installed_packages_alone() -> None:
    assert list(versions_of("numpy", "no-such-package", "pillow")) == ["numpy", "pillow"]

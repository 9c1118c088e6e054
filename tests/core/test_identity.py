from importlib import metadata

import pytest

from eqforge.core.identity import versions_of


def test_the_metadata_of_a_package_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step of every clip asks; parsing metadata each time took most of a build."""
    before = versions_of("numpy")
    monkeypatch.setattr(metadata, "version", None)
    assert versions_of("numpy") == before

"""Fixtures shared by the tests of generators."""

from typing import Any

import pytest

from eqforge.generators.text.wordnet import open_wordnet
from eqforge.schemas.errors import InputError


@pytest.fixture(scope="session")
def wordnet() -> Any:
    """NLTK's reader of WordNet; tests that need it are skipped until `eqforge setup wordnet`."""
    try:
        return open_wordnet()
    except InputError as error:
        pytest.skip(str(error))

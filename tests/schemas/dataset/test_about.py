import datetime
from pathlib import Path

import pytest

from eqforge.core.errors import InputError
from eqforge.schemas.dataset.about import (
    REDISTRIBUTABLE,
    About,
    Author,
    is_redistributable,
    read_about,
    spdx,
)


def test_everything_is_read(tmp_path: Path) -> None:
    path = tmp_path / "about.toml"
    path.write_text(
        'title = "台所"\npublished = 2026-11-23\nlicence = "cc by-sa 4.0"\nlanguages = ["ja"]\n'
        'biases = ["One town."]\n[[authors]]\nname = "李"\nurl = "https://example.org/x"\n'
    )
    assert read_about(path) == About(
        title="台所",
        published=datetime.date(2026, 11, 23),
        licence="CC-BY-SA-4.0",
        languages=("ja",),
        biases=("One town.",),
        authors=(Author(name="李", url="https://example.org/x"),),
    )
    path.write_text("")
    assert read_about(path) == About()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('titel = "x"', "titel: unknown field; did you mean 'title'?"),
        ("title = 3", "title: expected a string"),
        ('[[authors]]\nnam = "x"', "authors[0].nam: unknown field"),
        ('[[authors]]\nname = " "', "an author has no name"),
        ('authors = ["x"]', "authors[0]: expected an object"),
        ('licence = "CC-BY-4"', "SPDX does not list 'CC-BY-4'"),
        ('languages = ["English"]', "expected tags such as 'en' or 'pt-BR', found 'English'"),
        ('homepage = "javascript:alert(1)"', "homepage: expected an https"),
        ('tags = ["a\\nb: c"]', "tags: expected words"),
        ('published = "soon"', "published: "),
        ('citation = "```"', "three backticks"),
        ("title", "cannot be read as TOML"),
        ("title = '\udcff'", "not UTF-8 text"),
        (f"title = {'[' * 5_000}", "cannot be read as TOML"),
    ],
)
def test_what_is_wrong_is_said_with_its_field(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "about.toml"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError) as raised:
        read_about(path)
    assert message in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("licence", "known", "allows"),
    [
        ("cc-by-4.0", "CC-BY-4.0", True),
        ("CC BY 4.0", "CC-BY-4.0", True),
        ("https://creativecommons.org/licenses/by-nc/2.0/", "CC-BY-NC-2.0", True),
        ("http://creativecommons.org/licenses/by-nd/2.0/", "CC-BY-ND-2.0", False),
        ("http://creativecommons.org/publicdomain/zero/1.0/", "CC0-1.0", True),
        ("MIT OR GPL-3.0-only", "MIT OR GPL-3.0-only", True),
        ("MIT AND GPL-3.0-only", "MIT AND GPL-3.0-only", False),
        ("CC-BY-NC-ND-4.0", "CC-BY-NC-ND-4.0", False),
        ("LicenseRef-mine", "LicenseRef-mine", False),
        ("all rights reserved", None, False),
        ("MIT; rm -rf /", None, False),
        ("", None, False),
    ],
)
def test_licences_are_known_by_spdx(licence: str, known: str | None, allows: bool) -> None:
    assert spdx(licence) == known
    assert is_redistributable(licence) == allows


def test_every_licence_of_the_list_is_one_and_none_stated_allows_nothing() -> None:
    for licence in REDISTRIBUTABLE:
        assert spdx(licence) == licence
        assert is_redistributable(licence)
    assert not is_redistributable(None)

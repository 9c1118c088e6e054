"""What is wrong with a JSON file is said in words: where, what was expected, what was found."""

from typing import Any

import msgspec
import pytest

from eqforge.core.errors import InputError
from eqforge.core.files.typed_json import decode


class Image(msgspec.Struct, forbid_unknown_fields=True):
    id: int
    captions: list[str] = []
    box: tuple[int, int] | None = None
    score: float | None = None


class File(msgspec.Struct):
    images: list[Image]


@pytest.mark.parametrize(
    ("data", "type_", "said"),
    [
        ("{}", list[Image], "f.json: expected a list, found an object"),
        ('{"imgs": []}', File, "f.json: the field 'images' is missing; found only 'imgs'"),
        ('{"images": {}}', File, "f.json: images: expected a list, found an object"),
        ('{"images": [3]}', File, "f.json: images[0]: expected an object, found 3"),
        (
            '{"images": [{"id": 1}, {"id": "7"}]}',
            File,
            "f.json: images[1].id: expected a whole number, found '7'",
        ),
        (
            '{"images": [{"captions": []}]}',
            File,
            "images[0]: the field 'id' is missing; found only",
        ),
        (
            '{"id": 1, "colour": 2}',
            Image,
            "f.json: unknown field 'colour'; expected id, captions, box, score",
        ),
        (
            '{"id": 1, "captions": [null]}',
            Image,
            "f.json: captions[0]: expected a string, found null",
        ),
        (
            '{"id": 1, "score": true}',
            Image,
            "score: expected a number or null, found true or false",
        ),
        ('{"id": 1, "box": [1, 2, 3]}', Image, "box: expected a list of length 2, found 3"),
        (
            '{"a.b": {"id": 1}, "c d": {"id": 2.5}}',
            dict[str, Image],
            "f.json: c d.id: expected a whole number, found 2.5",
        ),
        ('{"images": [', File, "f.json: not valid JSON: "),
    ],
)
def test_messages_are_in_words(data: str, type_: Any, said: str) -> None:
    with pytest.raises(InputError) as raised:
        decode(data.encode(), type_, "f.json")
    assert said in str(raised.value)
    assert "`" not in str(raised.value)


def test_a_value_in_a_message_is_short(tmp_path: Any) -> None:
    with pytest.raises(InputError) as raised:
        decode(b'{"id": "%s"}' % (b"\x1bx" * 5_000).replace(b"\x1b", b"\\u001b"), Image, "f.json")
    assert len(str(raised.value)) < 200
    assert str(raised.value).isprintable()

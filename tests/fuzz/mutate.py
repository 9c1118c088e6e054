"""Makes damaged and hostile inputs from good ones; the same input and seed give the same bytes."""

import gzip
import io
import json
import math
import pickle
import random
import struct
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

Mutator = Callable[[bytes, random.Random], bytes]


def _deep(levels: int) -> Any:
    value: Any = 1
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


HOSTILE: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, 10**400, -(10**400), 0.5, -0.0, 1e308),
    *(
        math.nan,
        math.inf,
        -math.inf,
        "",
        " ",
        "\ud800",
        "a\udfff",
        "\x00",
        "\x1b[2J",
        "\n",
        "\u2028",
    ),
    *(
        "../../etc/passwd",
        "/etc/passwd",
        "a/../b",
        "a" * 400,
        "é" * 40,
        "1",
        "NaN",
        "x_0A",
        "\u0663",
    ),
    *([], {}, [[]], [None], {"": ""}, {"\ud800": 1}, [1, 2, 3], _deep(40), _deep(600)),
)
_BYTES = (
    b"\x00\xff\x80\x7f{}[]\",:\\\n\r\t'|#0129-.eEnN(\x28\x85\x86\x87\x52\x62\x71\x72\x75\x6a\x68"
)


def damage(data: bytes, rng: random.Random) -> bytes:
    """Changes, drops, repeats or cuts a few stretches of bytes."""
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 8))):
        place, length = rng.randrange(len(found) + 1), rng.choice((1, 1, 2, 4, 16))
        way = rng.randrange(7)
        if way == 0:
            found[place : place + 1] = bytes([rng.choice(_BYTES)])
        elif way == 1:
            found[place : place + length] = rng.randbytes(length)
        elif way == 2:
            del found[place : place + length]
        elif way == 3:
            found[place:place] = found[place : place + 8 * length]
        elif way == 4:
            found[place:place] = bytes(rng.choice(_BYTES) for _ in range(length))
        elif way == 5:
            found[place : place + 4] = struct.pack(
                "<I", rng.choice((0, 1, 2**31, 2**32 - 1, 2**16))
            )
        elif rng.random() < 0.3:
            del found[place:]
    return bytes(found)


def change(value: Any, rng: random.Random) -> Any:
    """Returns a tree of containers with one place changed: removed, doubled or made hostile."""
    if not isinstance(value, dict | list | tuple) or not value or rng.random() < 0.1:
        return rng.choice(HOSTILE)
    if isinstance(value, dict):
        key = rng.choice(list(value))
        way = rng.randrange(8)
        if way == 0:
            return {name: part for name, part in value.items() if name != key}
        if way == 1:
            return value | {rng.choice(HOSTILE_KEYS): value[key]}
        return value | {key: change(value[key], rng)}
    parts = list(value)
    place, way = rng.randrange(len(parts)), rng.randrange(8)
    if way == 0:
        del parts[place]
    elif way == 1:
        parts.insert(place, parts[place])
    else:
        parts[place] = change(parts[place], rng)
    return tuple(parts) if isinstance(value, tuple) else parts


HOSTILE_KEYS = tuple(value for value in HOSTILE if isinstance(value, str))


def json_text(data: bytes, rng: random.Random) -> bytes:
    """Changes a JSON file in its structure, or in its bytes."""
    if rng.random() < 0.3:
        return damage(data, rng)
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return damage(data, rng)
    for _ in range(rng.choice((1, 1, 2, 3))):
        value = change(value, rng)
    made = json.dumps(value).encode()
    return damage(made, rng) if rng.random() < 0.1 else made


def json_lines(data: bytes, rng: random.Random) -> bytes:
    """Changes a line of a file of JSON lines."""
    lines = data.split(b"\n")
    place = rng.randrange(len(lines))
    lines[place] = json_text(lines[place], rng)
    return b"\n".join(lines)


def pickled(data: bytes, rng: random.Random) -> bytes:
    if rng.random() < 0.5:
        return damage(data, rng)
    try:
        value = pickle.loads(data) if data in GOOD_PICKLES else None
    except Exception:
        value = None
    if value is None:
        return damage(data, rng)
    for _ in range(rng.choice((1, 2, 3))):
        value = change(value, rng)
    if rng.random() < 0.1 and isinstance(value, dict):
        key = rng.choice(("k", (1, 2), 7, ((),), "a.mp4/000009.png"))
        value = value | {key: np.zeros(4, rng.choice("fdiO"))}
    try:
        made = pickle.dumps(value, rng.randrange(6))
    except RecursionError:
        return damage(data, rng)
    return damage(made, rng) if rng.random() < 0.2 else made


GOOD_PICKLES: set[bytes] = set()
"""Pickles that were made here, which alone are unpickled here."""


def png_or_other(data: bytes, rng: random.Random) -> bytes:
    """Damages an image; the sums of a PNG's chunks are mostly made right again."""
    made = damage(data, rng)
    return with_sums(made) if rng.random() < 0.7 else made


def with_sums(data: bytes) -> bytes:
    """Returns a PNG with the right CRC behind every chunk, as far as its lengths lead."""
    if not data.startswith(b"\x89PNG\r\n\x1a\n"):
        return data
    found, place = bytearray(data), 8
    while place + 12 <= len(found):
        end = place + 8 + int.from_bytes(found[place : place + 4], "big")
        if end + 4 > len(found):
            break
        found[end : end + 4] = struct.pack(">I", zlib.crc32(found[place + 4 : end]))
        place = end + 4
    return bytes(found)


def zipped(data: bytes, rng: random.Random) -> bytes:
    """Damages a file in a zip archive, such as a tensor's pickle, or the archive itself."""
    if rng.random() < 0.3:
        return damage(data, rng)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            files = {name: archive.read(name) for name in archive.namelist()}
    except Exception:
        return damage(data, rng)
    if not files:
        return damage(data, rng)
    name = rng.choice(sorted(files))
    files[name] = damage(files[name], rng)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return stream.getvalue()


def archived(data: bytes, rng: random.Random) -> bytes:
    """Damages a gzipped tar archive, or blocks in it, whose sums are made right again."""
    if rng.random() < 0.2:
        return damage(data, rng)
    try:
        blocks = bytearray(gzip.decompress(data))
    except Exception:
        return damage(data, rng)
    for _ in range(rng.choice((1, 1, 2, 4))):
        start = 512 * rng.randrange(max(1, len(blocks) // 512))
        place, length, values = rng.choice(_TAR_FIELDS)
        value = rng.choice(values)
        blocks[start + place : start + place + length] = value.ljust(length, b"\0")[:length]
        if rng.random() < 0.2:
            blocks[start:start] = blocks[start : start + 512] * rng.choice((1, 3, 2_000))
        header = blocks[start : start + 512]
        total = sum(header[:148]) + 8 * 32 + sum(header[156:])
        blocks[start + 148 : start + 156] = b"%06o\0 " % total
    return gzip.compress(bytes(blocks), 1, mtime=0)


_TAR_FIELDS: tuple[tuple[int, int, tuple[bytes, ...]], ...] = (
    (0, 100, (b"../x", b"/x", b"a\x1b[2J", b"thing/", b".", b"\xff", b"a" * 100)),
    (124, 12, (b"77777777777", b"-1", b"00000000000", b"\xff" * 12, b"\x80" + b"\xff" * 11)),
    (156, 1, tuple(bytes([kind]) for kind in b"01234567LKxgSDMV")),
    (157, 100, (b"/etc/passwd", b"a")),
    (257, 8, (b"ustar\x0000", b"ustar  \0", b"")),
    (345, 155, (b"..", b"a" * 155)),
    (512, 30, (b"9999999999 a=b\n", b"0 a=b\n", b"30 GNU.sparse.map=0,1,2,3\n", b"24 size=-512\n")),
)


_WORDS = (
    *(
        "a",
        "the",
        "two",
        "red",
        "wooden",
        "man",
        "dog",
        "table",
        "cats",
        "and",
        "is",
        "on",
        "next to",
    ),
    *(
        "wearing",
        "not",
        "holding",
        "white",
        "behind",
        "New York",
        "T-shirt",
        "don't",
        "3",
        "50%",
        ".",
    ),
    *(
        ",",
        '"',
        "'",
        "(",
        ")",
        "/",
        "\\",
        "-",
        "—",
        "…",
        "😀",
        "👩‍👩‍👧",
        "é",
        "ﬁ",
        "İ",
        "ß",
        "ǅ",
        "\u200b",
        "\u202e",
    ),
    *(
        "\x00",
        "\t",
        "\u00a0",
        "\ufeff",
        "\u0301",
        "漢字",
        "العربية",
        "x" * 80,
        "<|endoftext|>",
        "[MASK]",
        "%s",
        "{}",
    ),
)


def caption(data: bytes, rng: random.Random) -> bytes:
    """Makes a caption of words, marks and rare characters, or damages one."""
    if rng.random() < 0.2:
        return damage(data, rng)
    words = [rng.choice(_WORDS) for _ in range(rng.choice((1, 3, 6, 10, 20, 80)))]
    if rng.random() < 0.5:
        words += data.decode("utf-8", "replace").split()
        rng.shuffle(words)
    return rng.choice((" ", " ", "  ", "")).join(words).encode()

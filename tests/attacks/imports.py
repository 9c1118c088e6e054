# ruff: noqa: E501, RUF001
"""Hostile sources of `import`, and hostile files of corrections, settings, votes and models.

Nothing of it comes from the mutations of `attacks`. `after` says what an attack left that it should
not have: rows that nobody counted, and files outside the output folder.
"""

import functools
import gzip
import io
import json
import os
import random
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.feather as feather
import pyarrow.parquet as pq

from eqforge import cli
from tests.fuzz.mutate import with_sums
from tests.published import SOURCES, picture

Attack = tuple[str, list[str], Path | None, bool]
CANARY = "eqforge-canary"
PLANNED = 0.85
"""Share of sources of imports that are only planned, which reads all of them in a tenth of the time."""
NAMES = ("../{c}.png", "/tmp/{c}.png", "a/../../{c}.png", "./k1.json", "k1.image_0.png", "k1\x00.json", "k\n1.json", "k\x1b[2J.image_0.png",
    "\u202ek.json", "/etc/passwd", "..", ".", "", "x" * 90, "k1.json/x", "k1.IMAGE_0.PNG", "k1.image_0.svg", "C:\\k.png", "k1.image_0.png.gz", "é.json", "-rf.json", ".json", ".png", "k..png")  # fmt: skip
WORDS = ("\x1b[2J\x1b]0;t\x07", "\u202e", "\x00", "\u2028", "a\r\nb", "\ud800", "x" * 300_000, "", " ", "=1+1", "<script>", "../" * 9 + "etc/passwd",
    "file:///etc/passwd", "http://127.0.0.1:9/x.png", "s3://a/b.png", "/dev/zero", "null", "nan", "[[x](y)]", "{{7*7}}", "{0}", "%s%n", "\ufeff", "\x85", "\x9b2J", "١")  # fmt: skip
VALUES: tuple[Any, ...] = (None, True, 0, -1, 2**63, 10**400, 1e308, float("nan"), float("inf"), [], {}, [[]], {"": None}, [None] * 3, {"bytes": "x", "path": "/etc/passwd"}, ["a"] * 5_000)  # fmt: skip


def flipped(data: bytes, rng: random.Random) -> bytes:
    """Changes bits anywhere or near the end, cuts, repeats or moves a piece."""
    made, size = bytearray(data), max(len(data), 1)
    for _ in range(rng.choice((1, 1, 2, 8))):
        if made:
            near = rng.randrange(min(len(made), 700)) + 1
            made[rng.choice((-near, rng.randrange(len(made))))] ^= 1 << rng.randrange(8)
    a, b = sorted((rng.randrange(size), rng.randrange(size)))
    return bytes(rng.choice((made, made, made, made, made[:a], made[:b] + made[a:], made[:a] + made[b:], made + made[a:b])))  # fmt: skip


def odd_value(value: Any, rng: random.Random, depth: int = 0) -> Any:
    """Replaces, renames, removes or repeats one part of a JSON value."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(sorted(value, key=str))
        way = rng.random()
        if way < 0.1:
            return {k: v for k, v in value.items() if k != key}
        if way < 0.2:
            return {(rng.choice(WORDS) if k == key else k): v for k, v in value.items()}
        return value | {key: odd_value(value[key], rng, depth + 1)}
    if isinstance(value, list) and value and rng.random() < 0.9:
        at = rng.randrange(len(value))
        if rng.random() < 0.15:
            return value[:at] + [value[at]] * rng.choice((0, 2, 3_000)) + value[at + 1 :]
        return [*value[:at], odd_value(value[at], rng, depth + 1), *value[at + 1 :]]
    return rng.choice(WORDS) if rng.random() < 0.6 else rng.choice(VALUES)


def odd_text(data: bytes, rng: random.Random) -> bytes:
    """Another text of JSON, of JSON lines or of a table."""
    pairs = [(b",", b"\t"), (b'"', b'""'), (b"\n", b"\r"), (b"\n", b"\n\n \n"), (b":", b"="), (b"}", b"},"), (b"a", b"\xff"), (b"a", b"\x00"),
        (b"{", b'{"id":"a","id":"b",'), (b'": "', b'": "\\udc00'), (b"1", b"1" * 4_400), (b"1", b"1e99999"), (b"[", b"[" * 3_000), (b"{", b'{"a":' * 3_000), (b" ", "\u3000".encode()), (b",", b'"')]  # fmt: skip
    old, new = rng.choice(pairs)
    ways: list[Callable[[], bytes]] = [
        lambda: data.replace(old, new, rng.choice((1, 2, -1))),
        lambda: data.replace(old, new, 1),
        lambda: flipped(data, rng),
        lambda: data.decode("utf-8", "replace").encode(rng.choice(("utf-16", "utf-16-be", "utf-32", "utf-7", "cp037")), "replace"),
        lambda: rng.choice((b"\xff\xfe", b"\xfe\xff\x00", b"\xef\xbb\xbf" * 2, b"#!/bin/sh\n", b"%PDF", b"SQLite format 3\x00", b"\x89HDF\r\n\x1a\n")) + data,
        lambda: data.replace(b"\n", b"\r\n") + rng.choice((b"\x1a", b'"', b"\x00" * 5_000, b"]")),
        lambda: b'"' + b"a,\n" * 40_000,
    ]  # fmt: skip
    try:
        if rng.random() < 0.6:
            return json.dumps(odd_value(json.loads(data), rng), ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")  # fmt: skip
    except ValueError:
        lines = data.split(b"\n")
        at = rng.randrange(len(lines))
        try:
            lines[at] = json.dumps(odd_value(json.loads(lines[at]), rng)).encode()
            return b"\n".join(lines)
        except ValueError:
            pass
    return rng.choice(ways)()


def odd_tar(members: list[tuple[str, bytes]], rng: random.Random) -> bytes:
    """A shard with a member that is odd, or a file that is hardly one."""
    odd, way, stream = rng.randrange(len(members)), rng.randrange(15), io.BytesIO()
    kind = rng.choice((tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT))
    with tarfile.open(fileobj=stream, mode="w", format=kind) as tar:
        for number, (name, data) in enumerate(members):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            if number == odd:
                if way < 3:
                    entry.name = rng.choice(NAMES).format(c=CANARY)
                elif way < 6:
                    entry.type = rng.choice(
                        (
                            b"1",
                            b"2",
                            b"3",
                            b"4",
                            b"5",
                            b"6",
                            b"7",
                            b"S",
                            b"V",
                            b"M",
                            b"D",
                            b"N",
                            b"A",
                            b"\x00",
                        )
                    )
                    entry.linkname = rng.choice(
                        ("/etc/passwd", f"../{CANARY}.png", members[0][0], name, "")
                    )
                elif way < 8:
                    entry.pax_headers = {
                        rng.choice(
                            (
                                "size",
                                "path",
                                "linkpath",
                                "mtime",
                                "uid",
                                "GNU.sparse.map",
                                "GNU.sparse.major",
                                "GNU.sparse.size",
                                "GNU.sparse.name",
                                "GNU.sparse.numblocks",
                                "hdrcharset",
                                "comment",
                                "x=y",
                            )
                        ): rng.choice(
                            (
                                "-1",
                                "9" * 30,
                                "0",
                                "nan",
                                "1.5",
                                "x" * 70_000,
                                f"../{CANARY}.png",
                                "0,9999999999",
                                "1",
                                "\x1b[2J",
                                "BINARY",
                            )
                        )
                    }
                elif way == 8:
                    data = rng.choice(
                        (
                            odd_text(data, rng),
                            b"",
                            bytes(stream.getvalue()),
                            gzip.compress(data),
                            odd_picture(rng),
                        )
                    )
                    entry.size = len(data)
            try:
                tar.addfile(entry, io.BytesIO(data))
            except (ValueError, OSError, struct.error):
                continue
    made = stream.getvalue()
    block = made[:512]
    for at, value in ((124, rng.choice((b"77777777777\0", b"\x80" + b"\xff" * 11, b"\xff" * 12, b"-0000000001\0", b"00000000000\0", b"\x80" + bytes(3) + (2**40).to_bytes(8, "big")))), (156, rng.choice((b"L", b"K", b"x", b"g", b"S", b"2")))):  # fmt: skip
        if rng.random() < 0.7:
            block = block[:at] + value + block[at + len(value) :]
    total = sum(block[:148]) + 8 * 32 + sum(block[156:])
    lied = block[:148] + f"{total:06o}\0 ".encode() + block[156:] + made[512:]
    forms = {
        9: lied,
        10: lied,
        11: flipped(made, rng),
        12: made + made,
        13: block * rng.choice((3, 2_000)) + made,
    }
    return forms.get(way, made) if way != 14 else rng.choice((gzip.compress(made), bytes(1024), bytes(10), b"", made[:-1024], made[:700], b"PK\x05\x06" + bytes(18), lied[:512]))  # fmt: skip


def odd_picture(rng: random.Random) -> bytes:
    """Bytes that claim to be a picture."""
    return rng.choice((flipped(picture(1), rng), flipped(picture(1), rng), *_pictures()))


@functools.cache
def _pictures() -> tuple[bytes, ...]:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))  # fmt: skip

    png, bomb = picture(1), zlib.compress(bytes(100_000_000), 9)
    return (
        png[:33] + chunk(b"iCCP", b"x\0\0" + bomb) + png[33:], png[:33] + chunk(b"zTXt", b"x\0\0" + bomb) + png[33:], png[:33] + chunk(b"eXIf", b"MM\0*" + b"\xff" * 99) + png[33:],
        png[:16] + struct.pack(">II", 8_000, 7_999) + b"\x08\x02\0\0\0" + b"\0" * 4 + chunk(b"IDAT", bomb), png + b"PK\x03\x04" + bytes(99), b"<svg xmlns='http://www.w3.org/2000/svg'><script>1</script></svg>", b"GIF89a" + b"\xff\xff" * 2 + bytes(40),
        b"\x00\x00\x00\x1cftypavif" + bytes(99), b"\xff\xd8\xff\xe1\xff\xff" + b"Exif\0\0" + bytes(900), b"%!PS\n(x) run", b"RIFF\xff\xff\xff\xffWEBPVP8L" + b"\xff" * 99, b"8BPS\x00\x01" + b"\xff" * 60, b"P6 99999 99999 255\n", b"BM" + b"\xff" * 90, b"",
    )  # fmt: skip


def rows(rng: random.Random, *, count: int = 12) -> list[dict[str, Any]]:
    """Good rows of pairs of pictures."""
    return [{"id": f"r{n}", "caption_0": f"a red cup {n}", "caption_1": f"a blue cup {n}", "image_0": f"{n % 3}.png", "image_1": f"{n % 3 + 1}.png", "split": rng.choice(("train", "test"))} for n in range(count)]  # fmt: skip


def odd_column(table: pa.Table, rng: random.Random) -> pa.Table:
    """Gives a column another type: views, dictionaries, unions, runs, lists, dates, nulls."""
    at = rng.randrange(table.num_columns)
    name, count, text = (
        table.column_names[at],
        table.num_rows,
        pa.array([f"t{n}" for n in range(table.num_rows)]),
    )
    index = pa.array([n % 3 for n in range(count)], pa.int8())
    made = rng.choice((
        lambda: pa.DictionaryArray.from_arrays(index, pa.array(["a", None, "c"])), lambda: pa.DictionaryArray.from_arrays(index, pa.array([None, None, None], pa.string())),
        lambda: pa.UnionArray.from_dense(pa.array([0] * count, pa.int8()), pa.array(range(count), pa.int32()), [text]), lambda: pa.UnionArray.from_sparse(pa.array([0] * count, pa.int8()), [text]),
        lambda: pa.array([[["x"]]] * count), lambda: pa.array([{"bytes": b"\x89PNG", "path": "/etc/passwd"}] * count), lambda: pa.array([{"bytes": odd_picture(rng), "path": rng.choice((None, "a.png", "../x.png", "\x1b[2J.png"))} for _ in range(count)]),
        lambda: pa.array([[{"bytes": picture(n), "path": None}] * rng.choice((0, 1, 3)) for n in range(count)]), lambda: pa.array([{"bytes": None, "path": None}] * count, pa.struct([("bytes", pa.binary()), ("path", pa.string())])),
        lambda: pa.array([2**62] * count, pa.timestamp("s")), lambda: pa.array([2**62] * count, pa.duration("s")), lambda: pa.array([-(2**31)] * count, pa.date32()), lambda: pa.array([2**62] * count, pa.date64()), lambda: pa.array([1] * count, pa.timestamp("us", "No/Where")),
        lambda: pa.array([rng.choice(WORDS).encode("utf-8", "replace").decode() for _ in range(count)]), lambda: pa.array([b"\xff\xfe"] * count, pa.binary()).view(pa.string()), lambda: pa.nulls(count), lambda: pa.array([float("nan"), float("inf")] * (count // 2)),
        lambda: pa.RunEndEncodedArray.from_arrays([count], pa.array(["x"])), lambda: pa.array([[("k", "v"), ("k", "w")]] * count, pa.map_(pa.string(), pa.string())), lambda: pa.array([True] * count), lambda: pa.array(["x" * 2_000_000] * count),
    ))()  # fmt: skip
    if rng.random() < 0.2:
        return table.append_column(rng.choice((name, "", "split", "caption_0\x00", "\x1b[2J", "__index_level_0__", "x" * 70_000)), made)  # fmt: skip
    return table.set_column(at, name, made)


def packed(name: str, data: bytes, rng: random.Random) -> tuple[str, bytes]:
    """A table in a `.gz` or `.zip` that lies, slips, or unpacks to much."""
    zeros, stream = bytes(rng.choice((0, 40_000_000)) if rng.random() < 0.2 else 10), io.BytesIO()
    if rng.random() < 0.4:
        made = gzip.compress(data)
        return name + ".gz", rng.choice((flipped(made, rng), made + made, made[:-4] + b"\xff" * 4, made[:-9], made + b"junk", gzip.compress(gzip.compress(data)), gzip.compress(data + zeros), b"\x1f\x8b\x08\x1c" + bytes(6) + b"\xff\xff" + data, b"\x1f\x8b\x08\x08" + bytes(6) + b"../../x\0" + made[10:]))  # fmt: skip
    with zipfile.ZipFile(stream, "w", rng.choice((0, 8, 12, 14))) as archive:
        for inner in rng.choice(([name], [name], [name, name], [f"../{name}"], ["/etc/" + name], [name, "b" + name], [], ["d/"], [f"d/{name}"], [name + ".gz"], ["\x1b[2J.csv"], ["x" * 60_000 + ".csv"], ["__MACOSX/x", name], ["a.tar"], ["a\\..\\" + name], [name.upper()])):  # fmt: skip
            archive.writestr(inner, data + zeros)
    made = stream.getvalue()
    for old, new in ((b"PK\x01\x02", 24), (b"PK\x03\x04", 22)):
        if rng.random() < 0.3 and (at := made.find(old)) >= 0:  # sizes and flags that lie
            made = made[: at + new] + struct.pack("<I", rng.choice((0, 1, 2**32 - 1))) + made[at + new + 4 :]  # fmt: skip
            flags = at + (8 if old.endswith(b"\x02") else 6)
            made = made[:flags] + rng.choice((b"\x01\x00", b"\x00\x08", made[flags : flags + 2])) + made[flags + 2 :]  # fmt: skip
    return name + ".zip", rng.choice((made, made, flipped(made, rng), b"MZ" * 40 + made, made + made, made[:-8]))  # fmt: skip


# --- attacks


def _import(label: str, source: Path, place: Path, name: str = "own-pairs", *more: str) -> Attack:
    words = ["import", name, str(source), "--output", str(place / "out"), *more]
    return f"import {label}", words, place / "out", False


def _lenient(rng: random.Random) -> list[str]:
    return rng.choice(([], ["--max-error-rate", "1"]))


def _folder(bench: Any) -> tuple[Path, Path]:
    place = bench.fresh()
    (place / f"{CANARY}.png").write_bytes(picture(7))
    (place / "in").mkdir()
    return place, place / "in"


def _tars(bench: Any, rng: random.Random) -> Iterator[Attack]:
    place, folder = _folder(bench)
    members = [(f"k{n}.{part}", data) for n, row in enumerate(rows(rng, count=4)) for part, data in (("json", json.dumps({k: v for k, v in row.items() if "image" not in k}).encode()), ("image_0.png", picture(n)), ("image_1.png", picture(n + 1)))]  # fmt: skip
    shard = folder / rng.choice(("s-000000.tar", "train-0.tar", "a.tar", "[x].tar", "a.tar.gz"))
    if rng.random() < 0.7:
        shard.write_bytes(odd_tar(members, rng))
        yield _import("tar", rng.choice((shard, folder)), place, "own-pairs", *_lenient(rng))
    else:
        shard.write_bytes(odd_tar([(f"{n}.png", picture(n)) for n in range(4)], rng))
        (folder / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows(rng)))
        yield _import("tar of images", folder / "t.jsonl", place, "own-pairs", "--images", str(shard), *_lenient(rng))  # fmt: skip


def _columns(bench: Any, rng: random.Random) -> Iterator[Attack]:
    place, folder = _folder(bench)
    table = pa.Table.from_pylist(rows(rng))
    if rng.random() < 0.4:
        held = [pa.array([{"bytes": odd_picture(rng) if rng.random() < 0.2 else picture(n), "path": f"{n}.png"} for n in range(12)]) for _ in range(2)]  # fmt: skip
        table = table.drop(["image_0", "image_1"]).append_column("image_0", held[0]).append_column("image_1", held[1])  # fmt: skip
    is_odd, stream, kind = (
        rng.random() < 0.6,
        io.BytesIO(),
        rng.choice((".parquet", ".parquet", ".feather", ".arrow")),
    )
    try:
        table = odd_column(table, rng) if is_odd else table
        if kind == ".parquet":
            pq.write_table(table, stream, row_group_size=rng.choice((1, 5, 100)), compression=rng.choice(("zstd", "snappy", "none", "gzip")))  # fmt: skip
        elif kind == ".feather":
            feather.write_feather(table, stream, compression=rng.choice(("zstd", "lz4", "uncompressed")))  # fmt: skip
        else:
            with pa.ipc.new_stream(stream, table.schema) as writer:
                writer.write_table(table, max_chunksize=5)
    except (pa.ArrowException, TypeError, ValueError, OSError):
        return
    data = stream.getvalue()
    path = folder / f"test-00000-of-00001{kind}"
    path.write_bytes(data if is_odd else flipped(data, rng))
    if is_odd:
        (place / "rows").write_text("12")
    yield _import(kind[1:], rng.choice((path, folder)), place, "own-pairs", *_lenient(rng))


def _packed(bench: Any, rng: random.Random) -> Iterator[Attack]:
    place, folder = _folder(bench)
    stream = io.BytesIO()
    pacsv.write_csv(pa.Table.from_pylist(rows(rng)), stream)
    lines = "".join(json.dumps(row) + "\n" for row in rows(rng)).encode()
    name, data = packed(*rng.choice((("t.csv", stream.getvalue()), ("t.jsonl", lines), ("t.json", b"[" + lines.strip().replace(b"\n", b",") + b"]"), ("t.parquet", b"PAR1"), ("t.xlsx", b"PK"))), rng)  # fmt: skip
    (folder / name).write_bytes(data)
    yield _import("packed", folder / name, place)


def _texts(bench: Any, rng: random.Random) -> Iterator[Attack]:
    place = bench.fresh()
    name = rng.choice([each for each in SOURCES if each not in ("bivlc", "vismin")])
    source = SOURCES[name](place / "in") if (place / "in").mkdir() is None else place
    path = rng.choice([p for p in (place / "in").rglob("*") if p.is_file()])
    path.write_bytes(odd_text(path.read_bytes(), rng))
    more = ["--columns", "caption_0=says", "image_0=left", "image_1=right"] if name == "own-pairs" else []  # fmt: skip
    yield _import("text", source, place, name, *more, *_lenient(rng))


def _hubs(bench: Any, rng: random.Random) -> Iterator[Attack]:
    place, folder = _folder(bench)
    table, heads = pa.Table.from_pylist(rows(rng)), ["configs:\n- config_name: a\n  data_files:\n  - split: test\n    path: " + path for path in (f"../{CANARY}*", "/etc/*", "data/*", "'**'", "['data/**']", "'data/[!a'", "'{a,b}'", "'*/*/*/*/*/*/*/*'", "~", "!!python/object/apply:os.system [id]", "!!binary aGk=", "2020-01-01", "hf://x/y", "https://127.0.0.1:9/x", '"\\e[2J"')]  # fmt: skip
    if rng.random() < 0.5:
        (folder / "data").mkdir()
        pq.write_table(table, folder / "data" / "test-00000-of-00001.parquet")
        head = rng.choice(heads)
        head = (
            flipped(head.encode(), rng).decode("utf-8", "replace") if rng.random() < 0.5 else head
        )
        (folder / "README.md").write_text(f"---\n{head}\n---\n" if rng.random() < 0.9 else f"---\n{head}", "utf-8", "replace")  # fmt: skip
        (folder / "dataset_infos.json").write_bytes(
            odd_text(b'{"a": {"features": {"id": {"_type": "Value"}}}}', rng)
        )
        if rng.random() < 0.2:
            (folder / "data" / "train-00000-of-99999999999.parquet").write_bytes(b"PAR1")
        yield _import("hub", rng.choice((folder, folder / "test", folder / "a")), place)
        return
    state = {"_data_files": [{"filename": "d.arrow"}], "_split": "test", "_indices_data_files": None, "_format_type": None}  # fmt: skip
    with pa.ipc.new_stream(folder / "d.arrow", table.schema) as writer:
        writer.write_table(table)
    state["_data_files"] = [
        {
            "filename": rng.choice(
                (
                    "d.arrow",
                    "../d.arrow",
                    f"../{CANARY}.png",
                    "/etc/passwd",
                    "d.arrow\0",
                    "state.json",
                    *WORDS[:6],
                )
            )
        }
    ]
    text = json.dumps(state).encode()
    (folder / "state.json").write_bytes(odd_text(text, rng) if rng.random() < 0.6 else text)
    (folder / "dataset_info.json").write_bytes(odd_text(b'{"features": {"id": {"dtype": "string", "_type": "Value"}}}', rng))  # fmt: skip
    yield _import("saved", folder, place)


def _images(bench: Any, rng: random.Random) -> Iterator[Attack]:
    place, folder = _folder(bench)
    for number in range(4):
        path = folder / f"{number}.png"
        if rng.random() < 0.15:
            path.symlink_to(rng.choice((f"../{CANARY}.png", "/etc/passwd", "/dev/zero", path.name)))
        else:
            path.write_bytes(odd_picture(rng) if rng.random() < 0.6 else picture(number))
    table = rows(rng)
    table[3]["image_0"] = rng.choice((f"../{CANARY}.png", "/etc/passwd", "0.png/x", "", ".", "0.PNG", "./0.png", "0.png\0", *WORDS))  # fmt: skip
    (place / "rows").write_text("12")
    (folder / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table))
    yield _import("images", folder / "t.jsonl", place, "own-pairs", "--images", str(folder), "--max-error-rate", "1")  # fmt: skip


@functools.cache
def _photographs() -> tuple[bytes, ...]:
    """Good pictures of five formats, with profiles of colour, orientations and pages."""
    from PIL import Image, ImageCms

    found = []
    for number, kind in enumerate(("PNG", "JPEG", "WEBP", "GIF", "TIFF") * 8):
        pixels = np.random.default_rng(number).integers(0, 256, (24, 36, 3), dtype=np.uint8)
        image, stream, exif = Image.fromarray(pixels), io.BytesIO(), Image.Exif()
        exif[0x0112] = number // 5 + 1
        more: dict[str, Any] = {} if kind == "GIF" else {"exif": exif}
        if number % 2 and kind != "GIF":
            more["icc_profile"] = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
        if kind in ("GIF", "TIFF", "WEBP") and number % 3 == 0:
            more |= {"save_all": True, "append_images": [Image.new("RGB", (36, 24))] * 3}
        mode = ("RGB", "L", "RGBA", "P")[number % 4] if kind in ("PNG", "GIF", "TIFF") else "RGB"
        image.convert(mode).save(stream, kind, **more)
        found.append(stream.getvalue())
    return tuple(found)


def _odd_photograph(rng: random.Random) -> bytes:
    """A picture with changed bits, cut, with sums that fit again, or with sizes that lie."""
    data = rng.choice(_photographs())
    odd = flipped(data, rng)
    at, size = rng.randrange(4, 60), struct.pack(rng.choice("<>") + "I", rng.choice((0, 1, 30_000, 2**31 - 1, 2**32 - 1)))  # fmt: skip
    ways = (odd, odd, data[: rng.randrange(len(data))], data[:at] + size + data[at + 4 :], odd_picture(rng))  # fmt: skip
    made = rng.choice(ways)
    return with_sums(made) if made.startswith(b"\x89PNG") and rng.random() < 0.6 else made


def _photos(bench: Any, rng: random.Random) -> Iterator[Attack]:
    """Twenty odd pictures are imported; what is taken is sound, and has a report."""
    place, folder = _folder(bench)
    lines = []
    for number in range(20):
        ending = rng.choice(("png", "jpg", "webp", "gif", "tif"))
        (folder / f"{number}.{ending}").write_bytes(_odd_photograph(rng))
        (folder / f"good{number}.png").write_bytes(picture(number))
        lines.append({"id": f"r{number}", "caption_0": f"a red cup {number}", "caption_1": f"a blue cup {number}", "image_0": f"{number}.{ending}", "image_1": f"good{number}.png"})  # fmt: skip
    (place / "rows").write_text("20")
    (folder / "t.jsonl").write_bytes(b"".join(json.dumps(row).encode() + b"\n" for row in lines))
    yield _import("photos", folder / "t.jsonl", place, "own-pairs", "--images", str(folder), "--max-error-rate", "1")  # fmt: skip
    if (place / "out" / "dataset.json").exists():
        yield "verify", ["verify", str(place / "out")], None, False
        yield "report", ["report", str(place / "out"), "--output", str(place / "o")], place / "o", False  # fmt: skip


CLASSES: dict[str, Callable[[Any, random.Random], Iterator[Attack]]] = {
    "tars": _tars, "columns": _columns, "packed": _packed, "texts": _texts, "hubs": _hubs, "images": _images, "photos": _photos,
}  # fmt: skip


def imports(bench: Any, rng: random.Random) -> Iterator[Attack]:
    """An attack of any class, or of the one that EQFORGE_ATTACK names; most sources are planned."""
    name = os.environ.get("EQFORGE_ATTACK") or rng.choice(sorted(CLASSES))
    for label, words, written, is_lie in CLASSES[name](bench, rng):
        if words[0] == "import" and name not in ("images", "photos") and rng.random() < PLANNED:
            words, label, written = ["plan", *words[1:]], label.replace("import", "plan"), None
        yield label, words, written, is_lie


def after(place: Path, label: str, status: int | None) -> Iterator[tuple[str, str]]:
    """Yields what an attack left that it should not have."""
    known = {"in", "out", "rows", "o", "errata", "decisions", CANARY}
    for path in (*place.glob("*"), *Path("/tmp").glob(f"{CANARY}*")):
        if path.parent != place or path.name.split(".")[0] not in known:
            yield "written outside", str(path)
    if status and label in ("verify", "report"):
        yield "what was imported is refused", label
    manifest = place / "out" / "dataset.json"
    if status != 0 or not manifest.is_file() or not label.startswith("import"):
        return
    found = json.loads(manifest.read_text())
    for stage, counts in found["stages"].items():
        if counts["candidates"] != counts["kept"] + counts["rejected"]:
            yield "rows lost", f"{stage}: {counts}"
    if (place / "rows").exists():
        count = max(stage["candidates"] for stage in found["stages"].values())
        if count != int((place / "rows").read_text()):
            yield "rows lost", f"{count} candidates"


def warm_up() -> None:
    """Imports good rows: what is loaded once is nothing that an attack takes."""
    with tempfile.TemporaryDirectory() as name:
        SOURCES["own-foils"](Path(name))
        assert cli.main(["import", "own-foils", f"{name}/f.jsonl", "--output", f"{name}/out"]) == 0

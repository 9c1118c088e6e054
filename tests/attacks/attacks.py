# ruff: noqa: E501, RUF001
"""Hostile inputs of every command: odd Parquet, manifests that lie, things that are no files."""

import gzip
import hashlib
import io
import json
import os
import random
import shutil
import socket
import struct
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

TEXTS = (
    "\x1b]0;owned\x07\x1b[2J", "\u202egnp.exe", "\x9b31m", "a\r\nb\n# c", "\x00", "\u2028x",
    "\\input{/etc/passwd}", "$\\frac{1}{0}$ $x_{$", "%\n\\write18{id}", "=cmd|' /C calc'!A0",
    "@SUM(1+1)*cmd", "-2+3", "\t=1", "<script>alert(1)</script>", "![x](http://e.com/a.png)",
    "[bold red]x[/][/nope]", "---\nlicense: x\n---", "| a | b |\n|---|---|", "{0.__class__}",
    "%(x)s %n%n", "\ufffe\ufeff", "\U000e0041\U000e007f", "a" * 70_000, "../../../etc/passwd",
    "\u0301" * 400, "\ud83d", "'; DROP TABLE x;--", "__proto__", "file:///etc/passwd", "~/.ssh",
    "\u200b\u2066\u2069\u200f", "|id", "`id`", "$(id)", "-rf", "--output", "nan", "1e999", "",
    " ", "\u0130\u0131\u1e9e\ufb03", "x\u00ad\u115f\u3164y", "]]>", "&lt;", "\\", "\"\"\"", "{{7*7}}",
)  # fmt: skip
ODD_NAMES = tuple(t.replace("/", "_").replace("\x00", "_")[:60] for t in TEXTS if t.strip())


def odd_names() -> Iterator[str]:
    """Names that a file can have."""
    for name in ODD_NAMES:
        try:
            yield name if 0 < len(name.encode()) < 200 else name[:40]
        except UnicodeEncodeError:
            yield name.encode("utf-8", "surrogatepass").decode("utf-8", "surrogateescape")


# --- JSON


def odd_json(data: bytes, rng: random.Random) -> bytes:
    """Another text of JSON, or nearly: keys twice, encodings, odd numbers, odd texts."""
    text = data.decode()
    ways: list[Callable[[], bytes]] = [
        lambda: b"\xef\xbb\xbf" + data,
        lambda: text.encode("utf-16"),
        lambda: text.encode("utf-32-le"),
        lambda: data + b"\x00",
        lambda: data + data,
        lambda: data + b"\n]" * 50,
        lambda: b"/* c */" + data,
        lambda: b"\x0c\x0b" + data,
        lambda: gzip.compress(data),
        lambda: gzip.compress(b" " * 200_000_000 + data, 9) if rng.random() < 0.02 else b"\x1f\x8b",
        lambda: data.replace(b":", b": ", 1).replace(b"{", b'{"a":1,"a":2,"\\u0000":3,', 1),
        lambda: _twice(data, rng),
        lambda: _numbered(data, rng),
        lambda: _numbered(data, rng),
        lambda: data.replace(b'"', b"'"),
        lambda: data.replace(b'"', b'"\\ud800', rng.randrange(1, 5)),
        lambda: data.replace(b'"', b'"\xed\xa0\x80', rng.randrange(1, 5)),
        lambda: data.replace(b'"', b'"\xc0\x80', 1),
        lambda: data.replace(b",", b",,", 1),
        lambda: b"[" * rng.choice((900, 5_000, 200_000)) + data,
        lambda: b'{"a":' * rng.choice((900, 5_000, 200_000)) + data,
        lambda: b'"' + b"\\" * 100_001,
        lambda: b" " * 3_000_000 + data,
        lambda: b"-" + data,
        lambda: data[: rng.randrange(len(data) + 1)],
        lambda: rng.choice((b"", b"null", b"0", b'""', b"[]", b"{}", b"true", b"[[]]", b"\n", b"NaN")),
    ]  # fmt: skip
    if rng.random() < 0.45:
        try:
            value = json.loads(data)
            for _ in range(rng.choice((1, 1, 3))):
                value = _texted(value, rng)
            return json.dumps(value, ensure_ascii=rng.random() < 0.5).encode(
                "utf-8", "surrogatepass"
            )
        except ValueError:
            lines = data.split(b"\n")
            n = rng.randrange(len(lines))
            try:
                value = _texted(json.loads(lines[n]), rng)
                lines[n] = json.dumps(value).encode()
            except ValueError:
                pass
            return b"\n".join(lines)
    return rng.choice(ways)()


def _twice(data: bytes, rng: random.Random) -> bytes:
    """Repeats a key with another value right before it."""
    keys = list({k for k in data.split(b'"')[1::2] if len(k) < 40})
    if not keys:
        return data
    key = rng.choice(sorted(keys))
    other = rng.choice((b"null", b"0", b'"x"', b"[]", b"{}", b"1e999", b"-1"))
    return data.replace(b'"' + key + b'"', b'"' + key + b'":' + other + b',"' + key + b'"', 1)


def _numbered(data: bytes, rng: random.Random) -> bytes:
    import re

    found = list(re.finditer(rb"-?\d+(\.\d+)?", data))
    if not found:
        return data
    at = rng.choice(found)
    odd = (b"1" + b"0" * 5_000, b"1e400", b"-1e400", b"-0", b"0x10", b"1_000", b"01", b"+1", b".5",
           b"NaN", b"Infinity", b"-Infinity", b"9223372036854775808", b"18446744073709551616",
           b"1e308", b"5e-324", b"2147483648", b"-1", b"0.1e1", b"1E5", b"9" * 400, b"1e-400")  # fmt: skip
    return data[: at.start()] + rng.choice(odd) + data[at.end() :]


def _texted(value: Any, rng: random.Random) -> Any:
    """Puts an odd text in the place of one text or key, or an odd value for one."""
    if isinstance(value, dict) and value:
        key = rng.choice(list(value))
        if rng.random() < 0.12:
            return {rng.choice(TEXTS) if k == key else k: v for k, v in value.items()}
        return value | {key: _texted(value[key], rng)}
    if isinstance(value, list) and value:
        n = rng.randrange(len(value))
        if rng.random() < 0.05:
            return value + [value[n]] * rng.choice((1, 2_000))
        return [*value[:n], _texted(value[n], rng), *value[n + 1 :]]
    if isinstance(value, str) or rng.random() < 0.4:
        return rng.choice(TEXTS)
    return rng.choice(
        (
            None,
            True,
            -1,
            0,
            2**53 + 1,
            2**63,
            -(2**70),
            1.5,
            1e300,
            -1e-300,
            [],
            {},
            [None],
            {"": {}},
        )
    )


# --- Parquet


def odd_parquet(data: bytes, rng: random.Random) -> bytes:
    """Another Parquet file, valid for the most part: types, names, layouts, metadata."""
    table = pq.read_table(io.BytesIO(data))
    for _ in range(10):
        try:
            return _odd_parquet(table, data, rng)
        except (pa.ArrowException, TypeError, ValueError, OverflowError, KeyError, OSError):
            continue
    return data


def _odd_parquet(table: pa.Table, data: bytes, rng: random.Random) -> bytes:
    way = rng.choice(
        (
            _retyped,
            _retyped,
            _renamed,
            _revalued,
            _revalued,
            _revalued,
            _laid_out,
            _annotated,
            _framed,
        )
    )
    made = way(table, data, rng)
    return made if isinstance(made, bytes) else _parquet(made)


def _parquet(table: pa.Table, **how: Any) -> bytes:
    stream = io.BytesIO()
    pq.write_table(table, stream, **how)
    return stream.getvalue()


class _Own(pa.ExtensionType):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__(pa.string(), "os.system")

    def __arrow_ext_serialize__(self) -> bytes:
        return b"\x80\x04cos\nsystem\n"

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: Any, data: bytes) -> "_Own":
        return cls()


def _nested(kind: pa.DataType, depth: int, rng: random.Random) -> pa.DataType:
    for n in range(depth):
        kind = pa.list_(kind) if n % 2 else pa.struct([("x" if rng.random() < 0.9 else "", kind)])
    return kind


def _retyped(table: pa.Table, data: bytes, rng: random.Random) -> pa.Table:
    place, rows = rng.randrange(table.num_columns), table.num_rows
    field, column = table.schema.field(place), table.column(place)
    text = pa.string()
    kinds = [
        pa.large_string(), pa.string_view(), pa.binary_view(), pa.large_binary(), pa.binary(),
        pa.dictionary(pa.int8(), text), pa.dictionary(pa.int64(), pa.large_string(), True),
        pa.decimal128(38, -2), pa.decimal256(76, 10), pa.binary(7), pa.date32(), pa.date64(),
        pa.time32("ms"), pa.time64("ns"), pa.timestamp("ns", "../../x"), pa.duration("us"),
        pa.month_day_nano_interval(), pa.float16(), pa.uint8(), pa.uint64(), pa.int8(), pa.bool_(),
        pa.null(), pa.map_(text, text), pa.map_(text, pa.list_(pa.map_(text, text))),
        pa.list_(text, 3), pa.large_list(text), pa.list_view(text), pa.list_(pa.list_(text)),
        pa.struct([("bytes", pa.binary()), ("path", text), ("bytes2", text)]), pa.struct([]),
        pa.uuid(), pa.json_(), pa.bool8(), pa.fixed_shape_tensor(pa.float32(), [2, 2]), _Own(),
        pa.opaque(text, "\x1b[2J", "\u202e"), pa.run_end_encoded(pa.int32(), text),
        _nested(text, 7, rng), _nested(text, 30, rng), _nested(text, 200, rng), pa.list_(column.type),
        pa.struct([(n, text) for n in TEXTS[:8]]), pa.struct([(f"c{n}", text) for n in range(3_000)]),
    ]  # fmt: skip
    kind = rng.choice(kinds)
    try:
        changed = column.cast(kind)
    except (pa.ArrowException, TypeError):
        changed = pa.nulls(
            rows, kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
        )
        if isinstance(kind, pa.BaseExtensionType):
            changed = pa.ExtensionArray.from_storage(kind, changed)
    return table.set_column(place, pa.field(field.name, kind), changed).replace_schema_metadata(
        table.schema.metadata
    )


def _renamed(table: pa.Table, data: bytes, rng: random.Random) -> pa.Table:
    names, way = list(table.column_names), rng.randrange(7)
    n = rng.randrange(len(names))
    if way == 0:
        names[n] = rng.choice(TEXTS).encode("utf-8", "replace").decode()
    elif way == 1:
        names[n] = rng.choice(
            (names[n].upper(), names[n] + " ", "a.b", f"{names[n]}.bytes", "list.element", "*", "")
        )
    elif way == 2:
        return table.append_column(names[n], table.column(rng.randrange(len(names))))
    elif way == 3:
        return table.select(sorted(names, reverse=True)).replace_schema_metadata(
            table.schema.metadata
        )
    elif way == 4:
        for k in range(rng.choice((3, 1_500, 4_000))):
            table = table.append_column(f"extra{k}", pa.nulls(table.num_rows, pa.int8()))
        return table
    elif way == 5:
        return table.append_column(
            rng.choice(TEXTS).encode("utf-8", "replace").decode(), pa.array(["x"] * table.num_rows)
        )
    else:
        rng.shuffle(names)
    return table.rename_columns(names)


def _revalued(table: pa.Table, data: bytes, rng: random.Random) -> pa.Table:
    for _ in range(rng.choice((1, 1, 3))):
        place = rng.randrange(table.num_columns)
        field, values = table.schema.field(place), table.column(place).to_pylist()
        if not values:
            break
        for row in range(len(values)) if rng.random() < 0.3 else (rng.randrange(len(values)),):
            values[row] = _revalue(values[row], field.type, rng)
        table = table.set_column(place, field, pa.array(values, field.type))
    return table


def _revalue(value: Any, kind: pa.DataType, rng: random.Random) -> Any:
    if pa.types.is_struct(kind) and isinstance(value, dict):
        key = rng.choice(list(value))
        return value | {key: _revalue(value[key], kind.field(key).type, rng)}
    if pa.types.is_list(kind):
        item = value[0] if value else None
        return rng.choice(
            (
                [],
                [_revalue(item, kind.value_type, rng)],
                [*(value or []), _revalue(item, kind.value_type, rng)],
                (value or []) * 50,
            )
        )
    if pa.types.is_string(kind):
        if isinstance(value, str) and value[:1] in "{[" and rng.random() < 0.7:
            return odd_json(value.encode(), rng).decode("utf-8", "replace")
        return rng.choice(TEXTS).encode("utf-8", "replace").decode()
    if pa.types.is_binary(kind):
        return rng.choice(odd_pictures())
    if pa.types.is_floating(kind):
        return rng.choice((float("nan"), float("inf"), -float("inf"), 1e308, -0.0, 5e-324))
    if pa.types.is_integer(kind):
        top = 2 ** (kind.bit_width - 1) - 1
        return rng.choice((0, -1, top, -top, 1))
    if pa.types.is_boolean(kind):
        return not value
    return None


def _laid_out(table: pa.Table, data: bytes, rng: random.Random) -> bytes:
    way = rng.randrange(5)
    if way == 0:
        how = rng.choice(({"row_group_size": 1}, {"compression": "brotli"}, {"compression": "lz4"}, {"compression": "gzip"},
            {"data_page_size": 1}, {"write_page_index": True}, {"version": "1.0"}, {"use_dictionary": False},
            {"data_page_version": "2.0"}, {"write_page_checksum": True}, {"store_schema": False}, {"dictionary_pagesize_limit": 1},
            {"use_compliant_nested_type": False}, {"write_batch_size": 1}, {"use_deprecated_int96_timestamps": True}))  # fmt: skip
        return _parquet(table, **how)
    if way == 1:
        codings = ("DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", "PLAIN")
        columns = {f.name: rng.choice(codings) for f in table.schema if pa.types.is_string(f.type)}
        return _parquet(table, use_dictionary=False, column_encoding=columns)
    if way == 2:
        stream = io.BytesIO()
        with pq.ParquetWriter(stream, table.schema) as writer:
            for _ in range(rng.choice((0, 3, 1_900, 2_500))):
                writer.write_table(table.slice(0, 0), row_group_size=1)
            writer.write_table(table)
        return stream.getvalue()
    if way == 3:  # huge statistics
        strings = [n for n, f in enumerate(table.schema) if pa.types.is_string(f.type)]
        place = rng.choice(strings)
        big = pa.array(["\x1b" * 3_000_000] * table.num_rows, pa.string())
        return _parquet(
            table.set_column(place, table.schema.field(place), big), write_statistics=True
        )
    many = pa.concat_tables([table] * rng.choice((2, 200)))
    return _parquet(many, compression="zstd")


def _annotated(table: pa.Table, data: bytes, rng: random.Random) -> bytes:
    meta = dict(table.schema.metadata or {})
    way = rng.randrange(6)
    if way == 0:
        meta[b"schema_version"] = rng.choice(
            (b"", b"99999999999999999999", b"\xff\xfe", b"1\x00", b"1" * 100_000)
        )
    elif way == 1:
        meta[b"fingerprint"] = rng.choice((b"", b"\xff" * 64, b"0" * 64, b"\x1b[2J"))
    elif way == 2:
        meta[b"pandas"] = rng.choice(
            (b"[" * 100_000, b'{"index_columns":[{"kind":"range"}]}', b"\xff")
        )
    elif way == 3:
        meta[b"ARROW:schema"] = rng.choice((b"////", b"\xff", b"A" * 100_000))
        return _parquet(table.replace_schema_metadata(meta), store_schema=False)
    elif way == 4:
        meta[b"huggingface"] = rng.choice(
            (b"\x00" * 400_000, b"{" * 5_000, b'{"info":{"features":{"a":{"_type":"os.system"}}}}')
        )
    else:
        meta |= {f"k{n}".encode(): b"v" for n in range(rng.choice((10, 30_000)))}
    return _parquet(table.replace_schema_metadata(meta))


def _framed(table: pa.Table, data: bytes, rng: random.Random) -> bytes:
    """Magic, lengths and footers that lie."""
    length = struct.unpack("<I", data[-8:-4])[0]
    return rng.choice((
        b"PARE" + data[4:-4] + b"PARE", data[:-4] + b"PARE", data[:-8] + struct.pack("<I", rng.choice((0, 2**31 - 1, 2**32 - 1, length - 1, length + 1))) + b"PAR1",
        data + data, b"PAR1" + data[-8 - length :], data[4:], data + b"\x00", b"PAR1PAR1", b"PAR1" * 3, b"ARROW1\x00\x00" + data, b"ORC" + data, gzip.compress(data),
        data[: len(data) // 2] + data[-8 - length :], b"PAR1" + bytes(len(data) - 16 - length + 4) + data[-8 - length :],
    ))  # fmt: skip


# --- pictures

MARK = Path(tempfile.gettempdir(), "eqforge-attacked")
"""Whatever is executed makes this file."""


def install_ghostscript(folder: Path) -> None:
    """Puts a `gs` that leaves the mark first in PATH."""
    folder.mkdir()
    (folder / "gs").write_text(f"#!/bin/sh\ntouch {MARK}\n")
    (folder / "gs").chmod(0o755)
    os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"


POSTSCRIPT = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 32 32\n%%EndComments\n(eqforge-attacked) (w) file closefile\nshowpage\n%%EOF\n"
_PICTURES: list[bytes] = []


def odd_pictures() -> list[bytes]:
    """Encoded pictures that are not what they should be."""
    if _PICTURES:
        return _PICTURES
    from PIL import Image

    small = Image.new("RGB", (32, 32), (200, 10, 10))

    def saved(kind: str, image: Any = small, **how: Any) -> bytes:
        stream = io.BytesIO()
        image.save(stream, kind, **how)
        return stream.getvalue()

    for kind in ("PPM", "TGA", "PCX", "SGI", "ICO", "EPS", "PDF", "DDS", "IM", "XBM", "MSP", "SPIDER", "JPEG2000", "ICNS", "AVIF", "QOI"):  # fmt: skip
        try:
            image = (
                small.convert("1")
                if kind in ("XBM", "MSP")
                else small.convert("F")
                if kind == "SPIDER"
                else small
            )
            _PICTURES.append(saved(kind, image))
        except Exception:  # a format that this Pillow does not write
            continue
    png = saved("PNG")
    _PICTURES.extend([
        POSTSCRIPT, b"\xc5\xd0\xd3\xc6" + struct.pack("<II", 32, len(POSTSCRIPT)) + bytes(20) + POSTSCRIPT,
        png[:16] + struct.pack(">II", 2**31 - 1, 2**31 - 1) + png[24:],
        png[:16] + struct.pack(">II", 30_000, 30_000) + png[24:], png[:16] + bytes(8) + png[24:],
        saved("PNG", pnginfo=None, dpi=(0, 0)), saved("GIF", save_all=True, append_images=[small] * 200),
        saved("TIFF", compression="tiff_lzw"), saved("TIFF", small.convert("F")), saved("TIFF", small.convert("CMYK")),
        saved("WEBP", lossless=True)[:40], saved("JPEG", exif=b"Exif\0\0II*\0\xff\xff\xff\xff" * 500), saved("BMP")[:26] + b"\xff" * 8 + saved("BMP")[34:],
        b"<svg xmlns='http://www.w3.org/2000/svg'><image href='file:///etc/passwd'/></svg>", b"#EXTM3U\n/etc/passwd\n", b"", b"\x00" * 100_000, b"GIF89a\xff\xff\xff\xff\x00\x00\x00", b"RIFF\xff\xff\xff\xffWEBPVP8X" + b"\xff" * 30,
        b"II*\x00\x08\x00\x00\x00\xff\xff" + b"\xff" * 200, b"MM\x00*\x00\x00\x00\x08" + b"\x00" * 4 + b"\x00\x00\x00\x08", b"BM" + b"\x00" * 12 + struct.pack("<IiiHHI", 40, 60_000, -60_000, 1, 24, 0) + bytes(60),
    ])  # fmt: skip
    return _PICTURES


# --- what is no plain file


def no_files(place: Path, target: Path) -> Iterator[tuple[str, Path]]:
    """Things of other kinds than a file, made in a folder."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    suffix = "".join(target.suffixes[-2:]) or ".json"
    for kind in ("folder", "fifo", "socket", "device-zero", "device-null", "tty", "loop", "dangling", "link-out", "link-dir", "proc-mem", "proc-environ", "unreadable", "missing", "link-fifo"):  # fmt: skip
        path = place / f"{kind}{suffix}"
        try:
            if kind == "folder":
                path.mkdir()
            elif kind in ("fifo", "link-fifo"):
                os.mkfifo(path if kind == "fifo" else place / "f")
                if kind == "link-fifo":
                    path.symlink_to(place / "f")
            elif kind == "socket":
                with socket.socket(socket.AF_UNIX) as made:
                    made.bind(str(path))
            elif kind == "unreadable":
                path.write_bytes(target.read_bytes())
                path.chmod(0)
            elif kind != "missing":
                path.symlink_to({
                    "device-zero": "/dev/zero", "device-null": "/dev/null", "tty": "/dev/tty", "loop": path.name, "dangling": "/nowhere/x",
                    "link-out": "/etc/passwd", "link-dir": "/etc", "proc-mem": "/proc/self/mem", "proc-environ": "/proc/self/environ",
                }[kind])  # fmt: skip
        except OSError:
            continue
        yield kind, path


# --- datasets and scores


def describe(folder: Path, manifest: str = "dataset.json") -> None:
    """Brings a manifest's sums to what the files are."""
    value = json.loads((folder / manifest).read_text())
    for entry in (e for entries in value["tables"].values() for e in entries):
        data = (folder / entry["path"]).read_bytes()
        entry |= {"num_bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        try:
            entry["rows"] = pq.read_metadata(io.BytesIO(data)).num_rows
        except Exception:  # whoever lies about rows has to guess them
            continue
    (folder / manifest).write_text(json.dumps(value))


def lying(value: dict[str, Any], folder: Path, rng: random.Random) -> tuple[bytes, bool]:
    """Returns a manifest that lies about its files or books; and whether that is certainly one."""
    entries = [e for files in value["tables"].values() for e in files]
    entry = rng.choice(entries)
    way = rng.randrange(11)
    if way == 0:
        entry["rows"] += rng.choice((-1, 1, 2**31, 2**62))
    elif way == 1:
        entry["num_bytes"] += rng.choice((-1, 1, 2**31))
    elif way == 2:
        entry["sha256"] = rng.choice(
            (
                entry["sha256"].upper(),
                "",
                entry["sha256"][:-1],
                entry["sha256"] + "0",
                "\u202e" * 64,
                "0" * 64,
            )
        )
    elif way == 3:
        path = entry["path"]
        entry["path"] = rng.choice((f"./{path}", f"data//{Path(path).name}", f"data/../{path}", str(folder / path), f"{path}/", f"{path}\x00", path.replace("data", "DATA"), "dataset.json", "README.md", "data", "", ".", "..", "/", "/dev/zero", "data/fifo.parquet", "data/link.parquet", "data/sock.parquet", "data/dir.parquet", "/proc/self/environ", "a" * 5_000, "data/" * 2_000 + "x", "file://" + path, "zip://" + path, "simplecache::" + path, path + "::x", "http://127.0.0.1:1/x", "memory://x", "~/" + path, "data\\" + path, rng.choice(TEXTS)))  # fmt: skip
    elif way == 4:
        name = rng.choice(list(value["tables"]))
        others = [n for n in value["tables"] if n != name]
        if others:
            other = rng.choice(others)
            value["tables"][name], value["tables"][other] = (
                value["tables"][other],
                value["tables"][name],
            )
    elif way == 5:
        name = rng.choice(list(value["tables"]))
        value["tables"][rng.choice(TEXTS)] = value["tables"].pop(name)
    elif way == 6:
        value["tables"].pop(rng.choice(list(value["tables"])))
    elif way == 7 and value.get("stages"):
        stage = value["stages"][rng.choice(list(value["stages"]))]
        key = rng.choice(("candidates", "kept", "rejected"))
        stage[key] = rng.choice((stage[key] + 1, stage[key] - 1, -stage[key] - 1, 2**62))
    elif way == 8 and value.get("stages"):
        stage = value["stages"][rng.choice(list(value["stages"]))]
        stage["reasons"][rng.choice(TEXTS)] = rng.choice((1, -1, 2**40))
    elif way == 9:
        value["dataset"] = rng.choice(
            ("eq-video", "simat", "vlue", "eq-kubric", "hard-positives", *TEXTS)
        )
    else:
        value["tables"][rng.choice(list(value["tables"]))].append(dict(entry))
    return json.dumps(value).encode(), True


# --- archives and arrays


def bombs(rng: random.Random) -> dict[str, bytes]:
    """Files that unpack to much more than they are, and arrays that announce it, by suffix."""

    def npy(header: str, body: bytes = bytes(64), version: bytes = b"\x01\x00") -> bytes:
        text = header.encode().ljust(117) + b"\n"
        size = struct.pack("<H", len(text)) if version[0] == 1 else struct.pack("<I", len(text))
        return b"\x93NUMPY" + version + size + text + body

    def zipped(**members: bytes) -> bytes:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in members.items():
                archive.writestr(name, data)
        return stream.getvalue()

    descr = rng.choice(
        (
            "<f8",
            "|O",
            ">f4",
            "<c16",
            "|S1000000",
            "<U99",
            "|V8",
            "<M8[s]",
            "[('a','<f8')]",
            "<f2",
            "|b1",
            "<f16",
            "junk",
            "<f8" * 9,
            "<u8",
            "<i1",
        )
    )
    shape = rng.choice(
        (
            "(8,)",
            "(10**13,)",
            "(1000000000000,)",
            "(-1,)",
            "(2, 4)",
            "(4611686018427387904, 4)",
            "()",
            "(0,)",
            "(8, 0, 99999999)",
            "8",
            "(True,)",
            "(8.0,)",
            "(" + "1," * 60 + ")",
            "(8,",
            "((8,),)",
        )
    )
    order = rng.choice(("False", "True", "0", "None", "'x'"))
    body = rng.choice(
        (bytes(64), b"", np.ones(8).tobytes(), np.full(8, np.nan).tobytes(), b"\xff" * 64)
    )
    header = f"{{'descr': {descr!r}, 'fortran_order': {order}, 'shape': {shape}}}"
    array = npy(header, body, rng.choice((b"\x01\x00", b"\x02\x00", b"\x03\x00", b"\x09\x09")))
    import pickle

    class Evil:
        def __reduce__(self) -> Any:
            return os.system, (f"touch {MARK}",)

    evil = pickle.dumps(Evil(), rng.randrange(6))
    pt = rng.choice((
        zipped(**{"archive/data.pkl": evil, "archive/version": b"3"}), evil, zipped(**{"archive/data.pkl": bytes(300_000_000)}) if rng.random() < 0.03 else b"PK\x05\x06" + bytes(18),
        zipped(**{"../data.pkl": evil}), zipped(**{"a/data.pkl": b"\x80\x02}q\x00."}), b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n.", tarred("x", evil), zipped(**{"constants.pkl": evil, "a/code/x.py": b"import os"}),
    ))  # fmt: skip
    return {
        ".npy": rng.choice((array, array, array, zipped(**{"a.npy": array}), gzip.compress(array), evil)),
        ".pt": pt, ".pth": pt,
        ".json": odd_json(b"[1.0, 2, 3, 4.5]", rng),
        ".txt": rng.choice((b"1 " * 100_000, b"1_0 2", b"nan inf", "١ ٢".encode(), b"1e999", b"0x1p3", b"\xff\xfe1", b"1" * 200_000, b"\x00", b"", b"True 1", "1\u00a02".encode())),
        ".csv": rng.choice((b"1,2\r3", b",,,", b"'=1+1',2", b'"1","2"', b"1;2", b"1e1000000000", b"\x1b[2J")),
        ".npz": zipped(**{"a.npy": array}), ".bin": array, ".safetensors": struct.pack("<Q", 2**60) + b"{}",
    }  # fmt: skip


def tarred(name: str, data: bytes, kind: bytes = tarfile.REGTYPE, link: str = "") -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.type, member.linkname, member.size = kind, link, len(data)
        archive.addfile(member, io.BytesIO(data))
    return stream.getvalue()

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.files.objects import PIECE_BYTES
from eqforge.core.files.shards import Member, read_shards
from tests.web_server import WebServer

FORMATS = {"gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT, "ustar": tarfile.USTAR_FORMAT}
LONG = "long/" + "n" * 90 + "/ü.mp4"


def write_shard(path: Path, files: dict[str, bytes], form: int = tarfile.PAX_FORMAT) -> None:
    with tarfile.open(path, "w", format=form) as tar:
        folder = tarfile.TarInfo("folder")
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))


def read(member: Member) -> bytes:
    return storage.read_range(member.shard, member.start, member.start + member.size)


@pytest.mark.parametrize("form", FORMATS)
def test_members_are_found_where_they_lie(tmp_path: Path, form: str) -> None:
    files = {"./a.mp4": b"first", "b/c.json": b"", LONG: bytes(200_000)}
    write_shard(tmp_path / "0.tar", files, FORMATS[form])
    found = {member.name: read(member) for member in read_shards([str(tmp_path / "0.tar")])}
    assert found == {"a.mp4": b"first", "b/c.json": b"", LONG: bytes(200_000)}


def test_of_a_large_shard_in_a_store_headers_alone_are_read(tmp_path: Path) -> None:
    files = {f"{number}.mp4": bytes(2_000_000) for number in range(8)}
    write_shard(tmp_path / "0.tar", files)
    with WebServer(tmp_path).running() as web:
        members = list(read_shards([f"{web.url}/0.tar"]))
        assert [member.name for member in members] == list(files)
        assert web.sent["0.tar"] < 16_000_000 / 10
    assert PIECE_BYTES > 2_000_000


def link(tar: tarfile.TarFile) -> None:
    entry = tarfile.TarInfo("a.mp4")
    entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
    tar.addfile(entry)


def device(tar: tarfile.TarFile) -> None:
    entry = tarfile.TarInfo("a.mp4")
    entry.type = tarfile.CHRTYPE
    tar.addfile(entry)


def twice(tar: tarfile.TarFile) -> None:
    tar.addfile(tarfile.TarInfo("a.mp4"))
    tar.addfile(tarfile.TarInfo("./a.mp4"))


def sparse(tar: tarfile.TarFile) -> None:
    entry = tarfile.TarInfo("a.mp4")
    entry.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}
    entry.size = 512
    tar.addfile(entry, io.BytesIO(b"1\n0\n1\n".ljust(512, b"\0")))


@pytest.mark.parametrize(
    ("add", "message"),
    [
        (link, "'a.mp4' is a link, a pipe or a device; expected a regular file"),
        (device, "'a.mp4' is a link, a pipe or a device; expected a regular file"),
        (sparse, "'a.mp4' is a sparse file; expected a regular file"),
        (twice, "the file 'a.mp4' appears twice. Give every file a"),
    ],
)
def test_what_is_no_plain_file_is_refused(
    tmp_path: Path, add: Callable[[tarfile.TarFile], None], message: str
) -> None:
    with tarfile.open(tmp_path / "0.tar", "w") as tar:
        add(tar)
    with pytest.raises(InputError, match=message):
        list(read_shards([str(tmp_path / "0.tar")]))


def test_a_name_in_two_shards_is_refused(tmp_path: Path) -> None:
    shards = [tmp_path / "0.tar", tmp_path / "1.tar"]
    for shard in shards:
        write_shard(shard, {"a.mp4": b""})
    with pytest.raises(InputError, match=r"1\.tar: the file 'a\.mp4' is also in 0\.tar\. Give"):
        list(read_shards(list(map(str, shards))))


def too_long(data: bytes) -> bytes:
    """Announces a member that is longer than a file can be."""
    header = data[512:636] + b"\x80" + b"\xff" * 11 + data[648:660] + b" " * 8 + data[668:1024]
    header = header[:148] + f"{sum(header):06o}\0 ".encode() + header[156:]
    return data[:512] + header + data[1024:]


def damaged(data: bytes) -> bytes:
    return data[:1536] + b"\xff" * 512 + data[2048:]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (damaged, "the header at byte 1,536 is damaged"),
        (too_long, "is not an uncompressed tar file, or it is damaged"),
        (lambda data: data[:1900], "the header at byte 1,536 is damaged"),
        (lambda data: data[:2100], "unexpected end of data"),
        (lambda data: data[:1536], "may be truncated"),
        (lambda data: data + data, "data follows the end"),
        (lambda _: b"no tar" * 500, "is not an uncompressed tar file, or it is damaged"),
        (lambda _: b"", "is not an uncompressed tar file, or it is damaged: empty file"),
    ],
)
def test_a_damaged_shard_is_refused(
    tmp_path: Path, change: Callable[[bytes], bytes], message: str
) -> None:
    """Python's tarfile takes a damaged header for the end, and leaves out what follows."""
    shard = tmp_path / "0.tar"
    write_shard(shard, {"a.mp4": bytes(500), "b.mp4": bytes(500)}, tarfile.USTAR_FORMAT)
    shard.write_bytes(change(shard.read_bytes()))
    with pytest.raises(InputError, match=message):
        list(read_shards([str(shard)]))


def test_a_missing_or_compressed_shard_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"0\.tar: no file of that name"):
        list(read_shards([str(tmp_path / "0.tar")]))
    with pytest.raises(InputError, match=r"0\.tar\.gz is compressed"):
        list(read_shards([str(tmp_path / "0.tar.gz")]))

import contextlib
import gzip
import io
import json
import os
import random
import subprocess
import sys
import tarfile
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from eqforge.core.errors import InputError
from eqforge.core.identity import sha256_hex
from eqforge.generators.scenes import assets as archives
from eqforge.generators.scenes.assets import (
    BUILTIN,
    BUILTIN_MANIFEST,
    MAX_ARCHIVE_BYTES,
    AssetLibrary,
    BadArchive,
    archive_files,
)
from eqforge.generators.scenes.copies import findings_of
from eqforge.generators.scenes.manifest import read_manifest

CUBE = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n"


def tar(files: dict[str, bytes]) -> bytes:
    return tar_of([(tarfile.TarInfo(name), content) for name, content in files.items()])


def contents(data: bytes) -> list[tuple[str, bytes]]:
    with archives.one_error():
        return [(name, stream.read()) for name, stream in archive_files(data, "thing")]


def tar_of(members: list[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for member, content in members:
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def entry(archive: bytes | None = None, **changed: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "asset_type": "FileBasedObject",
        "kwargs": {"bounds": [[0, 0, 0], [1, 1, 1]], "render_filename": "{asset_dir}/a.obj"},
        "metadata": {"category": "Toys"},
        "words": {"noun": "thing"},
    }
    if archive is not None:
        made["sha256"] = sha256_hex(archive)
    return made | changed


def write(folder: Path, entries: dict[str, Any], archives: dict[str, bytes]) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    for name, archive in archives.items():
        (folder / f"{name}.tar.gz").write_bytes(archive)
    (folder / "manifest.json").write_text(json.dumps({"name": "LOCAL", "assets": entries}))
    return str(folder / "manifest.json")


@pytest.fixture
def library(tmp_path: Path) -> Callable[[bytes], AssetLibrary]:
    """Makes a library of one asset with the given archive."""

    def make(archive: bytes) -> AssetLibrary:
        manifest = write(tmp_path / "there", {"thing": entry(archive)}, {"thing": archive})
        return AssetLibrary(manifest, str(tmp_path / "cache"))

    return make


def test_every_asset_of_ours_unpacks_and_holds_the_files_it_names(tmp_path: Path) -> None:
    library = AssetLibrary(BUILTIN, str(tmp_path))
    for asset_id, asset in library.assets.items():
        files = library.unpack(asset_id)
        assert files.render.is_file()
        assert files.simulation is not None
        assert files.simulation.is_file()
        assert asset.words is not None
        assert asset.licence == "Apache-2.0"


def test_an_archive_may_hold_its_files_in_a_folder_named_like_the_asset(
    library: Callable[[bytes], AssetLibrary],
) -> None:
    folder = tarfile.TarInfo("thing")
    folder.type = tarfile.DIRTYPE
    archive = tar_of([(folder, b""), (tarfile.TarInfo("thing/a.obj"), CUBE)])
    assert library(archive).unpack("thing").render.read_bytes() == CUBE


def test_a_second_unpacking_reads_nothing_of_the_source(
    library: Callable[[bytes], AssetLibrary], tmp_path: Path
) -> None:
    made = library(tar({"a.obj": CUBE}))
    first = made.unpack("thing")
    (tmp_path / "there" / "thing.tar.gz").unlink()
    assert made.unpack("thing") == first


def test_a_wrong_digest_names_the_asset_what_was_expected_and_what_was_found(
    library: Callable[[bytes], AssetLibrary], tmp_path: Path
) -> None:
    pinned, other = tar({"a.obj": CUBE}), tar({"a.obj": CUBE + b"# changed\n"})
    made = library(pinned)
    (tmp_path / "there" / "thing.tar.gz").write_bytes(other)
    with pytest.raises(InputError) as raised:
        made.unpack("thing")
    for part in ("'thing'", sha256_hex(pinned), sha256_hex(other)):
        assert part in str(raised.value)
    assert not (tmp_path / "cache").exists()


def test_an_asset_that_is_not_pinned_is_refused(tmp_path: Path) -> None:
    manifest = write(tmp_path, {"thing": entry()}, {"thing": tar({"a.obj": CUBE})})
    with pytest.raises(InputError, match=r"has no 'sha256'\. To get"):
        AssetLibrary(manifest, str(tmp_path / "cache")).unpack("thing")


def test_a_missing_archive_is_one_clear_error(
    library: Callable[[bytes], AssetLibrary], tmp_path: Path
) -> None:
    made = library(tar({"a.obj": CUBE}))
    (tmp_path / "there" / "thing.tar.gz").unlink()
    with pytest.raises(InputError, match=r"asset 'thing': .*thing.tar.gz: no file of that name"):
        made.unpack("thing")


def test_a_file_that_was_damaged_in_the_cache_is_made_again(
    library: Callable[[bytes], AssetLibrary],
) -> None:
    made = library(tar({"a.obj": CUBE, "b.mtl": b"newmtl a\n"}))
    files = made.unpack("thing")
    files.render.write_bytes(b"v 0")
    assert made.unpack("thing").render.read_bytes() == CUBE
    (files.folder / "b.mtl").unlink()
    assert (made.unpack("thing").folder / "b.mtl").is_file()


def test_many_may_unpack_the_same_asset_at_once(
    library: Callable[[bytes], AssetLibrary], tmp_path: Path
) -> None:
    made = library(tar({"a.obj": CUBE}))
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(made.unpack, ["thing"] * 32))
    assert all(files == found[0] for files in found)
    assert [path.name for path in found[0].folder.parent.iterdir()] == [found[0].folder.name]


def special(name: str, kind: bytes, target: str = "") -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member, b""


HOSTILE = {
    "parent": [(tarfile.TarInfo("../out.txt"), b"x")],
    "deep parent": [(tarfile.TarInfo("thing/../../out.txt"), b"x")],
    "absolute": [(tarfile.TarInfo("/out.txt"), b"x")],
    "backslash": [(tarfile.TarInfo("..\\out.txt"), b"x")],
    "folder below": [(tarfile.TarInfo("sub/a.obj"), b"x")],
    "symbolic link": [special("a.obj", tarfile.SYMTYPE, "/etc/passwd")],
    "hard link": [special("a.obj", tarfile.LNKTYPE, "/etc/passwd")],
    "device": [special("a.obj", tarfile.CHRTYPE)],
    "pipe": [special("a.obj", tarfile.FIFOTYPE)],
    "other folder": [special("sub", tarfile.DIRTYPE)],
    "sparse": [special("a.obj", tarfile.GNUTYPE_SPARSE)],
    "long name": [(tarfile.TarInfo("a" * 300), CUBE)],
    "twice": [(tarfile.TarInfo("a.obj"), CUBE), (tarfile.TarInfo("thing/a.obj"), b"x")],
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_archive_is_refused_and_leaves_nothing(
    kind: str, library: Callable[[bytes], AssetLibrary], tmp_path: Path
) -> None:
    made = library(tar_of(HOSTILE[kind]))
    with pytest.raises(InputError, match=r"asset 'thing': .*thing.tar.gz: "):
        made.unpack("thing")
    left = [path.name for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(left) == ["manifest.json", "thing.tar.gz"]


@pytest.mark.parametrize("damage", ["empty", "text", "cut", "flipped"])
def test_a_damaged_archive_is_refused(
    damage: str, library: Callable[[bytes], AssetLibrary]
) -> None:
    whole = tar({"a.obj": CUBE * 500})
    middle = len(whole) // 2
    data = {
        "empty": b"",
        "text": b"no archive at all",
        "cut": whole[:middle],
        "flipped": whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :],
    }[damage]
    with pytest.raises(InputError, match=r"not a \.tar\.gz archive"):
        library(data).unpack("thing")


def test_no_flipped_bit_and_no_cut_changes_what_is_read() -> None:
    whole = tar({"a.obj": random.Random(5).randbytes(300), "b.mtl": CUBE})
    files, trailer = contents(whole), 8 * (len(whole) - 8)
    for bit in [*range(80, trailer, 5), *range(trailer, 8 * len(whole))]:
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        with contextlib.suppress(BadArchive):
            # Deflate can say the same in several ways: a few flips change nothing.
            assert contents(bytes(damaged)) == files
            assert bit < trailer
    for length in range(0, len(whole), 3):
        with pytest.raises(BadArchive):
            contents(whole[:length])


def headers(kind: bytes, size: int, count: int) -> bytes:
    """Headers in front of a file whose own size is nothing beside theirs."""
    member = tarfile.TarInfo("././@LongLink")
    member.type, member.size = kind, size
    record = b"%d comment=" % size
    content = record + b"a" * (size - len(record) - 1) + b"\n"
    plain = tarfile.TarInfo("a.obj").tobuf() + bytes(1024)
    return gzip.compress((member.tobuf(tarfile.GNU_FORMAT) + content) * count + plain, 1)


@pytest.mark.parametrize(
    ("kind", "size", "count"),
    [
        (tarfile.GNUTYPE_LONGNAME, 16 << 20, 1),
        (tarfile.XHDTYPE, 1 << 20, 20),
        (tarfile.XGLTYPE, 512, 20_000),
    ],
)
def test_headers_do_not_pass_the_limit(kind: bytes, size: int, count: int) -> None:
    """tarfile holds all of a long name or of an extended header in memory, and each behind it."""
    bomb = headers(kind, size, count)
    tracemalloc.start()
    with pytest.raises(BadArchive):
        contents(bomb)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * archives.MAX_HEADER_BYTES


def test_a_damaged_block_is_a_problem_of_its_asset_alone(tmp_path: Path) -> None:
    whole = tar({"a.obj": CUBE})
    # Blocks of the type 3 do not exist: zlib has an error of its own for them.
    bad = whole[:10] + bytes([whole[10] | 6]) + whole[11:]
    manifest = write(
        tmp_path, {"bad": entry(bad), "good": entry(whole)}, {"bad": bad, "good": whole}
    )
    found = [list(findings_of(asset)) for asset in read_manifest(manifest).assets.values()]
    assert [len(findings) for findings in found] == [1, 0]
    assert "invalid block type" in found[0][0].text


def test_what_unpacks_to_more_than_the_limits_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_UNPACKED_BYTES", 10**6)
    for bomb in (tar({"a.obj": bytes(10**6 + 1)}), tar({}) + gzip.compress(bytes(10**6))):
        with pytest.raises(BadArchive, match="too large"):
            contents(bomb)
    with pytest.raises(BadArchive, match="the archive has more than 1,000 files"):
        contents(tar({f"{n}.obj": b"" for n in range(archives.MAX_FILES + 1)}))


def test_an_archive_over_the_limit_is_not_read(library: Callable[[bytes], AssetLibrary]) -> None:
    made = library(tar({"a.obj": CUBE}))
    os.truncate(made.asset("thing").archive, MAX_ARCHIVE_BYTES + 1)  # a hole takes no space
    with pytest.raises(InputError, match="536,870,913 bytes, but the limit is 536,870,912"):
        made.unpack("thing")


def test_an_archive_without_the_file_to_draw_is_refused(
    library: Callable[[bytes], AssetLibrary],
) -> None:
    with pytest.raises(InputError, match=r"asset 'thing': .* does not contain a\.obj"):
        library(tar({"b.obj": CUBE})).unpack("thing")


def test_an_environment_picture_may_stand_in_the_folder_without_an_archive(tmp_path: Path) -> None:
    picture = b"#?RADIANCE\n"
    hdri = {
        "asset_type": "Texture",
        "kwargs": {"filename": "sky.hdr"},
        "path": None,
        "sha256": sha256_hex(picture),
    }
    (tmp_path / "sky.hdr").write_bytes(picture)
    library = AssetLibrary(write(tmp_path, {"sky": hdri}, {}), str(tmp_path / "cache"))
    assert library.asset("sky").kind == "hdri"
    assert library.unpack("sky").render.read_bytes() == picture


def test_one_picture_may_have_two_names(tmp_path: Path) -> None:
    picture = b"#?RADIANCE\n"
    made = {"asset_type": "Texture", "path": None, "sha256": sha256_hex(picture)}
    names = ("dawn", "dusk")
    for name in names:
        (tmp_path / f"{name}.hdr").write_bytes(picture)
    hdris = {name: made | {"kwargs": {"filename": f"{name}.hdr"}} for name in names}
    library = AssetLibrary(write(tmp_path, hdris, {}), str(tmp_path / "cache"))
    renders = [library.unpack(name).render for name in names]
    assert [render.name for render in renders] == ["dawn.hdr", "dusk.hdr"]
    assert [render.read_bytes() for render in renders] == [picture] * 2


def test_a_manifest_of_kubric_is_read_as_kubric_reads_it(tmp_path: Path) -> None:
    plain = entry(path="deep/thing.tar.gz")
    del plain["words"]
    plain["kwargs"] |= {"simulation_filename": "{asset_dir}/b.urdf", "mass": 2.0}
    url = write(tmp_path, {"thing": plain, "other": entry()}, {})
    manifest = read_manifest(url)
    thing, other = manifest.assets["thing"], manifest.assets["other"]
    assert (manifest.name, thing.category) == ("LOCAL", "Toys")
    assert thing.archive == f"{tmp_path}/deep/thing.tar.gz"
    assert other.archive == f"{tmp_path}/other.tar.gz"
    assert (thing.render, thing.simulation, other.simulation) == ("a.obj", "b.urdf", None)
    assert (thing.words, thing.sha256) == (None, None)
    assert thing.import_kwargs == {"axis_forward": "Y", "axis_up": "Z"}
    assert thing.extent == (1.0, 1.0, 1.0)


KUBRIC = """
import sys
from eqforge.generators.scenes.kubric_import import import_kubric
import_kubric(sys.argv[2])
import kubric
source = kubric.AssetSource.from_manifest(sys.argv[1], scratch_dir=sys.argv[2])
mug = source.create("mug")
corner = [round(float(side), 4) for side in mug.bounds[1]]
print("made", mug.asset_id, mug.metadata["category"], corner)
print("made", open(mug.render_filename).readline().strip())
print("made", open(mug.simulation_filename).readline().strip())
"""


@pytest.mark.skipif(find_spec("kubric") is None, reason="needs the extra render")
def test_kubric_itself_reads_our_manifest(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KUBRIC, BUILTIN_MANIFEST, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("made ")]
    bounds = AssetLibrary(BUILTIN, str(tmp_path)).asset("mug").bounds
    assert lines == [
        f"made mug kitchen {list(bounds[1])}",
        "made mtllib visual_geometry.mtl",
        'made <robot name="mug"><link name="base">',
    ]


def test_data_dir_says_where_the_archives_are(tmp_path: Path) -> None:
    document = {"data_dir": "memory://elsewhere", "assets": {"thing": entry()}}
    (tmp_path / "GSO.json").write_text(json.dumps(document))
    manifest = read_manifest(str(tmp_path / "GSO.json"))
    assert manifest.name == "GSO"
    assert manifest.assets["thing"].archive == "memory://elsewhere/thing.tar.gz"


def test_a_manifest_that_is_replaced_during_a_run_is_refused(tmp_path: Path) -> None:
    url = write(tmp_path, {"thing": entry()}, {})
    digest = sha256_hex(Path(url).read_bytes())
    AssetLibrary(url, str(tmp_path / "cache"), digest)
    write(tmp_path, {"thing": entry(sha256="0" * 64)}, {})

    with pytest.raises(InputError, match=r"manifest\.json: the manifest changed during the run"):
        AssetLibrary(url, str(tmp_path / "cache"), digest)


@pytest.mark.parametrize(
    ("data_dir", "path"),
    [
        ("/etc", "passwd"),
        ("file:///etc", "passwd"),
        ("..", "thing.tar.gz"),
        ("", "../thing.tar.gz"),
        ("", "link.tar.gz"),
    ],
)
def test_no_archive_outside_the_folder_of_its_manifest_is_opened(
    data_dir: str, path: str, tmp_path: Path
) -> None:
    (tmp_path / "link.tar.gz").symlink_to("/etc/passwd")
    picture = {"asset_type": "Texture", "path": None, "kwargs": {"filename": path}}
    for kind in ({"path": path}, picture):
        document = {"data_dir": data_dir, "assets": {"thing": entry(**kind)}}
        (tmp_path / "a.json").write_text(json.dumps(document))

        with pytest.raises(InputError, match=r"'thing': .* is outside the manifest's folder"):
            read_manifest(str(tmp_path / "a.json"))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"asset_type": "Sound"}, "asset_type: expected FileBasedObject or Texture"),
        ({"kwargs": {"bounds": [[0, 0, 0], [1, 1, 1]]}}, "'render_filename' is missing"),
        ({"sha256": "abc"}, "64 lower-case hexadecimal digits"),
        ({"words": {"plural": "things"}}, "'noun' is missing"),
        ({"words": {"noun": "thing", "size": 0}}, "a number above 0"),
        (
            {"words": {"noun": "thing", "color": "red"}},
            r"words\.color: unknown field; the fields of `words` are",
        ),
        ({"words": {"noun": "thing", "role": ["support"]}}, r"words\.role: unknown field"),
        ({"words": {"noun": "thing", "roles": ["suport"]}}, r"roles\[0\]: expected one of object"),
        (
            {"words": {"noun": "thing", "materials": ["gold"]}},
            r"materials\[0\]: expected one of rubber, metal, glass, wooden",
        ),
        ({"words": {"noun": "thing", "colour": "Rde"}}, "colour: expected one of red, orange"),
        ({"words": {"noun": "thing", "clashes": ["gold"]}}, r"clashes\[0\]: expected one of red"),
        (
            {"words": {"noun": "thing", "trims": {"roof": {"noun": "roof"}}}},
            r"trims: expected `parts` beside `trims`, found no `parts`",
        ),
        (
            {"words": {"noun": "thing", "parts": ["a"], "trims": {"a": {"noun": "roof"}}}},
            r"trims\.a: expected a material that is not in `parts`, found 'a'",
        ),
        (
            {"words": {"noun": "a", "parts": [], "trims": {"b": {"noun": "c", "colour": "red"}}}},
            r"trims\.b\.colour: unknown field; the fields of a trim are noun, is_plural",
        ),
        ({"kwargs": {"bounds": [[0, 0], [1, 1]], "render_filename": "a.obj"}}, "two corners"),
        (
            {"kwargs": {"bounds": [[0] * 3, [0] * 3], "render_filename": "a.obj"}},
            "less than the second's",
        ),
        (
            {"kwargs": {"bounds": [[0] * 3, [1] * 3], "render_filename": "/tmp/.."}},
            "name of a file",
        ),
    ],
)
def test_a_wrong_entry_is_named_with_its_field(
    changed: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        read_manifest(write(tmp_path, {"thing": entry(**changed)}, {}))


@pytest.mark.parametrize("name", ["../thing", "a/b", "", ".."])
def test_an_id_that_is_no_file_name_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read_manifest(write(tmp_path, {name: entry()}, {}))

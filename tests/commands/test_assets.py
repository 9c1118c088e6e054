import json
import tarfile
import uuid
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import _registry

from eqforge.commands import assets as command
from eqforge.commands.assets import fetch_assets
from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.identity import sha256_hex
from eqforge.generators.scenes import copies
from eqforge.generators.scenes.assets import BUILTIN, AssetLibrary, fetch_archive, packed
from eqforge.generators.scenes.manifest import Asset, read_manifest


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str]:
    status = command.main(list(argv))
    return status, capsys.readouterr().out


@pytest.fixture
def google(monkeypatch: pytest.MonkeyPatch) -> str:
    """A bucket of Google's that lives in memory: its assets are not pinned and have no words."""
    monkeypatch.setitem(_registry, "gs", MemoryFileSystem)
    root = f"gs://bucket-{uuid.uuid4().hex}/GSO"
    ours = AssetLibrary(BUILTIN, "/nowhere")
    entries: dict[str, Any] = {}
    for name, theirs in (("mug", "Cole_Hardware_Mug_Classic_Blue"), ("duck", "Bath_Duck")):
        entry = dict(ours.asset(name).entry)
        for key in ("sha256", "num_bytes", "words", "path"):
            del entry[key]
        entries[theirs] = entry
        archive = storage.read_bytes(ours.asset(name).archive)
        storage.write_bytes(f"{root}/{theirs}.tar.gz", archive)
    document = {"name": "GSO", "data_dir": root, "assets": entries}
    storage.write_bytes(f"{root}/GSO.json", json.dumps(document).encode())
    return root


def test_ours_are_listed_with_their_words_and_are_sound(capsys: pytest.CaptureFixture[str]) -> None:
    status, out = run(capsys, "list", "--category", "toys")
    assert status == 0
    assert "duck" in out
    assert "rubber duck" in out
    assert "mug" not in out
    assert out.endswith("7 assets\n")
    assert run(capsys, "check") == (0, "45 of 45 assets are intact\n")


def test_assets_of_a_bucket_are_fetched_pinned_and_then_unpack(
    google: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match="has no 'sha256'"):
        AssetLibrary(f"{google}/GSO.json", str(tmp_path / "cache")).unpack("Bath_Duck")
    output = tmp_path / "gso"
    status, out = run(capsys, "fetch", "--manifest", f"{google}/GSO.json", "--output", str(output))
    assert status == 0
    assert out == f"{output}/manifest.json: 2 assets, 1 without caption words\n"
    library = AssetLibrary(f"{output}/manifest.json", str(tmp_path / "cache"))
    mug = library.asset("Cole_Hardware_Mug_Classic_Blue")
    assert mug.sha256 == sha256_hex((output / "Cole_Hardware_Mug_Classic_Blue.tar.gz").read_bytes())
    assert mug.words is not None
    assert (mug.words.noun, mug.words.colour) == ("mug", "blue")
    assert library.unpack("Bath_Duck").render.is_file()
    status, out = run(capsys, "check", "--manifest", f"{output}/manifest.json")
    assert (status, out) == (0, "2 of 2 assets are intact\n")


def test_what_was_fetched_is_not_fetched_again_and_what_was_damaged_is(
    google: str, tmp_path: Path
) -> None:
    source = list(read_manifest(f"{google}/GSO.json").assets.values())
    output = str(tmp_path)
    assert fetch_assets(source, output, {}, print) == {}
    manifest = (tmp_path / "manifest.json").read_bytes()
    storage.delete(f"{google}/Bath_Duck.tar.gz")
    (tmp_path / "Cole_Hardware_Mug_Classic_Blue.tar.gz").write_bytes(b"damaged")
    assert fetch_assets(source, output, {}, print) == {}
    assert (tmp_path / "manifest.json").read_bytes() == manifest
    (tmp_path / "Bath_Duck.tar.gz").write_bytes(b"damaged")
    failures = fetch_assets(source, output, {}, print)
    assert list(failures) == ["Bath_Duck"]
    assert "no file of that name" in failures["Bath_Duck"]


def test_an_interrupted_fetch_goes_on_where_it_stopped(
    google: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = list(read_manifest(f"{google}/GSO.json").assets.values())

    def stop(line: str) -> None:
        raise KeyboardInterrupt(line)

    with pytest.raises(KeyboardInterrupt):
        fetch_assets(source, str(tmp_path), {}, stop, at_once=1)
    assert list(read_manifest(str(tmp_path / "manifest.json")).assets) == [source[0].asset_id]
    fetched = []

    def watched(asset: Asset) -> bytes:
        fetched.append(asset.asset_id)
        return fetch_archive(asset)

    monkeypatch.setattr(copies, "fetch_archive", watched)
    fetch_assets(source, str(tmp_path), {}, print)
    assert fetched == [source[1].asset_id]


def test_sets_from_several_manifests_come_together_in_one_folder(
    google: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for argv in (["--ids", "table", "platform"], ["--manifest", f"{google}/GSO.json"]):
        assert run(capsys, "fetch", "--output", str(tmp_path), *argv)[0] == 0
    assert list(read_manifest(str(tmp_path / "manifest.json")).assets) == [
        *("Bath_Duck", "Cole_Hardware_Mug_Classic_Blue", "platform", "table")
    ]


def test_words_can_be_given_in_a_file_and_changed_later(google: str, tmp_path: Path) -> None:
    argv = ["fetch", "--manifest", f"{google}/GSO.json", "--output", str(tmp_path / "out")]
    for noun in ("duck", "bird"):
        words = tmp_path / f"{noun}.json"
        words.write_text(json.dumps({"Bath_Duck": {"noun": noun, "parts": []}}))
        assert command.main([*argv, "--words", str(words)]) == 0
        duck = read_manifest(str(tmp_path / "out" / "manifest.json")).assets["Bath_Duck"]
        assert duck.words is not None
        assert (duck.words.noun, duck.words.plural) == (noun, noun + "s")
        assert not duck.words.is_recolourable


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"noun": 3}, "Bath_Duck.noun: expected a printable string"),
        ({"noun": "x", "detail": "with red straps"}, "Bath_Duck.detail names a colour; remove"),
    ],
)
def test_wrong_words_name_the_asset_and_the_field(
    wrong: dict[str, object],
    message: str,
    google: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = tmp_path / "words.json"
    words.write_text(json.dumps({"Bath_Duck": wrong}))
    with pytest.raises(SystemExit) as left:
        run(capsys, "fetch", "--output", str(tmp_path), "--words", str(words))
    assert left.value.code == 2
    assert message in capsys.readouterr().err


def edited(source: Path, change: dict[str, bytes | None]) -> bytes:
    """An archive with some files replaced, or taken out."""
    with tarfile.open(source) as archive:
        files = {m.name: archive.extractfile(m).read() for m in archive}  # type: ignore[union-attr]
    return packed({name: data for name, data in (files | change).items() if data is not None})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"collision_geometry.obj": None}, "object.urdf uses collision_geometry.obj"),
        ({"object.urdf": None}, "does not contain object.urdf"),
        (
            {"visual_geometry.mtl": b"newmtl paint\nKd 1 1 1\nmap_Kd -s 1 1 1 texture.png\n"},
            "visual_geometry.obj uses texture.png, which does not exist",
        ),
        (
            {
                "visual_geometry.mtl": b"newmtl paint\nKd 1 1 1\nbump -bm 2 b.png\n",
                "b.png": b"version https://git-lfs.github.com/spec/v1\n",
            },
            "visual_geometry.obj uses b.png, which is unusable",
        ),
    ],
)
def test_an_archive_that_lacks_what_it_names_is_found_and_not_fetched(
    change: dict[str, bytes | None],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(capsys, "fetch", "--ids", "cube", "--output", str(tmp_path))[0] == 0
    archive = edited(tmp_path / "cube.tar.gz", change)
    (tmp_path / "cube.tar.gz").write_bytes(archive)
    document = json.loads((tmp_path / "manifest.json").read_text())
    document["assets"]["cube"] |= {"sha256": sha256_hex(archive), "num_bytes": len(archive)}
    (tmp_path / "manifest.json").write_text(json.dumps(document))
    manifest = str(tmp_path / "manifest.json")
    status, out = run(capsys, "check", "--manifest", manifest)
    assert status == 1
    assert message in out
    assert out.endswith("0 of 1 assets are intact\n")
    status, out = run(capsys, "fetch", "--manifest", manifest, "--output", str(tmp_path / "other"))
    assert status == 1
    assert message in out


def test_a_changed_archive_fails_the_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, "fetch", "--ids", "cube", "mug", "--output", str(tmp_path))[0] == 0
    (tmp_path / "cube.tar.gz").write_bytes((tmp_path / "mug.tar.gz").read_bytes())
    status, out = run(capsys, "check", "--manifest", str(tmp_path / "manifest.json"))
    assert status == 1
    assert "asset 'cube'" in out
    assert "not the pinned archive" in out
    assert out.endswith("1 of 2 assets are intact\n")


def test_an_asset_that_is_not_pinned_fails_the_check(
    google: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out = run(capsys, "check", "--manifest", f"{google}/GSO.json", "--ids", "Bath_Duck")
    assert (status, out) == (
        1,
        "asset 'Bath_Duck': its archive has no sha256 in the manifest\n0 of 1 assets are intact\n",
    )


def test_environment_pictures_without_archives_are_copied(tmp_path: Path) -> None:
    (tmp_path / "sky_4k.hdr").write_bytes(b"#?RADIANCE\n")
    entry = {"asset_type": "Texture", "kwargs": {"filename": "sky_4k.hdr"}, "path": None}
    (tmp_path / "hdri.json").write_text(json.dumps({"assets": {"sky": entry}}))
    source = list(read_manifest(str(tmp_path / "hdri.json")).assets.values())
    assert fetch_assets(source, str(tmp_path / "out"), {}, print) == {}
    library = AssetLibrary(str(tmp_path / "out" / "manifest.json"), str(tmp_path / "cache"))
    assert library.unpack("sky").render.name == "sky.hdr"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (
            ["list", "--category", "cars"],
            "no category 'cars'; the categories are clothes, decoration",
        ),
        (["check", "--ids", "mugs"], "no asset 'mugs'; the closest ids are mug"),
        (
            ["list", "--manifest", "/nowhere.json"],
            "/nowhere.json: the asset manifest does not exist",
        ),
    ],
)
def test_a_wrong_choice_is_one_clear_message(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        command.main(argv)
    assert left.value.code == 2
    assert message in capsys.readouterr().err

"""Signatures that the program minisign 0.11 made of `tests/signatures/dataset.json`."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from eqforge.commands import verify
from eqforge.commands.signature import check_signature
from eqforge.core.errors import InputError, MissingExtra

SIGNED = Path(__file__).parents[1] / "signatures"
KEY = str(SIGNED / "minisign.pub")


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return shutil.copytree(SIGNED, tmp_path / "signed")


def test_what_minisign_signed_is_accepted_with_the_key_as_file_or_text(dataset: Path) -> None:
    text = Path(KEY).read_text().splitlines()[1]

    assert check_signature(str(dataset), KEY) == []
    assert check_signature(str(dataset), text) == []
    assert check_signature(str(dataset), KEY, str(SIGNED / "legacy.minisig")) == []


def test_a_changed_manifest_and_another_key_are_told_apart(dataset: Path) -> None:
    (another,) = check_signature(str(dataset), str(SIGNED / "other.pub"))
    assert "made by another key" in another

    (dataset / "dataset.json").write_text('{"a dataset": "of another test"}\n')
    (changed,) = check_signature(str(dataset), KEY)
    assert "no signature of this dataset.json" in changed


def test_a_changed_comment_is_noticed(dataset: Path) -> None:
    place = dataset / "dataset.json.minisig"
    place.write_text(place.read_text().replace("eqforge test", "eqforge best"))

    assert len(check_signature(str(dataset), KEY)) == 1


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"a\nb\nc\nd\n", b"x" * 10**6, b"\n" * 4])
@pytest.mark.parametrize("name", ["minisign.pub", "dataset.json.minisig"])
def test_what_is_no_key_or_signature_is_one_sentence(dataset: Path, name: str, data: bytes) -> None:
    (dataset / name).write_bytes(data)

    with pytest.raises(InputError, match=name) as caught:
        check_signature(str(dataset), str(dataset / "minisign.pub"))
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_a_signature_in_a_dataset_that_is_no_file_is_refused(
    dataset: Path, make: Callable[[Path], None]
) -> None:
    (dataset / "dataset.json.minisig").unlink()
    make(dataset / "dataset.json.minisig")
    with pytest.raises(InputError, match=r"dataset\.json\.minisig: is no plain file"):
        check_signature(str(dataset), KEY)


@pytest.mark.parametrize("key", ["\udcff", "a\0b", ""])
def test_a_key_of_any_characters_is_one_sentence(dataset: Path, key: str) -> None:
    with pytest.raises(InputError, match="no public key of minisign"):
        check_signature(str(dataset), key)


def test_a_missing_signature_key_or_package_is_told(
    dataset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (dataset / "dataset.json.minisig").unlink()
    with pytest.raises(InputError, match=r"dataset\.json\.minisig: cannot be read"):
        check_signature(str(dataset), KEY)
    with pytest.raises(InputError, match="no public key of minisign"):
        check_signature(str(dataset), "no-such-file.pub")
    monkeypatch.setattr("eqforge.commands.signature.find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match=r"eqforge\[sign\]"):
        check_signature(str(dataset), KEY)


def test_verify_checks_the_signature_first(
    demo_output: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = shutil.copytree(demo_output / "eq-gebc", tmp_path / "eq-gebc")
    shutil.copy(SIGNED / "dataset.json.minisig", output)

    assert verify.main([str(output), "--key", KEY]) == 1
    assert capsys.readouterr().out.startswith("FAILED      signature\n")
    for wrong in (["--signature", "x"], ["--key", "nothing"]):
        with pytest.raises(SystemExit) as left:
            verify.main([str(output), *wrong])
        assert left.value.code == 2

import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import nltk
import pytest

from eqforge.core.errors import InputError
from eqforge.core.files.disk import cache_folder
from eqforge.generators.text import wordnet as module
from eqforge.generators.text.wordnet import (
    LEXNAMES,
    check_wordnet,
    open_wordnet,
    setup_wordnet,
)


@pytest.fixture
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without WordNet; the path is where Debian's package would put it."""
    monkeypatch.setenv("EQFORGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(nltk.data, "path", [])
    monkeypatch.setattr(module, "DEBIAN_FOLDER", tmp_path / "debian")
    return tmp_path / "debian"


@pytest.fixture
def wordnet_files(wordnet: Any) -> list[Path]:
    """The files of the WordNet on this machine, without the two that Debian leaves out."""
    if not isinstance(wordnet.root, nltk.data.FileSystemPathPointer):
        pytest.skip("WordNet lies in an archive here")
    files = Path(wordnet.root).iterdir()
    return [file for file in files if file.name not in ("lexnames", "index.sense")]


def copy_files(files: list[Path], folder: Path) -> None:
    folder.mkdir(parents=True)
    for file in files:
        shutil.copy(file, folder)


def test_wordnet_opens_once_and_knows_its_words(wordnet: Any) -> None:
    dog = wordnet.synsets("dog", "n")[0]
    assert (dog.name(), dog.min_depth(), dog.lexname()) == ("dog.n.01", 8, "noun.animal")
    assert dog.lemmas()[0].count() == 42
    assert open_wordnet() is wordnet


def test_the_lexicographer_files_are_those_of_the_manual() -> None:
    lines = LEXNAMES.read_text().splitlines()
    assert len(lines) == 45
    assert (lines[0], lines[5]) == ("00\tadj.all\t3", "05\tnoun.animal\t1")
    assert (lines[38], lines[44]) == ("38\tverb.motion\t2", "44\tadj.ppl\t3")


def test_a_missing_wordnet_is_one_error_that_names_the_command(bare_machine: Path) -> None:
    with pytest.raises(InputError, match="run `eqforge setup wordnet`"):
        open_wordnet()
    assert not cache_folder().exists()


def test_debians_folder_is_read_in_place(bare_machine: Path, wordnet_files: list[Path]) -> None:
    copy_files(wordnet_files, bare_machine)
    assert open_wordnet().synsets("cat", "n")[0].lexname() == "noun.animal"
    assert setup_wordnet(report=print) == str(bare_machine)


def test_a_folder_on_nltks_path_is_found(
    bare_machine: Path, wordnet_files: list[Path], tmp_path: Path
) -> None:
    copy_files(wordnet_files, tmp_path / "data" / "corpora" / "wordnet")
    nltk.data.path.append(str(tmp_path / "data"))
    assert open_wordnet().synsets("cat", "n")


def test_a_wordnet_that_cannot_be_read_is_one_clear_error(
    bare_machine: Path, wordnet_files: list[Path]
) -> None:
    files = [file for file in wordnet_files if file.name != "index.noun"]
    copy_files(files, bare_machine)
    with pytest.raises(InputError, match=r"WordNet at .* cannot be read: .*index\.noun"):
        open_wordnet()
    with pytest.raises(InputError, match=r"WordNet at .* is incomplete: index\.noun is missing"):
        check_wordnet()


def test_an_archive_on_nltks_path_is_found(
    bare_machine: Path, wordnet_files: list[Path], tmp_path: Path
) -> None:
    archive = tmp_path / "data" / "corpora" / "wordnet.zip"
    archive.parent.mkdir(parents=True)
    nltk.data.path.append(str(tmp_path / "data"))
    archive.write_bytes(b"no archive")
    with pytest.raises(InputError, match=r"WordNet at .*wordnet\.zip cannot be read"):
        check_wordnet()
    with zipfile.ZipFile(archive, "w") as made:
        for file in wordnet_files:
            made.write(file, f"wordnet/{file.name}")
    check_wordnet()
    assert open_wordnet().synsets("cat", "n")


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="needs Debian's tools")
def test_setup_unpacks_debians_package_without_root(
    bare_machine: Path,
    wordnet_files: list[Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A real package made here, and an apt-get that hands it out as the archive would."""
    tree = tmp_path / "tree"
    copy_files(wordnet_files, tree / bare_machine.relative_to("/"))
    (tree / "DEBIAN").mkdir()
    (tree / "DEBIAN" / "control").write_text(
        "Package: wordnet-base\nVersion: 1\nArchitecture: all\n"
        "Maintainer: x <x@x>\nDescription: x\n"
    )
    package = tmp_path / "wordnet-base_1_all.deb"
    subprocess.run(["dpkg-deb", "-Znone", "-b", tree, package], check=True, capture_output=True)
    apt_get = tmp_path / "bin" / "apt-get"
    apt_get.parent.mkdir()
    apt_get.write_text(f'#!/bin/sh\n[ "$*" = "download wordnet-base" ] && cp {package} .\n')
    apt_get.chmod(0o755)
    monkeypatch.setenv("PATH", str(apt_get.parent), prepend=":")
    monkeypatch.setattr(nltk, "download", lambda *args, **kwargs: False)

    reports: list[str] = []
    found = setup_wordnet(report=reports.append)

    assert found == str(cache_folder() / "nltk_data" / "corpora" / "wordnet")
    assert [line.split()[0] for line in reports] == ["Downloading", "Fetching"]
    assert open_wordnet().synsets("cat", "n")
    assert sorted(path.name for path in (cache_folder() / "nltk_data").iterdir()) == ["corpora"]
    reports.clear()
    assert setup_wordnet(report=reports.append) == found
    assert reports == []


def test_setup_says_why_neither_way_worked(
    bare_machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nltk, "download", lambda *args, **kwargs: False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError) as raised:
        setup_wordnet(report=print)
    assert "NLTK's server cannot be reached" in str(raised.value)
    assert "apt-get is not installed" in str(raised.value)

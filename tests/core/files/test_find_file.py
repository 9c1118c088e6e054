from pathlib import Path

import pytest

from eqforge.core.errors import BuildError
from eqforge.core.files.find_file import MissingFile, find_file

SUFFIXES = (".mp4", ".mkv", ".webm")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "videos"
    (folder / "train").mkdir(parents=True)
    (tmp_path / "secret.mp4").touch()
    return folder


def reason(root: Path, name: str) -> str:
    found = find_file(str(root), name, SUFFIXES)
    assert isinstance(found, MissingFile), found
    assert str(root) not in found.detail.replace(repr(name), "")  # as the annotation has it
    return found.reason


@pytest.mark.parametrize("file", ["a.mp4", "a.webm", "a.MKV", "a"])
def test_an_id_finds_its_file_whatever_the_ending(root: Path, file: str) -> None:
    (root / file).touch()
    assert find_file(str(root), "a", SUFFIXES) == str(root / file)


def test_of_several_endings_the_same_one_wins_whichever_came_first(root: Path) -> None:
    for suffix in (".webm", ".mp4", ".mkv"):
        (root / f"a{suffix}").touch()
    assert find_file(str(root), "a", SUFFIXES) == str(root / "a.mp4")


@pytest.mark.parametrize("name", ["b", "", ".", "train", "train/", "a.mp4/x", "x" * 5000])
def test_what_is_no_file_is_missing(root: Path, name: str) -> None:
    (root / "a.mp4").touch()
    assert reason(root, name) == "file_missing"


@pytest.mark.parametrize("name", ["../secret", "../secret.mp4", "train/../../secret", "a\0b", ".."])
def test_names_that_climb_out_are_refused(root: Path, name: str) -> None:
    assert reason(root, name) == "outside_root"


def test_absolute_names_are_refused_even_below_the_folder(root: Path) -> None:
    (root / "a.mp4").touch()
    assert find_file(str(root), "/a.mp4") == MissingFile(
        reason="outside_root",
        detail="'/a.mp4' is an absolute path; expected a path relative to the folder",
    )


def test_links_that_leave_the_folder_are_refused(root: Path) -> None:
    (root / "a.mp4").symlink_to(root.parent / "secret.mp4")
    (root / "out").symlink_to(root.parent)
    assert reason(root, "a") == "outside_root"
    assert reason(root, "out/secret") == "outside_root"


def test_the_refusal_names_the_link_and_what_allows_it(root: Path) -> None:
    (root / "train/far").symlink_to(root.parent)
    assert find_file(str(root), "train/far/secret.mp4", SUFFIXES) == MissingFile(
        reason="outside_root",
        detail="the link 'train/far' leads out of the folder; --follow-links allows that",
    )
    assert find_file(str(root), "../secret.mp4", SUFFIXES, follow_links=True) == MissingFile(
        reason="outside_root", detail="'../secret.mp4' leads out of the folder"
    )


def test_links_that_leave_the_folder_are_followed_where_that_is_asked_for(root: Path) -> None:
    (root / "a.mp4").symlink_to(root.parent / "secret.mp4")
    (root / "out").symlink_to(root.parent)
    (root / "b.mp4").symlink_to("b.mp4")
    assert find_file(str(root), "a", SUFFIXES, follow_links=True) == str(root / "a.mp4")
    assert find_file(str(root), "out/secret", SUFFIXES, follow_links=True) == str(
        root / "out/secret.mp4"
    )
    for name in ("b", "out/../secret.mp4", str(root / "a.mp4"), "out/nothing"):
        assert isinstance(find_file(str(root), name, SUFFIXES, follow_links=True), MissingFile)


def test_links_within_the_folder_are_followed(root: Path) -> None:
    (root / "train/b.mp4").touch()
    (root / "a.mp4").symlink_to("train/b.mp4")
    assert find_file(str(root), "a", SUFFIXES) == str(root / "a.mp4")


def test_a_folder_that_is_itself_a_link_is_the_folder_it_leads_to(root: Path) -> None:
    (root / "a.mp4").touch()
    link = root.parent / "link"
    link.symlink_to(root)
    assert find_file(str(link), "a", SUFFIXES) == str(link / "a.mp4")


def test_a_circle_of_links_is_refused(root: Path) -> None:
    (root / "a.mp4").symlink_to("b.mp4")
    (root / "b.mp4").symlink_to("a.mp4")
    assert reason(root, "a") == "outside_root"


def test_a_link_to_nothing_is_missing(root: Path) -> None:
    (root / "a.mp4").symlink_to("none.mp4")
    (root / "gone").symlink_to("nowhere")
    for name, link in (("a", "a.mp4"), ("gone/b.mp4", "gone")):
        assert find_file(str(root), name, SUFFIXES) == MissingFile(
            reason="file_missing", detail=f"the link {link!r} is broken"
        )


def test_a_folder_that_is_not_mounted_is_no_missing_file(root: Path) -> None:
    """Its files would all become rejects, and the dataset would lack them without an error."""
    with pytest.raises(
        BuildError, match=r"elsewhere: no such folder on .+; every host needs this folder"
    ):
        find_file(str(root / "elsewhere"), "a", SUFFIXES)

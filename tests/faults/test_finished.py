"""A finished dataset stays what it is, or becomes another one in a single step."""

import itertools
import json
import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from eqforge.commands import checks, verify
from eqforge.core.errors import InputError
from eqforge.schemas.dataset.manifest import NEXT, load_manifest, moving, to_json, with_final_paths
from eqforge.schemas.dataset.reader import open_dataset
from eqforge.transforms.dataset.replace import complete_replacement, publish
from tests.builds import dataset_bytes, finished_work, rows
from tests.faults import runs
from tests.faults.conftest import Whole


@pytest.fixture
def copied(whole: Whole, tmp_path: Path) -> Whole:
    """The dataset with inputs of its own, which a test may take away; no file has other times."""
    videos = Path(shutil.copytree(whole.inputs.videos, tmp_path / "videos"))
    output = Path(shutil.copytree(whole.output, tmp_path / "out"))
    return replace(whole, inputs=replace(whole.inputs, videos=videos), output=output)


def traces(folder: Path) -> dict[str, tuple[int, ...]]:
    """What a change of any file or folder would change, by name."""
    found = (path for path in (folder, *folder.rglob("*")))
    states = {str(path): path.lstat() for path in found}
    return {name: (s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for name, s in states.items()}


def test_a_finished_dataset_is_left_alone_where_it_would_become_the_same(whole: Whole) -> None:
    """Even its folder may be read-only."""
    runs.set_mode(whole.output, 0o555)
    before = traces(whole.output)
    try:
        status, said = runs.build(whole.inputs, whole.output, runs.drop_privileges)
    finally:
        after = traces(whole.output)
        runs.set_mode(whole.output, 0o755)

    assert status == 0, said
    assert f"{whole.output}: this dataset is already finished and was not changed" in said
    assert after == before


def test_media_that_were_copied_are_known_by_their_content(copied: Whole) -> None:
    """With the note of their times and inodes, and without it."""
    for forget in (lambda: None, lambda: shutil.rmtree(copied.output / "_work")):
        forget()
        before = traces(copied.output)
        status, said = runs.build(copied.inputs, copied.output)
        assert status == 0, said
        assert traces(copied.output) == before


@pytest.mark.parametrize("is_noted", [True, False])
def test_a_dataset_whose_media_changed_is_not_built_again_unasked(
    copied: Whole, is_noted: bool
) -> None:
    """The moments that two lost videos gave are still there, until it is built over."""
    if not is_noted:
        shutil.rmtree(copied.output / "_work")
    shutil.copy(copied.inputs.videos / "01.mp4", copied.inputs.videos / "02.mp4")
    (copied.inputs.videos / "00.mp4").unlink()

    status, said = runs.build(copied.inputs, copied.output)

    assert status == 2, said
    assert (
        f"--output {copied.output} contains a build of eq-video made with different settings, "
        "inputs or versions: 1 of 3 videos no longer exists: '00.mp4'; "
        "1 of 3 videos has changed or may have changed: '02.mp4'. Choose a different folder, or "
        "add --overwrite to replace it"
    ) in runs.last_line(said)
    assert dataset_bytes(copied.output) == copied.files

    status, said = runs.build(replace(copied.inputs, more=("--overwrite",)), copied.output)

    assert status == 0, said
    assert len(rows(copied.output, "samples")) == 6
    assert verify.main([str(copied.output)]) == 0
    assert runs.build(copied.inputs, copied.output)[0] == 0


def test_a_dataset_that_was_lost_on_the_way_to_its_place_is_made_again(copied: Whole) -> None:
    """Somebody deleted `_next` where a kill had left the dataset."""
    manifest = load_manifest(str(copied.output))
    (copied.output / "dataset.json").write_bytes(to_json(moving(manifest)))

    status, said = runs.build(replace(copied.inputs, more=("--overwrite",)), copied.output)

    assert status == 0, said
    assert dataset_bytes(copied.output) == copied.files


def test_a_dataset_of_other_versions_is_not_built_again_unasked(copied: Whole) -> None:
    place = copied.output / "dataset.json"
    manifest = json.loads(place.read_bytes())
    numpy, manifest["versions"]["numpy"] = manifest["versions"]["numpy"], "1.0"
    place.write_text(json.dumps(manifest))
    before = dataset_bytes(copied.output)

    status, said = runs.build(copied.inputs, copied.output)

    assert status == 2, said
    assert f"inputs or versions: the version of numpy was 1.0 and is now {numpy}. Choose" in said
    assert dataset_bytes(copied.output) == before

    finished = finished_work(copied.output, "measure")
    assert runs.build(replace(copied.inputs, more=("--overwrite",)), copied.output)[0] == 0
    assert dataset_bytes(copied.output) == copied.files
    assert finished_work(copied.output, "measure") == finished


# --- on the way from one dataset to another


@dataclass(frozen=True, kw_only=True)
class Ready:
    """A finished dataset with another one, complete, beside it; and the bytes of both."""

    output: Path
    old: dict[str, bytes]
    new: dict[str, bytes]


@pytest.fixture(scope="module")
def ready(whole: Whole, tmp_path_factory: pytest.TempPathFactory) -> Ready:
    """The new dataset has pictures of another size, and fewer files."""
    folder = tmp_path_factory.mktemp("ready")
    other = replace(whole.inputs, rows=6, more=("--max-side", "48"))
    assert runs.build(other, folder / "new")[0] == 0
    output = Path(shutil.copytree(whole.output, folder / "out"))
    fault = runs.Fault(at=f"{NEXT}/dataset.json", when="after", happen=runs.kill)

    status, said = runs.build_with(fault, replace(other, more=(*other.more, "--overwrite")), output)

    assert status == -signal.SIGKILL, said
    return Ready(output=output, old=whole.files, new=dataset_bytes(folder / "new"))


def killed_everywhere(ready: Ready, folder: Path) -> Iterator[Path]:
    """Yields what is there after a kill at each change that taking the place makes, in turn."""
    for nth in itertools.count(1):
        output = folder / str(nth)
        shutil.copytree(ready.output, output, ignore=shutil.ignore_patterns("_work"))
        status = runs.publish(output, nth)
        yield output
        if status == 0:
            return
        assert status == -signal.SIGKILL
        shutil.rmtree(output)


def test_killed_at_every_change_of_the_way_it_is_the_old_dataset_or_the_new_one(
    ready: Ready, tmp_path: Path
) -> None:
    found = []
    for output in killed_everywhere(ready, tmp_path):
        dataset = open_dataset(str(output))
        assert list(checks.check_files(dataset)) == []
        files = [file for files in dataset.manifest.tables.values() for file in files]
        read = {settled_path(file.path): (output / file.path).read_bytes() for file in files}
        is_new = read == tables(ready.new)
        assert is_new or read == tables(ready.old)
        found.append(is_new)
        if is_new:
            complete_replacement(str(output))
            assert dataset_bytes(output) == ready.new
        else:
            assert dataset_bytes(output) == ready.old
    assert found == sorted(found)  # the old one, and from one change on the new one
    assert found.count(False) >= 2
    assert found.count(True) >= 50
    assert not (output / NEXT).exists()


def settled_path(path: str) -> str:
    """Where a table lies in the end."""
    return path.removeprefix(f"{NEXT}/")


def tables(files: dict[str, bytes]) -> dict[str, bytes]:
    """The tables among the files of a dataset."""
    return {name: data for name, data in files.items() if name.startswith("data/")}


@pytest.mark.parametrize(
    "fault",
    [
        runs.Fault(at=f"{NEXT}/data/", nth=2, happen=runs.kill),
        runs.Fault(at="data/", nth=2, happen=runs.kill),
        runs.Fault(at="dataset.json", nth=2, when="after", happen=runs.kill),
    ],
    ids=["writing the new one", "putting it in its place", "before it is cleared up"],
)
def test_a_killed_rebuild_ends_with_the_next_run(
    whole: Whole, ready: Ready, tmp_path: Path, fault: runs.Fault
) -> None:
    output = Path(shutil.copytree(ready.output, tmp_path / "out"))
    shutil.rmtree(output / NEXT)
    other = replace(whole.inputs, rows=6, more=("--max-side", "48", "--overwrite"))

    assert runs.build_with(fault, other, output)[0] == -signal.SIGKILL

    assert verify.main([str(output)]) == 0
    is_new = load_manifest(str(output)).config["settings"]["frames"]["max_side"] == 48
    assert is_new == (fault.at != f"{NEXT}/data/")
    # Where it is finished, the command needs no leave to replace it.
    next_run = replace(other, more=other.more[:2]) if is_new else other
    assert runs.build(next_run, output)[0] == 0
    assert dataset_bytes(output) == ready.new
    assert with_final_paths(load_manifest(str(output))) == load_manifest(str(output))
    assert left_over(output) == []


def left_over(output: Path) -> list[str]:
    """What no finished dataset has beside it."""
    return [
        *(path.name for path in output.rglob(".tmp-*")),
        *(path.name for path in output.glob(NEXT)),
    ]


def test_what_a_killed_rebuild_left_goes_where_the_old_dataset_is_asked_for(
    whole: Whole, ready: Ready, tmp_path: Path
) -> None:
    output = Path(shutil.copytree(ready.output, tmp_path / "out"))
    (output / f".tmp-{0:032x}").touch()

    status, said = runs.build(whole.inputs, output)

    assert status == 0, said
    assert "is already finished and was not changed" in said
    assert dataset_bytes(output) == ready.old
    assert left_over(output) == []


def test_a_reader_that_began_on_the_way_is_told(ready: Ready, tmp_path: Path) -> None:
    """The files it knows have gone to their places."""
    output = Path(shutil.copytree(ready.output, tmp_path / "out"))
    manifest = moving(load_manifest(str(output / NEXT)))
    (output / "dataset.json").write_bytes(to_json(manifest))
    dataset = open_dataset(str(output))

    complete_replacement(str(output))

    with pytest.raises(
        InputError, match="was rebuilt while eqforge read it; run the command again"
    ):
        list(dataset.rows("samples"))


def test_a_reader_never_takes_files_of_two_datasets_for_one(ready: Ready, tmp_path: Path) -> None:
    """It began before the new one took the place of the old one, and is told."""
    output = Path(shutil.copytree(ready.output, tmp_path / "out"))
    reading = open_dataset(str(output)).rows("samples")
    next(reading)

    publish(str(output))

    with pytest.raises(
        InputError, match="was rebuilt while eqforge read it; run the command again"
    ):
        list(reading)
    assert len(list(open_dataset(str(output)).rows("samples"))) == 9

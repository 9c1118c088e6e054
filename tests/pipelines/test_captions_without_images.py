"""Own captions that name no image: none is taken for a caption of another one's image."""

from pathlib import Path

import pytest

from eqforge.cli import main
from tests.builds import reasons, rows

TABLE = (
    "cap_id,id,caption,annotator\n"
    "c1,391895,A man holds a red umbrella.,Ann\n"
    "c2,391896,A man holds a crimson umbrella.,Bo\n"
    "c3,391897,A man holds a pink umbrella.,Bo\n"
    "c4,391898,,Bo\n"
)


def test_captions_without_an_image_have_the_texts_that_they_have_alone(tmp_path: Path) -> None:
    lines = TABLE.splitlines()
    made = []
    for name, chosen in (("all", lines[1:]), ("one", lines[1:2])):
        path = tmp_path / f"{name}.csv"
        path.write_text("\n".join([lines[0], *chosen]))
        output = tmp_path / name
        arguments = ["--captions", str(path), "--output", str(output)]
        assert main(["build", "hard-positives", *arguments]) == 0
        assert main(["verify", str(output)]) == 0
        made.append(output)
    everything, (alone,) = (rows(output, "samples") for output in made)
    assert {row["sample_id"] for row in everything} == {"391895", "391896", "391897"}
    assert alone in everything
    assert alone["image"] == ""
    assert reasons(made[0], "captions") == {"empty_caption": 1}


def test_a_folder_of_images_for_captions_that_name_none_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own.csv").write_text(TABLE)
    (tmp_path / "photos").mkdir()
    folder, source = tmp_path / "photos", tmp_path / "own.csv"
    arguments = ["--captions", str(source), "--images", str(folder)]
    with pytest.raises(SystemExit):
        main(["build", "training-captions", *arguments, "--output", str(tmp_path / "out")])
    assert "the captions do not name their images" in capsys.readouterr().err

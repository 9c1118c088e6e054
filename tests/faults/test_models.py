"""A model that is taken away does not take a dataset with it."""

from pathlib import Path

import pytest

from eqforge.generators.diffusion.generate import PairGenerator
from eqforge.generators.diffusion.prompts import PromptPair
from eqforge.generators.diffusion.settings import EditSettings, PairImages
from eqforge.generators.diffusion.tiny import make_tiny_pipeline
from eqforge.pipelines import eq_sd
from eqforge.transforms.generated import diffuse
from tests.builds import dataset_bytes, finished_work
from tests.optional import optional

optional("torch")
optional("diffusers")

SETTINGS = [
    *("--object-pairs", "1", "--scene-pairs", "1", "--attribute-pairs", "0", "--steps", "2"),
    *("--guidance-scale", "50", "--cpu-threads", "1"),
]


def test_a_model_folder_that_vanishes_costs_no_pair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It goes between two pairs; a run without it is refused, and one with it again has no work."""
    model, away = tmp_path / "model", tmp_path / "away"
    make_tiny_pipeline(model)
    generate = PairGenerator.generate
    drawn: list[PromptPair] = []

    def lose_the_model_after_the_first(
        self: PairGenerator, pair: PromptPair, edit: EditSettings
    ) -> PairImages:
        found = generate(self, pair, edit)
        if not drawn:
            model.rename(away)
        drawn.append(pair)
        return found

    monkeypatch.setattr(PairGenerator, "generate", lose_the_model_after_the_first)
    arguments = [*SETTINGS, "--model", str(model), "--output", str(tmp_path / "out")]
    assert eq_sd.main(arguments) == 0
    built = dataset_bytes(tmp_path / "out")
    work = finished_work(tmp_path / "out", "draw")
    assert len(drawn) == len(work) == 2

    diffuse.shared_generator.cache_clear()
    with pytest.raises(SystemExit) as left:
        eq_sd.main(arguments)
    assert left.value.code == 2
    assert f"'{model}' is not a folder" in capsys.readouterr().err
    assert dataset_bytes(tmp_path / "out") == built

    away.rename(model)
    assert eq_sd.main(arguments) == 0
    assert dataset_bytes(tmp_path / "out") == built
    assert finished_work(tmp_path / "out", "draw") == work
    assert len(drawn) == 2

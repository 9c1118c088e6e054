"""Training fusion encoders, on tiny real models, and their losses against plain NumPy."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from eqforge.evaluation.scoring.command import main as score_command
from eqforge.evaluation.training.command import main as command
from eqforge.evaluation.training.losses import itm_loss, ranking_loss
from tests.made_datasets import write_captions, write_squares
from tests.optional import optional
from tests.statuses import status_of
from tests.tiny_families import save_vilt
from tests.tiny_models import save_blip, save_clip

optional("transformers")
torch = optional("torch")

main, score = status_of(command), status_of(score_command)
COMMON = ["--device", "cpu", "--workers", "0", "--learning-rate", "1e-3", "--batch-size", "6"]
LOSSES = ("itm", "ranking", "eqsim-v1", "eqsim-v2")
ALL = [word for name in LOSSES for word in ("--loss", name)]
N = 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("fusion")
    save_blip(root / "blip-itm", spread=0.3)
    save_vilt(root / "vilt")
    save_clip(root / "clip")
    write_squares(root / "pairs")
    write_captions(root / "captions")
    return root


def arguments(folder: Path, kind: str, output: Path, *more: str) -> list[str]:
    model = f"{kind}:{folder / kind}"
    return [str(folder / "pairs"), "--model", model, "--output", str(output), *COMMON, *more]


def read_log(output: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (output / "log.jsonl").read_text().splitlines()]


def logistic(value: float) -> float:
    return float(1 / (1 + np.exp(-value)))


def drawn_matrix() -> tuple[np.ndarray, np.ndarray]:
    logits = np.random.default_rng(0).normal(size=(N, N)) * 2
    scored = np.eye(N, dtype=bool)
    for i, j in ((0, 1), (1, 2), (3, 0)):
        scored[i, j] = scored[j, i] = True
    return logits, scored


def test_itm_is_a_third_of_the_matches_and_two_thirds_of_the_negatives() -> None:
    logits, scored = drawn_matrix()
    matches = np.mean([-np.log(logistic(logits[i, i])) for i in range(N)])
    negatives = np.mean(
        [
            -np.log(1 - logistic(logits[i, j]))
            for i in range(N)
            for j in range(N)
            if scored[i, j] and i != j
        ]
    )
    found = itm_loss(torch.from_numpy(logits), torch.from_numpy(scored)).item()
    assert found == pytest.approx((matches + 2 * negatives) / 3, abs=1e-12)
    alone = itm_loss(torch.from_numpy(logits), torch.eye(N, dtype=torch.bool)).item()
    assert alone == pytest.approx(matches, abs=1e-12)


def test_ranking_compares_the_captions_scored_for_an_image() -> None:
    logits, scored = drawn_matrix()
    parts = [-np.log(np.exp(logits[i, i]) / np.exp(logits[i][scored[i]]).sum()) for i in range(N)]
    found = ranking_loss(torch.from_numpy(logits), torch.from_numpy(scored)).item()
    assert found == pytest.approx(np.mean(parts), abs=1e-12)


@pytest.mark.parametrize("scores", ["cosine", "logit", "softmax"])
def test_the_losses_of_a_batch_are_those_of_numpy(scores: str) -> None:
    from eqforge.evaluation.training.fusion import Couples, Matched, matching_losses

    logits, scored = drawn_matrix()
    close, distant = [(0, 1), (1, 2)], [(3, 0)]
    weights = dict.fromkeys(("eqsim-v1", "eqsim-v2"), 1.0)
    settings: Any = SimpleNamespace(
        weights=lambda: weights,
        eqsim_scores=scores,
        eqsim_side="both",
        margin=0.01,
        margin_mode="after-mean",
        distant_margin=0.02,
    )
    matched = Matched(
        couples=Couples(close=torch.tensor(close), distant=torch.tensor(distant)),
        logits=torch.from_numpy(logits),
        scored=torch.from_numpy(scored),
        contrastive=None,
    )
    found = matching_losses(matched, settings, torch.zeros((N, N), dtype=torch.bool))

    def quadruple(a: int, b: int) -> list[float]:
        # Caption a with image a, caption a with image b, and so on; rows are images.
        four = np.array([logits[a, a], logits[b, a], logits[a, b], logits[b, b]])
        if scores == "softmax":
            four = np.exp(four) / np.exp(four).sum()
        return [logistic(one) if scores == "cosine" else float(one) for one in four]

    text: list[float] = []
    image: list[float] = []
    for a, b in close:
        s00, s01, s10, s11 = quadruple(a, b)
        text.append(((s00 - s10) - (s11 - s01)) ** 2)
        image.append(((s00 - s01) - (s11 - s10)) ** 2)
    v2 = sum(max(float(np.mean(side)) - 0.01, 0) for side in (text, image))
    swapped = [(quadruple(a, b)[1] - quadruple(a, b)[2]) ** 2 for a, b in distant]
    assert found["eqsim-v2"].item() == pytest.approx(v2, abs=1e-12)
    assert found["eqsim-v1"].item() == pytest.approx(
        max(float(np.mean(swapped)) - 0.02, 0), abs=1e-12
    )


@pytest.mark.parametrize("kind", ["blip-itm", "vilt"])
def test_couples_have_their_counterparts_and_the_scores_of_the_scorer(
    folder: Path, kind: str
) -> None:
    """Only couples are scored; each score is the one that `eqforge score` computes."""
    from eqforge.evaluation.training.fusion import Couples, FusionNetwork
    from eqforge.evaluation.training.networks import load_start

    start = load_start(f"{kind}:{folder / kind}", "all")
    scorer: Any = start.encoder
    rng = np.random.default_rng(1)
    pixels = [torch.from_numpy(rng.normal(size=(3, 32, 32)).astype(np.float32)) for _ in range(N)]
    captions = ["a red box on the left", "a dog", "a cat", "a blue box"]
    couples = Couples(close=torch.tensor([[0, 1]]), distant=torch.tensor([[3, 2]]))
    with torch.no_grad():
        found = FusionNetwork(scorer)(pixels, scorer.captions.encode(captions), lambda _: couples)
    pairs = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 2), (2, 3), (3, 2), (3, 3)]
    assert [tuple(pair) for pair in found.scored.nonzero().tolist()] == pairs
    images = scorer.encode_images([each.numpy() for each in pixels])
    expected = scorer.match(images, captions, np.array(pairs)).logits
    np.testing.assert_allclose(found.logits[found.scored].numpy(), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("blip-itm", ["--close", "known"]),
        ("blip-itm", ["--close", "multinomial", "--close-count", "2", "--loss", "infonce"]),
        ("vilt", ["--close", "top-k", "--close-count", "1", "--distant-count", "2"]),
    ],
)
def test_a_fusion_encoder_learns_and_is_scored_with(
    folder: Path, tmp_path: Path, kind: str, more: list[str]
) -> None:
    """Each loss is logged, and their sum falls."""
    output = tmp_path / "trained"
    assert main(arguments(folder, kind, output, *ALL, *more, "--steps", "40")) == 0
    log = read_log(output)
    for entry in (log[0], log[-1]):
        parts = [entry[name] for name in (*LOSSES, *more[5:]) if name in entry]
        assert len(parts) == 4 + ("infonce" in more)
        assert entry["loss"] == pytest.approx(sum(parts), rel=1e-5)
    losses = [entry["loss"] for entry in log]
    assert np.mean(losses[-5:]) < 0.8 * np.mean(losses[:5])
    scores = tmp_path / "scores"
    line = [str(folder / "pairs"), "--model", f"{kind}:{output}", "--output", str(scores)]
    assert score([*line, "--workers", "0"]) == 0
    assert any(scores.glob("data/*.parquet"))


@pytest.mark.parametrize(
    ("kind", "more", "message"),
    [
        (
            "vilt",
            [],
            "--loss infonce cannot be used with vilt models. Supported losses: itm, ranking",
        ),
        (
            "vilt",
            ["--preset", "eqsim-fiber"],
            "--preset eqsim-fiber sets --loss infonce, which cannot be used with",
        ),
        ("vilt", ["--loss", "eqsim-v2", "--close", "top-k"], "add --loss itm or --loss ranking"),
        ("blip-itm", ["--loss", "infonce"], "add --loss itm or --loss ranking"),
        ("clip", ["--loss", "itm"], "--loss itm trains only fusion encoders"),
        (
            "vilt",
            ["--loss", "itm", "--negatives-in-contrast"],
            "--negatives-in-contrast cannot be used with",
        ),
        (
            "vilt",
            ["--loss", "itm", "--loss", "eqsim-v1", "--distant-count", "0"],
            "--loss eqsim-v1 needs a --distant-count of at least 1",
        ),
    ],
)
def test_wrong_settings_are_one_clear_error(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    kind: str,
    more: list[str],
    message: str,
) -> None:
    line = arguments(folder, kind, tmp_path / "out", *more)
    assert main([str(folder / "captions"), *line[1:]]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("preset", "kind"), [("eqsim-meter", "vilt"), ("eqsim-fiber", "blip-itm")])
def test_the_presets_train(folder: Path, tmp_path: Path, preset: str, kind: str) -> None:
    output = tmp_path / "out"
    more = ["--preset", preset, "--steps", "2"]
    assert main(arguments(folder, kind, output, *more)) == 0
    run = json.loads((output / "training.json").read_text())["run"]
    other = "ranking=1" if kind == "vilt" else "infonce=1"
    assert {"eqsim-v1=0.5", "eqsim-v2=0.5", other} < set(run["loss"])
    assert all(np.isfinite(entry["loss"]) for entry in read_log(output))


def test_head_and_cross_attention_learn_faster(folder: Path, tmp_path: Path) -> None:
    """Adam's first step moves a weight by its learning rate, if its gradient is large enough."""
    from safetensors.torch import load_file

    output = tmp_path / "out"
    more = ["--loss", "itm", "--fusion-factor", "5", "--learning-rate", "1e-3"]
    line = arguments(folder, "blip-itm", output, *more, "--weight-decay", "0", "--steps", "1")
    assert main(line) == 0
    before, after = (
        load_file(each / "model.safetensors") for each in (folder / "blip-itm", output)
    )
    moved = {name: float((after[name] - before[name]).abs().max()) for name in before}
    fused = {name for name in moved if "crossattention." in name or name.startswith("itm_head.")}
    assert 0.9e-3 < max(moved[name] for name in moved.keys() - fused) < 1.01e-3
    assert 4.5e-3 < max(moved[name] for name in fused) < 5.05e-3

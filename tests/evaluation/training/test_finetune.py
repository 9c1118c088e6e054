"""Training from the command line, on tiny real models and datasets of coloured squares."""

import io
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from eqforge.core.files.storage import digest
from eqforge.evaluation.training.command import PRESETS, parse_settings
from eqforge.evaluation.training.command import main as command
from eqforge.models.dual_encoders import ARCHITECTURES
from eqforge.models.scorer import Picture, is_dual_encoder
from eqforge.models.spec import load_scorer, parse_specs
from eqforge.schemas.dataset.reader import open_dataset
from tests.made_datasets import describe, write_captions, write_squares
from tests.optional import optional
from tests.statuses import status_of
from tests.tiny_families import SAVE, save_vision_text
from tests.tiny_models import save_clip, save_siglip

optional("transformers")
torch = optional("torch")

main = status_of(command)

COMMAND = [sys.executable, "-m", "eqforge", "finetune"]
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
COMMON = ["--device", "cpu", "--workers", "0", "--learning-rate", "2e-3", "--batch-size", "8"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("training")
    save_clip(root / "clip")
    save_siglip(root / "siglip")
    write_squares(root / "pairs")
    write_captions(root / "captions")
    return root


def arguments(folder: Path, output: Path, *more: str, data: str = "pairs") -> list[str]:
    model = f"clip:{folder / 'clip'}"
    return [str(folder / data), "--model", model, "--output", str(output), *COMMON, *more]


def read_log(output: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (output / "log.jsonl").read_text().splitlines()]


def deviations(model: Path, data: Path) -> np.ndarray:
    """The equivariance score of each pair, in plain NumPy from the model's cosines."""
    scorer = load_scorer(parse_specs(f"clip:{model}")[0])
    assert is_dual_encoder(scorer)
    dataset = open_dataset(str(data))
    pixels = {
        row["image_id"]: np.asarray(Image.open(io.BytesIO(row["image"]["bytes"])))
        for row in dataset.rows("images")
    }
    found = []
    for row in dataset.rows("samples"):
        names = [row["image_0_id"], row["image_1_id"]]
        shown = [scorer.prepare(Picture(key=name, pixels=pixels[name])) for name in names]
        images = np.stack(scorer.encode_images(shown))
        s = scorer.encode_captions([row["caption_0"], row["caption_1"]]) @ images.T
        text = (s[0, 0] - s[1, 0]) - (s[1, 1] - s[0, 1])
        image = (s[0, 0] - s[0, 1]) - (s[1, 1] - s[1, 0])
        found.append(text**2 + image**2)
    return np.array(found)


@pytest.fixture(scope="module")
def plain(folder: Path) -> Path:
    """120 steps of InfoNCE."""
    output = folder / "plain"
    assert main(arguments(folder, output, "--steps", "120")) == 0
    return output


def test_the_loss_falls_and_all_is_written_down(folder: Path, plain: Path) -> None:
    log = read_log(plain)
    assert [entry["step"] for entry in log] == list(range(1, 121))
    losses = [entry["loss"] for entry in log]
    assert np.mean(losses[-5:]) < 0.5 * np.mean(losses[:5])
    assert all(entry["loss"] == entry["infonce"] for entry in log)
    manifest = json.loads((plain / "training.json").read_text())
    run = manifest["run"]
    assert run["dataset_sha256"] == digest(str(folder / "pairs" / "dataset.json"))[1]
    assert (run["dataset"], run["loss"], run["steps"]) == ("eq-video", ["infonce=1"], 120)
    assert manifest["weights_sha256"] == digest(str(plain / "model.safetensors"))[1]
    assert manifest["samples"] == 8
    assert {"torch", "transformers", "eqforge"} <= manifest["versions"].keys()
    assert str(folder) not in (plain / "training.json").read_text()
    assert not (plain / "_work").exists()


def test_eqsim_makes_scores_more_equivariant_than_infonce_alone(folder: Path, plain: Path) -> None:
    """Both learn which caption is whose."""
    output = folder / "eqsim"
    losses = ["--loss", "infonce=1", "--loss", "eqsim-v2=1"]
    assert main(arguments(folder, output, "--steps", "120", *losses)) == 0
    for log in (read_log(plain), read_log(output)):
        assert log[-1]["infonce"] < 0.5 * log[0]["infonce"]
    alone, both = (deviations(model, folder / "pairs") for model in (plain, output))
    assert both.mean() < 0.5 * alone.mean()


def test_in_modal_consistency_is_learnt(folder: Path) -> None:
    output = folder / "in-modal"
    losses = ["--loss", "infonce=1", "--loss", "in-modal=0.25"]
    assert main(arguments(folder, output, "--steps", "40", *losses)) == 0
    log = read_log(output)
    total = log[0]["infonce"] + 0.25 * log[0]["in-modal"]
    assert log[0]["loss"] == pytest.approx(total, rel=1e-6)
    assert log[-1]["in-modal"] < log[0]["in-modal"]


def test_a_killed_training_goes_on_to_the_same_bytes(folder: Path) -> None:
    """Also with other checkpoints and another number of workers than an uninterrupted one."""
    more = ["--steps", "30", "--loss", "infonce", "--loss", "eqsim-v1=0.5", "--close", "top-k"]
    straight, output = folder / "straight", folder / "killed"
    assert main(arguments(folder, straight, *more)) == 0
    line = arguments(folder, output, *more, "--checkpoint-every", "4")
    with subprocess.Popen(
        [*COMMAND, *line], env=os.environ | ONE_THREAD, stderr=subprocess.DEVNULL
    ) as process:
        log = output / "log.jsonl"
        while not log.exists() or log.read_bytes().count(b"\n") < 10:
            assert process.poll() is None, "it has to be killed before it ends"
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
    assert not (output / "training.json").exists()
    (saved,) = (output / "_work").glob("checkpoint-*")
    assert 8 <= int(saved.name[11:]) <= len(log.read_bytes().splitlines())
    assert main([*line, "--workers", "1"]) == 0
    for name in ("model.safetensors", "config.json", "log.jsonl", "tokenizer.json"):
        assert (output / name).read_bytes() == (straight / name).read_bytes(), name


def test_two_processes_take_the_steps_of_one(folder: Path) -> None:
    """Each encodes half of a batch; losses and gradients are those of the whole batch."""
    more = ["--steps", "4", "--batch-size", "6", "--loss", "infonce", "--loss", "hard-negative"]
    more += ["--loss", "eqsim-v2", "--close", "multinomial", "--loss", "eqsim-v1"]
    assert main(arguments(folder, folder / "one", *more, data="captions")) == 0
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    line = arguments(folder, folder / "two", *more, data="captions")
    processes = []
    for rank in range(2):
        place = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"}
        place |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)} | ONE_THREAD
        processes.append(subprocess.Popen([*COMMAND, *line], env=os.environ | place))
    assert [process.wait(timeout=300) for process in processes] == [0, 0]
    assert json.loads((folder / "two" / "training.json").read_text())["processes"] == 2
    for one, two in zip(read_log(folder / "one"), read_log(folder / "two"), strict=True):
        assert two == pytest.approx(one, rel=2e-3)


def test_an_unfinished_training_goes_on_only_as_itself(
    folder: Path, plain: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weights = (plain / "model.safetensors").read_bytes()
    assert main(arguments(folder, plain, "--steps", "120")) == 0
    assert "the training is already complete" in capsys.readouterr().out
    assert main(arguments(folder, plain, "--steps", "121")) == 2
    assert "'steps' is 120 there, but 121 here" in capsys.readouterr().err
    assert (plain / "model.safetensors").read_bytes() == weights


def test_hard_texts_are_learnt(folder: Path) -> None:
    """Some captions lack a hard text: they count in the other losses alone."""
    output = folder / "hard"
    losses = ["--loss", "infonce", "--loss", "hard-negative", "--loss", "hard-positive=0.5"]
    more = ["--steps", "40", "--batch-size", "7", "--negatives-in-contrast"]
    assert main(arguments(folder, output, *losses, *more, data="captions")) == 0
    log = read_log(output)
    total = log[0]["infonce"] + log[0]["hard-negative"] + 0.5 * log[0]["hard-positive"]
    assert log[0]["loss"] == pytest.approx(total, rel=1e-6)
    for name in ("infonce", "hard-negative", "hard-positive"):
        assert log[-1][name] < 0.9 * log[0][name]
    assert json.loads((output / "training.json").read_text())["left_out"] == {"no_image": 1}


@pytest.mark.parametrize("close", ["top-k", "multinomial"])
def test_close_pairs_can_be_chosen_in_the_batch(folder: Path, close: str) -> None:
    output = folder / close
    more = ["--loss", "infonce", "--loss", "eqsim-v2", "--close", close, "--close-count", "2"]
    scores = ["--eqsim-scores", "softmax", "--steps", "2", "--batch-size", "7"]
    assert main(arguments(folder, output, *more, *scores, data="captions")) == 0
    assert read_log(output)[0]["eqsim-v2"] > 0


@pytest.mark.parametrize("kind", ["siglip", *(kind for kind in SAVE if kind in ARCHITECTURES)])
def test_every_kind_of_dual_encoder_learns_and_is_scored_with(
    folder: Path, tmp_path: Path, kind: str
) -> None:
    save = save_siglip if kind == "siglip" else SAVE[kind]
    loss = "sigmoid" if kind == "siglip" else "infonce"
    save(tmp_path / kind)
    output = tmp_path / "trained"
    more = ["--model", f"{kind}:{tmp_path / kind}", "--loss", loss, "--steps", "15"]
    assert main(arguments(folder, output, *more)) == 0
    losses = [entry["loss"] for entry in read_log(output)]
    assert np.mean(losses[-3:]) < np.mean(losses[:3])
    before, after = (
        load_scorer(parse_specs(f"{kind}:{path}")[0]).identity for path in (tmp_path / kind, output)
    )
    assert after.kind == kind
    assert after.preprocessing == before.preprocessing
    assert after.revision != before.revision


def test_heads_are_trained_on_frozen_vectors_and_become_part_of_the_model(folder: Path) -> None:
    output = folder / "heads"
    more = ["--preset", "simat-paper", "--epochs", "60", "--learning-rate", "1e-2"]
    assert main(arguments(folder, output, *more)) == 0
    log = read_log(output)
    assert log[-1]["loss"] < 0.9 * log[0]["loss"]
    assert {entry["scale"] for entry in log} == {10.0}

    from safetensors.torch import load_file

    heads = load_file(output / "heads.safetensors")
    captions = ["a red box on the left", "a dog"]
    before, after = (_raw_texts(path, captions) for path in (folder / "clip", output))
    expected = before @ heads["text.weight"].T + heads["text.bias"]
    torch.testing.assert_close(after, expected, atol=1e-5, rtol=1e-4)
    assert heads["text.bias"].abs().max() > 1e-3
    image = torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    before, after = (_raw_images(path, image) for path in (folder / "clip", output))
    expected = before @ heads["image.weight"].T + heads["image.bias"]
    torch.testing.assert_close(after, expected, atol=1e-5, rtol=1e-4)
    scorer: Any = load_scorer(parse_specs(f"clip:{output}")[0])
    assert scorer.calibration.scale == pytest.approx(10.0, rel=1e-6)


def test_heads_of_encoders_trained_apart_are_their_projections(
    folder: Path, tmp_path: Path
) -> None:
    from safetensors.torch import load_file

    save_vision_text(tmp_path / "rn", resnet=True)
    output = tmp_path / "heads"
    preset = ["--preset", "simat-paper", "--epochs", "60", "--learning-rate", "1e-2"]
    model = ["--model", f"vision-text:{tmp_path / 'rn'}"]
    assert main(arguments(folder, output, *preset, *model)) == 0
    log = read_log(output)
    assert log[-1]["loss"] < 0.9 * log[0]["loss"]
    assert {entry["scale"] for entry in log} == {10.0}
    before, after = (load_file(path / "model.safetensors") for path in (tmp_path / "rn", output))
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    projections = {"visual_projection.weight", "text_projection.weight"}
    assert changed == {*projections, "logit_scale"}
    scorer: Any = load_scorer(parse_specs(f"vision-text:{output}")[0])
    assert scorer.calibration.scale == pytest.approx(10.0, rel=1e-6)


def _raw_texts(path: Path, captions: list[str]) -> Any:
    from transformers import AutoTokenizer, CLIPModel

    tokens = AutoTokenizer.from_pretrained(path)(captions, padding=True, return_tensors="pt")
    with torch.no_grad():
        return CLIPModel.from_pretrained(path).get_text_features(**tokens).pooler_output


def _raw_images(path: Path, pixels: Any) -> Any:
    from transformers import CLIPModel

    with torch.no_grad():
        model = CLIPModel.from_pretrained(path)
        return model.get_image_features(pixel_values=pixels).pooler_output


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--loss", "cosine=1"], "--loss cosine=1: expected one of infonce, sigmoid"),
        (["--loss", "infonce=-1"], "expected a weight above 0, found '-1'"),
        (["--loss", "infonce", "--loss", "infonce=2"], "infonce appears twice"),
        (["--batch-size", "9"], "--batch-size 9: expected at most 8"),
        (["--steps", "0"], "--steps 0: expected at least 1"),
        (["--warmup-steps", "1.5"], "--warmup-steps 1.5: expected a whole number of steps"),
        (["--fusion-factor", "5"], "--fusion-factor applies only to fusion encoders"),
        (["--learning-rate", "0"], "--learning-rate 0.0: expected more than 0"),
        (["--margin", "nan"], "--margin nan: expected a finite number"),
        (["--loss", "hard-negative"], "the dataset has no hard negatives"),
        (["--model", "blip2-itm:x"], "expected KIND:FOLDER without options"),
        (["--model", "clip:someone/model"], "write ID@COMMIT"),
        (["--split", "test"], "no samples in the split 'test'"),
    ],
)
def test_wrong_input_is_one_clear_error_before_any_work(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], message: str
) -> None:
    assert main(arguments(folder, tmp_path / "out", *more)) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("eqforge: ")
    assert not (tmp_path / "out").exists()


def test_close_pairs_need_pairs_and_heads_a_clip(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    heads = ["--train", "heads", "--model", f"siglip:{folder / 'siglip'}"]
    for data, more, message in (
        ("captions", ["--loss", "eqsim-v2"], "no close pairs; pass --close top-k"),
        ("pairs", heads, "works only with models of kind clip"),
    ):
        assert main(arguments(folder, tmp_path / "out", *more, data=data)) == 2
        assert message in capsys.readouterr().err


def test_a_foreign_folder_is_left_alone(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    assert main(arguments(folder, tmp_path)) == 2
    assert "is not empty and does not contain a training run" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["thesis.txt"]


def bomb() -> bytes:
    """A PNG that says it has more pixels than Pillow opens."""
    header = struct.pack(">4sIIBBBBB", b"IHDR", 20_000, 20_000, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))
    return b"\x89PNG\r\n\x1a\n" + chunk


@pytest.mark.parametrize("workers", ["0", "1"])
@pytest.mark.parametrize("image", [{"bytes": bomb(), "path": "b.png"}, None])
def test_a_picture_that_cannot_be_used_is_one_clear_error(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    image: dict[str, Any] | None,
    workers: str,
) -> None:
    shutil.copytree(folder / "pairs", tmp_path / "pairs")
    path = tmp_path / "pairs" / "data" / "images-00000-of-00001.parquet"
    table = pq.read_table(path)
    rows = table.to_pylist()
    rows[0]["image"] = image
    nullable = pa.schema([field.with_nullable(True) for field in table.schema])
    pq.write_table(pa.Table.from_pylist(rows, nullable), path)
    describe(tmp_path / "pairs")
    line = arguments(folder, tmp_path / "out", "--steps", "9", "--workers", workers)
    assert main([str(tmp_path / "pairs"), *line[1:]]) == 2
    said = capsys.readouterr().err
    assert f"image {rows[0]['image_id']} cannot be decoded" in said
    assert "Traceback" not in said


def test_a_damaged_checkpoint_is_one_clear_error(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """It is damaged as a full disk leaves it; a pickle in its place would not be run."""
    line = arguments(folder, tmp_path / "out", "--steps", "2", "--checkpoint-every", "1")
    monkeypatch.setattr("eqforge.evaluation.training.folder.RunFolder.finish", lambda *_: None)
    assert main(line) == 0
    saved = tmp_path / "out" / "_work" / "checkpoint-2" / "optimizer.bin"
    saved.write_bytes(b"cos\nsystem\n(S'touch out'\ntR.")
    assert main(line) == 2
    assert "is damaged or belongs to a different training run" in capsys.readouterr().err


def test_a_loss_that_is_not_finite_ends_the_training(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = arguments(folder, tmp_path / "out", "--steps", "9", "--learning-rate", "1e25")
    assert main(line) == 1
    assert "try a smaller --learning-rate" in capsys.readouterr().err
    assert not (tmp_path / "out" / "training.json").exists()


def test_too_little_memory_on_the_device_is_one_clear_error(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    def run_out(*_: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr("eqforge.evaluation.training.loop._step", run_out)
    assert main(arguments(folder, tmp_path / "out", "--steps", "2")) == 1
    assert "cpu ran out of memory; lower --batch-size" in capsys.readouterr().err


def test_presets_are_defaults_that_flags_override() -> None:
    base = ["d", "--model", "clip:x", "--output", "o"]
    paper = parse_settings([*base, "--preset", "eqsim-paper", "--margin", "0.2"])
    assert paper.loss == ("infonce=1", "eqsim-v1=0.5", "eqsim-v2=0.5")
    assert (paper.margin, paper.learning_rate, paper.close) == (0.2, 2e-5, "multinomial")
    assert (paper.weight_decay, paper.exclude_repeats) == (0.01, False)
    own = parse_settings([*base, "--preset", "hard-positives-paper", "--loss", "infonce=2"])
    assert not own.exclude_repeats
    flag = ["--preset", "eqsim-paper", "--exclude-repeats"]
    assert parse_settings([*base, *flag]).exclude_repeats
    assert own.loss == ("infonce=2",)
    assert own.epochs == PRESETS["hard-positives-paper"]["epochs"] == 5
    assert parse_settings(base).loss == ()


@pytest.mark.parametrize(
    ("preset", "data", "losses"),
    [
        ("eqsim-paper", "pairs", {"infonce", "eqsim-v1", "eqsim-v2"}),
        ("hard-positives-paper", "captions", {"infonce", "hard-negative", "hard-positive"}),
    ],
)
def test_the_papers_presets_train_and_log_each_of_their_losses(
    folder: Path, preset: str, data: str, losses: set[str]
) -> None:
    output = folder / preset
    settings = ["--preset", preset, "--steps", "2", "--warmup-steps", "0", "--batch-size", "4"]
    given = [str(folder / data), "--model", f"clip:{folder / 'clip'}", "--output", str(output)]
    assert main([*given, "--device", "cpu", "--workers", "0", *settings]) == 0
    log = read_log(output)
    assert len(log) == 2
    for line in log:
        parts = {name: value for name, value in line.items() if name in losses}
        assert parts.keys() == losses
        assert all(np.isfinite(value) for value in parts.values())

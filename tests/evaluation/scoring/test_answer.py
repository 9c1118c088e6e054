"""Local models on VLUE's tasks: answers against Transformers' own, and the files of answers."""

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from eqforge.evaluation.efficiency.command import main as efficiency_command
from eqforge.evaluation.efficiency.pareto_command import main as pareto_command
from eqforge.evaluation.scoring.answer import main as command
from eqforge.evaluation.tables.command import main as metrics_command
from eqforge.pipelines import vlue as pipeline
from eqforge.schemas.dataset.reader import open_dataset
from eqforge.schemas.tables.vlue import Task
from tests.evaluation.conversations.made import save_llava
from tests.evaluation.written import rows_by
from tests.optional import optional
from tests.statuses import status_of
from tests.tiny_families import (
    REGION_FEATURES,
    SIZES,
    VISION,
    _bert,
    save_lxmert,
    save_yolos,
    write_regions,
)
from tests.tiny_models import save_blip, save_clip

torch: Any = optional("torch")
transformers: Any = optional("transformers")

main, metrics = status_of(command), status_of(metrics_command)
efficiency, pareto = status_of(efficiency_command), status_of(pareto_command)
QUESTIONS = ["what is red", "is the dog on the box", "a cat"]
STATEMENTS = ["both red", "a dog on the left"]
ANSWERS = ["dog", "red cup", "a cat on the box", "green"]


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("images")
    for number, size in enumerate(((40, 60), (64, 33), (32, 32))):
        pixels = np.random.default_rng(number).integers(0, 256, (*size, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
    return folder


@pytest.fixture(scope="module")
def dataset(images: Path) -> Path:
    items: dict[Task, list[dict[str, Any]]] = {
        "vqa": [
            {"question_id": n, "question": text, "image": f"{n}.png", "answer": "dog"}
            for n, text in enumerate(QUESTIONS)
        ],
        "nlvr2": [
            {"sentence": text, "images": [f"{n}.png", "2.png"], "label": "True"}
            for n, text in enumerate(STATEMENTS)
        ],
        "captioning": [{"image_id": n, "image": f"{n}.png", "caption": ["x"]} for n in range(3)],
        "grounding": [{"ref_id": 1, "image": "0.png", "text": "dog", "bbox": [1, 1, 5, 5]}],
    }
    arguments = ["--images", str(images), "--output", str(images / "out")]
    for task, rows in items.items():
        (images / f"{task}.json").write_text(json.dumps(rows))
        arguments += [f"--{task}", str(images / f"{task}.json")]
    assert pipeline.main(arguments) == 0
    return images / "out"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("models")
    for name, classes, more in (
        ("ViltForQuestionAnswering", ANSWERS, {}),
        ("ViltForImagesAndTextClassification", ["False", "True"], {"num_images": 2}),
    ):
        tokenizer = _bert(root / name)
        config = transformers.ViltConfig(
            **SIZES,
            **VISION,
            **more,
            vocab_size=len(tokenizer),
            max_position_embeddings=40,
            modality_type_vocab_size=3,
            id2label=dict(enumerate(classes)),
            label2id={name: number for number, name in enumerate(classes)},
        )
        torch.manual_seed(0)
        getattr(transformers, name)(config).save_pretrained(root / name)
        size = {"shortest_edge": 32}
        transformers.ViltImageProcessorPil(size=size, size_divisor=8).save_pretrained(root / name)
    for name in ("BlipForQuestionAnswering", "BlipForConditionalGeneration"):
        config = transformers.BlipConfig.from_pretrained(save_blip(root / name, spread=0.3))
        torch.manual_seed(1)
        getattr(transformers, name)(config).save_pretrained(root / name)
    return {path.name: path for path in root.iterdir()}


def answers_of(path: Path) -> dict[str, Any]:
    lines = map(json.loads, path.read_text().split("\n")[:-1])
    return {line["sample_id"]: line["answer"] for line in lines}


def answer(dataset: Path, task: str, model: Path, output: Path, *more: str) -> dict[str, Any]:
    arguments = ["--task", task, "--model", str(model), "--output", str(output), *more]
    assert main([str(dataset), *arguments]) == 0
    return answers_of(output)


def inputs_of(folder: Path, images: Path, numbers: list[int], text: str) -> dict[str, Any]:
    from transformers import AutoImageProcessor, AutoTokenizer

    pictures = [Image.open(images / f"{number}.png") for number in numbers]
    processor = AutoImageProcessor.from_pretrained(folder, backend="pil")
    tokens = AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt")
    return {**processor(images=pictures, return_tensors="pt"), **tokens}


def test_vilt_answers_with_its_best_class(
    dataset: Path, images: Path, models: dict[str, Path], tmp_path: Path
) -> None:
    folder = models["ViltForQuestionAnswering"]
    model = transformers.ViltForQuestionAnswering.from_pretrained(folder)
    (tmp_path / "list.txt").write_text("red cup\ngreen\n")
    listed = ["--answer-list", str(tmp_path / "list.txt")]
    free = answer(dataset, "vqa", folder, tmp_path / "free.jsonl")
    chosen = answer(dataset, "vqa", folder, tmp_path / "chosen.jsonl", *listed)
    for number, text in enumerate(QUESTIONS):
        with torch.inference_mode():
            logits = model(**inputs_of(folder, images, [number], text)).logits[0]
        assert free[f"vqa/{number}"] == ANSWERS[int(logits.argmax())]
        assert chosen[f"vqa/{number}"] == ("red cup" if logits[1] > logits[3] else "green")

    folder = models["ViltForImagesAndTextClassification"]
    both = transformers.ViltForImagesAndTextClassification.from_pretrained(folder)
    found = answer(dataset, "nlvr2", folder, tmp_path / "nlvr2.jsonl")
    expected = []
    for number, text in enumerate(STATEMENTS):
        inputs = inputs_of(folder, images, [number, 2], text)
        for name in ("pixel_values", "pixel_mask"):
            inputs[name] = inputs[name][None]
        with torch.inference_mode():
            expected.append(["False", "True"][int(both(**inputs).logits[0].argmax())])
    assert sorted(found.values()) == sorted(expected)
    assert metrics([str(dataset), f"{tmp_path}/nlvr2.jsonl", "--output", str(tmp_path / "t")]) == 0
    share = rows_by(tmp_path / "t")["nlvr2", "accuracy"]["value"]
    assert float(share) == pytest.approx(np.mean([one == "True" for one in expected]))


def test_blip_writes_answers_and_captions_or_ranks_a_list(
    dataset: Path,
    images: Path,
    models: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = models["BlipForQuestionAnswering"]
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.BlipForQuestionAnswering.from_pretrained(folder)
    (tmp_path / "list.json").write_text(json.dumps(ANSWERS))
    listed = ["--answer-list", str(tmp_path / "list.json")]
    free = answer(dataset, "vqa", folder, tmp_path / "free.jsonl")
    ranked = answer(dataset, "vqa", folder, tmp_path / "ranked.jsonl", *listed)
    for number, text in enumerate(QUESTIONS):
        inputs = inputs_of(folder, images, [number], text)
        del inputs["token_type_ids"]
        written = model.generate(**inputs, max_new_tokens=38, do_sample=False)[0]
        assert free[f"vqa/{number}"] == tokenizer.decode(written, skip_special_tokens=True).strip()
        chances = []
        for one in ANSWERS:
            ids = tokenizer(one, return_tensors="pt")["input_ids"]
            ids[0, 0] = model.decoder_start_token_id
            with torch.inference_mode():
                # The mean loss of the tokens after the first, one answer at a time.
                loss = model(**inputs, decoder_input_ids=ids, labels=ids).loss
            chances.append(-float(loss) * (ids.shape[1] - 1))
        assert ranked[f"vqa/{number}"] == ANSWERS[int(np.argmax(chances))]

    (tmp_path / "long.txt").write_text("red\n" + "car " * 99 + "\n")
    command = [str(dataset), "--task", "vqa", "--model", str(folder)]
    long = ["--answer-list", str(tmp_path / "long.txt"), "--output", str(tmp_path / "no.jsonl")]
    assert main([*command, *long]) == 2
    assert "tokens, but the model reads at most 40" in capsys.readouterr().err

    folder = models["BlipForConditionalGeneration"]
    captioner = transformers.BlipForConditionalGeneration.from_pretrained(folder)
    found = answer(dataset, "captioning", folder, tmp_path / "captions.jsonl")
    for number in range(3):
        pixels = inputs_of(folder, images, [number], "")["pixel_values"]
        written = captioner.generate(pixel_values=pixels, max_new_tokens=38, do_sample=False)[0]
        caption = tokenizer.decode(written, skip_special_tokens=True).strip()
        assert found[f"captioning/{number}"] == caption


LXMERT = "LxmertForQuestionAnswering"


@pytest.fixture(scope="module")
def regions(dataset: Path, images: Path) -> Path:
    rows = open_dataset(str(dataset)).rows("vqa", ["sample_id", "image_id"])
    keys = [row["image_id"] for row in sorted(rows, key=lambda row: row["sample_id"])]
    write_regions(images / "regions.tsv", keys)
    return images / "regions.tsv"


def logits_of_lxmert(folder: Path, regions: Path) -> np.ndarray:
    """Transformers' own logits of each question about its image, without padding."""
    model = transformers.LxmertForQuestionAnswering.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    found = []
    for text, line in zip(QUESTIONS, regions.read_text().splitlines(), strict=True):
        _, boxes, encoded = line.split("\t")
        numbers = np.frombuffer(base64.b64decode(encoded), "<f4").reshape(int(boxes), -1)
        given = torch.tensor(numbers)[None]
        with torch.inference_mode():
            outputs = model(
                **tokenizer(text, return_tensors="pt"),
                visual_feats=given[..., :REGION_FEATURES],
                visual_pos=given[..., REGION_FEATURES : REGION_FEATURES + 4],
            )
        found.append(outputs.question_answering_score[0].numpy())
    return np.array(found)


def test_lxmert_answers_from_region_features_with_its_best_class(
    dataset: Path, regions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from eqforge.models.answerers import _Classes

    own, seen = _Classes.best, list[Any]()

    def best(self: _Classes, logits: Any) -> str:
        seen.append(logits.numpy())
        return own(self, logits)

    monkeypatch.setattr(_Classes, "best", best)
    names = {"id2label": dict(enumerate(ANSWERS)), "num_qa_labels": len(ANSWERS)}
    folder = save_lxmert(tmp_path / "named", LXMERT, **names)
    (tmp_path / "list.txt").write_text("green\nred cup\n")
    features, listed = ["--features", str(regions)], ["--answer-list", str(tmp_path / "list.txt")]
    free = answer(dataset, "vqa", folder, tmp_path / "free.jsonl", *features)
    chosen = answer(dataset, "vqa", folder, tmp_path / "chosen.jsonl", *features, *listed)
    logits = logits_of_lxmert(folder, regions)
    assert np.array(seen) == pytest.approx(np.concatenate([logits, logits]), abs=1e-5)
    assert np.ptp(logits, axis=0).min() > 1e-3
    for number, one in enumerate(logits):
        assert free[f"vqa/{number}"] == ANSWERS[int(one.argmax())]
        assert chosen[f"vqa/{number}"] == ("red cup" if one[1] > one[3] else "green")


@pytest.mark.parametrize("labels", [2, len(ANSWERS)])
def test_a_list_names_the_answers_of_an_lxmert_without_names(
    dataset: Path,
    regions: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    labels: int,
) -> None:
    folder = save_lxmert(tmp_path / "m", LXMERT, num_qa_labels=len(ANSWERS), num_labels=labels)
    best = logits_of_lxmert(folder, regions).argmax(axis=1)
    file, features = tmp_path / "list.json", ["--features", str(regions)]
    for order in (ANSWERS, ANSWERS[::-1]):
        file.write_text(json.dumps(order))
        output = tmp_path / f"{order[0]}.jsonl"
        found = answer(dataset, "vqa", folder, output, *features, "--answer-list", str(file))
        assert found == {f"vqa/{number}": order[place] for number, place in enumerate(best)}
    command = [str(dataset), "--task", "vqa", "--model", str(folder), *features]
    file.write_text(json.dumps(ANSWERS[:3]))
    for listed, count in (([], 0), (["--answer-list", str(file)], 3)):
        assert main([*command, *listed, "--output", str(tmp_path / "no.jsonl")]) == 2
        said = " ".join(capsys.readouterr().err.split())
        assert f"4 answers without names, but --answer-list has {count}. Pass all" in said


def test_lxmert_needs_the_features_of_each_image_and_no_other_model_takes_them(
    dataset: Path,
    models: dict[str, Path],
    regions: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = {"id2label": dict(enumerate(ANSWERS)), "num_qa_labels": len(ANSWERS)}
    folder = save_lxmert(tmp_path / "named", LXMERT, **names)
    first, *_ = regions.read_text().splitlines(keepends=True)
    (tmp_path / "some.tsv").write_text(first)
    some, output = ["--features", str(tmp_path / "some.tsv")], tmp_path / "some.jsonl"
    assert answer(dataset, "vqa", folder, output, *some).keys() == {"vqa/0"}
    assert "2 questions left out (some.tsv has no line for this image)" in capsys.readouterr().out
    for model, more, message in (
        (folder, [], "needs region features. Pass their TSV file with --features"),
        (
            models["ViltForQuestionAnswering"],
            some,
            "reads no region features; omit --features",
        ),
    ):
        arguments = ["--task", "vqa", "--model", str(model), *more]
        assert main([str(dataset), *arguments, "--output", str(tmp_path / "x.jsonl")]) == 2
        assert message in " ".join(capsys.readouterr().err.split())


def test_the_time_of_lxmert_includes_its_detector(
    dataset: Path,
    images: Path,
    regions: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    detector = save_yolos(tmp_path / "yolos")
    folder = save_lxmert(tmp_path / "lxmert", LXMERT, num_qa_labels=len(ANSWERS))
    (tmp_path / "list.txt").write_text("\n".join(ANSWERS))
    seen, kind = list[Any](), transformers.YolosForObjectDetection
    own = kind.forward

    def forward(self: Any, **given: Any) -> Any:
        seen.append(given)
        return own(self, **given)

    monkeypatch.setattr(kind, "forward", forward)
    model = f"answer:{folder},features={regions},list={tmp_path / 'list.txt'}"
    command = [str(dataset), "--task", "vqa", "--model", model, "--warm-up", "1"]
    times = tmp_path / "times.json"
    assert efficiency([*command, "--detector", str(detector), "--output", str(times)]) == 0
    found, printed = json.loads(times.read_text()), capsys.readouterr().out
    stages = found["stages"]
    assert list(stages) == ["decode", "answer", "detector", "total"]
    assert all(stage["median"] > 0 for stage in stages.values())
    parts = sum(stages[name]["mean"] for name in ("decode", "answer", "detector"))
    assert stages["total"]["mean"] == pytest.approx(parts)
    assert found["detector"].startswith("yolos@sha256:")
    assert "  detector             median" in printed
    processor = transformers.AutoImageProcessor.from_pretrained(detector, backend="pil")
    expected = [
        processor(images=Image.open(images / f"{number}.png"), return_tensors="np")["pixel_values"]
        for number in range(3)
    ]
    warm, *timed = (given["pixel_values"].numpy() for given in seen)
    assert (warm == timed[0]).all()
    assert len(timed) == 3
    assert all(any(np.array_equal(one, each) for one in timed) for each in expected)

    for more, message in (
        ([], "pass either --detector MODEL or --detector-s SECONDS (per image)"),
        (["--detector", str(detector), "--detector-s", "1"], "pass either --detector MODEL"),
        (["--detector", str(images)], "the model cannot be loaded"),
    ):
        assert efficiency([*command, *more, "--output", str(tmp_path / "x.json")]) == 2
        assert message in " ".join(capsys.readouterr().err.split())


def test_a_text_of_a_chat_model_without_an_answer_is_wrong(dataset: Path, tmp_path: Path) -> None:
    folder = save_llava(tmp_path / "chat", says="1;2")
    for task in ("nlvr2", "grounding"):
        found = answer(dataset, task, folder, tmp_path / f"{task}.jsonl")
        assert set(found.values()) == {""}
        output = tmp_path / f"{task}-table"
        assert metrics([str(dataset), f"{tmp_path}/{task}.jsonl", "--output", str(output)]) == 0
        assert float(rows_by(output)[task, "accuracy"]["value"]) == 0


def test_a_stopped_run_goes_on_and_another_run_is_refused(
    dataset: Path,
    models: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder, output = models["ViltForQuestionAnswering"], tmp_path / "a.jsonl"
    whole = answer(dataset, "vqa", folder, tmp_path / "whole.jsonl")
    lines = (tmp_path / "whole.jsonl").read_bytes().splitlines(keepends=True)

    class Stopped(Exception):
        pass

    from eqforge.models.answerers import ViltAnswerer

    own, asked = ViltAnswerer.answer, list[str]()

    def stops(self: ViltAnswerer, pixels: Any, text: str) -> str:
        asked.append(text)
        if len(asked) == 3:
            raise Stopped
        return own(self, pixels, text)

    arguments = ["--task", "vqa", "--model", str(folder), "--output", str(output)]
    monkeypatch.setattr(ViltAnswerer, "answer", stops)
    with pytest.raises(Stopped):
        command([str(dataset), *arguments])
    monkeypatch.undo()
    part = tmp_path / "a.jsonl.part"
    assert len(part.read_text().splitlines()) == 3
    with part.open("ab") as stream:
        stream.write(b"\0\0\0\n")  # as a cut of power leaves a line
        stream.write('{"sample_id": "vq\N{LINE SEPARATOR}\xe9'.encode()[:-1])  # torn by a crash
    other = ["--task", "captioning", "--model", str(models["BlipForConditionalGeneration"])]
    assert main([str(dataset), *other, "--output", str(output)]) == 2
    assert (
        "unfinished answers from a run with a different dataset, model or version"
        in capsys.readouterr().err
    )
    assert answer(dataset, "vqa", folder, output) == whole
    assert output.read_bytes() == b"".join(lines)
    assert not part.exists()


def test_a_second_run_on_the_same_file_is_one_clear_error(
    dataset: Path,
    models: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from eqforge.models.answerers import ViltAnswerer

    folder, output = models["ViltForQuestionAnswering"], tmp_path / "new" / "a.jsonl"
    whole = answer(dataset, "vqa", folder, tmp_path / "whole.jsonl")
    own, statuses = ViltAnswerer.answer, list[int]()

    def starts_another_run(self: ViltAnswerer, pixels: Any, text: str) -> str:
        if not statuses:
            arguments = ["--task", "vqa", "--model", str(folder), "--output", str(output)]
            statuses.append(2)
            statuses[0] = main([str(dataset), *arguments])
        return own(self, pixels, text)

    monkeypatch.setattr(ViltAnswerer, "answer", starts_another_run)
    assert answer(dataset, "vqa", folder, output) == whole
    assert statuses == [2]
    assert f"--output {output}: another run is writing this file" in capsys.readouterr().err
    assert output.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_lines_end_at_line_feeds_alone(
    dataset: Path, models: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from eqforge.models.answerers import ViltAnswerer

    monkeypatch.setattr(ViltAnswerer, "answer", lambda *_: "a\N{LINE SEPARATOR}b")
    found = answer(dataset, "vqa", models["ViltForQuestionAnswering"], tmp_path / "a.jsonl")
    assert list(found.values()) == ["a\N{LINE SEPARATOR}b"] * len(QUESTIONS)


@pytest.mark.parametrize(
    ("task", "model", "message"),
    [
        ("nlvr2", "ViltForQuestionAnswering", "is a model for the task vqa, not nlvr2"),
        ("vqa", "nothing", "no such folder"),
    ],
)
def test_wrong_input_is_one_clear_error(
    dataset: Path,
    models: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    task: str,
    model: str,
    message: str,
) -> None:
    folder = models.get(model, tmp_path / model)
    arguments = ["--task", task, "--model", str(folder), "--output", str(tmp_path / "o")]
    assert main([str(dataset), *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_model_that_answers_nothing_is_one_clear_error(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_clip(tmp_path / "clip")
    arguments = ["--task", "vqa", "--model", str(tmp_path / "clip")]
    assert main([str(dataset), *arguments, "--output", str(tmp_path / "x.jsonl")]) == 2
    message = "a CLIPModel cannot answer questions about images. Choose a chat model"
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_model_s_answers_and_their_time_make_a_front(
    dataset: Path, models: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "times").mkdir()
    for task, model in (
        ("nlvr2", "ViltForImagesAndTextClassification"),
        ("vqa", "ViltForQuestionAnswering"),
    ):
        folder, times = models[model], tmp_path / "times/vilt.json"
        answer(dataset, task, folder, tmp_path / task / "vilt.jsonl")
        arguments = ["--task", task, "--model", f"answer:{folder}", "--output", str(times)]
        assert efficiency([str(dataset), *arguments, "--warm-up", "1"]) == 0
        found = json.loads(times.read_text())
        assert found["settings"]["task"] == task
        assert len(found["seconds"]) == found["settings"]["items"] == {"nlvr2": 2, "vqa": 3}[task]
        assert list(found["stages"]) == ["decode", "answer", "total"]
        assert all(stage["median"] > 0 for stage in found["stages"].values())
        table = ["--output", str(tmp_path / task / "table")]
        assert metrics([str(dataset), f"{tmp_path}/{task}/vilt.jsonl", *table]) == 0
    tables = [str(tmp_path / task / "table/metrics.json") for task in ("nlvr2", "vqa")]
    capsys.readouterr()
    assert pareto([str(tmp_path / "times/vilt.json"), "--metrics", *tables]) == 0
    assert "vilt" in capsys.readouterr().out

    model = f"answer:{models['ViltForQuestionAnswering']}"
    for options, message in (
        (["--task", "poetry"], "--task poetry"),
        (
            ["--task", "vqa", "--detector-s", "1"],
            "reads pixels; omit --detector and --detector-s",
        ),
        (["--task", "nlvr2"], "is a model for the task vqa, not nlvr2"),
        ([], "--task: expected one of"),
        (["--task", "vqa", "--repeats", "3"], "--repeats cannot be used with --model answer"),
    ):
        arguments = ["--model", model, "--output", str(tmp_path / "x.json"), *options]
        assert efficiency([str(dataset), *arguments]) == 2
        assert message in " ".join(capsys.readouterr().err.split())


def test_blip_chooses_the_region_that_its_attention_points_at(
    dataset: Path, images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = save_blip(tmp_path / "blip", spread=0.3)
    model = transformers.BlipForImageTextRetrieval.from_pretrained(folder)
    inputs = inputs_of(folder, images, [0], "dog")
    states = model.vision_model(pixel_values=inputs["pixel_values"]).last_hidden_state
    found: list[Any] = []
    layer = model.text_encoder.encoder.layer[-1].crossattention.self
    layer.register_forward_hook(lambda _, __, output: found.append(output[1]))
    fused = model.text_encoder(
        input_ids=inputs["input_ids"],
        attention_mask=inputs["attention_mask"],
        encoder_hidden_states=states,
    ).last_hidden_state
    found[0].retain_grad()
    model.itm_head(fused[:, 0, :])[0, 1].backward()
    weights = found[0].grad[0].clamp(min=0).numpy() * found[0][0].detach().numpy()
    heat = np.zeros(weights.shape[2] - 1)
    for head in weights:
        for token in head:
            heat += token[1:]
    side = int(len(heat) ** 0.5)
    shown = torch.nn.functional.interpolate(
        torch.tensor(heat.reshape(1, 1, side, side)), size=(40, 60), mode="bicubic"
    )[0, 0].numpy()
    boxes: list[list[float]] = [[0, 0, 20, 20], [30.5, 2, 10, 30], [5, 20, 50, 15.2], [58, 0, 1, 1]]
    outside = [[3, -30, 20, 10]]
    scores = []
    for x, y, width, height in boxes:
        inside = shown[int(y) : int(y + height), int(x) : int(x + width)]
        scores.append(inside.sum() / (width * height) ** 0.5)
    assert len({round(score, 9) for score in scores}) == 4
    best = boxes[int(np.argmax(scores))]

    regions = tmp_path / "dets.json"
    for key in ("0.png", "0"):
        regions.write_text(json.dumps({key: [*outside, *boxes[::-1]], "other": [[0, 0, 1, 1]]}))
        given = ["--regions", str(regions)]
        (box,) = answer(dataset, "grounding", folder, tmp_path / f"{key}.jsonl", *given).values()
        assert box == best
    assert metrics([str(dataset), f"{tmp_path}/0.jsonl"]) == 0
    capsys.readouterr()

    for text, message in (
        ('{"0": [[0, 0, 0, 5]]}', "dets.json"),
        (
            '{"1": [[0, 0, 2, 5]]}',
            "no question could be answered: 1 question left out (no regions)",
        ),
        (None, "cannot propose boxes; pass candidate boxes with --regions"),
    ):
        regions.write_text(text or "{}")
        more = [] if text is None else ["--regions", str(regions)]
        arguments = ["--task", "grounding", "--model", str(folder), *more]
        assert main([str(dataset), *arguments, "--output", str(tmp_path / "x.jsonl")]) == 2
        assert message in " ".join(capsys.readouterr().err.split())
        (tmp_path / "x.jsonl.part").unlink(missing_ok=True)

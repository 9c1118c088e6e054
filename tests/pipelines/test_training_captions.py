import json
from pathlib import Path
from typing import Any

import pytest

from eqforge.commands import verify
from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.coordination.swap import swap_coordination
from eqforge.generators.text.llm.rewrite import PROMPTS
from eqforge.generators.text.llm.validate import REWRITE_REFUSALS
from eqforge.generators.text.llm.writer import CaptionWriter, WriterSettings
from eqforge.pipelines import hard_positives, training_captions
from eqforge.schemas.dataset.reader import open_dataset
from eqforge.transforms.text import caption_edits


@pytest.fixture
def captions(tmp_path: Path) -> Path:
    """A user's file of three captions of two images."""
    lines = [
        {"image": "b.jpg", "caption": "A man holds a red umbrella.", "id": "one"},
        {"image": "a.jpg", "caption": "A dog and a cat on a sofa.", "id": "two"},
        {"image": "b.jpg", "caption": "Zzz", "id": "three"},
    ]
    path = tmp_path / "captions.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def build(output: Path, *arguments: object) -> dict[str, dict[str, Any]]:
    assert training_captions.main([*map(str, arguments), "--output", str(output)]) == 0
    assert verify.main([str(output)]) == 0
    return {row["sample_id"]: row for row in open_dataset(str(output)).rows("samples")}


def test_each_caption_gives_itself_a_hard_positive_and_a_hard_negative(
    captions: Path, tmp_path: Path
) -> None:
    rows = build(tmp_path / "out", "--captions", captions)

    assert rows["one/original"]["text"] == "A man holds a red umbrella."
    assert rows["one/hard_positive"]["text"] in (
        "A guy holds a red umbrella.",
        "A man holds a red-colored umbrella.",
        "A man holding a red umbrella.",
        "A man is holding a red umbrella.",
        "A man who holds a red umbrella.",
        "A red umbrella is held by a man.",
    )
    assert rows["two/hard_positive"]["text"] in (
        "A cat and a dog on a sofa.",
        "A dog and a cat on a couch.",
        "There are a dog and a cat on a sofa.",
        "There is a dog and a cat on a sofa.",
    )
    for name in ("one", "two"):
        assert rows[f"{name}/hard_negative"]["text"] != rows[f"{name}/original"]["text"]
        assert rows[f"{name}/hard_negative"]["generator"] is not None


def test_a_text_that_cannot_be_made_is_a_reject_and_the_others_stay(
    captions: Path, tmp_path: Path
) -> None:
    rows = build(tmp_path / "out", "--captions", captions)

    rejects = list(open_dataset(str(tmp_path / "out")).rows("rejects"))
    assert "three/original" in rows
    assert "three/hard_positive" in {reject["candidate_id"] for reject in rejects}
    stages = open_dataset(str(tmp_path / "out")).manifest.stages
    assert stages["training_texts"].candidates == 9


def test_the_seed_decides_the_hard_negative(captions: Path, tmp_path: Path) -> None:
    first, again, other = (
        build(tmp_path / name, "--captions", captions, "--seed", seed)
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    )

    assert first == again
    assert first != other


def test_every_text_alone_is_the_same_as_in_the_whole_dataset(
    captions: Path, tmp_path: Path
) -> None:
    """Another caption of the image names the umbrella, which no hard negative may then bring in."""
    everything = build(tmp_path / "all", "--captions", captions)
    refused = {
        row["candidate_id"]: row for row in open_dataset(str(tmp_path / "all")).rows("rejects")
    }

    for name in (*[*everything][::2], *refused):
        output = tmp_path / name.replace("/", "-")
        alone = build(output, "--captions", captions, "--only", name)
        rejects = {row["candidate_id"]: row for row in open_dataset(str(output)).rows("rejects")}
        assert alone == {key: row for key, row in everything.items() if key == name}
        assert rejects == {key: row for key, row in refused.items() if key == name}


def test_a_caption_that_breaks_a_step_is_a_reject_and_the_others_stay(
    captions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(analysis: Analysis) -> Any:
        if "cat" in analysis.text:
            raise RecursionError("too deep")
        return swap_coordination(analysis)

    monkeypatch.setattr(caption_edits, "swap_coordination", fail)
    rows = build(tmp_path / "out", "--captions", captions, "--max-error-rate", 0.2)

    assert "one/hard_positive" in rows
    assert "two/original" in rows
    errors = {
        row["candidate_id"]: row["reason"]
        for row in open_dataset(str(tmp_path / "out")).rows("rejects")
        if row["reason"].startswith("error:")
    }
    assert errors == {"two/hard_positive": "error:RecursionError"}


TAUGHT = {"a cat and a dog": "a dog and a cat", "a bus and a horse": "a bus and a horse"}
"""Captions, and what the model answers: one swap, and one caption given back unchanged."""


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GPT-2 of two layers, with a vocabulary of words, that has learnt two answers by heart."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    tokenizer = _tokenizer(transformers)
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            **{"vocab_size": len(tokenizer), "n_positions": 256, "n_embd": 32, "n_layer": 2},
            **{"n_head": 2, "bos_token_id": 0, "eos_token_id": 0},
            **{"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0},
        )
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    prompts = [tokenizer(PROMPTS["swap"].render(caption))["input_ids"] for caption in TAUGHT]
    answers = [tokenizer(answer + "\n")["input_ids"] for answer in TAUGHT.values()]
    ids = torch.tensor([prompt + answer for prompt, answer in zip(prompts, answers, strict=True)])
    labels = ids.clone()
    labels[:, : len(prompts[0])] = -100
    for _ in range(220):
        optimizer.zero_grad()
        model(input_ids=ids, labels=labels).loss.backward()
        optimizer.step()
    folder = tmp_path_factory.mktemp("model") / "tiny"
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _tokenizer(transformers: Any) -> Any:
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

    text = " ".join([PROMPTS["swap"].template, *TAUGHT])
    vocabulary = {
        word: n for n, word in enumerate(["<eos>", "<unk>", "\n", *sorted({*text.split()})])
    }
    tokenizer = Tokenizer(models.WordLevel(vocab=vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(" +"), "removed"),
            pre_tokenizers.Split(Regex("\n"), "isolated"),
        ]
    )
    tokenizer.decoder = decoders.WordPiece(prefix="##", cleanup=False)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", eos_token="<eos>"
    )


def test_a_language_model_writes_the_hard_positives_and_is_asked_once(
    model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    captions = tmp_path / "captions.jsonl"
    lines = [{"image": "a.jpg", "caption": text, "id": text[:5]} for text in TAUGHT]
    captions.write_text("".join(json.dumps(line) + "\n" for line in lines))
    output = tmp_path / "out"
    command = ("--captions", captions, "--model", model_folder, "--model-retries", 1)

    rows = build(output, *command)

    written = rows["a cat/hard_positive"]
    assert (written["text"], written["kind"]) == ("a dog and a cat", "llm/swap")
    revision = CaptionWriter(WriterSettings(model=str(model_folder))).revision
    assert f"@{revision} greedy" in written["generator"]
    dataset = open_dataset(str(output))
    (refused,) = (r for r in dataset.rows("rejects") if r["candidate_id"] == "a bus/hard_positive")
    assert refused["reason"] in REWRITE_REFUSALS
    tests = tmp_path / "tests"
    assert hard_positives.main([*map(str, command), "--output", str(tests)]) == 0
    (row,) = open_dataset(str(tests)).rows("samples")
    assert (row["hard_positive"], row["hard_positive_kind"]) == (written["text"], written["kind"])
    assert row["generator"].startswith(f"{written['generator']}; ")
    books = dataset.manifest.stages["training_texts"]
    assert (books.candidates, books.kept) == (6, len(rows))

    def asked_again(*_: Any) -> None:
        raise AssertionError("the answers are known")

    monkeypatch.setattr(CaptionWriter, "complete", asked_again)
    again = build(output, *command, "--negative-kinds", "replace_object", "--overwrite")
    assert again["a cat/hard_positive"] == written

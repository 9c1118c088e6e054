"""The models that judge texts: classifiers of inference, and yes or no by the first token."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eqforge.core.errors import InputError
from eqforge.models.chat import load_chat_model
from eqforge.models.language_models import (
    CLASSES,
    NliModel,
    TextYesNo,
    class_places,
)
from eqforge.models.pretrained import Weights
from tests.evaluation.conversations.made import processor, save_llava
from tests.optional import optional
from tests.tiny_judges import save_llm, save_nli
from tests.tiny_models import bert_tokenizer

optional("transformers")

PAIRS = [
    ("a red cup on the box", "the cup is red"),
    ("two dogs", "no dog"),
    ("", "a cat"),
    ("Собака на столе", "犬がいる"),
    ("a cat", "a cat"),
]


@pytest.fixture(scope="module")
def nli(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_nli(tmp_path_factory.mktemp("nli") / "model")


@pytest.fixture(scope="module")
def llm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_llm(tmp_path_factory.mktemp("llm") / "model")


def test_classes_are_found_by_name_whatever_their_order(nli: Path) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    found = NliModel(Weights(source=str(nli))).probabilities(PAIRS)

    model: Any = AutoModelForSequenceClassification.from_pretrained(nli)
    tokenizer: Any = AutoTokenizer.from_pretrained(nli)
    for (premise, hypothesis), row in zip(PAIRS, found, strict=True):
        with torch.inference_mode():
            logits = model(**tokenizer(premise, hypothesis, return_tensors="pt")).logits[0]
        contradiction, neutral, entailment = logits.softmax(0).tolist()  # the model's own order
        assert row == pytest.approx([entailment, neutral, contradiction], abs=1e-5)
    assert found.sum(axis=1) == pytest.approx(1)
    assert CLASSES == ("entailment", "neutral", "contradiction")


@pytest.mark.parametrize(
    "names",
    [
        {0: "LABEL_0", 1: "LABEL_1", 2: "LABEL_2"},
        {0: "entailment", 1: "not_entailment"},
        {0: "entailment", 1: "contradiction", 2: "contradiction_too"},
        {0: "entailment", 1: "neutral", 2: "contradiction", 3: "other"},
    ],
)
def test_other_classes_are_one_clear_error(names: dict[int, str], tmp_path: Path) -> None:
    save_nli(tmp_path / "model", names)
    with pytest.raises(InputError, match=r"its classes are .*; expected a natural lang"):
        NliModel(Weights(source=str(tmp_path / "model")))


def test_classes_in_any_spelling() -> None:
    assert class_places({"1": "Contradiction", "0": " neutral", "2": "ENTAIL"}, "m") == [2, 0, 1]


def test_a_model_without_the_head_is_refused(llm: Path) -> None:
    with pytest.raises(InputError, match=r"lacks .* of AutoModelForSequenceClassification"):
        NliModel(Weights(source=str(llm)))


def test_what_is_too_long_cannot_be_read(tmp_path: Path) -> None:
    model = NliModel(Weights(source=str(save_nli(tmp_path / "model", reads=16))))
    model.probabilities([("a cat", "a dog")])
    with pytest.raises(ValueError, match=r"tokens exceed the limit of 16"):
        model.probabilities([("a cat", "a dog"), ("a cat " * 20, "a dog")])


def test_yes_is_a_share_of_yes_and_no(llm: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    (found,) = TextYesNo(Weights(source=str(llm))).shares(["Is a cat a cat?"])

    tokenizer = processor().tokenizer
    model: Any = AutoModelForCausalLM.from_pretrained(llm)
    ids = tokenizer("Is a cat a cat?\nAnswer:", return_tensors="pt").input_ids
    with torch.inference_mode():
        shares = model(input_ids=ids).logits[0, -1].softmax(0)
    # Letters are this tokenizer's tokens; a space begins both.
    yes, no = (
        sum(shares[tokenizer.convert_tokens_to_ids(x)] for x in word) for word in ("yY", "nN")
    )
    assert found == pytest.approx(float(yes / (yes + no)), abs=1e-5)


def test_answers_do_not_depend_on_what_else_is_asked(llm: Path, nli: Path) -> None:
    model, asked = TextYesNo(Weights(source=str(llm))), ["short?", "Is this much longer? " * 5]
    alone = [model.shares([each])[0] for each in asked]
    assert model.shares(asked) == pytest.approx(alone, abs=1e-5)
    judge = NliModel(Weights(source=str(nli)))
    alone = [judge.probabilities([pair])[0].tolist() for pair in PAIRS]
    assert judge.probabilities(PAIRS).tolist() == [pytest.approx(row, abs=1e-5) for row in alone]


def test_a_chat_template_is_used_where_there_is_one(llm: Path, tmp_path: Path) -> None:
    template = "{% for m in messages %}USER: {{ m['content'] }} BOT:{% endfor %}"
    chat = TextYesNo(Weights(source=str(save_llm(tmp_path / "chat", template))))
    plain = TextYesNo(Weights(source=str(llm)))
    assert chat.shares(["Is it?"]) != plain.shares(["Is it?"])
    assert chat.identity.preprocessing != plain.identity.preprocessing


def test_a_tokenizer_without_yes_and_no_is_refused(tmp_path: Path) -> None:
    tokenizer = bert_tokenizer(tmp_path / "words", ["a"])  # its letters are tokens
    tokenizer.do_lower_case = True
    save_llm(tmp_path / "letters", tokenizer=tokenizer)
    TextYesNo(Weights(source=str(tmp_path / "letters")))

    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.WordLevel({"<unk>": 0, "cat": 1}, "<unk>"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    words = PreTrainedTokenizerFast(tokenizer_object=core, unk_token="<unk>")
    save_llm(tmp_path / "cats", tokenizer=words)
    with pytest.raises(InputError, match="'yes' and 'no' begin with the same token"):
        TextYesNo(Weights(source=str(tmp_path / "cats")))


def test_a_model_that_sees_says_yes_by_its_first_token(tmp_path: Path) -> None:
    import torch
    from PIL import Image

    model = load_chat_model(Weights(source=str(save_llava(tmp_path / "model"))))
    pixels = np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8)
    prompt = model.prompt("Is it a cat?")

    inputs = model.processor(images=Image.fromarray(pixels), text=prompt, return_tensors="pt")
    with torch.inference_mode():
        shares = model.model(**inputs).logits[0, -1].softmax(0)
    ids = model.processor.tokenizer.convert_tokens_to_ids
    yes, no = (sum(shares[ids(letter)] for letter in word) for word in ("yY", "nN"))
    assert model.yes(pixels, prompt) == pytest.approx(float(yes / (yes + no)), abs=1e-5)
    assert model.answer(pixels, prompt, 3) == model.answer(pixels, prompt, 3)

"""Mean negative log likelihoods, against the loss of transformers."""

from pathlib import Path

import pytest

from eqforge.core.errors import InputError
from eqforge.models.language_models import CausalLikelihood
from eqforge.models.pretrained import Weights
from tests.evaluation.conversations.made import processor
from tests.optional import optional
from tests.tiny_judges import save_llm, teach_llm

torch = optional("torch")

TEXT = "A squirrel in the bathtub."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_llm(tmp_path_factory.mktemp("models") / "llm")


def test_it_is_the_mean_loss_of_the_tokens_behind_the_first(folder: Path) -> None:
    from transformers import AutoTokenizer, LlamaForCausalLM

    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = torch.tensor([[2, *tokenizer(TEXT, add_special_tokens=False)["input_ids"]]])
    with torch.no_grad():
        loss = LlamaForCausalLM.from_pretrained(folder)(input_ids=ids, labels=ids).loss
    found = CausalLikelihood(Weights(source=str(folder))).surprise(TEXT)
    assert found == pytest.approx(float(loss), abs=1e-5)


def test_what_a_model_has_read_surprises_it_less(tmp_path: Path) -> None:
    usual = ["A squirrel on a tree.", "A duck on a lake."]
    model = CausalLikelihood(Weights(source=str(teach_llm(tmp_path / "llm", usual))))
    odd = ["A squirrel in the bathtub.", "A duck on a tree."]
    assert max(map(model.surprise, usual)) < min(map(model.surprise, odd))


@pytest.mark.parametrize("text", ["", "a" * 1025])
def test_a_text_that_cannot_be_read_is_an_error(folder: Path, text: str) -> None:
    with pytest.raises(ValueError, match="token"):
        CausalLikelihood(Weights(source=str(folder))).surprise(text)


def test_a_model_without_a_beginning_or_an_end_is_refused(tmp_path: Path) -> None:
    tokenizer = processor().tokenizer
    tokenizer.bos_token = tokenizer.eos_token = None
    folder = save_llm(tmp_path / "llm", tokenizer=tokenizer)
    with pytest.raises(InputError, match="no start or end token"):
        CausalLikelihood(Weights(source=str(folder)))

"""Tiny judges of random weights, saved as transformers saves them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.evaluation.conversations.made import processor
from tests.tiny_models import bert_tokenizer

ENTAILS: Final = {0: "CONTRADICTION", 1: "Neutral", 2: "entailment"}
"""The classes of a judge, in an order and spelling of its own."""


def save_nli(folder: Path, names: Mapping[int, str] = ENTAILS, reads: int = 128) -> Path:
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    tokenizer = bert_tokenizer(folder)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=reads,
        initializer_range=0.3,  # so that answers differ from pair to pair
        id2label=dict(names),
        label2id={name: place for place, name in names.items()},
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_llm(folder: Path, chat_template: str | None = None, tokenizer: Any = None) -> Path:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    tokenizer = tokenizer or processor().tokenizer
    tokenizer.chat_template = chat_template
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=1024,
        initializer_range=0.3,
        bos_token_id=2,
        eos_token_id=3,
        pad_token_id=0,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def teach_llm(folder: Path, texts: list[str]) -> Path:
    """Saves a language model of letters that has read some texts over and over."""
    import torch
    from transformers import AutoTokenizer, LlamaForCausalLM

    save_llm(folder)
    model, tokenizer = (
        LlamaForCausalLM.from_pretrained(folder),
        AutoTokenizer.from_pretrained(folder),
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    read = [
        torch.tensor([[2, *tokenizer(text, add_special_tokens=False).input_ids]]) for text in texts
    ]
    for _ in range(60):
        for ids in read:
            loss = model(input_ids=ids, labels=ids).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    model.save_pretrained(folder)
    return folder


def teach_nli(folder: Path, taught: Mapping[tuple[str, str], str]) -> Path:
    """Saves a classifier that has learnt by heart what it is to say of some pairs of sentences."""
    import torch
    from transformers import AutoTokenizer, BertForSequenceClassification

    save_nli(folder)
    model = BertForSequenceClassification.from_pretrained(folder)
    tokens = AutoTokenizer.from_pretrained(folder)(
        *map(list, zip(*taught, strict=True)), padding=True, return_tensors="pt"
    )
    places = {name.lower(): place for place, name in ENTAILS.items()}
    labels = torch.tensor([places[name] for name in taught.values()])
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    model.eval()  # without dropout it learns faster
    for _ in range(400):
        loss = torch.nn.functional.cross_entropy(model(**tokens).logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if loss.item() < 0.01:
            break
    torch.set_num_threads(threads)
    assert loss.item() < 0.1
    model.save_pretrained(folder)
    return folder

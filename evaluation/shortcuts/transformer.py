"""A probe that reads whole captions: a small transformer, trained on the pairs of other images.

It sees what counts of words do not: which words go with which, and in what order. Like the other
probes it scores each caption by itself, and is trained to score the true one higher.
"""

from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from eqforge.evaluation.shortcuts.probes import words_of

_WIDTH = 32
_HEADS = 4
_LAYERS = 1
_WORDS = 48
"""Words of a caption that are read; the rest are cut off."""
_EPOCHS = 6
_BATCH = 64
_RATE = 1e-3
_SEED = 0
_PADDING, _UNKNOWN, _KNOWN = 0, 1, 2


def can_train() -> bool:
    """Tells whether torch is installed, which the probe needs."""
    return find_spec("torch") is not None


def train_and_judge(
    train: Sequence[Sequence[str]], test: Sequence[Sequence[str]]
) -> npt.NDArray[np.float64]:
    """Returns the margins in favour of the true captions of the test; both have false ones, too.

    It runs on one core: sums over several threads differ from run to run.
    """
    import torch
    from torch.nn.functional import softplus

    counts = Counter(word for texts in train for text in texts for word in words_of(text))
    known = sorted(word for word, count in counts.items() if count > 1)
    numbers = {word: number for number, word in enumerate(known, start=_KNOWN)}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(_SEED)
            network = _network(len(known) + _KNOWN)
            right, wrong = (_encoded(texts, numbers) for texts in train)
            steps = _EPOCHS * -(-len(right) // _BATCH)
            optimizer = torch.optim.AdamW(network.parameters(), lr=_RATE)
            schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, _RATE, total_steps=steps)
            network.train()
            for _ in range(_EPOCHS):
                for batch in torch.split(torch.randperm(len(right)), _BATCH):
                    loss = softplus(network(wrong[batch]) - network(right[batch])).mean()
                    optimizer.zero_grad()
                    torch.autograd.backward(loss)
                    optimizer.step()
                    schedule.step()
            network.eval()
            with torch.inference_mode():
                scores = [network(_encoded(texts, numbers)) for texts in test]
    finally:
        torch.set_num_threads(threads)
    return (scores[0] - scores[1]).double().numpy().round(6)


def _encoded(texts: Sequence[str], numbers: dict[str, int]) -> Any:
    """Returns the words of texts as numbers [texts, words]."""
    import torch

    rows = [
        torch.tensor([numbers.get(word, _UNKNOWN) for word in words_of(text)[:_WORDS]] or [1])
        for text in texts
    ]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=_PADDING)


def _network(words: int) -> Any:
    """Returns the network: from words [texts, words] to scores [texts]."""
    import torch
    from torch import nn

    class Scorer(nn.Module):  # type: ignore[misc, unused-ignore]  # torch may be missing
        """Embeds the words, lets each see the others, and scores the mean."""

        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(words, _WIDTH, padding_idx=_PADDING)
            self.places = nn.Embedding(_WORDS, _WIDTH)
            layer = nn.TransformerEncoderLayer(
                _WIDTH, _HEADS, 4 * _WIDTH, batch_first=True, norm_first=True
            )
            self.layers = nn.TransformerEncoder(layer, _LAYERS, enable_nested_tensor=False)
            self.score = nn.Linear(_WIDTH, 1)

        def forward(self, texts: torch.Tensor) -> torch.Tensor:
            """Returns the scores [texts] of words [texts, words]."""
            padding = texts == _PADDING
            inputs = self.words(texts) + self.places(torch.arange(texts.shape[1]))
            seen = self.layers(inputs, src_key_padding_mask=padding)
            kept = (~padding)[..., None]
            return self.score((seen * kept).sum(dim=1) / kept.sum(dim=1))[:, 0]

    return Scorer()

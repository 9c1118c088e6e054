"""The losses against plain NumPy, and their gradients against finite differences."""

from typing import Any

import numpy as np
import pytest

from eqforge.evaluation.training.eqsim import (
    close_mask,
    drawn_couples,
    eqsim_close,
    eqsim_distant,
    fusion_quadruples,
    known_couples,
    quadruples,
    top_k_couples,
)
from eqforge.evaluation.training.losses import (
    hard_negative_loss,
    hard_positive_loss,
    in_modal_loss,
    infonce_loss,
    sigmoid_loss,
)
from tests.optional import optional

torch = optional("torch")

N = 5


def draw(*shape: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return torch.from_numpy(rng.normal(size=shape))


def log_share(row: np.ndarray, own: int) -> float:
    return float(row[own] - np.log(np.exp(row).sum()))


COUPLES = np.array([(0, 1), (2, 3), (4, 0)])
NONE = np.zeros((N, N), dtype=bool)


def test_infonce_is_the_mean_log_share_both_ways() -> None:
    """Extra texts are choices of images alone, and excluded texts of nobody."""
    logits = draw(N, N + 2)
    excluded = np.zeros((N, N + 2), dtype=bool)
    excluded[0, 3] = excluded[3, 0] = excluded[1, 6] = True
    for masked, found in (
        (logits[:, :N].numpy(), infonce_loss(logits[:, :N])),
        (np.where(excluded, -np.inf, logits), infonce_loss(logits, torch.from_numpy(excluded))),
    ):
        rows = [-log_share(masked[i], i) for i in range(N)]
        columns = [-log_share(masked[:, i], i) for i in range(N)]
        assert found.item() == pytest.approx((np.mean(rows) + np.mean(columns)) / 2, abs=1e-12)


def test_in_modal_consistency_compares_images_as_their_captions() -> None:
    """As CyCLIP's equation writes it: a sum over both indices, divided by n."""
    images, captions = (draw(N, 3, seed=seed).numpy() for seed in (1, 2))
    images, captions = (each / np.linalg.norm(each, axis=1)[:, None] for each in (images, captions))
    total = 0.0
    for j in range(N):
        for k in range(N):
            total += (images[j] @ images[k] - captions[j] @ captions[k]) ** 2
    found = in_modal_loss(torch.from_numpy(images), torch.from_numpy(captions)).item()
    assert found == pytest.approx(total / N, abs=1e-12)
    turned = images @ np.linalg.qr(draw(3, 3).numpy())[0]
    same = in_modal_loss(torch.from_numpy(images), torch.from_numpy(turned)).item()
    assert same == pytest.approx(0, abs=1e-12)


def test_the_sigmoid_loss_asks_every_image_of_every_text() -> None:
    logits = draw(N, N).numpy()
    excluded = np.zeros((N, N), dtype=bool)
    excluded[1, 2] = True
    signs = np.where(np.eye(N, dtype=bool), 1, -1)
    asked = np.log1p(np.exp(-signs * logits)) * ~excluded
    found = sigmoid_loss(torch.from_numpy(logits), torch.from_numpy(excluded))
    assert found.item() == pytest.approx(asked.sum() / N, abs=1e-12)


def test_the_hard_negative_loss_is_the_log_share_of_the_caption() -> None:
    own, negatives = draw(N).numpy(), draw(N, 2, seed=1).numpy()
    expected = np.mean(
        [-log_share(np.array([o, *k]), 0) for o, k in zip(own, negatives, strict=True)]
    )
    found = hard_negative_loss(torch.from_numpy(own), torch.from_numpy(negatives))
    assert found.item() == pytest.approx(expected, abs=1e-12)


def test_image_and_caption_choose_their_hard_positive() -> None:
    images, texts = draw(N, N).numpy(), draw(N, N, seed=1).numpy()
    terms = [-log_share(scores[i], i) for scores in (images, texts) for i in range(N)]
    found = hard_positive_loss(torch.from_numpy(images), torch.from_numpy(texts))
    assert found.item() == pytest.approx(np.mean(terms), abs=1e-12)


def test_without_any_hard_text_the_losses_are_zero_and_have_a_gradient() -> None:
    empty = draw(0, 0).requires_grad_()
    for loss in (
        hard_negative_loss(empty.diagonal(), empty),
        hard_positive_loss(empty, empty),
        eqsim_close(quadruples(empty, torch.empty((0, 2), dtype=torch.int64))),
    ):
        assert loss.item() == 0
        loss.backward()


@pytest.mark.parametrize("margin", [0.0, 0.5, 100.0])
@pytest.mark.parametrize("sides", [("text",), ("image",), ("text", "image")])
@pytest.mark.parametrize("mode", ["after-mean", "per-pair"])
def test_eqsim_of_close_pairs_is_the_published_formula(
    margin: float, sides: Any, mode: Any
) -> None:
    """S_ab = s(caption a, image b), as the paper writes it."""
    scores = draw(N, N).numpy()
    expected = 0.0
    for side in sides:
        squares = []
        for a, b in COUPLES.tolist():
            s = {(c, i): scores[(a, b)[i], (a, b)[c]] for c in (0, 1) for i in (0, 1)}
            if side == "text":
                squares.append(((s[0, 0] - s[1, 0]) - (s[1, 1] - s[0, 1])) ** 2)
            else:
                squares.append(((s[0, 0] - s[0, 1]) - (s[1, 1] - s[1, 0])) ** 2)
        if mode == "after-mean":
            expected += max(np.mean(squares) - margin, 0)
        else:
            expected += np.mean([max(square - margin, 0) for square in squares])
    found = eqsim_close(
        quadruples(torch.from_numpy(scores), torch.from_numpy(COUPLES)),
        sides=sides,
        margin=margin,
        margin_mode=mode,
    )
    assert found.item() == pytest.approx(expected, abs=1e-12)


def test_eqsim_of_distant_pairs_divides_by_every_entry() -> None:
    scores = draw(N, N).numpy()
    kept = np.ones((N, N))
    for a, b in COUPLES.tolist():
        kept[a, b] = kept[b, a] = 0
    squared = (scores * kept - scores.T * kept) ** 2
    close = close_mask(torch.from_numpy(COUPLES), N)
    for margin in (0.0, 0.1, 100.0):
        found = eqsim_distant(torch.from_numpy(scores), close, margin=margin)
        assert found.item() == pytest.approx(max(squared.sum() / N**2 - margin, 0), abs=1e-12)


def test_eqsim_of_close_pairs_is_twice_the_squared_differences() -> None:
    found = quadruples(draw(N, N), torch.from_numpy(COUPLES))
    expected = 2 * (found.s00 - found.s11) ** 2 + 2 * (found.s01 - found.s10) ** 2
    assert expected.mean().item() == pytest.approx(eqsim_close(found).item())


def test_fusion_scores_are_normalised_as_asked() -> None:
    logits = draw(3, 4)
    plain = logits.numpy()
    by_name = {
        "none": plain,
        "sigmoid": 1 / (1 + np.exp(-plain)),
        "softmax": np.exp(plain) / np.exp(plain).sum(axis=1, keepdims=True),
        "linear": (plain - plain.min()) / (plain.max() - plain.min()),
    }
    for name, expected in by_name.items():
        found = fusion_quadruples(logits, name)  # type: ignore[arg-type]
        for column, score in enumerate((found.s00, found.s01, found.s10, found.s11)):
            np.testing.assert_allclose(score.numpy(), expected[:, column])


@pytest.mark.parametrize("mode", ["after-mean", "per-pair"])
@pytest.mark.parametrize("margin", [0.0, 0.3])
def test_gradients_of_eqsim_are_those_of_finite_differences(mode: Any, margin: float) -> None:
    scores = draw(N, N).requires_grad_()
    close = close_mask(torch.from_numpy(COUPLES), N)

    def losses(s: Any) -> Any:
        found = quadruples(s, torch.from_numpy(COUPLES))
        return eqsim_close(found, margin=margin, margin_mode=mode), eqsim_distant(
            s, close, margin=margin
        )

    assert torch.autograd.gradcheck(losses, (scores,))


def test_gradients_of_the_contrastive_losses_are_those_of_finite_differences() -> None:
    logits, more, texts = draw(N, N), draw(N, 2, seed=1), draw(N, N, seed=2)
    excluded = torch.from_numpy(NONE.copy())
    excluded[0, 1] = excluded[1, 0] = True

    def losses(a: Any, b: Any, c: Any) -> Any:
        return (
            infonce_loss(torch.cat([a, b], 1), torch.cat([excluded, excluded[:, 2:4]], 1)),
            sigmoid_loss(a, excluded),
            hard_negative_loss(a.diagonal(), b),
            hard_positive_loss(a, c, excluded),
        )

    inputs = [scores.requires_grad_() for scores in (logits, more, texts)]
    assert torch.autograd.gradcheck(losses, inputs)


def test_known_couples_stand_once() -> None:
    assert known_couples(torch.tensor([2, -1, 0, 4, 3])).tolist() == [[0, 2], [3, 4]]
    assert known_couples(torch.tensor([-1, -1])).shape == (0, 2)


def test_top_k_couples_are_the_best_others_of_image_and_caption() -> None:
    logits = draw(N, N).numpy()
    excluded = torch.from_numpy(NONE.copy())
    excluded[0, 1] = excluded[1, 0] = True
    expected = set()
    for i in range(N):
        others = [j for j in range(N) if j != i and not excluded[i, j]]
        texts = sorted(others, key=lambda j: -logits[i, j])[:2]
        images = sorted(others, key=lambda j: -logits[j, i])[:2]
        expected |= {(i, j, "t") for j in texts} | {(i, j, "i") for j in images}
    found = top_k_couples(torch.from_numpy(logits), 2, excluded).tolist()
    assert len(found) == len(expected)
    assert sorted(map(tuple, found)) == sorted((i, j) for i, j, _ in expected)


def test_too_few_others_give_fewer_couples() -> None:
    excluded = ~torch.eye(N, dtype=torch.bool)
    excluded[0, 1] = excluded[1, 0] = False
    for couples in (
        top_k_couples(draw(N, N), 4, excluded),
        drawn_couples(draw(N, N), 4, excluded, torch.Generator().manual_seed(0)),
    ):
        assert sorted(couples.tolist()) == [[0, 1], [0, 1], [1, 0], [1, 0]]


def test_drawn_couples_follow_the_softmax_without_replacement_and_the_generator() -> None:
    logits = draw(3, 3).float()
    counts = np.zeros((2, 3, 3))
    generator = torch.Generator().manual_seed(0)
    for _ in range(2000):
        found = drawn_couples(logits, 1, torch.zeros((3, 3), dtype=torch.bool), generator)
        for place, (i, j) in enumerate(found.tolist()):
            counts[place % 2, i, j] += 1  # a row draws an image first, a text next
    for side, matrix in enumerate((logits.T, logits)):
        weights = matrix.softmax(dim=1).numpy() * (1 - np.eye(3))
        expected = weights / weights.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(counts[side] / 2000, expected, atol=0.04)
    again = [
        drawn_couples(
            draw(N, N), 4, torch.from_numpy(NONE), torch.Generator().manual_seed(seed)
        ).tolist()
        for seed in (1, 1, 2)
    ]
    assert again[0] == again[1] != again[2]
    for i in range(N):  # four of four others, without replacement, on both sides
        others = [j for j in range(N) if j != i]
        assert sorted(j for a, j in again[0] if a == i) == sorted(2 * others)

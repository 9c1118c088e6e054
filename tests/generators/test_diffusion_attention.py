"""The control against maps written out in full, as the authors' code does it."""

from typing import Any

import numpy as np
import pytest

from eqforge.core.errors import InputError
from eqforge.generators.diffusion.attention import ControlledAttention, controlled, limited_rows
from eqforge.generators.diffusion.control import align, plan_control
from eqforge.generators.diffusion.load import load_pipeline
from eqforge.generators.diffusion.settings import DiffusionSettings, EditSettings
from tests.optional import optional
from tests.prompted import ADD, ANIMAL, pair_of

torch = optional("torch")
processors = optional("diffusers.models.attention_processor")

TOKENS = 77
CALLS = STEPS = 4
SIDES = (32, 16)  # of the maps, for 64 pixels
ALL_ROWS = ("plain first", "plain second", "first", "second")
BLENDED = pair_of(blended=ANIMAL)
CONTROLS = {
    "replace": (BLENDED, EditSettings()),
    "refine": (pair_of(ADD, blended=((4,), (4, 6))), EditSettings()),
    "reweight": (BLENDED, EditSettings(reweight=3.0)),
    "refine and reweight": (pair_of(ADD), EditSettings(reweight=2.0)),
    "by word": (pair_of(), EditSettings(changed_cross_replace=0.5)),
    "by word and reweight": (pair_of(), EditSettings(changed_cross_replace=0.5, reweight=3.0)),
    "half": (pair_of(), EditSettings(cross_replace=0.5)),
    "published": (pair_of(), EditSettings(alignment="published")),
}


@pytest.fixture(scope="module")
def pipelines(tiny_sd, tiny_sdxl):
    return {
        "sd": load_pipeline(DiffusionSettings(model=str(tiny_sd)))[0],
        "sdxl": load_pipeline(DiffusionSettings(model=str(tiny_sdxl)))[0],
    }


@pytest.fixture(scope="module")
def tokenizer(pipelines):
    return pipelines["sd"].tokenizer


@pytest.fixture(autouse=True)
def _one_thread_without_gradients():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # several wait for each other where the machine is busy
    with torch.inference_mode():
        yield
    torch.set_num_threads(threads)


def make_control(name, tokenizer, call=0, rows=ALL_ROWS):
    latents = torch.zeros(2, 4, 32, 32)
    control = plan_control(*CONTROLS[name], tokenizer, CALLS, STEPS, latents, SIDES)
    control.number, control.rows = call, rows
    return control


def map_layer(pixels=9, seed=0):
    """A cross-attention layer whose output is its map: values are the unit vectors."""
    torch.manual_seed(seed)
    layer: Any = processors.Attention(
        query_dim=TOKENS, cross_attention_dim=TOKENS, heads=1, dim_head=TOKENS
    )
    layer.to_v.weight.copy_(torch.eye(TOKENS))
    layer.to_out[0].weight.copy_(torch.eye(TOKENS))
    layer.to_out[0].bias.zero_()
    layer.to_q.weight.mul_(8)
    hidden = torch.randn(4, pixels, TOKENS)
    context = torch.eye(TOKENS).expand(4, -1, -1) + 0.0
    return layer, hidden, context


def maps_of(control, layer, hidden, context):
    processor = ControlledAttention(processors.AttnProcessor(), control, True)
    return processor(layer, hidden, context).numpy()


def plain_maps(layer, hidden, context):
    return processors.AttnProcessor()(layer, hidden, context).numpy()


def authors_tables(name, tokenizer):
    """The share of the replaced attention [calls, tokens] and the factor of each token."""
    pair, edit = CONTROLS[name]
    find = align(pair, edit, tokenizer).find[1]
    changed = [token for word in pair.changed[1] for token in find(word)]
    alpha, factors = np.zeros((CALLS, TOKENS)), np.ones(TOKENS)
    for token in range(TOKENS):
        share = edit.cross_replace
        if token in changed:
            factors[token] = edit.reweight
            if edit.changed_cross_replace is not None:
                share = edit.changed_cross_replace
        alpha[: int(share * (STEPS + 1)), token] = 1
    return alpha, factors


def expected_map(name, tokenizer, call, first, second):
    """The second picture's map by the authors' formulas, token by token."""
    alignment = align(*CONTROLS[name], tokenizer)
    tables, factors = authors_tables(name, tokenizer)
    alpha = tables[call]
    result = np.zeros_like(second)
    for token in range(TOKENS):
        moved = sum(
            first[:, source] * alignment.mapper[source, token]
            for source in np.flatnonzero(alignment.mapper[:, token])
        )
        replaced = (moved + second[:, token] * alignment.own[token]) * factors[token]
        result[:, token] = alpha[token] * replaced + (1 - alpha[token]) * second[:, token]
    return result


@pytest.mark.parametrize("call", range(CALLS))
@pytest.mark.parametrize("name", CONTROLS)
def test_the_map_is_the_authors_formula(name, call, tokenizer):
    layer, hidden, context = map_layer()
    plain = plain_maps(layer, hidden, context)
    found = maps_of(make_control(name, tokenizer, call), layer, hidden, context)
    assert np.array_equal(found[:3], plain[:3]) or np.allclose(found[:3], plain[:3], atol=1e-6)
    expected = expected_map(name, tokenizer, call, plain[2], plain[3])
    assert np.allclose(found[3], expected, atol=1e-5)


@pytest.mark.parametrize("name", ["replace", "refine", "reweight"])
def test_the_pictures_one_after_the_other_give_the_same_maps(name, tokenizer):
    layer, hidden, context = map_layer()
    expected = maps_of(make_control(name, tokenizer), layer, hidden, context)
    control = make_control(name, tokenizer)
    processor = ControlledAttention(processors.AttnProcessor(), control, True)
    for place, row in enumerate(ALL_ROWS):
        control.rows = (row,)
        part = slice(place, place + 1)
        found = processor(layer, hidden[part], context[part]).numpy()
        assert np.allclose(found[0], expected[place], atol=1e-6)


@pytest.mark.parametrize(
    ("call", "side", "replaced"), [(0, 16, True), (0, 17, False), (1, 16, False), (3, 8, False)]
)
def test_self_attention_is_replaced_in_its_steps_and_small_maps(call, side, replaced, tokenizer):
    torch.manual_seed(0)
    layer = processors.Attention(query_dim=16, heads=2, dim_head=8)
    layer.to_q.weight.mul_(4)
    hidden = torch.randn(4, side**2, 16)
    control = make_control("replace", tokenizer, call)  # 0.4 of 4 steps: the first alone
    found = ControlledAttention(processors.AttnProcessor(), control, False)(layer, hidden)
    plain = processors.AttnProcessor()(layer, hidden)
    query, key, value = (
        layer.head_to_batch_dim(part(hidden)) for part in (layer.to_q, layer.to_k, layer.to_v)
    )
    maps = layer.get_attention_scores(query, key)  # [rows * heads, pixels, pixels]
    maps[6:8] = maps[4:6]
    by_hand = layer.to_out[0](layer.batch_to_head_dim(torch.bmm(maps, value)))
    assert torch.allclose(found[:3], plain[:3], atol=1e-6)
    assert torch.allclose(found, by_hand if replaced else plain, atol=1e-5)
    assert torch.allclose(by_hand[3], plain[3], atol=1e-3) is False


def test_an_inactive_layer_is_left_to_the_ordinary_processor(tokenizer):
    calls = []

    def plain(*args, **kwargs):
        calls.append(args)
        return "plain"

    layer, hidden, context = map_layer()
    control = make_control("half", tokenizer, call=3)
    assert ControlledAttention(plain, control, True)(layer, hidden, context) == "plain"
    control.number, control.rows = 0, ALL_ROWS[:2]
    assert ControlledAttention(plain, control, True)(layer, hidden, context) == "plain"
    assert len(calls) == 2


class WrittenOut:
    """The authors' controller: every map in full, the second picture's replaced in place."""

    def __init__(self, layer, control, state, alignment, stored):
        self.is_cross = layer.endswith("attn2")
        self.control, self.state, self.alignment = control, state, alignment
        self.stored = stored if layer.split("_")[0] in ("down", "up", "mid") else None

    def __call__(self, attn, hidden_states, encoder_hidden_states=None, **kwargs):
        context = hidden_states if encoder_hidden_states is None else encoder_hidden_states
        query, key, value = (
            attn.head_to_batch_dim(part(states))
            for part, states in (
                (attn.to_q, hidden_states),
                (attn.to_k, context),
                (attn.to_v, context),
            )
        )
        maps = attn.get_attention_scores(query, key).unflatten(0, (4, attn.heads))
        first, second = maps[2], maps[3]
        if self.is_cross:
            alpha, mapper, own, factors = self.state
            replaced = (first @ mapper + second * own) * factors
            maps[3] = alpha * replaced + (1 - alpha) * second
            if maps.shape[2] == 256:
                assert self.stored is not None
                self.stored.append(maps[2:].mean(1))
        elif self.control.number < self.control.self_calls and maps.shape[2] <= 256:
            maps[3] = first
        out = attn.batch_to_head_dim(torch.bmm(maps.flatten(0, 1), value))
        return attn.to_out[0](out)


@pytest.mark.parametrize("family", ["sd", "sdxl"])
@pytest.mark.parametrize("name", ["replace", "refine", "reweight"])
def test_the_network_answers_as_with_maps_written_out(family, name, pipelines, tokenizer):
    unet = pipelines[family].unet
    pair, _ = CONTROLS[name]
    torch.manual_seed(1)
    sample = torch.randn(1, 4, 32, 32).expand(4, -1, -1, -1)
    inputs = {
        "timestep": 500,
        "encoder_hidden_states": torch.randn(4, 77, unet.config.cross_attention_dim),
        "return_dict": False,
    }
    if family == "sdxl":
        inputs["added_cond_kwargs"] = {
            "text_embeds": torch.randn(4, 32),
            "time_ids": torch.ones(4, 6),
        }
    control = make_control(name, tokenizer)
    with limited_rows(unet, 4, control), controlled(unet, control):
        found = unet(sample, **inputs)[0]
    alignment = align(*CONTROLS[name], tokenizer)
    tables, factors = authors_tables(name, tokenizer)
    state = [
        torch.from_numpy(np.asarray(part, dtype=np.float32))
        for part in (tables[0], alignment.mapper, alignment.own, factors)
    ]
    stored: list[Any] = []
    control.number = 0
    before = dict(unet.attn_processors)
    unet.set_attn_processor(
        {
            layer: WrittenOut(layer.removesuffix(".processor"), control, state, alignment, stored)
            for layer in before
        }
    )
    expected = unet(sample, **inputs)[0]
    unet.set_attn_processor(before)
    plain = unet(sample, **inputs)[0]
    error, effect = (found - expected).abs().max(), (found[3] - plain[3]).abs().max()
    assert torch.allclose(found[:3], plain[:3], atol=1e-6)
    # Of outputs 20 times as large as those of a network as it is made: the tiny one attends
    # sharply, which enlarges rounding, and its last layer is loud.
    assert error < 1e-2
    assert effect > 100 * error
    words = np.zeros((2, TOKENS))
    for picture, numbers in enumerate(pair.blended):
        words[picture, [token for each in numbers for token in alignment.find[picture](each)]] = 1
    summed = sum(part.numpy() for part in stored) / len(stored)
    heat = (summed * words[:, None]).sum(-1)
    assert np.allclose(control.heat / len(stored), heat, atol=1e-4)


def fail_inside(unet, control):
    with limited_rows(unet, 4, control), controlled(unet, control):
        assert all(isinstance(p, ControlledAttention) for p in unet.attn_processors.values())
        raise ZeroDivisionError


def test_everything_is_put_back(pipelines, tokenizer):
    unet = pipelines["sd"].unet
    before = dict(unet.attn_processors)
    control = make_control("replace", tokenizer)
    with pytest.raises(ZeroDivisionError):
        fail_inside(unet, control)
    assert dict(unet.attn_processors) == before
    assert "forward" not in vars(unet)


def test_a_network_with_other_attention_is_refused(tokenizer):
    from diffusers.models.attention_processor import AttnAddedKVProcessor
    from torch import nn

    other: Any = AttnAddedKVProcessor()

    class Other(nn.Module):  # type: ignore[misc, unused-ignore]  # torch may be missing
        def __init__(self):
            super().__init__()
            self.attn2 = processors.Attention(query_dim=8, added_kv_proj_dim=8, processor=other)

        @property
        def attn_processors(self):
            return {"attn2.processor": self.attn2.processor}

    control = make_control("replace", tokenizer)
    with pytest.raises(InputError, match="cannot be controlled"), controlled(Other(), control):
        pass


@pytest.mark.parametrize(("side", "expected"), [(32, 16), (64, 16), (96, 24), (128, 32)])
def test_maps_of_a_quarter_of_the_latent_are_read_and_replaced(side, expected, tokenizer):
    latents, sides = torch.zeros(2, 4, side, side), [side // 2**level for level in range(4)]
    plan = plan_control(*CONTROLS["replace"], tokenizer, CALLS, STEPS, latents, sides)
    assert plan.pixels == expected**2


def test_a_scheduler_that_calls_more_often_is_controlled_in_the_same_share(tokenizer):
    latents = torch.zeros(2, 4, 32, 32)
    plan = plan_control(*CONTROLS["replace"], tokenizer, 100, 50, latents, SIDES)
    assert len(plan.calls) == 100
    assert sum(call.mapper is not None for call in plan.calls) == 80
    assert plan.self_calls == int(0.4 * 99)

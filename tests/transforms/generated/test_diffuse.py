"""Pairs of prompts become pairs of pictures, drawn by a tiny Stable Diffusion of random weights."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eqforge.core.errors import BuildError, InputError
from eqforge.core.files.pictures import read_pixels
from eqforge.generators.diffusion.control import align
from eqforge.generators.diffusion.generate import PairGenerator
from eqforge.generators.diffusion.prompts import (
    EDIT_KINDS,
    EditKind,
    Language,
    PromptPair,
    draw_counts,
    prompt_pair,
    prompt_pairs,
)
from eqforge.generators.diffusion.settings import TINY, DiffusionSettings, EditSettings, PairImages
from eqforge.generators.diffusion.vocabulary import load_vocabulary
from eqforge.transforms.filters.faces import FaceSettings
from eqforge.transforms.filters.images import ImageFilters
from eqforge.transforms.filters.minimality import GateSettings
from eqforge.transforms.filters.quality import QualitySettings
from eqforge.transforms.generated.diffuse import (
    BLEND_AREA,
    DRAWINGS_STAGE,
    DiffuseRules,
    _control_json,
    diffuse_pair,
    shared_generator,
)
from eqforge.transforms.generated.pairs import GeneratedRules, drop_generated, measure_generated
from eqforge.transforms.generated.work import MadePair, PairWork
from tests.optional import optional
from tests.prompted import make_prudish

torch = optional("torch")
optional("diffusers")

LANGUAGES: tuple[Language, ...] = ("english", "published")
QUICK = DiffusionSettings(model=TINY, steps=2, cpu_threads=1)


def rules(
    folder: Path,
    diffusion: DiffusionSettings = QUICK,
    edit: EditSettings | None = None,
    **generated: Any,
) -> DiffuseRules:
    usual = GeneratedRules(
        work=str(folder),
        images=ImageFilters(faces=FaceSettings(face_policy="off"), quality=QualitySettings()),
        gates=GateSettings(),
        distinct_captions=True,
    )
    return DiffuseRules(
        diffusion=diffusion, edit=edit or EditSettings(), generated=replace(usual, **generated)
    )


def pair(kind: EditKind = "object", number: int = 0) -> PromptPair:
    return prompt_pair(load_vocabulary(), kind, number, 0, "english")


def made(work: PairWork) -> MadePair:
    assert work.made is not None
    return work.made


def drawn_pair(pair: PromptPair, some: DiffuseRules) -> PairWork:
    (work,) = diffuse_pair(pair, some).works
    return work


def pixels(some: DiffuseRules, work: PairWork) -> list[Any]:
    media = some.generated.media
    return [read_pixels(media.get(image.image_id, ".png")) for image in made(work).images]


def reasons(work: PairWork) -> list[str]:
    return [reject.reason for reject in work.rejects]


# --- what is drawn, and what the row will say


def test_a_pair_is_what_the_generator_draws_of_its_prompts(tmp_path: Path) -> None:
    some, asked = rules(tmp_path), pair("attribute", 3)

    work = drawn_pair(asked, some)

    direct = shared_generator(QUICK).model.generate(asked, some.edit)
    for found, expected in zip(pixels(some, work), direct.images, strict=True):
        assert np.array_equal(found, expected)
    assert [(tally.stage, tally.candidates, tally.kept) for tally in work.tallies] == [
        (DRAWINGS_STAGE.name, 1, 1)
    ]


def test_the_row_says_what_was_asked_and_how_it_was_drawn(tmp_path: Path) -> None:
    asked = pair("attribute", 3)
    work = drawn_pair(asked, rules(tmp_path))

    proposal, generation = work.proposal, made(work).generation
    assert proposal is not None
    assert (proposal.sample_id, proposal.captions) == (asked.sample_id, asked.captions)
    assert (proposal.kind, proposal.change) == ("attribute", asked.change)
    for side in (0, 1):
        spec = json.loads(proposal.specs[side])
        assert spec["prompt"] == asked.prompts[side]
        assert spec["changed_words"] == list(asked.changed[side])
    assert (generation.model, generation.device, generation.seed) == ("tiny", "cpu", asked.seed)
    parameters = json.loads(generation.parameters)
    assert generation.revision == f"sha256:{parameters['weights'][:16]}"
    assert {"precision": "fp32", "scheduler": "DDIMScheduler", "steps": 2}.items() <= (
        parameters.items()
    )
    assert parameters["guidance_scale"] == 7.5
    assert parameters["batch_rows"] == 4
    assert parameters["torch"] == torch.__version__
    assert parameters["control"]["method"] == asked.control
    assert parameters["control"]["blend"]["words"] == [list(words) for words in asked.blended]


@pytest.mark.parametrize("kind", EDIT_KINDS)
def test_only_scenes_may_change_everywhere(tmp_path: Path, kind: EditKind) -> None:
    work = drawn_pair(pair(kind), rules(tmp_path))
    areas = [score.value for score in made(work).scores if score.name == BLEND_AREA]
    assert len(areas) == (kind != "scene")
    assert all(area is not None and 0 < area <= 1 for area in areas)


def test_the_row_says_how_the_first_picture_guides_the_second() -> None:
    asked = pair("attribute", 3)
    settings = EditSettings(cross_replace=0.5, reweight=2.0, changed_cross_replace=0.3)
    control = json.loads(json.dumps(_control_json(asked, settings)))
    changed = [str(word) for word in asked.changed[1]]
    assert control["reweight"] == {word: 2.0 for word in changed}
    assert control["cross_replace_steps"] == {"default_": 0.5, **{word: 0.3 for word in changed}}
    plain = _control_json(asked, EditSettings(local_blend=False))
    assert plain["reweight"] == {}
    assert plain["cross_replace_steps"] == 0.8
    assert plain["blend"] is None


@pytest.mark.parametrize("factor", [-1.0, float("nan"), float("inf")])
def test_a_weight_that_is_none_is_refused(factor: float) -> None:
    with pytest.raises(InputError, match=r"--reweight .*: expected 0 or more"):
        EditSettings(reweight=factor)


@pytest.mark.parametrize(
    "name", ["cross_replace", "changed_cross_replace", "self_replace", "blend_threshold"]
)
def test_a_share_beyond_its_range_is_refused(name: str) -> None:
    beyond: dict[str, Any] = {name: 1.5}
    with pytest.raises(InputError, match=f"--{name.replace('_', '-')} 1.5: expected 0 to 1"):
        EditSettings(**beyond)


def test_the_tokens_that_change_are_those_of_the_words_said_to() -> None:
    """The model's own tokenizer splits most words into several tokens."""
    tokenizer = shared_generator(QUICK).model.pipeline.tokenizer
    several = 0
    for language in LANGUAGES:
        counts = {kind: range(count) for kind, count in draw_counts(400, 0).items()}
        for asked in prompt_pairs(load_vocabulary(), counts, 0, language):
            alignment = align(asked, EditSettings(), tokenizer)
            find = alignment.find[1]
            said = [token for word in asked.changed[1] for token in find(word)]
            assert asked.control == "replace" or alignment.own[said].all()
            several += len(said) > len(asked.changed[1])
    assert several > 100


# --- once, and the same again


def test_a_pair_is_drawn_once_while_the_store_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some, asked = rules(tmp_path), pair()
    drawn = count_calls(monkeypatch)
    first = drawn_pair(asked, some)
    assert drawn_pair(asked, some) == first
    assert len(drawn) == 1

    image = made(first).images[1]
    Path(some.generated.media.path(image.image_id, ".png")).unlink()
    assert drawn_pair(asked, some) == first
    assert len(drawn) == 2

    weaker = rules(tmp_path, edit=EditSettings(cross_replace=0.1))
    assert drawn_pair(asked, weaker) != first
    assert len(drawn) == 3


def count_calls(monkeypatch: pytest.MonkeyPatch) -> list[PromptPair]:
    drawn: list[PromptPair] = []
    generate = PairGenerator.generate

    def counted(self: PairGenerator, pair: PromptPair, edit: EditSettings) -> PairImages:
        drawn.append(pair)
        return generate(self, pair, edit)

    monkeypatch.setattr(PairGenerator, "generate", counted)
    return drawn


def test_threads_share_one_model_and_draw_one_pair_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[DiffusionSettings] = []
    busy: list[int] = []
    overlaps: list[int] = []
    start, generate = PairGenerator.__init__, PairGenerator.generate

    def watched_start(self: PairGenerator, settings: DiffusionSettings) -> None:
        loaded.append(settings)
        start(self, settings)

    def watched(self: PairGenerator, pair: PromptPair, edit: EditSettings) -> PairImages:
        overlaps.append(len(busy))
        busy.append(1)
        time.sleep(0.01)
        drawn = generate(self, pair, edit)
        busy.pop()
        return drawn

    monkeypatch.setattr(PairGenerator, "__init__", watched_start)
    monkeypatch.setattr(PairGenerator, "generate", watched)
    shared_generator.cache_clear()
    asked = [pair("object", number) for number in range(4)]
    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(lambda one: drawn_pair(one, rules(tmp_path / "a")), asked))

    assert len(loaded) == 1
    assert overlaps == [0] * 4
    assert together == [drawn_pair(one, rules(tmp_path / "b")) for one in asked]


def test_the_tiny_model_is_the_same_each_time_and_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    shared_generator.cache_clear()
    first = shared_generator(QUICK).model.identity
    shared_generator.cache_clear()
    assert shared_generator(QUICK).model.identity == first
    assert first.name == "tiny"
    assert list(tmp_path.iterdir()) == []


# --- what is refused


def judged(some: DiffuseRules, asked: PromptPair) -> PairWork:
    work = drawn_pair(asked, some)
    return drop_generated(measure_generated(work, some.generated), some.generated)


def test_a_picture_that_the_models_checker_flags_is_refused(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_prudish(tmp_path_factory.mktemp("model") / "prudish", -1.0)
    some = rules(tmp_path, replace(QUICK, model=str(folder)))
    drawn = count_calls(monkeypatch)

    work = judged(some, pair())
    assert judged(some, pair()) == work
    assert len(drawn) == 1

    assert reasons(work) == ["safety_checker"]
    assert work.rejects[0].detail == "image 0, 1"
    assert [(tally.stage, tally.kept) for tally in work.tallies] == [(DRAWINGS_STAGE.name, 0)]
    shared_generator.cache_clear()


def test_an_edit_without_effect_is_refused(tmp_path: Path) -> None:
    """With the blend's threshold at 1 no place of the picture may change."""
    some = rules(tmp_path, edit=EditSettings(blend_threshold=1.0))
    work = judged(some, pair("attribute", 1))
    assert reasons(work) == ["same_image"]


def test_a_pair_on_which_the_generator_fails_is_a_reject_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some, asked = rules(tmp_path), pair()
    with monkeypatch.context() as broken:

        def fail(*_: Any) -> Any:
            raise ValueError(f"not a number at {id(some):#x}")

        broken.setattr(PairGenerator, "generate", fail)
        work = drawn_pair(asked, some)
    assert reasons(work) == ["error:ValueError"]
    assert work.rejects[0].detail == "not a number at 0x"
    assert drawn_pair(asked, some).made is not None


def fill_device(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    """Lets the network take so many rows at a time and no more, as on a full device."""
    unet = shared_generator(QUICK).model.pipeline.unet
    plain = unet.forward

    def forward(rows: Any, *args: Any, **kwargs: Any) -> Any:
        if len(rows) > room:
            raise torch.OutOfMemoryError("full")
        return plain(rows, *args, **kwargs)

    monkeypatch.setattr(unet, "forward", forward)


def test_the_row_says_where_the_memory_did_not_suffice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_device(monkeypatch, 2)
    work = drawn_pair(pair(), rules(tmp_path))
    assert json.loads(made(work).generation.parameters)["batch_rows"] == 2


def test_a_device_too_small_for_one_row_ends_the_run_with_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_device(monkeypatch, 0)
    with pytest.raises(BuildError, match=r"cpu has too little memory .* --precision fp16"):
        drawn_pair(pair(), rules(tmp_path))

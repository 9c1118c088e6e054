"""What is read of datasets to train on, and how it is put into batches."""

from pathlib import Path

import numpy as np
import pytest

from eqforge.core.errors import InputError
from eqforge.evaluation.training.examples import (
    Match,
    Plan,
    Unit,
    count_steps,
    epoch_order,
    make_batch,
    read_examples,
)
from eqforge.evaluation.training.feeds import Pictures, copy_pictures
from eqforge.schemas.dataset.reader import open_dataset
from tests.builds import rows
from tests.made_datasets import built, write_captions, write_dataset, write_squares


def unit(name: str, *matches: tuple[str, str]) -> Unit:
    return Unit(
        unit_id=name, matches=tuple(Match(image_id=image, caption=text) for image, text in matches)
    )


def test_a_pair_is_a_unit_of_two_matches(tmp_path: Path) -> None:
    examples = read_examples(open_dataset(str(write_squares(tmp_path))))
    assert [unit.unit_id for unit in examples.units][:2] == ["made/blue-0", "made/blue-1"]
    assert examples.matches_per_unit == 2
    captions = [match.caption for match in examples.units[0].matches]
    assert captions == ["a blue box on the left", "a blue box on the right"]
    assert len(examples.image_ids()) == 16
    assert examples.left_out == {}


def test_a_split_can_be_kept_alone(tmp_path: Path) -> None:
    examples = read_examples(open_dataset(str(write_squares(tmp_path))), "val")
    assert {unit.unit_id[-2:] for unit in examples.units} == {"-1"}
    assert examples.left_out == {"other_split": 4}
    with pytest.raises(InputError, match="no samples in the split 'test'"):
        read_examples(open_dataset(str(tmp_path)), "test")


def test_the_texts_of_a_caption_come_together_and_what_is_missing_is_counted(
    tmp_path: Path,
) -> None:
    examples = read_examples(open_dataset(str(write_captions(tmp_path))))
    assert [unit.unit_id for unit in examples.units] == [f"c/{n}" for n in range(7)]
    match = examples.units[0].matches[0]
    assert match.caption == "a red box on the left"
    assert match.hard_positive == "on the left a red box"
    assert match.hard_negative == "a red box on the right"
    assert examples.units[2].matches[0].hard_negative is None
    assert examples.units[3].matches[0].hard_positive is None
    assert examples.left_out == {"no_image": 1}
    assert examples.count_texts("hard_negative") == 6


def test_captions_without_any_image_say_how_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="its 8 captions have no images"):
        read_examples(open_dataset(str(write_captions(tmp_path, images=False))))


def test_hard_positive_sets_and_plain_captions_are_read_too(tmp_path: Path) -> None:
    texts = {"caption": "a", "hard_positive": "b", "hard_negative": "c"}
    samples = [{"sample_id": "s", "image_id": "i"} | texts]
    folder = write_dataset(tmp_path / "a", "hard-positives", {"samples": samples})
    found = read_examples(open_dataset(str(folder)))
    assert found.units[0].matches == (Match(image_id="i", **texts),)

    plain = built("retrieval-perturbations")
    found = read_examples(open_dataset(str(plain)))
    assert found.units == [
        unit(row["caption_id"], (row["image_id"], row["caption"]))
        for row in rows(plain, "captions")
    ]


def test_a_dataset_of_another_shape_is_refused() -> None:
    with pytest.raises(InputError, match="simat contains nothing to train on"):
        read_examples(open_dataset(str(built("simat"))))


def test_the_order_of_an_epoch_depends_on_ids_and_seed_alone() -> None:
    names = [f"n{n}" for n in range(50)]
    order = [names[place] for place in epoch_order(names, 0, 0)]
    backwards = names[::-1]
    assert order == [backwards[place] for place in epoch_order(backwards, 0, 0)]
    assert sorted(order) == sorted(names) != order
    others = [[names[p] for p in epoch_order(names, *key)] for key in ((1, 0), (0, 1))]
    assert order not in others


def test_every_epoch_sees_each_unit_at_most_once() -> None:
    units = [unit(f"n{n}", (f"i{n}", f"t{n}")) for n in range(10)]
    plan = Plan(units=units, batch_size=3, steps=6, seed=4)
    seen = [match.image_id for step in range(3) for match in plan.batch(step).matches]
    assert len(seen) == len(set(seen)) == 9
    again = Plan(units=units, batch_size=3, steps=6, seed=4)
    assert again.batch(5).matches == plan.batch(5).matches  # whatever was asked for before
    assert again.batch(0).matches == plan.batch(0).matches


def test_matches_of_one_image_or_caption_exclude_each_other() -> None:
    batch = make_batch([unit("a", ("i", "x"), ("j", "y")), unit("b", ("i", "z"), ("k", "y"))])
    expected = np.zeros((4, 4), dtype=bool)
    expected[0, 2] = expected[2, 0] = expected[1, 3] = expected[3, 1] = True
    assert (batch.excluded == expected).all()
    assert batch.partners.tolist() == [1, 0, 3, 2]
    assert not make_batch([unit("a", ("i", "x")), unit("b", ("i", "x"))], False).excluded.any()
    assert make_batch([unit("a", ("i", "x"))]).partners.tolist() == [-1]


def test_steps_are_those_of_whole_batches() -> None:
    assert count_steps(10, 3, 2, None) == 6
    assert count_steps(10, 3, 2, 100) == 100
    with pytest.raises(InputError, match="expected at most 10, the number"):
        count_steps(10, 11, 1, None)


def test_the_rate_rises_and_falls() -> None:
    pytest.importorskip("torch")
    from eqforge.evaluation.training.loop import learning_rate

    rates = [learning_rate(step, 10, 2.0, 4, "cosine") for step in range(10)]
    assert rates[:5] == pytest.approx([0.4, 0.8, 1.2, 1.6, 2.0])
    assert rates[7] == pytest.approx(1.0)
    assert rates[4:] == sorted(rates[4:], reverse=True)
    assert learning_rate(9, 10, 2.0, 0, "constant") == 2.0
    halves = [learning_rate(step, 10, 2.0, 0.2, "linear") for step in range(10)]
    assert halves == pytest.approx([2 / 3, 4 / 3, *np.linspace(2, 0.25, 8)])


def test_pictures_are_read_by_id_in_any_order(tmp_path: Path) -> None:
    dataset = open_dataset(str(write_squares(tmp_path / "pairs")))
    names = read_examples(dataset).image_ids()[::3]
    copy_pictures(dataset, names, tmp_path / "copied.arrow")
    pictures = Pictures(tmp_path / "copied.arrow")
    rows = {row["image_id"]: row["image"]["bytes"] for row in dataset.rows("images")}
    assert [pictures.read(name) for name in names] == [rows[name] for name in names]
    assert pictures.pixels(names[0]).shape == (32, 32, 3)
    with pytest.raises(InputError, match="1 image of its samples cannot be found, such as nowhere"):
        copy_pictures(dataset, ["nowhere"], tmp_path / "other.arrow")
    assert not (tmp_path / "other.arrow").exists()

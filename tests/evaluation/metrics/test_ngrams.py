"""The expected figures were computed by pycocoevalcap 1.2, COCO's own code."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from eqforge.evaluation.metrics.answers import bleu, cider_d, tokenize

SAID = ["a man rides a horse", "two dogs on the grass", "a red bus"]
TRUE = [
    ["a man riding a horse on grass", "man on a horse"],
    ["two dogs play on the grass", "dogs run on grass"],
    ["a red bus is parked", "the red bus in a street", "bus"],
]


EXPECTED_BLEU = (0.6545012165446937, 0.4658228948500198, 0.32712844386511425, 0.22091834502726151)
EXPECTED_CIDER = [0.5213953695372838, 0.5074221309693474, 0.35831074782624567, 1.2106121308614863]
EXPECTED_MEAN = 1.0334371292129603


def test_bleu_and_cider_are_those_of_cocos_server_to_the_last_digit() -> None:
    said = [line.split() for line in SAID]
    true = [[line.split() for line in group] for group in TRUE]
    assert bleu(said, true) == (
        *(0.9230769230059173, 0.8038369523973918, 0.5694067743794659),
        8.24236750147197e-05,
    )
    assert cider_d(said, true).tolist() == [
        *(2.6234971096371695, 2.889568854865574, 2.8709754023014566)
    ]


def test_they_are_so_on_captions_of_coco(data_folder: Path) -> None:
    captions: dict[int, list[str]] = {}
    file = data_folder / "coco" / "captions_val2017.json"
    for item in json.loads(file.read_text())["annotations"]:
        captions.setdefault(item["image_id"], []).append(item["caption"])
    chosen = [captions[image] for image in sorted(captions)[:200]]
    cut = [[line.split() for line in tokenize(group, "treebank")] for group in chosen]
    said, true = [group[0] for group in cut], [group[1:] for group in cut]
    assert bleu(said, true) == EXPECTED_BLEU
    cider = cider_d(said, true)
    assert cider[:4].tolist() == EXPECTED_CIDER
    assert np.mean(cider) == EXPECTED_MEAN


def test_an_empty_caption_is_like_nothing() -> None:
    said: list[list[str]] = [[], ["x"]]
    true = [[["a", "b"]], [["x"]]]
    assert cider_d(said, true)[0] == 0
    assert bleu(said, true)[0] == pytest.approx(math.exp(1 - 3 / 1))  # of one word of three

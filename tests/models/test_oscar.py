"""OSCAR on random weights of its published layout, against the same sums written out in torch."""

import base64
import json
import math
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eqforge.core.errors import InputError
from eqforge.models.oscar import OscarScorer
from eqforge.models.regions import RegionFiles
from eqforge.models.scorer import Picture, Scorer
from eqforge.models.spec import load_scorer, parse_specs
from tests.optional import optional
from tests.scored import score_pictures

torch = optional("torch")
optional("transformers")

HIDDEN, HEADS, LAYERS, MIDDLE, DIMENSIONS, PLACES = 24, 3, 2, 40, 2054, 80
WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "a",
    "man",
    "dog",
    "on",
    "grass",
    "tree",
    "##s",
]
CAPTIONS = ["A man on grass", "dogs on a tree", "a zebra"]
TAGS = {"7": ["man", "grass"], "11": ["dog", "tree", "tree"]}
REGIONS = {"7": 3, "11": 9}
PAIRS = np.array([(image, caption) for image in range(2) for caption in range(3)])

Tensors = dict[str, Any]


@dataclass(frozen=True)
class Published:
    """Files as OSCAR's authors lay them out."""

    folder: Path
    tensors: Tensors
    features: dict[str, Any]

    @property
    def spec(self) -> str:
        return f"oscar:{self.folder},features={self.folder / 'features.tsv'}"

    @property
    def pictures(self) -> list[Picture]:
        return [Picture(key=key) for key in REGIONS]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Published:
    folder = tmp_path_factory.mktemp("oscar") / "checkpoint-29-66420"
    return publish(folder)


def publish(folder: Path, *, norm: bool = False, mlp: bool = False) -> Published:
    folder.mkdir(parents=True, exist_ok=True)
    tensors = random_tensors(norm=norm, mlp=mlp)
    # The checkpoints date from torch 1.2, before the zip format.
    torch.save(tensors, folder / "pytorch_model.bin", _use_new_zipfile_serialization=False)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    rng = np.random.default_rng(2)
    features = {
        key: rng.normal(0, 1, (boxes, DIMENSIONS)).astype("<f4") for key, boxes in REGIONS.items()
    }
    write_lines(folder / "features.tsv", {key: retrieval(rows) for key, rows in features.items()})
    write_lines(folder / "predictions.tsv", {key: predictions(tags) for key, tags in TAGS.items()})
    return Published(folder, tensors, features)


def write_lines(path: Path, lines: dict[str, str]) -> None:
    path.write_text("".join(f"{key}\t{rest}\n" for key, rest in lines.items()))


def retrieval(rows: Any) -> str:
    return f"{len(rows)}\t{base64.b64encode(rows.tobytes()).decode()}"


def captioning(rows: Any) -> str:
    encoded = base64.b64encode(rows.tobytes()).decode()
    return json.dumps({"num_boxes": len(rows), "features": encoded})


def predictions(tags: list[str]) -> str:
    objects = [{"class": tag, "rect": [0, 0, 9, 9], "conf": 0.9} for tag in tags]
    return json.dumps({"image_h": 600, "image_w": 800, "objects": objects})


CONFIG = {
    "attention_probs_dropout_prob": 0.1,
    "finetuning_task": "ir",
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": HIDDEN,
    "img_feature_dim": DIMENSIONS,
    "img_feature_type": "frcnn",
    "initializer_range": 0.02,
    "intermediate_size": MIDDLE,
    "layer_norm_eps": 1e-12,
    "loss_type": "sfmx",
    "max_position_embeddings": PLACES,
    "num_attention_heads": HEADS,
    "num_hidden_layers": LAYERS,
    "num_labels": 2,
    "output_attentions": False,
    "output_hidden_states": False,
    "pruned_heads": {},
    "torchscript": False,
    "type_vocab_size": 2,
    "vocab_size": len(WORDS),
}


def random_tensors(*, norm: bool, mlp: bool) -> Tensors:
    generator = torch.Generator().manual_seed(4)
    shapes: dict[str, tuple[int, ...]] = {
        "bert.embeddings.word_embeddings.weight": (len(WORDS), HIDDEN),
        "bert.embeddings.position_embeddings.weight": (PLACES, HIDDEN),
        "bert.embeddings.token_type_embeddings.weight": (2, HIDDEN),
        "bert.embeddings.LayerNorm.weight": (HIDDEN,),
        "bert.embeddings.LayerNorm.bias": (HIDDEN,),
        **linear("bert.pooler.dense", HIDDEN, HIDDEN),
        **linear("bert.img_embedding", DIMENSIONS, HIDDEN),
    }
    if norm:
        shapes |= {"bert.LayerNorm.weight": (HIDDEN,), "bert.LayerNorm.bias": (HIDDEN,)}
    if mlp:
        shapes |= linear("classifier.0", HIDDEN, 48) | linear("classifier.2", 48, 2)
    else:
        shapes |= linear("classifier", HIDDEN, 2)
    for layer in range(LAYERS):
        at = f"bert.encoder.layer.{layer}"
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            shapes |= linear(f"{at}.attention.{part}", HIDDEN, HIDDEN)
        shapes |= linear(f"{at}.intermediate.dense", HIDDEN, MIDDLE)
        shapes |= linear(f"{at}.output.dense", MIDDLE, HIDDEN)
        for part in ("attention.output", "output"):
            shapes[f"{at}.{part}.LayerNorm.weight"] = (HIDDEN,)
            shapes[f"{at}.{part}.LayerNorm.bias"] = (HIDDEN,)
    return {name: 0.3 * torch.randn(shape, generator=generator) for name, shape in shapes.items()}


def linear(name: str, width: int, height: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (height, width), f"{name}.bias": (height,)}


class Written:
    """OSCAR's sums for one image and caption, written out, without padding or batches."""

    def __init__(self, tensors: Tensors) -> None:
        self.tensors = tensors

    def logits(self, token_ids: list[int], segments: list[int], features: Any) -> Any:
        places = torch.arange(len(token_ids))
        embedded = (
            self.tensors["bert.embeddings.word_embeddings.weight"][token_ids]
            + self.tensors["bert.embeddings.position_embeddings.weight"][places]
            + self.tensors["bert.embeddings.token_type_embeddings.weight"][segments]
        )
        regions = self.linear("bert.img_embedding", torch.tensor(features))
        if "bert.LayerNorm.weight" in self.tensors:
            regions = self.norm("bert.LayerNorm", regions)
        states = torch.cat([self.norm("bert.embeddings.LayerNorm", embedded), regions])
        for layer in range(LAYERS):
            states = self.layer(f"bert.encoder.layer.{layer}", states)
        pooled = torch.tanh(self.linear("bert.pooler.dense", states[0]))
        if "classifier.weight" in self.tensors:
            return self.linear("classifier", pooled)
        return self.linear("classifier.2", torch.relu(self.linear("classifier.0", pooled)))

    def layer(self, at: str, states: Any) -> Any:
        size = HIDDEN // HEADS
        parts = [self.linear(f"{at}.attention.self.{n}", states) for n in ("query", "key", "value")]
        heads = []
        for head in range(HEADS):
            query, key, value = (part[:, head * size : (head + 1) * size] for part in parts)
            products = query @ key.T / math.sqrt(size)
            weights = torch.exp(products - products.max(1, keepdim=True).values)
            heads.append((weights / weights.sum(1, keepdim=True)) @ value)
        attended = self.linear(f"{at}.attention.output.dense", torch.cat(heads, 1))
        states = self.norm(f"{at}.attention.output.LayerNorm", attended + states)
        middle = self.linear(f"{at}.intermediate.dense", states)
        middle = middle * 0.5 * (1 + torch.erf(middle / math.sqrt(2)))
        return self.norm(
            f"{at}.output.LayerNorm", self.linear(f"{at}.output.dense", middle) + states
        )

    def linear(self, name: str, values: Any) -> Any:
        return values @ self.tensors[f"{name}.weight"].T + self.tensors[f"{name}.bias"]

    def norm(self, name: str, values: Any) -> Any:
        centred = values - values.mean(-1, keepdim=True)
        scaled = centred / torch.sqrt((centred**2).mean(-1, keepdim=True) + 1e-12)
        return scaled * self.tensors[f"{name}.weight"] + self.tensors[f"{name}.bias"]


IDS = {
    "A man on grass": [5, 6, 8, 9],
    "dogs on a tree": [7, 11, 8, 5, 10],
    "a zebra": [5, 1],
    "man grass": [6, 9],
    "dog tree tree": [7, 10, 10],
}


def written_logits(made: Published) -> Any:
    rows = []
    for image, caption in PAIRS:
        key = list(REGIONS)[image]
        text, tags = IDS[CAPTIONS[caption]], IDS[" ".join(TAGS[key])]
        segments = [0] * (len(text) + 2) + [1] * (len(tags) + 1)
        token_ids = [2, *text, 3, *tags, 3]
        rows.append(Written(made.tensors).logits(token_ids, segments, made.features[key]))
    return torch.stack(rows)


def load(made: Published, options: str = "") -> Scorer:
    return load_scorer(*parse_specs(made.spec + options))


@pytest.mark.parametrize(("norm", "mlp"), [(False, False), (True, False), (False, True)])
def test_oscar_is_what_its_sums_say(tmp_path: Path, norm: bool, mlp: bool) -> None:
    made = publish(tmp_path / "oscar", norm=norm, mlp=mlp)
    found = score_pictures(load(made), made.pictures, CAPTIONS, PAIRS)

    expected = written_logits(made)
    assert found.logits == pytest.approx((expected[:, 1] - expected[:, 0]).numpy(), abs=2e-5)
    assert found.probabilities == pytest.approx(expected.softmax(-1)[:, 1].numpy(), abs=1e-5)
    assert np.ptp(found.probabilities) > 0.01


@pytest.mark.parametrize("how", ["autocast", "precision"])
def test_in_bfloat16_the_answers_are_float32(published: Published, how: str) -> None:
    """Neither of 8 binary digits nor the difference of two such numbers."""
    scorer = load(published, ",precision=bfloat16" if how == "precision" else "")
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=how == "autocast"):
        found = score_pictures(scorer, published.pictures, CAPTIONS, PAIRS).logits
    exact = score_pictures(load(published), published.pictures, CAPTIONS, PAIRS).logits
    assert found.dtype == np.float32
    assert ((found.view(np.uint32) & 0x7F) != 0).mean() > 0.5
    assert found == pytest.approx(exact, abs=0.1 + 0.1 * float(np.abs(exact).max()))


def test_long_captions_tags_and_regions_are_cut_as_the_authors_cut_them(
    published: Published,
) -> None:
    """The caption leaves room for two special tokens, the tags for one more."""
    found = score_pictures(
        load(published, ",tokens=6,regions=2"), published.pictures, CAPTIONS, PAIRS
    )

    rows = []
    for image, caption in PAIRS:
        key = list(REGIONS)[image]
        text, tags = IDS[CAPTIONS[caption]][:4], IDS[" ".join(TAGS[key])]
        token_ids, segments = [2, *text, 3], [0] * (len(text) + 2)
        if len(token_ids) < 6:
            tags = tags[: 6 - len(token_ids) - 1]
            token_ids, segments = [*token_ids, *tags, 3], [*segments, *[1] * (len(tags) + 1)]
        features = published.features[key][:2]
        rows.append(Written(published.tensors).logits(token_ids, segments, features))
    expected = torch.stack(rows)
    assert found.logits == pytest.approx((expected[:, 1] - expected[:, 0]).numpy(), abs=2e-5)


def test_the_weights_may_be_safetensors_or_the_published_pickle(
    published: Published, tmp_path: Path
) -> None:
    from safetensors.torch import save_file

    made = publish(tmp_path / "oscar")
    (made.folder / "pytorch_model.bin").unlink()
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma"): t for name, t in made.tensors.items()
    }
    save_file(old, made.folder / "model.safetensors")

    first = score_pictures(load(published), published.pictures, CAPTIONS, PAIRS)
    second = score_pictures(load(made), made.pictures, CAPTIONS, PAIRS)
    assert (first.logits == second.logits).all()


def test_a_pickle_that_holds_more_than_tensors_is_refused(tmp_path: Path) -> None:
    made = publish(tmp_path / "oscar")
    torch.save({"bert": Harmful()}, made.folder / "pytorch_model.bin")
    with pytest.raises(InputError, match="cannot read OSCAR's weights"):
        load(made)
    assert not (tmp_path / "harm").exists()


class Harmful:
    def __reduce__(self) -> Any:
        return (Path.touch, (Path("harm"),))


@pytest.mark.parametrize(
    ("dropped", "message"),
    [
        (
            "classifier.weight",
            "contains no tensor 'classifier.weight'; expected an OSCAR model fine-tuned",
        ),
        ("bert.img_embedding.weight", "contains no tensor 'bert.img_embedding.weight'"),
        ("bert.encoder.layer.1.output.dense.bias", "the tensors of 'bert' do not match config"),
    ],
)
def test_a_checkpoint_with_a_part_missing_is_refused(
    tmp_path: Path, dropped: str, message: str
) -> None:
    made = publish(tmp_path / "oscar")
    kept = {name: tensor for name, tensor in made.tensors.items() if name != dropped}
    torch.save(kept, made.folder / "pytorch_model.bin")
    with pytest.raises(InputError, match=message):
        load(made)


@pytest.mark.parametrize("name", ["config.json", "vocab.txt", "features.tsv", "predictions.tsv"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    made = publish(tmp_path / "oscar")
    (made.folder / name).unlink()
    with pytest.raises(InputError, match=name):
        load(made)


def test_a_model_may_read_no_tags(published: Published) -> None:
    scorer = OscarScorer(published.folder, published.folder / "features.tsv", tags=None)
    found = score_pictures(scorer, published.pictures, CAPTIONS, PAIRS)
    named = score_pictures(load(published, ",tags=none"), published.pictures, CAPTIONS, PAIRS)

    features = published.features["7"]
    expected = Written(published.tensors).logits([2, 5, 6, 8, 9, 3], [0] * 6, features)
    assert found.logits[0] == pytest.approx(float(expected[1] - expected[0]), abs=2e-5)
    assert (found.logits == named.logits).all()


def test_what_is_not_there_or_of_another_size_is_named(
    published: Published, tmp_path: Path
) -> None:
    scorer = load(published)
    with pytest.raises(ValueError, match=r"12: features\.tsv has no line for this image"):
        scorer.prepare(Picture(key="12"))
    narrow = tmp_path / "features.tsv"
    write_lines(narrow, {"7": retrieval(published.features["7"][:, :2048])})
    scorer = load_scorer(*parse_specs(f"oscar:{published.folder},features={narrow},tags=none"))
    with pytest.raises(
        ValueError, match="7: found 2048 features per region, but this model reads 2054"
    ):
        scorer.prepare(Picture(key="7"))


def test_the_identity_names_model_and_features(published: Published, tmp_path: Path) -> None:
    identity = load(published).identity
    assert (identity.kind, identity.family) == ("oscar", "oscar")
    assert identity.model == "checkpoint-29-66420"
    folder = tmp_path / "checkpoint-29-66420"
    shutil.copytree(published.folder, folder)
    other = replace(published, folder=folder)
    assert load(other).identity == identity
    write_lines(folder / "predictions.tsv", {"7": "[]", "11": "[]"})
    changed = load(other).identity
    assert changed.revision == identity.revision
    assert changed.preprocessing != identity.preprocessing


def test_features_of_both_published_forms_are_read(published: Published, tmp_path: Path) -> None:
    path = tmp_path / "feature.tsv"
    write_lines(path, {key: captioning(rows) for key, rows in published.features.items()})
    labels = tmp_path / "labels.tsv"
    write_lines(labels, {"7": json.dumps([{"class": "man"}, {"class": "palm tree"}]), "11": "[]"})

    plain = RegionFiles(published.folder / "features.tsv", None)
    files = RegionFiles(path, labels)
    for key, rows in published.features.items():
        assert (files[key].features == rows).all()
        assert (plain[key].features == rows).all()
    assert (files["7"].tags, files["11"].tags) == ("man palm tree", "")


def test_the_authors_index_is_used_and_checked(published: Published, tmp_path: Path) -> None:
    """With .lineidx and imageid2idx.json no line is read that nobody asks for."""
    path = tmp_path / "features.tsv"
    lines = [f"{key}\t{retrieval(rows)}\n" for key, rows in published.features.items()]
    path.write_text("".join(lines))
    (tmp_path / "features.lineidx").write_text(f"0\n{len(lines[0])}\n")
    (tmp_path / "imageid2idx.json").write_text(json.dumps({"7": 0, "11": 1}))
    assert (RegionFiles(path, None)["11"].features == published.features["11"]).all()

    stale = tmp_path / "stale" / "features.tsv"
    stale.parent.mkdir()
    stale.write_text("".join(lines))
    (stale.parent / "features.lineidx").write_text(f"0\n{len(lines[0])}\n")
    (stale.parent / "imageid2idx.json").write_text(json.dumps({"7": 1, "11": 0}))
    with pytest.raises(
        InputError, match="gives the line of '11' for '7'; delete or recreate features"
    ):
        RegionFiles(stale, None)["7"]


@pytest.mark.parametrize(
    ("places", "numbers", "message"),
    [
        ("0\nhalf", '{"7": 0}', "Expected `int`, got `str`"),
        ("0\n-9", '{"7": 0}', "Expected `int` >= 0"),
        ("0", '{"7": 0', "Input data was truncated"),
        ("0", "[0]", "Expected `object`, got `array`"),
        ("0", '{"7": "0"}', "Expected `int`, got `str`"),
        ("0", '{"7\udcff": 0}', "can't decode byte"),
    ],
)
def test_a_damaged_index_is_one_error(
    tmp_path: Path, places: str, numbers: str, message: str
) -> None:
    path = tmp_path / "features.tsv"
    write_lines(path, {"7": "1\tAAAA"})
    path.with_suffix(".lineidx").write_text(places)
    (tmp_path / "imageid2idx.json").write_text(numbers, errors="surrogateescape")
    with pytest.raises(
        InputError, match=rf"its index is damaged \(.*{message}.*\); delete or recreate features\."
    ):
        RegionFiles(path, None)


def test_a_key_that_is_not_utf8_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "features.tsv"
    path.write_bytes(b"7\xff\t1\tAAAA\n")
    with pytest.raises(InputError, match=r"features.tsv: line 1: the key is not valid UTF-8"):
        RegionFiles(path, None)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("2\tQUJD", "expected float32 features for 2 boxes, found 3 bytes"),
        ("0\t", "expected float32 features for 0 boxes, found 0 bytes"),
        ("1\t%%%", "cannot read boxes and their base64 features"),
        ("many\tQUJD", "cannot read boxes and their base64 features"),
        ("[]", "cannot read boxes and their base64 features"),
        (
            f"1\t{base64.b64encode(np.array([np.nan, 1], '<f4').tobytes()).decode()}",
            "not a finite number",
        ),
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "features.tsv"
    write_lines(path, {"7": line})
    with pytest.raises(ValueError, match=f"7: .*{message}|7: a feature is {message}"):
        RegionFiles(path, None)["7"]


def test_two_lines_of_one_image_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "features.tsv"
    path.write_text("7\t1\tAAAA\n8\t1\tAAAA\n7\t1\tAAAA\n")
    with pytest.raises(InputError, match="two lines for the image '7'"):
        RegionFiles(path, None)

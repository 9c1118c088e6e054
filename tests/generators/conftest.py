"""Fixtures shared by the tests of generators."""

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from eqforge.core.errors import InputError
from eqforge.generators.scenes.assets import BUILTIN, AssetLibrary
from eqforge.generators.text.wordnet import open_wordnet
from eqforge.transforms.generated import scene_renderer
from eqforge.transforms.generated.scene_renderer import SceneRenderer
from tests.renders import open_renderer
from tests.scans import looker

# Sentences in the format word/tag/head/dependency, head as an index in the sentence.
TREEBANK = (
    "A/DT/1/det dog/NN/2/nsubj sits/VBZ/2/ROOT on/IN/2/prep the/DT/5/det mat/NN/3/pobj",
    "The/DT/2/det red/JJ/2/amod cat/NN/3/nsubj sleeps/VBZ/3/ROOT",
    "Two/CD/1/nummod dogs/NNS/2/nsubj run/VBP/2/ROOT near/IN/2/prep a/DT/6/det big/JJ/6/amod "
    "house/NN/3/pobj",
    "A/DT/1/det woman/NN/2/nsubj holds/VBZ/2/ROOT the/DT/5/det blue/JJ/5/amod hat/NN/2/dobj",
)


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> AssetLibrary:
    return AssetLibrary(BUILTIN, str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("assets")


@pytest.fixture(scope="session")
def renderer(folder: Path) -> Iterator[SceneRenderer]:
    opened = open_renderer(folder)
    yield opened
    opened.close()


@pytest.fixture
def one_blender(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands look at scans in the process that runs already: Blender takes 3 s to start."""
    monkeypatch.setattr(scene_renderer, "ScanLooker", looker)


@pytest.fixture(scope="session")
def wordnet() -> Any:
    """NLTK's reader of WordNet; tests that need it are skipped until `eqforge setup wordnet`."""
    try:
        return open_wordnet()
    except InputError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def pipeline_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tagger and parser trained for a moment, since no English model comes with spaCy."""
    import spacy
    from spacy.tokens import Doc
    from spacy.training import Example

    spacy.util.fix_random_seed(0)  # type: ignore[attr-defined]  # spaCy documents it there
    nlp = spacy.blank("en")
    nlp.add_pipe("tagger")
    nlp.add_pipe("parser", config={"min_action_freq": 1})
    examples = []
    for line in TREEBANK:
        columns = zip(*(item.split("/") for item in line.split()), strict=True)
        words, tags, heads, deps = map(list, columns)
        gold = Doc(nlp.vocab, words, tags=tags, heads=[int(h) for h in heads], deps=deps)
        examples.append(Example(nlp.make_doc(gold.text), gold))
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(40):
        nlp.update(examples, sgd=optimizer)
    ruler: Any = nlp.add_pipe("attribute_ruler")
    ruler.add([[{"TAG": "NN"}]], {"POS": "NOUN"})  # the parser's noun chunks ask for it
    folder = tmp_path_factory.mktemp("pipeline") / "tiny"
    nlp.to_disk(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_sd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny Stable Diffusion with random weights; tests must not change it."""
    from eqforge.generators.diffusion.tiny import make_tiny_pipeline

    pytest.importorskip("diffusers")
    return make_tiny_pipeline(tmp_path_factory.mktemp("diffusion") / "tiny-sd")


@pytest.fixture(scope="session")
def tiny_sdxl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny SDXL with random weights; tests must not change it."""
    from eqforge.generators.diffusion.tiny import make_tiny_pipeline

    pytest.importorskip("diffusers")
    return make_tiny_pipeline(
        tmp_path_factory.mktemp("diffusion") / "tiny-sdxl", "StableDiffusionXLPipeline"
    )


@pytest.fixture(scope="session")
def tiny_editor(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Makes the folder of a tiny pipeline of a class once; tests must not change it."""
    pytest.importorskip("diffusers")
    from tests.tiny_transformers import make_tiny_editor

    @functools.cache
    def make(pipeline: str) -> Path:
        return make_tiny_editor(tmp_path_factory.mktemp("editors") / pipeline, pipeline)

    return make

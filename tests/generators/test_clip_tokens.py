"""The number of tokens CLIP sees, against the tokenizer CLIP models are used with."""

import gzip
import hashlib
import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eqforge.generators.text import caption_lint
from eqforge.generators.text.caption_lint import _encoder, count_clip_tokens

ODD = [
    "",
    " \t\n ",
    "It's 5 o'clock; they'd've said we'll re-do it!!!",
    "cafe\u0301 caf\u00e9 \u00c5ngstr\u00f6m \u0130stanbul \u1e9e \ufb03",
    "\u732b\u304c\u597d\u304d \u041a\u043e\u0448\u043a\u0430 \u0642\u0637\u0629 \u0e41\u0e21\u0e27",
    "\U0001f431\u200d\U0001f464 \U0001f1e9\U0001f1ea \u2764\ufe0f",
    "&amp;amp; &lt;b&gt; &nGt; 1/2 \u00bd \u2460 \u0663",
    "a\u00a0b\u2003c\u200bd\u0085e\x1cf\x00g",
    "schÃ¶n \u2019s donÂ\u2019t",
    "<start_of_text> a dog <end_of_text> <|endoftext|> <END_OF_TEXT>",
    "\u017ftart '\u017f \u212a",
    "lone \ud800 half",
    "supercalifragilisticexpialidocious" * 20,
    "!?" * 200,
]


def _open_clip() -> Path:
    """Returns the folder of open_clip, which is not imported: the package needs more."""
    spec = importlib.util.find_spec("open_clip")
    if spec is None:
        pytest.skip("open_clip is not installed")
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0])


@pytest.fixture(scope="module")
def reference() -> Callable[[str], int]:
    """Counts with open_clip's SimpleTokenizer, loaded from its file."""
    pytest.importorskip("torch")
    file = _open_clip() / "tokenizer.py"
    module_spec = importlib.util.spec_from_file_location("open_clip_tokenizer", file)
    assert module_spec is not None
    assert module_spec.loader is not None
    module = importlib.util.module_from_spec(module_spec)
    module_spec.loader.exec_module(module)
    tokenizer = module.SimpleTokenizer()
    return lambda text: len(tokenizer.encode(text)) + 2


def test_a_published_example() -> None:
    """The numbers CLIP's users know: start and end are 49406 and 49407, "cat" is 2368."""
    words = ["a", "photo", "of", "a", "cat"]
    encoded = _encoder().encode(words, is_pretokenized=True, add_special_tokens=False)
    assert encoded.ids == [320, 1125, 539, 320, 2368]
    assert count_clip_tokens("A photo of a cat") == 7
    assert count_clip_tokens("") == 2


def test_real_captions_have_as_many_tokens_as_open_clip_makes(
    data_folder: Path, reference: Callable[[str], int]
) -> None:
    annotations = json.loads((data_folder / "coco/captions_val2017.json").read_bytes())
    captions = [annotation["caption"] for annotation in annotations["annotations"]][::10]
    assert len(captions) > 2_000
    assert [count_clip_tokens(text) for text in captions] == [reference(text) for text in captions]


@pytest.mark.parametrize("text", ODD)
def test_odd_texts_have_as_many_tokens_as_open_clip_makes(
    text: str, reference: Callable[[str], int]
) -> None:
    assert count_clip_tokens(text) == reference(text)


@given(text=st.text(alphabet=st.characters(exclude_categories=[]), max_size=60))
def test_any_text_has_as_many_tokens_as_open_clip_makes(
    text: str, reference: Callable[[str], int]
) -> None:
    assert count_clip_tokens(text) == reference(text)


def test_ordinary_text_has_as_many_tokens_as_transformers_makes(tmp_path: Path) -> None:
    """Transformers cleans texts in another way, so only texts that need no cleaning agree."""
    transformers = pytest.importorskip("transformers")
    vocabulary = _encoder().get_vocab() | {"<|startoftext|>": 49406, "<|endoftext|>": 49407}
    (tmp_path / "vocab.json").write_text(json.dumps(vocabulary))
    merges = json.loads(_encoder().to_str())["model"]["merges"]
    lines = ["#version: 0.2", *(" ".join(pair) for pair in merges)]
    (tmp_path / "merges.txt").write_text("\n".join(lines))
    tokenizer = transformers.CLIPTokenizer.from_pretrained(tmp_path)
    assert len(tokenizer) == 49408
    for text in ("a photo of a cat", "Two men's dogs, 12 years old, aren't unbelievably tall."):
        assert count_clip_tokens(text) == len(tokenizer(text).input_ids)


def test_counting_does_not_import_torch() -> None:
    code = (
        "import sys\n"
        "from eqforge.generators.text.caption_lint import count_clip_tokens\n"
        "print(count_clip_tokens('a dog'), 'torch' in sys.modules, 'open_clip' in sys.modules)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "4 False False\n"


def test_the_merges_are_those_of_the_published_vocabulary() -> None:
    """SHA-256 of lines 2 to 48,895 of OpenAI's bpe_simple_vocab_16e6.txt, and open_clip's copy."""
    merges = caption_lint._MERGES.read_bytes()
    digest = "d308b7377a8ceaa9707a21614fe8c831b9196e197b7aeb69833359362907af02"
    assert hashlib.sha256(merges).hexdigest() == digest
    file = _open_clip() / "bpe_simple_vocab_16e6.txt.gz"
    lines = gzip.decompress(file.read_bytes()).split(b"\n")
    assert merges == b"\n".join(lines[1:48_895]) + b"\n"

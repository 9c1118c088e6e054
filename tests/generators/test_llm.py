"""The rewrites by a language model, with a real model: tiny, and trained here on the prompt.

It learns to replace the adjective by a synonym, from answers of which some are wrong, so that it
makes both good answers and bad ones.
"""

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eqforge.core.errors import InputError
from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.llm.model import Answer
from eqforge.generators.text.llm.rewrite import (
    OF_THE_CODE,
    OF_THE_PAPER,
    PROMPTS,
    Asking,
    Rewrite,
    RewriteRefusal,
    rewrite_captions,
)
from eqforge.generators.text.llm.validate import (
    REWRITE_REFUSALS,
    InvalidRewrite,
    PromptName,
    check_rewrite,
    first_valid,
    lines_of,
    parse_published_rewrite,
)
from eqforge.generators.text.llm.writer import (
    CaptionWriter,
    DecodingSettings,
    Request,
    WriterSettings,
    complete,
)
from eqforge.generators.text.taggers import load_tagger
from tests.cases import cases_of
from tests.optional import optional

cases = cases_of(__file__)

torch = optional("torch")
optional("transformers")

TAGGER = load_tagger()
SYNONYMS = {"big": "large", "small": "tiny", "long": "lengthy", "wet": "damp"}
NOUNS = ("dog", "cat", "bus", "horse")
PLACES = ("mat", "road", "lawn")
CAPTIONS = [
    f"a {adjective} {noun} on a {place}"
    for adjective, noun, place in itertools.product(SYNONYMS, NOUNS, PLACES)
]


def _answer(caption: str, rng: random.Random) -> str:
    """The answer to learn: wrong in two of five cases."""
    a, adjective, noun, *rest = caption.split()
    good = [a, SYNONYMS[adjective], noun, *rest]
    fault = rng.random()
    if fault < 0.2:
        return caption
    if fault < 0.4:
        return " ".join([a, SYNONYMS[adjective], rng.choice(NOUNS), *rest])
    return " ".join(good)


def _tokenizer() -> Any:
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    text = PROMPTS["replace"].template.replace("{example}", " ")
    words = sorted({*text.split(), *" ".join(CAPTIONS).split(), *SYNONYMS.values()})
    vocabulary = {word: i for i, word in enumerate(["<pad>", "<eos>", "<unk>", "\n", *words])}
    tokenizer = Tokenizer(models.WordLevel(vocab=vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r" +"), "removed"),
            pre_tokenizers.Split(Regex(r"\n"), "isolated"),
        ]
    )
    tokenizer.decoder = decoders.WordPiece(prefix="##", cleanup=False)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", eos_token="<eos>", pad_token="<pad>"
    )


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """Threads of torch wait for each other on a busy machine; a model this small needs one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A two-layer language model, trained on the REPLACE prompt in some seconds."""
    from transformers import GPT2Config, GPT2LMHeadModel

    tokenizer = _tokenizer()
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=128,
        n_embd=64,
        n_layer=2,
        n_head=2,
        bos_token_id=1,
        eos_token_id=1,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
    )
    model = GPT2LMHeadModel(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    rng = random.Random(0)
    prompts = {
        caption: tokenizer(PROMPTS["replace"].render(caption))["input_ids"] for caption in CAPTIONS
    }
    for _ in range(220):
        batch = rng.choices(CAPTIONS, k=24)
        answers = [tokenizer(_answer(caption, rng) + "\n")["input_ids"] for caption in batch]
        ids = torch.tensor([prompts[c] + a for c, a in zip(batch, answers, strict=True)])
        labels = ids.clone()
        labels[:, : len(prompts[batch[0]])] = -100
        loss = model(input_ids=ids, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    folder = tmp_path_factory.mktemp("llm") / "tiny"
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def writer(model_folder: Path) -> CaptionWriter:
    settings = WriterSettings(model=str(model_folder), batch_size=16, temperature=1.0, top_p=1.0)
    return CaptionWriter(settings)


def _tasks(captions: list[str]) -> list[tuple[str, Analysis]]:
    return [(f"id/{analysis.text}", analysis) for analysis in TAGGER.analyse(captions)]


def _rewrite(
    writer: CaptionWriter, captions: list[str], **settings: Any
) -> list[Rewrite | RewriteRefusal]:
    asking = Asking(**{"run_seed": 7, "prompts": ("replace",), **settings})
    return rewrite_captions(_tasks(captions), writer, asking)


def test_good_answers_are_taken_and_bad_ones_become_refusals(writer: CaptionWriter) -> None:
    results = _rewrite(writer, CAPTIONS, sample=True, retries=0)
    taken = [result for result in results if isinstance(result, Rewrite)]
    refused = [result for result in results if isinstance(result, RewriteRefusal)]
    assert len(taken) >= 10
    assert len(refused) >= 10
    for caption, result in zip(CAPTIONS, results, strict=True):
        if isinstance(result, Rewrite):
            (before,), (after,) = result.edited.spans_before, result.edited.spans_after
            assert caption[: before.start] == result.edited.text[: after.start]
            assert caption[before.end :] == result.edited.text[after.end :]
            assert caption[before.start : before.end] != result.edited.text[after.start : after.end]
        else:
            assert result.reason in REWRITE_REFUSALS
            assert result.attempts == 1


def test_a_bad_answer_is_asked_for_again_at_most_n_times(writer: CaptionWriter) -> None:
    once = _rewrite(writer, CAPTIONS, sample=True, retries=0)
    more = _rewrite(writer, CAPTIONS, sample=True, retries=3)
    for first, last in zip(once, more, strict=True):
        if isinstance(first, Rewrite):
            assert last == first
        elif isinstance(last, RewriteRefusal):
            assert last.attempts == 4
    assert sum(isinstance(r, Rewrite) for r in more) > sum(isinstance(r, Rewrite) for r in once)


def test_the_first_answer_is_the_likeliest_and_needs_no_seed(writer: CaptionWriter) -> None:
    results = _rewrite(writer, CAPTIONS, retries=0)
    assert results == _rewrite(writer, CAPTIONS, retries=0)
    taken = [result for result in results if isinstance(result, Rewrite)]
    assert taken
    assert all(result.seed is None for result in taken)


@pytest.mark.parametrize("batch_size", [1, 7])
def test_a_result_does_not_depend_on_neighbours_order_or_batch(
    model_folder: Path, writer: CaptionWriter, batch_size: int
) -> None:
    settings = WriterSettings(
        model=str(model_folder), batch_size=batch_size, temperature=1.0, top_p=1.0
    )
    shuffled = random.Random(1).sample(CAPTIONS[::2], len(CAPTIONS[::2]))
    all_of_them = _rewrite(writer, CAPTIONS, sample=True, retries=1)
    expected = dict(zip(CAPTIONS, all_of_them, strict=True))
    found = _rewrite(CaptionWriter(settings), shuffled, sample=True, retries=1)
    assert found == [expected[caption] for caption in shuffled]


def test_other_seeds_draw_other_answers(writer: CaptionWriter) -> None:
    draws = [_rewrite(writer, CAPTIONS, run_seed=seed, sample=True) for seed in (1, 2)]
    texts = [[r.edited.text for r in draw if isinstance(r, Rewrite)] for draw in draws]
    assert texts[0] != texts[1]


def test_our_decoding_takes_the_tokens_that_transformers_takes(writer: CaptionWriter) -> None:
    """The reference is `generate` of transformers, one prompt at a time, greedily."""
    prompts = [PROMPTS["replace"].render(caption) for caption in CAPTIONS[:12]]
    model, tokenizer = writer._model, writer._tokenizer
    for prompt, (ours, _) in zip(prompts, writer.complete(prompts, [None] * 12, 8), strict=True):
        inputs = tokenizer(prompt, return_tensors="pt")
        inputs.pop("token_type_ids", None)
        output = model.generate(**inputs, do_sample=False, max_new_tokens=8, pad_token_id=0)
        text = tokenizer.decode(output[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
        assert lines_of(text, "")[0] == lines_of(ours, "")[0]


def test_an_answer_without_a_token_left_is_cut(writer: CaptionWriter) -> None:
    prompts = [PROMPTS["replace"].render(caption) for caption in CAPTIONS]
    for few, tokens in ((True, 3), (False, 30)):
        answers = writer.complete(prompts, [None] * len(prompts), tokens)
        assert {is_cut for _, is_cut in answers} == {few}


def test_draws_have_the_probabilities_of_the_model(writer: CaptionWriter) -> None:
    """3,000 draws of one token against the softmax, for each with a probability above 2%."""
    ids = tuple(
        writer._tokenizer(PROMPTS["replace"].render("a big dog on a mat") + " a")["input_ids"]
    )
    settings = DecodingSettings(
        max_new_tokens=1, batch_size=500, temperature=1.3, top_p=1.0, end_ids=frozenset(), pad_id=0
    )
    requests = [Request(prompt_ids=ids, seed=seed) for seed in range(3000)]
    drawn = [t for (t,) in complete(writer._model, requests, settings, lambda tokens: False)]
    with torch.inference_mode():
        logits = writer._model(torch.tensor([ids])).logits[0, -1]
    probabilities = torch.softmax(logits.double() / 1.3, dim=0)
    for token in torch.nonzero(probabilities > 0.02)[:, 0].tolist():
        p = float(probabilities[token])
        assert abs(drawn.count(token) / 3000 - p) < 4 * (p * (1 - p) / 3000) ** 0.5


def test_the_revision_follows_the_weights(model_folder: Path, writer: CaptionWriter) -> None:
    assert writer.revision.startswith("sha256:")
    assert writer.name == f"{model_folder.name}@{writer.revision}"
    again = CaptionWriter(WriterSettings(model=str(model_folder)))
    assert again.revision == writer.revision
    assert again.fingerprint != writer.fingerprint  # another temperature


def test_a_device_or_model_that_is_not_there_is_an_input_error(
    model_folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="device=gpu: "):
        CaptionWriter(WriterSettings(model=str(model_folder), device="gpu"))
    with pytest.raises(InputError, match="cannot be loaded"):
        CaptionWriter(WriterSettings(model=str(tmp_path)))


def _checked(caption: str, answer: str, prompt: PromptName = "replace") -> str:
    """Returns the checked caption, or the meaning of the reason why there is none."""
    try:
        analysis = TAGGER.analyse([caption])[0]
        check = partial(check_rewrite, analysis, prompt=prompt)
        return first_valid(answer, caption, check).text
    except InvalidRewrite as error:
        return REWRITE_REFUSALS[str(error)] and str(error)


@pytest.mark.parametrize(
    ("caption", "answer", "result"),
    [
        *cases("a_replacement_is_one_edit_and_nothing_else"),
        ("a big dog .", "A large dog.\n\nI replaced big.", "a large dog ."),
        ("a big dog", "\n \n", "empty"),
    ],
)
def test_a_replacement_is_one_edit_and_nothing_else(caption: str, answer: str, result: str) -> None:
    assert _checked(caption, answer) == result


def test_the_prompts_for_verbs_and_prepositions_want_verbs_and_prepositions() -> None:
    caption = "A man holding a cup under a roof."
    verb = "A man grasping a cup under a roof."
    spatial = "A man holding a cup beneath a roof."
    assert _checked(caption, verb, "replace_verb") == verb
    assert _checked(caption, spatial, "replace_verb") == "wrong_target"
    assert _checked(caption, spatial, "replace_spatial") == spatial
    assert _checked(caption, verb, "replace_spatial") == "wrong_target"


@pytest.mark.parametrize(
    ("caption", "answer", "result"),
    cases("a_swap_exchanges_what_stands_around_one_and"),
)  # fmt: skip
def test_a_swap_exchanges_what_stands_around_one_and(
    caption: str, answer: str, result: str
) -> None:
    assert _checked(caption, answer, "swap") == result


def test_prompts_are_those_of_the_authors() -> None:
    assert set(PROMPTS) == {*OF_THE_CODE, *OF_THE_PAPER}
    assert PROMPTS["swap"].template.count("Input:") == 6
    for name in OF_THE_CODE:
        text = PROMPTS[name].render("a {cat} and {example}")
        assert text.endswith("Input: a {cat} and {example}\nOutput:")
    assert PROMPTS["replace_printed"].render("a {cat} and {example}") == (
        "Replace one word in this sentence with a synonym, without changing the meaning of the "
        "sentence. Only output the changed sentence.\na {cat} and {example}"
    )
    assert PROMPTS["swap"].applies_to("a cat and a dog")
    assert not PROMPTS["swap"].applies_to("a sandy dog")
    assert not PROMPTS["swap"].applies_to("and " * 15)
    assert PROMPTS["replace"].applies_to("word " * 40)


def test_a_caption_the_prompt_is_not_for_is_not_asked_about() -> None:
    class Unasked:
        fingerprint = "none"

        def answers(self, questions: Any) -> Any:
            raise AssertionError(questions)

    asking = Asking(run_seed=0, prompts=("swap",))
    (result,) = rewrite_captions(_tasks(["a big dog"]), Unasked(), asking)
    assert isinstance(result, RewriteRefusal)
    assert (result.reason, result.attempts) == ("not_applicable", 0)


SAMPLE = dict(cases("the_papers_own_answers_are_taken_raw"))
"""Of the random samples in the paper's appendix C.3."""


def _taken(caption: str, answer: str) -> str:
    """Returns the text that is taken as the authors did, or the meaning of the reason."""
    try:
        return first_valid(answer, caption, partial(parse_published_rewrite, caption)).text
    except InvalidRewrite as error:
        return REWRITE_REFUSALS[str(error)] and str(error)


@pytest.mark.parametrize(("caption", "answer"), SAMPLE.items())
def test_the_papers_own_answers_are_taken_raw(caption: str, answer: str) -> None:
    assert _taken(caption, f"  {answer}\n\nI hope this helps!") == answer


def test_of_the_papers_own_answers_few_are_one_edit() -> None:
    checked = [_checked(caption, answer) for caption, answer in SAMPLE.items()]
    assert [text for text in checked if text in SAMPLE.values()] == [
        "A side view mirror on the handle bars of a motorbike",
        "A collection of vegetables sits in a pile on a stand",
        "a man going down a rail on some stairs on a skate board",
    ]


def test_the_spans_of_a_raw_answer_hold_all_that_it_changes() -> None:
    caption = "a field that ha a bunch of sheep in it"
    edited = parse_published_rewrite(caption, "a meadow that has a flock of sheep in it")
    before, after = (
        [text[span.start : span.end] for span in spans]
        for text, spans in ((caption, edited.spans_before), (edited.text, edited.spans_after))
    )
    assert before == ["field", "ha", "bunch"]
    assert after == ["meadow", "has", "flock"]


CAPTION = "a big dog on a mat"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "empty"),
        (" \n\t\n", "empty"),
        ("...", "empty"),
        ("A big dog on a mat.", "unchanged"),
        ("word " * 10_000, "huge"),
        ("a" * 20_000, "huge"),
        *cases("what_is_no_text_like_the_caption_is_not_taken_raw"),
        ("=a large dog on a mat", "not_plain"),
        ("a large dog on a mat \x1b]0;x\x07", "not_plain"),
        ("a large \u202egod on a mat", "not_plain"),
        ("a large\u200b dog on a mat", "not_plain"),
        ("a large dog on a mat\x00", "not_plain"),
    ],
)
def test_what_is_no_text_like_the_caption_is_not_taken_raw(answer: str, reason: str) -> None:
    assert _taken(CAPTION, answer) == reason
    # A checked answer is an edit of the caption, which what stands around it does not reach.
    checked = _checked(CAPTION, answer)
    assert checked in {*REWRITE_REFUSALS, "a large dog on a mat", "a large god on a mat"}


@pytest.mark.parametrize(
    "answer",
    [
        'Sure! Here is the changed sentence:\n\n"a large dog on a mat"',
        "Sure! Here is the changed sentence: a large dog on a mat",
        "Output: a large dog on a mat",
        "\u201ca large dog on a mat\u201d",
        "Output: 'a large dog on a mat'",
    ],
)
def test_a_model_may_say_first_that_it_answers(answer: str) -> None:
    assert _taken(CAPTION, answer) == _checked(CAPTION, answer) == "a large dog on a mat"


def test_a_colon_of_the_caption_and_a_typographic_apostrophe_are_no_edits() -> None:
    assert _taken("a clock at 3:30", "a watch at 3:30") == "a watch at 3:30"
    assert _taken("a man's big dog", "a man\u2019s large dog") == "a man's large dog"
    assert _checked("a man's big dog", "a man\u2019s large dog") == "a man's large dog"


@pytest.mark.parametrize("taken", ["raw", "checked"])
def test_of_an_answer_that_is_cut_off_the_last_line_is_not_taken(taken: Any) -> None:
    """A piece of a word can be a word: "motor" of "motorcycle"."""
    caption, good = "a man on a motorcycle", "a man on a motorbike"

    def text_of(answer: Answer) -> str:
        class Says:
            fingerprint = "none"

            def answers(self, questions: Any) -> Any:
                return enumerate([answer])

        asking = Asking(run_seed=0, prompts=("replace",), retries=0, taken=taken)
        (result,) = rewrite_captions(_tasks([caption]), Says(), asking)
        return result.edited.text if isinstance(result, Rewrite) else result.reason

    assert text_of(Answer(text="a man on a motor", model="m", is_cut=True)) == "cut_off"
    assert text_of(Answer(text=good, model="m", is_cut=True)) == "cut_off"
    assert text_of(Answer(text=f"{good}\nInput: a", model="m", is_cut=True)) == good
    assert text_of(Answer(text=good, model="m")) == good
    announced = Answer(text=f"Sure! Here it is:\n\n{good}", model="m", is_cut=True)
    assert text_of(announced) == "cut_off"
    again = Answer(text=f"{caption}\nInput: a", model="m", is_cut=True)
    assert text_of(again) == "unchanged"  # that what follows is cut off is not why


def test_marks_that_the_caption_has_may_stand_in_the_answer() -> None:
    assert _taken("a $5 note @ home", "a $5 bill @ home") == "a $5 bill @ home"


WORDS = st.sampled_from(
    [*CAPTION.split(), "large", "hound", "and", "<b>", "\u202e", "\x00", "$(rm)"]
)
ANSWERS = st.one_of(
    st.text(max_size=80),
    st.lists(WORDS, max_size=14).map(" ".join),
    st.lists(WORDS, max_size=6).map("\n".join),
)


@settings(max_examples=300, deadline=None)
@given(answer=ANSWERS)
def test_whatever_is_taken_is_plain_and_like_the_caption_and_all_else_has_a_reason(
    answer: str,
) -> None:
    raw, checked = _taken(CAPTION, answer), _checked(CAPTION, answer)
    for text in (raw, checked):
        if text not in REWRITE_REFUSALS:
            assert text.isprintable()
            assert len(text) <= 2 * len(CAPTION) + 20
            assert not set(text) & set("<>{}[]`$\\|")
            assert text != CAPTION
    if checked not in REWRITE_REFUSALS:
        shared = Counter(checked.split()) & Counter(CAPTION.split())
        assert shared.total() >= len(CAPTION.split()) - 4

"""The authors' prompts for SWAP and REPLACE.

The texts are those of their code, but `replace_printed`, which is the paper's: it has no "Input:"
and "Output:", and says "this sentence". REPLACE_VERB and REPLACE_SPATIAL are only in the code.

Source: Kamath et al. 2024, appendix C.1; github.com/amitakamath/hard_positives,
generate_hard_positives.py.
"""

from dataclasses import dataclass
from typing import Literal

PromptName = Literal["swap", "replace", "replace_printed", "replace_verb", "replace_spatial"]

OF_THE_CODE: tuple[PromptName, ...] = ("swap", "replace", "replace_verb", "replace_spatial")
"""The prompts of the authors' code."""
OF_THE_PAPER: tuple[PromptName, ...] = ("swap", "replace_printed")
"""Those of the paper's main training set (section 5.1, appendix C.1): SWAP, and one REPLACE."""

_MAX_SWAP_WORDS = 15


@dataclass(frozen=True, kw_only=True, slots=True)
class Prompt:
    """A prompt with one gap for the caption.

    Attributes:
      name: the name users give.
      template: the text; `{example}` stands for the caption.
      max_new_tokens: maximum number of tokens of an answer, as in the paper.
    """

    name: PromptName
    template: str
    max_new_tokens: int

    def render(self, caption: str) -> str:
        """Returns the prompt for a caption, stripped of white space, as the authors sent it."""
        return self.template.replace("{example}", caption).strip()

    def applies_to(self, caption: str) -> bool:
        """Tells whether the authors used the prompt on captions like this.

        They used SWAP on captions with the word "and" and fewer than 15 words, the others on all.
        """
        words = caption.lower().split()
        return self.name != "swap" or ("and" in words and len(words) < _MAX_SWAP_WORDS)


_SWAP = """\
Swap the words around the word "and" in a sentence without changing the meaning. Only respond with \
the changed sentence.

Input: three giraffes and two antelope
Output: two antelopes and three giraffes

Input: a blue and white stained glass clock shows the time
Output: a white and blue stained glass clock shows the time

Input: a mixture of rice and broccoli are put together
Output: a mixture of broccoli and rice are put together

Input: a bathroom with a sink, toilet and shower
Output: a bathroom with a sink, shower and toilet

Input: there is a man wearing glasses and holding a wine bottle
Output: there is a man holding a wine bottle and wearing glasses

Input: {example}
Output: """

_REPLACE = """\
Replace one word in the input sentence with a synonym, without changing the meaning of the \
sentence. Only output the changed sentence.
Input: {example}
Output: """

_REPLACE_PRINTED = """\
Replace one word in this sentence with a synonym, without changing the meaning of the sentence. \
Only output the changed sentence.
{example}"""

_REPLACE_VERB = """\
Replace one verb in this sentence with a synonym, without changing the meaning of the sentence. \
Only output the changed sentence.
Input: A person wearing a shirt and smiling.
Output: A person clothed in a shirt and smiling.

Input: {example}
Output: """

_REPLACE_SPATIAL = """\
Replace a spatial preposition in this sentence with a synonym, without changing the meaning of the \
sentence. Only output the changed sentence.
Input: A city filled with tall buildings under a cloudy sky.
Output: A city filled with tall buildings beneath a cloudy sky.

Input: {example}
Output: """

PROMPTS: dict[PromptName, Prompt] = {
    "swap": Prompt(name="swap", template=_SWAP, max_new_tokens=20),
    "replace": Prompt(name="replace", template=_REPLACE, max_new_tokens=30),
    "replace_printed": Prompt(name="replace_printed", template=_REPLACE_PRINTED, max_new_tokens=30),
    "replace_verb": Prompt(name="replace_verb", template=_REPLACE_VERB, max_new_tokens=30),
    "replace_spatial": Prompt(name="replace_spatial", template=_REPLACE_SPATIAL, max_new_tokens=30),
}
"""The prompts by name."""

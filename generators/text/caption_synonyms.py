"""Words that mean the same in a caption: a list made by hand, for which WordNet is not needed."""

import csv
import functools
from importlib.resources import files


@functools.cache
def caption_synonyms() -> dict[tuple[str, str], tuple[str, ...]]:
    """Returns the synonyms of each word of the list, by part of speech ("n" or "a") and lemma.

    They are empty where WordNet's first sense is rarely the one meant in a caption.
    """
    resource = files("eqforge.generators.text") / "data" / "caption_synonyms.tsv"
    rows = csv.DictReader(resource.read_text(encoding="utf-8").splitlines(), delimiter="\t")
    return {
        (row["pos"], row["word"]): tuple(filter(None, row["synonyms"].split(","))) for row in rows
    }

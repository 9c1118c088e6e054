"""ConMe's tables: a caption of SugarCrepe's, and a harder negative by language models.

`image` is the path on the authors' machine, of which the name is kept: the images are those of
COCO's val2017. `orig_neg` is SugarCrepe's own negative.

Source: Huang et al. 2024, "ConMe"; the columns are those that github.com/jmiemirza/ConMe reads,
  `dec_vl_eval/src/datasets/benchmark_datasets.py`, COMBINED_LLM.
"""

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final

from eqforge.sources.benchmarks.form import (
    BenchmarkItem,
    Entry,
    Form,
    picture,
    record_id,
    rest,
    text,
)

FIELDS: Final = frozenset(("image", "orig_pos", "new_neg"))


def read(entry: Entry) -> Iterator[BenchmarkItem]:
    """Yields the item of a row."""
    node = entry.node
    path, cells = picture(entry, "image")
    image = path if any(cells) else PurePosixPath(path).name
    yield BenchmarkItem(
        item_id=record_id(entry, image, None),
        split=text(node, "split", default="test"),
        kind=entry.part.removesuffix("_combined"),
        group=text(node, "orig_ind"),
        images=(image,),
        cells=cells,
        texts=(node["orig_pos"].text(),),
        negatives=(node["new_neg"].text(),),
        annotation=rest(node, *FIELDS, "split"),
    )


FORMS: Final = {"conme": (Form(fields=FIELDS, read=read),)}

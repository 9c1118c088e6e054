"""Subtitles by the videos that they are named after: `talk.srt`, or `talk.en-US.vtt` by yt-dlp.

A language is told by the name alone, so that ids do not depend on what lies in another folder.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from eqforge.core.errors import InputError
from eqforge.core.files.checked import Node, listed

ENDINGS = (".srt", ".vtt")
# The languages of ISO 639-1, and those of three letters that YouTube and players of films use.
_CODES = """
aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da
de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz
ia id ie ig ii ik io is it iu iw ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li
ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa
pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta te tg th
ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu
ara bho ceb chi ces ckb cze dan deu doi dut ell eng fil fin fra fre ger gom gre haw heb hin hmn
hun ilo ind ita jpn kor kri lus mai mni nld nor nso pol por ron rum rus spa swe tha tur ukr und
vie yue zho
"""
_LANGUAGES = frozenset(_CODES.split())
_TAG = re.compile(r"(?P<video>.+)\.(?P<tag>(?P<language>[A-Za-z]{2,3})(?:[-_][A-Za-z0-9_]{1,20})*)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Subtitles:
    """A file of subtitles.

    Attributes:
      file: its path.
      video: the name of its video, without an ending.
      language: what stands in its name, such as `en-US`; empty if nothing does.
      problem: why it is not read; empty if it is.
    """

    file: Path
    video: str
    language: str = ""
    problem: str = ""


def subtitles_of(path: Path, language: str | None) -> list[Subtitles]:
    """Returns the subtitles that a path names, one file a video: itself, or those below a folder.

    Args:
      path: a file, or a folder.
      language: the one that is wanted, such as `en`, which takes `en-US`, too; without it there has
        to be one file for a video. Names that say no language are of any.

    Raises:
      InputError: a video has several files, even so.
    """
    if not path.is_dir():
        files = [path] if path.suffix.lower() in ENDINGS else []
    else:
        files = sorted(file for file in path.rglob("*") if file.suffix.lower() in ENDINGS)
    found = sorted((_named(file, path) for file in files), key=attrgetter("video"))
    chosen: list[Subtitles] = []
    problems: list[str] = []
    for video, group in groupby(found, key=attrgetter("video")):
        wanted = list(_wanted(list(group), language))
        if len(wanted) > 1:
            names = ", ".join(each.file.name for each in wanted)
            problems.append(f"{video} has {names}")
        chosen += wanted
    if problems:
        raise InputError(
            f"{path}: several subtitles of one video: {listed(problems)}; choose a language, as in "
            f"--subtitle-language {_example(chosen)}, or keep one file for a video"
        )
    return sorted(chosen, key=attrgetter("file"))


def _example(found: Iterable[Subtitles]) -> str:
    return min((each.language for each in found if each.language), default="en")


def _named(file: Path, root: Path) -> Subtitles:
    name = Path(file.name) if file == root else file.relative_to(root)
    video = Node(str(file), "the video's name", name.with_suffix("").as_posix()).name()
    tag = _TAG.fullmatch(Path(video).name)
    if tag is None or tag["language"].lower() not in _LANGUAGES:
        return Subtitles(file=file, video=video)
    return Subtitles(file=file, video=video[: -len(tag["tag"]) - 1], language=tag["tag"])


def _wanted(group: list[Subtitles], language: str | None) -> Iterator[Subtitles]:
    """Yields the files of a video that are in a language: of exactly its tag, else of a longer one.

    If there are none, each has a problem, but the file alone whose name says no language.
    """
    if language is None:
        yield from group
        return
    wanted = language.lower().replace("_", "-")
    tags = [each.language.lower().replace("_", "-") for each in group]
    exact = [each for each, tag in zip(group, tags, strict=True) if tag == wanted]
    longer = [each for each, tag in zip(group, tags, strict=True) if tag.startswith(f"{wanted}-")]
    unnamed = [each for each in group if not each.language]
    if found := exact or longer or unnamed:
        yield from found
        return
    there = ", ".join(sorted(each.language for each in group))
    problem = f"no subtitles in {language!r}; there are {there}"
    yield replace(group[0], problem=problem)

"""Read files in which one record holds several captions of a video with their times.

Objects, one member per video:
  ActivityNet Captions   {"v_1": {"duration": 9, "timestamps": [[0, 4.5]], "sentences": ["..."]}}
  YouCook2               {"database": {"v": {"annotations": [
                           {"segment": [1, 5], "sentence": "..."}]}}}
  Ego4D                  {"uid": {"narration_pass_1": {"narrations": [
                           {"timestamp_sec": 1.5, "narration_text": "..."}]}}} (narration.json), or
                         {"videos": {"uid": {"narrations": [{"time": 1.5, "text": "..."}]}}}
                         (all_narrations_redacted.json); their summaries are not read

Records of an array or of JSON lines:
  LLaVA-Video            {"video": "a.mp4", "conversations": [{"from": "gpt", "value": "..."}]}, if
                         the answers state times: `From 0 to 4.5, ...`, or `0.0 - 4.5 seconds, ...`
  VTimeLLM               the same with <s0> and <e0>, whose times `meta.token` has
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from eqforge.core.errors import InputError
from eqforge.core.files.checked import Node, parse_json
from eqforge.schemas.records.scores import compact_json
from eqforge.sources.moments import UNCLEAR, split_line
from eqforge.sources.record_files import TIMES, Record, read_content

_NAMES = ("video", "video_id", "id")
_OWN = frozenset((*TIMES, *_NAMES, "caption", "frame", "segment"))
_NEXT = re.compile(r"\n+|(?<=[.!?;])\s+(?=(?:from|at)\s+\[?\d|\[?\d)", re.IGNORECASE)
_LEAD = re.compile(r"(?:from|at)\s+", re.IGNORECASE)


def read_dense_file(path: Path) -> Iterator[Record] | None:
    """Yield the captions of a JSON object; None if the file holds an array or JSON lines."""
    content = read_content(path)
    if not content.lstrip().startswith("{"):
        return None
    try:
        whole = parse_json(content, path.name, nan_is_null=True)
    except InputError:
        return None  # JSON lines, whose reader reports errors by line
    is_record = {"video", "caption", "conversations"} & set(whole.value)
    return None if is_record or not whole.value else _of_object(whole)


def _of_object(whole: Node) -> Iterator[Record]:
    for name in ("database", "videos"):
        whole = whole.get(name) or whole
    for number, (video, record) in enumerate(whole.items(), start=1):
        place = Record(unit="video", number=number, source=compact_json(record.value))
        yield from _spread(place, video, record)


def spread(record: Record, file: str) -> Iterator[Record]:
    """Yield one record per caption of a record that holds several; others unchanged."""
    value = record.value
    if not isinstance(value, dict) or "caption" in value:
        yield record
    elif "conversations" in value or {"timestamps", "sentences"} <= value.keys():
        video = next((value[name] for name in _NAMES if isinstance(value.get(name), str)), "")
        yield from _spread(record, video, Node(file, record.where, value))
    else:
        yield record


def _spread(place: Record, video: str, record: Node) -> Iterator[Record]:
    """Yield the captions of a video, or one record with the problem of all of them."""
    try:
        shared = {
            "split" if name == "subset" else name: value
            for name, value in record.mapping().items()
            if not isinstance(value, dict | list) and name not in _OWN
        }
        lines = [shared | {"video": video} | line for line in _captions(record)]
    except InputError as error:
        problem = str(error).removeprefix(record.place).lstrip(".: ")
        yield replace(place, value=None, video=video, problem=problem)
        return
    for line in lines:
        yield replace(place, source=compact_json(line), value=line)


def _captions(record: Node) -> list[dict[str, Any]]:
    members = record.mapping()
    if "conversations" in members:
        return _answers(record)
    if "annotations" in members:
        return [
            {"timestamp_s": each["segment"].value, "caption": each["sentence"].line().strip()}
            | ({} if each.get("id") is None else {"id": str(each["id"].value)})
            for each in record["annotations"].elements()
        ]
    if "timestamps" in members or "sentences" in members:
        times, sentences = list(record["timestamps"].elements()), record["sentences"]
        if len(times) != len(captions := list(sentences.elements())):
            sentences.fail(f"as many sentences as timestamps ({len(times)})", f"{len(captions)}")
        return [
            {"timestamp_s": time.value, "caption": caption.line().strip()}
            for time, caption in zip(times, captions, strict=True)
        ]
    passes = [name for name in members if str(name).startswith("narration_pass_")]
    if not passes and "narrations" not in members:
        record.fail("timestamps and sentences, annotations, narrations, or conversations")
    return [
        {"timestamp_s": narration[time].value, "caption": narration[text].line().strip()}
        for one in ([record[name] for name in passes] or [record])
        for narration in one["narrations"].elements()
        for time, text in [
            ("timestamp_sec", "narration_text")
            if "narration_text" in narration.mapping()
            else ("time", "text")
        ]
    ]


def _answers(record: Node) -> list[dict[str, Any]]:
    """Return the captions in the answers of a conversation, each of which must state its time."""
    meta = record.get("meta")
    if meta is not None and meta.get("split") is not None:
        meta["split"].fail(
            "no split, because its times may count from the start of the split or of the video"
        )
    tokens = None if meta is None else meta.get("token")
    captions = []
    for turn in record["conversations"].elements():
        if turn["from"].text() not in ("gpt", "assistant"):
            continue
        answer = turn["value"].text()
        for token, time in () if tokens is None else tokens.items():
            answer = answer.replace(token, f"{time.number():g}")
        for piece in filter(None, map(str.strip, _NEXT.split(answer))):
            found = split_line(_LEAD.sub("", piece, count=1) if _LEAD.match(piece) else piece)
            if found is None:
                turn["value"].fail(UNCLEAR.removeprefix("expected "))
            captions.append({"timestamp_s": found[0], "caption": found[1]})
    return captions

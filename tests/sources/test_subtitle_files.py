"""Subtitles are found by the names of their videos, with or without a language."""

from pathlib import Path

import pytest

from eqforge.core.errors import InputError
from eqforge.sources.moment_files import moment_files, subtitles_of
from eqforge.sources.video_captions import read_captioned_videos

CUE = "00:00:01.000 --> 00:00:02.000\n{}\n"


def write(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(CUE.format(name))
    return folder


@pytest.mark.parametrize(
    ("name", "video", "language"),
    [
        ("talk.srt", "talk", ""),
        ("talk.en.vtt", "talk", "en"),
        ("talk.en-US.srt", "talk", "en-US"),
        ("talk.pt_BR.srt", "talk", "pt_BR"),
        ("Title [dQw4w9WgXcQ].en-orig.vtt", "Title [dQw4w9WgXcQ]", "en-orig"),
        ("a/talk.en-uYU-mmqFLq8.vtt", "a/talk", "en-uYU-mmqFLq8"),
        ("talk.es-419.vtt", "talk", "es-419"),
        ("talk.cut.srt", "talk.cut", ""),
        ("en.srt", "en", ""),
        ("talk.2024.en.vtt", "talk.2024", "en"),
    ],
)
def test_a_name_says_video_and_language(
    tmp_path: Path, name: str, video: str, language: str
) -> None:
    (found,) = subtitles_of(write(tmp_path, name), None)
    assert (found.video, found.language) == (video, language)
    assert [each.video for each in read_captioned_videos(tmp_path / name)] == [Path(video).name]


def test_several_languages_of_a_video_are_an_error_that_names_them(tmp_path: Path) -> None:
    write(tmp_path, "a/talk.en.vtt", "a/talk.de.vtt", "b/talk.vtt", "b/talk.srt", "c.en.vtt")
    with pytest.raises(
        InputError,
        match=r"the video 'a/talk' has the subtitle files talk\.de\.vtt and talk\.en\.vtt; the "
        r"video 'b/talk' has the subtitle files talk\.srt and talk\.vtt\. Choose a language, "
        r"as in --subtitle-language de",
    ):
        moment_files(tmp_path)


def test_a_language_chooses_among_several(tmp_path: Path) -> None:
    write(
        tmp_path, "a.de.vtt", "a.en.vtt", "a.en-US.vtt", "b.en_GB.srt", "b.srt", "c.srt", "d.fr.srt"
    )

    videos = read_captioned_videos(tmp_path, 0.5, "EN")

    said = {video.video: [each.caption for each in video.segments] for video in videos}
    assert said == {"a": ["a.en.vtt"], "b": ["b.en_GB.srt"], "c": ["c.srt"], "d": []}
    (refused,) = videos[-1].refused
    assert refused.detail == "no subtitles in 'EN'; found fr"
    with pytest.raises(InputError, match=r"d\.fr\.srt: line 1: no subtitles in 'EN'; found fr$"):
        read_captioned_videos(tmp_path, 0.0, "EN")


def test_a_language_that_is_still_several_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, "a.en-US.vtt", "a.en-GB.vtt")
    with pytest.raises(
        InputError, match=r"'a' has the subtitle files a\.en-GB\.vtt and a\.en-US\.vtt"
    ):
        moment_files(tmp_path, "en")
    assert [file.name for file in moment_files(tmp_path, "en-us")] == ["a.en-US.vtt"]


def test_a_language_of_what_is_no_subtitle_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("video,timestamp_s,caption\na.mp4,1,x\n")
    with pytest.raises(
        InputError, match=r"--subtitle-language en: .*c\.csv is not a file or folder of"
    ):
        moment_files(tmp_path / "c.csv", "en")

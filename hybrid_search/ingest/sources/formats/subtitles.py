"""WebVTT and SubRip subtitles of a call. The library `webvtt` parses the cues.

https://www.w3.org/TR/webvtt1/ (speakers are its voice spans, e.g. <v Agent>)
https://wiki.videolan.org/SubRip/
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, BinaryIO

from hybrid_search.errors import InputError
from hybrid_search.ingest.sources.formats.base import Format
from hybrid_search.ingest.sources.formats.named_lines import NamedLine, find_speakers
from hybrid_search.ingest.sources.formats.text import read_text
from hybrid_search.ingest.sources.formats.turns import Turn, join_cut_sentences, make_turn

_VTT_MARK = re.compile(rb"(?:\xef\xbb\xbf)?WEBVTT(?:\s|$)")
_SRT_CUE = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*\d+[ \t]*\r?\n(?:\d+:)?\d\d:\d\d[,.]\d+ --> (?:\d+:)?\d\d:\d\d[,.]\d+"
)
_VOICE = re.compile(r"<v(?:\.[^\s>]*)?\s+([^>]*)>")
_TAG = re.compile(r"</?[A-Za-z0-9][^>]*>|\{\\[^}]*\}")


def read(kind: str, file: BinaryIO, id: str) -> Iterator[dict[str, Any]]:
    """Yield the document of a file; speakers come from voice spans, or names before colons."""
    import webvtt
    from webvtt.errors import MalformedCaptionError, MalformedFileError

    try:
        cues = webvtt.from_buffer(io.StringIO(read_text(file)), format=kind)
    except (MalformedFileError, MalformedCaptionError) as error:
        raise InputError(f"not a whole file of {kind.upper()}", str(error)) from error
    yield {"id": id, "turns": join_cut_sentences(_make_turns(cues.captions))}


def _make_turns(cues: Iterable[Any]) -> Iterator[Turn]:
    voices = [(cue, *voice) for cue in cues for voice in _split_voices(cue.raw_text)]
    lines = [NamedLine.parse(text) for _, _, text in voices]
    speakers = find_speakers(lines)
    for (cue, speaker, text), line in zip(voices, lines, strict=True):
        times = _to_ms(cue.start_time), _to_ms(cue.end_time)
        if speaker is None and line.name in speakers:
            speaker, text = line.name, line.words
        yield make_turn(text, speaker, times)


def _split_voices(text: str) -> Iterator[tuple[str | None, str]]:
    """Yield speaker and words of each voice in a cue, on one line and without tags."""
    unnamed, *named = _VOICE.split(text)
    for speaker, words in [(None, unnamed), *zip(named[::2], named[1::2], strict=True)]:
        plain = " ".join(html.unescape(_TAG.sub("", words)).split())
        if plain:
            yield html.unescape(speaker).strip() if speaker else None, plain


def _to_ms(time: Any) -> int:
    seconds = 60 * (60 * time.hours + time.minutes) + time.seconds
    return int(1000 * seconds + time.milliseconds)


WEBVTT = Format("webvtt", lambda head, _: bool(_VTT_MARK.match(head)), partial(read, "vtt"))
SUBRIP = Format("srt", lambda head, _: bool(_SRT_CUE.match(head)), partial(read, "srt"))

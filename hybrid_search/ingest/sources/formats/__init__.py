"""File formats of whole conversations, recognised by their first bytes.

A format is a module with a `Format`, and a line in `FORMATS`. Those of JSON are made by
`base.json_format` from a function and the keys that they have; all use `turns` to build turns.
"""

from __future__ import annotations

from hybrid_search.ingest.sources.formats.assemblyai import ASSEMBLYAI
from hybrid_search.ingest.sources.formats.base import Format
from hybrid_search.ingest.sources.formats.contact_lens import CONTACT_LENS
from hybrid_search.ingest.sources.formats.deepgram import DEEPGRAM
from hybrid_search.ingest.sources.formats.genesys import GENESYS
from hybrid_search.ingest.sources.formats.mbox import MBOX
from hybrid_search.ingest.sources.formats.subtitles import SUBRIP, WEBVTT
from hybrid_search.ingest.sources.formats.text import TEXT
from hybrid_search.ingest.sources.formats.transcribe import TRANSCRIBE
from hybrid_search.ingest.sources.formats.whisper import WHISPER
from hybrid_search.ingest.sources.formats.zendesk import ZENDESK

FORMATS: tuple[Format, ...] = (
    *(CONTACT_LENS, TRANSCRIBE, GENESYS, DEEPGRAM, ASSEMBLYAI, WHISPER, ZENDESK),
    *(WEBVTT, SUBRIP, MBOX, TEXT),
)
"""All formats, in the order in which they are tried."""

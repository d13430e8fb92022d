"""What a hit shows of an attached index: cut from its documents, where the sidecar says."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from hybrid_search.backends.server import passage_codec, request_bodies
from hybrid_search.backends.server.attachment import Attachment, SourceText, Version, hash_text
from hybrid_search.backends.types import Fault, Key, PassageContent

OUTDATED = Fault("outdated", "its text has changed since the last sync")

WHOLE = -1
"""The ordinal, in a key, of a document that is found by its words alone."""

SHOWN_CHARACTERS = 500
"""How much of its text is shown then."""

COLUMNS = ["document_id", "ordinal", "end", "text_hash"]

Hit = Mapping[str, Any]


def build_whole_key(document_id: str) -> Key:
    """Return the key of a document that is found by its words alone."""
    return passage_codec.passage_id(document_id, WHOLE)


def build_places_body(keys: list[Key]) -> dict[str, Any]:
    """Return the search for the places of passages in their documents."""
    body = request_bodies.contents_body(keys)
    return {**body, "_source": ["start", "layout"], "docvalue_fields": COLUMNS}


def cut_passages(
    attachment: Attachment,
    keys: Sequence[Key],
    documents: Mapping[str, Sequence[Hit]],
    passages: Mapping[Key, Hit],
) -> dict[Key, PassageContent]:
    """Return the contents of passages, as far as their documents are there.

    Args:
        attachment: Where the texts of the documents are.
        keys: The passages, or documents that are found by their words alone.
        documents: The hits of each document, of which several may have one id.
        passages: The hits of `build_places_body`.
    """
    contents: dict[Key, PassageContent] = {}
    for key in keys:
        id_, ordinal = passage_codec.parse_passage_id(key)
        hits, content = documents.get(id_, ()), None
        if hits and ordinal == WHOLE:
            content = _show_beginning(attachment, max(hits, key=Version.from_hit))
        elif hits and key in passages:
            content = _cut(attachment, passages[key], hits)
        if content:
            contents[key] = content
    return contents


def _cut(attachment: Attachment, passage: Hit, hits: Sequence[Hit]) -> PassageContent | None:
    """Return a passage, with a fault if its document has another text there by now.

    None if the document shows no text.
    """
    start, (end,) = passage["_source"]["start"], passage["fields"]["end"]
    is_readable = False
    for hit in hits:
        read = attachment.read_text(hit.get("_source", {}))
        is_readable |= read is not None
        if read and hash_text(read.text[start:end]) in passage["fields"].get("text_hash", ()):
            layout = json.loads(passage["_source"]["layout"])
            metadata = attachment.read_metadata(hit["_source"])
            return _build_content(read, start, end, layout, metadata)
    return PassageContent(start, "", "[]", "{}", OUTDATED) if is_readable else None


def _show_beginning(attachment: Attachment, hit: Hit) -> PassageContent | None:
    """Return the beginning of a document; None if it shows no text."""
    source = hit.get("_source", {})
    read, metadata = attachment.read_text(source), attachment.read_metadata(source)
    return read and _build_content(read, 0, SHOWN_CHARACTERS, [], metadata)


def _build_content(
    read: SourceText, start: int, end: int, layout: list[Any], metadata: Mapping[str, Any]
) -> PassageContent:
    turns = [
        {**turn, **({"speaker": name} if (name := read.speakers[turn["turn"]]) else {})}
        for turn in layout
    ]
    described = [json.dumps(value, ensure_ascii=False) for value in (turns, metadata)]
    return PassageContent(start, read.text[start:end], described[0], described[1])

"""Mask words in documents of an index, and remove what was stored of them before."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hybrid_search.backends.base import Backend
from hybrid_search.backends.types import DamagedRowError, ListedPassage
from hybrid_search.encoder.base import Encoder
from hybrid_search.errors import DocumentMissingError, IndexStoreError, InputError, UsageError
from hybrid_search.ingest import document_parser
from hybrid_search.ingest.options import IngestOptions
from hybrid_search.ingest.pipeline import ingest
from hybrid_search.ingest.redactions import KEY, Redaction, parse_redactions
from hybrid_search.ingest.types import SourceLine
from hybrid_search.maintenance.verify.reencode import (
    DifferentError,
    fetch_contents,
    join_passages,
)
from hybrid_search.maintenance.verify.repair import restore_document
from hybrid_search.text.types import Document

SOURCE = "redact"

SpanSource = str | Path | Iterable[Mapping[str, Any]]
"""Spans of documents, or a file of them."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was masked in a document; it has none of the words.

    There is no digest of the text of before: with the masked text it would tell who guesses right.

    Attributes:
        id: The id of the document.
        spans: How many spans of each type were masked.
        characters: How many characters they have together.
        text_sha256: SHA-256 of the text afterwards, in UTF-8.
        redacted_at: When it was done, in ISO 8601.
    """

    id: str
    spans: Mapping[str, int]
    characters: int
    text_sha256: str
    redacted_at: str

    def to_dict(self) -> dict[str, Any]:
        """Return the receipt as the command line prints it."""
        return asdict(self)


def redact(
    backend: Backend,
    encoder: Encoder,
    index: str,
    spans: SpanSource,
) -> list[Receipt]:
    """Mask spans of documents, index these again, and purge the index.

    Nothing is written unless all spans are right: UsageError is raised if one is outside its
    document or turn or overlaps another, DocumentMissingError for an unknown id. The same call
    again does no harm.

    Args:
        backend: Where the index is.
        encoder: The model that wrote it.
        index: Name of the index.
        spans: Each with the ``id`` of its document, ``start``, ``end`` and ``type``; or a
            file with one as JSON a line.

    Returns:
        A receipt of each document.

    Raises:
        IndexStoreError: If a document is not accepted, or the index cannot be purged.
    """
    given = read_spans(Path(spans)) if isinstance(spans, str | Path) else spans
    redactions = _group_by_document(given)
    receipts = [
        _check_document(backend, index, document_id, own) for document_id, own in redactions.items()
    ]
    spec, _ = backend.read_head(index)
    with tempfile.TemporaryDirectory() as folder:
        options = IngestOptions(index, Path(folder) / "rejected.jsonl", spec.policy, spec.codes)
        summary = ingest(_iterate_lines(backend, index, redactions), backend, encoder, options)
    if summary.failed:
        raise IndexStoreError(
            f"{summary.failed} of {len(receipts)} documents could not be written again "
            f"({next(iter(summary.reasons))}), and have their words still: run the same command "
            "again, or delete them"
        )
    backend.purge(index)
    return receipts


def read_spans(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the spans of a file, one JSON object a line; UsageError names a line that is none."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise UsageError(
            f"the spans in {path} cannot be read ({error.strerror}): name a file of JSON lines"
        ) from error
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield document_parser.load_object(line)
            except InputError as error:
                form = '{"id", "start", "end", "type"}'
                raise UsageError(f"{path}:{number}: {error}. Each line is {form}") from error


def _group_by_document(spans: Iterable[Mapping[str, Any]]) -> dict[str, list[Redaction]]:
    grouped: dict[str, list[dict[str, Any]]] = {}
    for number, span in enumerate(spans, 1):
        others = dict(span)
        document_id = others.pop("id", None)
        if not isinstance(document_id, str) or not document_id:
            raise UsageError(
                f"span {number} has no id: each is {{id, start, end, type}}. Nothing was changed"
            )
        grouped.setdefault(document_id, []).append(others)
    if not grouped:
        raise UsageError("no spans were given: each is {id, start, end, type}")
    return {
        document_id: _explain(document_id, parse_redactions, values)
        for document_id, values in grouped.items()
    }


def _check_document(
    backend: Backend, index: str, document_id: str, redactions: Sequence[Redaction]
) -> Receipt:
    """Return the receipt of a document that can be masked so."""
    line = _build_line(read_stored(backend, index, document_id), redactions)
    document, _ = _explain(document_id, document_parser.parse, line)
    types = Counter(item.type for item in redactions)
    characters = sum(item.end - item.start for item in redactions)
    digest = hashlib.sha256(document.text.encode()).hexdigest()
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return Receipt(document_id, dict(types), characters, digest, now)


def _explain(document_id: str, function: Any, argument: Any) -> Any:
    """Return what a function makes of an argument, with its InputError as one of usage."""
    try:
        return function(argument)
    except InputError as error:
        raise UsageError(
            f"document {document_id!r}: {error} ({error.detail}). Nothing was changed"
        ) from error


def _iterate_lines(
    backend: Backend, index: str, redactions: Mapping[str, Sequence[Redaction]]
) -> Iterator[SourceLine]:
    for number, (document_id, own) in enumerate(redactions.items(), 1):
        data = _build_line(read_stored(backend, index, document_id), own)
        yield SourceLine(SOURCE, number, data)


def read_stored(backend: Backend, index: str, document_id: str) -> Document:
    """Return a document as an index has it; what no passage holds of its text is blank.

    Raises:
        DocumentMissingError: If there is no such document.
        DamagedRowError: If what is stored of it is damaged.
    """
    keys = backend.list_passages(index, document_id)
    if not keys:
        raise DocumentMissingError(
            f"there is no document {document_id!r} in index {index!r}: leave out its spans. "
            "Nothing was changed"
        )
    rows = [ListedPassage(key, document_id, number, 0, "") for number, key in enumerate(keys)]
    contents = fetch_contents(backend, index, keys)
    try:
        stored_text = join_passages(rows, contents)
        document = restore_document(stored_text, [contents[key] for key in keys])
    except (DifferentError, json.JSONDecodeError) as error:
        raise DamagedRowError(index, document_id) from error
    return document


def _build_line(document: Document, redactions: Sequence[Redaction]) -> bytes:
    """Return the line of JSON that gives a document as it is stored."""
    turns = list(_list_turns(document))
    content = {"turns": turns} if turns else {"text": _fill(document.text)}
    given = [item.model_dump() for item in redactions]
    return json.dumps({**document.metadata, "id": document.id, **content, KEY: given}).encode()


def _list_turns(document: Document) -> Iterator[dict[str, Any]]:
    """Yield turns of JSON; those without a word, which no passage lists, stand between the others.

    Their texts are known if a passage has them, or else are blank.
    """
    end, wordless = -1, 0
    for turn in document.turns:
        if not turn.text:
            wordless += 1
            continue
        if wordless:
            between = document.text[end + 1 : turn.start - 1]
            texts = between.split("\n")
            if len(texts) != wordless:
                texts = [" " * (len(between) - wordless + 1), *[""] * (wordless - 1)]
            yield from ({"text": _fill(text)} for text in texts)
        fields = {
            "speaker": turn.speaker,
            "start_ms": turn.start_ms,
            "end_ms": turn.end_ms,
            "word_times": turn.word_times,
        }
        given = {name: value for name, value in fields.items() if value not in (None, ())}
        yield {**turn.extra, **given, "text": _fill(turn.text)}
        end, wordless = turn.end, 0


def _fill(text: str) -> str:
    return text.replace("\0", " ")

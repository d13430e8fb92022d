"""Texts through an encoder that may fail: at one text, which is then found and refused alone, or at
all of them, which is one error.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hybrid_search.encoder.base import Encoder
from hybrid_search.errors import HybridSearchError, InputError, ModelError
from hybrid_search.ingest.rejects import Rejects
from hybrid_search.ingest.types import PreparedPassage
from hybrid_search.text.types import Document, Encoding

EncodingOrError = Encoding | InputError

PROBE = "a word"
"""What every encoder takes that works at all."""

_log = logging.getLogger(__name__)


def encode_or_isolate(encoder: Encoder, texts: Sequence[str]) -> list[EncodingOrError]:
    """The encoding of each text, or why there is none.

    Raises ModelError where the encoder takes nothing any more.
    """
    try:
        return list(encoder.encode(texts))
    except HybridSearchError:
        raise
    except Exception as error:
        _log.info(
            "the encoder failed at one of %d texts (%s): it is looked for",
            len(texts),
            _describe_error(error),
        )
        if len(texts) < 2:
            _check(encoder)
            return [
                InputError(f"the encoder fails at this text: {_describe_error(error)}")
                for _ in texts
            ]
    middle = len(texts) // 2
    return encode_or_isolate(encoder, texts[:middle]) + encode_or_isolate(encoder, texts[middle:])


def _check(encoder: Encoder) -> None:
    """Raise ModelError unless `encoder` takes another text."""
    try:
        encoder.encode([PROBE])
    except Exception as error:
        raise ModelError(
            f"the encoder {encoder.info.name} fails at every text: {_describe_error(error)}. What was committed is safe: see to the device, and run the same "
            "command again"
        ) from error


def _describe_error(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


@dataclass(slots=True)
class FailureFilter:
    """Keeps the passages of those documents that the encoder takes whole, and sends the others to
    `rejects`.
    """

    rejects: Rejects
    failed_document: Document | None = None
    """What the encoder failed at last. More of its passages may come."""

    def drop_failed(
        self,
        block: Sequence[PreparedPassage],
        results: Sequence[EncodingOrError],
        refused: Document | None,
    ) -> tuple[list[PreparedPassage], list[Encoding], bool]:
        """What is left of a block with its encodings, and whether the document that an earlier
        block began has to be taken back.

        `refused` is one of which passages still come though the store has refused it: it is not
        told of again.
        """
        failed_before, failed_ids = self.failed_document, {id(self.failed_document)}
        encoded_passages: list[tuple[PreparedPassage, list[Encoding]]] = []
        for prepared, part_encodings in _group_by_passage(block, results):
            error = next(
                (encoding for encoding in part_encodings if isinstance(encoding, InputError)), None
            )
            if error and id(prepared.parsed.document) not in failed_ids:
                self.failed_document = prepared.parsed.document
                failed_ids.add(id(self.failed_document))
                if self.failed_document is not refused:
                    self.rejects.add(prepared.parsed.line, str(error), self.failed_document.id)
            encoded_passages.append(
                (
                    prepared,
                    [encoding for encoding in part_encodings if isinstance(encoding, Encoding)],
                )
            )
        encoded_passages = [
            (prepared, part_encodings)
            for prepared, part_encodings in encoded_passages
            if id(prepared.parsed.document) not in failed_ids
        ]
        open_document = block[0].parsed.document if block[0].passage.ordinal else None
        must_roll_back = (
            open_document is not None
            and open_document is not failed_before
            and id(open_document) in failed_ids
        )
        return (
            [prepared for prepared, _ in encoded_passages],
            [encoding for _, part_encodings in encoded_passages for encoding in part_encodings],
            must_roll_back,
        )


def _group_by_passage(
    block: Sequence[PreparedPassage], results: Sequence[EncodingOrError]
) -> Iterator[tuple[PreparedPassage, list[EncodingOrError]]]:
    """Each passage with what was found for its parts."""
    remaining = iter(results)
    return ((prepared, [next(remaining) for _ in prepared.passage.parts]) for prepared in block)

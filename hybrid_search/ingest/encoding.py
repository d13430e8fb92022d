"""Texts through an encoder that may fail: at one text, which is then found and refused alone, or at all of them, which is one error."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hybrid_search.encoder.base import Encoder
from hybrid_search.errors import HybridSearchError, InputError, ModelError
from hybrid_search.ingest.prepare import Prepared
from hybrid_search.ingest.rejects import Rejects
from hybrid_search.types import Document, Encoding

Found = Encoding | InputError

PROBE = "a word"
"""What every encoder takes that works at all."""

_log = logging.getLogger(__name__)


def encoded(encoder: Encoder, texts: Sequence[str]) -> list[Found]:
    """The encoding of each text, or why there is none. Raises ModelError where the encoder takes nothing any more."""
    try:
        return list(encoder.encode(texts))
    except HybridSearchError:
        raise
    except Exception as error:
        _log.info("the encoder failed at one of %d texts (%s): it is looked for", len(texts), _said(error))
        if len(texts) < 2:
            _check(encoder)
            return [InputError(f"the encoder fails at this text: {_said(error)}") for _ in texts]
    middle = len(texts) // 2
    return encoded(encoder, texts[:middle]) + encoded(encoder, texts[middle:])


def _check(encoder: Encoder) -> None:
    """Raise ModelError unless `encoder` takes another text."""
    try:
        encoder.encode([PROBE])
    except Exception as error:
        raise ModelError(
            f"the encoder {encoder.info.name} fails at every text: {_said(error)}. What was committed is safe: see to the device, and run the same "
            "command again"
        ) from error


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


@dataclass(slots=True)
class Sieve:
    """Keeps the passages of those documents that the encoder takes whole, and sends the others to `rejects`."""

    rejects: Rejects
    out: Document | None = None
    """What the encoder failed at last. More of its passages may come."""

    def good(self, block: Sequence[Prepared], found: Sequence[Found], refused: Document | None) -> tuple[list[Prepared], list[Encoding], bool]:
        """What is left of a block with its encodings, and whether the document that an earlier block began has to be taken back.

        `refused` is one of which passages still come though the store has refused it: it is not told of again.
        """
        before, out = self.out, {id(self.out)}
        kept: list[tuple[Prepared, list[Encoding]]] = []
        for each, some in _each(block, found):
            error = next((one for one in some if isinstance(one, InputError)), None)
            if error and id(each.parsed.document) not in out:
                self.out = each.parsed.document
                out.add(id(self.out))
                if self.out is not refused:
                    self.rejects.add(each.parsed.line, str(error), self.out.id)
            kept.append((each, [one for one in some if isinstance(one, Encoding)]))
        kept = [(each, some) for each, some in kept if id(each.parsed.document) not in out]
        begun = block[0].parsed.document if block[0].passage.ordinal else None
        back = begun is not None and begun is not before and id(begun) in out
        return [each for each, _ in kept], [one for _, some in kept for one in some], back


def _each(block: Sequence[Prepared], found: Sequence[Found]) -> Iterator[tuple[Prepared, list[Found]]]:
    """Each passage with what was found for its parts."""
    left = iter(found)
    return ((each, [next(left) for _ in each.passage.parts]) for each in block)

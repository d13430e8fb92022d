"""Texts as the encoder reads them: token ids, offsets, and the words of spans.

Special tokens are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from hybrid_search.text import spans
from hybrid_search.text.types import Ints
from hybrid_search.text.words import words


@dataclass(frozen=True, eq=False)
class Text:
    """`ids` of the tokens and `offsets` int32 ``[tokens, 2]`` in code points of `text`."""

    text: str
    ids: list[int]
    offsets: Ints

    @cached_property
    def words(self) -> Ints:
        """Start and end of the words that were not cut off, int32 ``[words, 2]``."""
        word_offsets = words(self.text)
        reach = int(self.offsets[-1, 1]) if len(self.offsets) else 0
        return word_offsets[word_offsets[:, 1] <= reach]

    @cached_property
    def word_tokens(self) -> Ints:
        """First token and the token after the last of each word, int32 ``[words, 2]``."""
        return spans.token_bounds(self.offsets, self.words)

    def tokens(self, start: int, end: int) -> tuple[int, int]:
        """Return first token and the token after the last that overlap these characters."""
        first = int(np.searchsorted(self.offsets[:, 1], start, side="right"))
        return first, max(first, int(np.searchsorted(self.offsets[:, 0], end, side="left")))


class Cutter:
    """A folder's tokenizer.

    Texts are cut to `limit` tokens; `before` and `after` are the special tokens around a text.
    """

    def __init__(self, folder: Path, limit: int = 510) -> None:
        path = folder / "tokenizer.json"
        if not path.is_file():
            raise SystemExit(f"{folder} is not an encoder folder: tokenizer.json is missing")
        self.path, self.limit = path, limit
        self._tokenizer = Tokenizer.from_file(str(path))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        edges = self._tokenizer.encode("", add_special_tokens=True).ids
        self.before, self.after = edges[: len(edges) // 2], edges[len(edges) // 2 :]
        self.padding = (
            self._tokenizer.token_to_id("[PAD]") or self._tokenizer.token_to_id("<pad>") or 0
        )

    def tokenize(self, texts: Sequence[str]) -> list[Text]:
        """Return the tokens of each text, in order."""
        encodings = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        limit = self.limit
        return [
            Text(
                text,
                encoding.ids[:limit],
                np.array(encoding.offsets[:limit], dtype=np.int32).reshape(-1, 2),
            )
            for text, encoding in zip(texts, encodings, strict=True)
        ]

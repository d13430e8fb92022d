"""GloVe (Pennington et al., 2014): one vector a word, and a text is the mean of its words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hybrid_search.encoder import EncoderInfo
from hybrid_search.text.types import Encoding, Floats
from hybrid_search.text.words import words


class Glove:
    """An encoder of the product with one token a word; words without a vector are left out.

    A word is looked up as it stands, then in lower case.
    """

    def __init__(self, vectors: dict[str, Floats], name: str = "glove") -> None:
        self._vectors = vectors
        dimension = len(next(iter(vectors.values())))
        self.info = EncoderInfo(name, name, dimension, "float32", "word")

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        """Return the vectors of each text's words."""
        return [self._encode_text(text) for text in texts]

    def _encode_text(self, text: str) -> Encoding:
        placed_vectors = [
            (place, vector)
            for place in words(text).tolist()
            if (vector := self._vector(text[slice(*place)])) is not None
        ]
        vectors = np.array([vector for _, vector in placed_vectors], dtype=np.float32).reshape(
            -1, self.info.dimension
        )
        return Encoding(
            vectors, np.array([place for place, _ in placed_vectors], dtype=np.int32).reshape(-1, 2)
        )

    def _vector(self, word: str) -> Floats | None:
        exact = self._vectors.get(word)
        return self._vectors.get(word.lower()) if exact is None else exact


def read(path: Path) -> Glove:
    """Return the words of a text file of a word and its numbers a line, like glove.840B.300d.txt.

    That one has 2.2 million words and takes 3 GB in memory. The first line tells how many numbers
    there are; a word may contain spaces, the numbers are the last fields.

    Raises:
        SystemExit: For any other line.
    """
    vectors: dict[str, Floats] = {}
    if not path.is_file():
        raise SystemExit(f"{path} is not a file: give --weights, the text file of GloVe's vectors")
    with path.open(encoding="utf-8") as file:
        dimension = 0
        for number, line in enumerate(file, 1):
            dimension = dimension or len(line.split()) - 1
            word, *numbers = line.rstrip("\n").rsplit(" ", dimension)
            vectors[word] = _parse_numbers(numbers, dimension, f"{path}, line {number}")
    return Glove(vectors, path.stem)


def _parse_numbers(texts: Sequence[str], dimension: int, where: str) -> Floats:
    try:
        numbers = np.array(texts, dtype=np.float32)
    except ValueError:
        numbers = np.empty(0, dtype=np.float32)
    if not dimension or len(numbers) != dimension:
        raise SystemExit(f"{where}: not a word and {dimension or 'some'} numbers")
    return numbers

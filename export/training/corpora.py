"""Files of triples, of written topics and of parallel sentences, read as corpora."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from export.training import parallel, written
from export.training.data import HELD_OUT, Corpus, Triple

STEM_LETTERS = 5
"""A word and its inflections must fall on the same side, so the first letters decide."""

STEMS = {"wordnet_examples": "span", "wordnet_definitions": "query"}
"""Files of which some stems are held out, and where a row has the word it is about."""

Row = Mapping[str, Any]


def read(paths: Iterable[Path]) -> list[Corpus]:
    """Return the corpora in `paths` by name.

    Raises:
        SystemExit: For a file that is missing, empty, named twice or without the three texts.
    """
    corpora = sorted((_read(path) for path in paths), key=lambda corpus: corpus.name)
    names = [corpus.name for corpus in corpora]
    if len(set(names)) < len(names):
        raise SystemExit(f"two files of triples have the same name: {', '.join(names)}")
    return corpora


def _read(path: Path) -> Corpus:
    if not path.is_file():
        raise SystemExit(f"{path}: there is no such file of triples")
    content, name = path.read_bytes(), path.name.split(".")[0]
    digest = hashlib.sha256(content).hexdigest()
    rows = list(_parse_lines(content, path))
    if rows and parallel.is_parallel(rows[0][1]):
        sentences = [parallel.select_sentences(row) for _, row in rows if parallel.is_trained(row)]
        triples = list(parallel.expand_rows(sentences))
        return Corpus(name, digest, triples, 0, parallel.list_translations(sentences))
    triples = [triple for where, row in rows for triple in _parse_triples(row, where)]
    training_triples = [triple for triple in triples if not _is_held_out(name, triple)]
    if not training_triples:
        raise SystemExit(f"{path} contains no triples")
    return Corpus(name, digest, training_triples, len(triples) - len(training_triples))


def _parse_lines(content: bytes, path: Path) -> Iterator[tuple[str, Row]]:
    """Yield the rows of a file, each after the words that name its place."""
    lines = (gzip.decompress(content) if path.suffix == ".gz" else content).splitlines()
    for number, line in enumerate(lines, 1):
        if line.strip():
            where = f"{path}, line {number}"
            try:
                row = json.loads(line)
            except ValueError as error:
                raise SystemExit(f"{where}: no JSON: {error}") from error
            if not isinstance(row, dict):
                raise SystemExit(f"{where}: not an object with the texts of a triple")
            yield where, row


def _parse_triples(row: Row, where: str) -> list[Triple]:
    try:
        if written.is_topic(row):
            return list(written.expand_topic(row))
        span, core = _parse_span(row.get("span")), _parse_span(row.get("core"))
        texts = (row["query"], row["positive"], row["negative"])
        return [Triple(*texts, span, row.get("intent"), core, row.get("domain"), row.get("group"))]
    except (ValueError, KeyError, TypeError) as error:
        raise SystemExit(f"{where}: not a triple (query, positive, negative): {error!r}") from error


def _parse_span(value: Sequence[int] | None) -> tuple[int, int] | None:
    return (int(value[0]), int(value[1])) if value else None


def _is_held_out(name: str, triple: Triple) -> bool:
    if name not in STEMS:
        return False
    word = (
        triple.query
        if STEMS[name] == "query" or triple.span is None
        else triple.positive[slice(*triple.span)]
    )
    return held_out(word)


def held_out(word: str) -> bool:
    """Tell whether a word, of WordNet say, is in the tenth that is never trained on."""
    digest = hashlib.sha256(word.lower()[:STEM_LETTERS].encode()).digest()
    return int.from_bytes(digest[:8], "big") % HELD_OUT == 0

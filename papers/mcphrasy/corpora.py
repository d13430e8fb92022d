"""The texts in which contexts are searched: the data folder's calls, passages and requests.

They are read as sentences. The paper has all of Wikipedia.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.quality.sentences import sentences
from benchmarks.quality.tasks import rows
from papers.mcphrasy.files import require_file

TRAIN = "train"
"""The `part` of rows that may be trained on; the others are measured on.

All rows of a file without parts are train.
"""


@dataclass(frozen=True, slots=True)
class Corpus:
    """A `file` below the data folder, and how to get the texts of one of its rows."""

    name: str
    file: str
    texts: Callable[[dict[str, Any]], list[str]]


def _turns(row: dict[str, Any]) -> list[str]:
    return [turn["text"] for turn in row["turns"]]


def _field(name: str) -> Callable[[dict[str, Any]], list[str]]:
    return lambda row: [row[name]]


CORPORA = tuple(
    Corpus(*corpus_fields)
    for corpus_fields in (
        ("calls_sgd", "calls_sgd/calls.jsonl.gz", _turns),
        ("calls_qmsum", "calls_qmsum/calls.jsonl.gz", _turns),
        ("calls_multidogo", "calls_multidogo/calls.jsonl.gz", _turns),
        ("calls_multiwoz", "calls_multiwoz/calls.jsonl.gz", _turns),
        ("calls_taskmaster4", "calls_taskmaster4/calls.jsonl.gz", _turns),
        ("squad_dev", "squad_dev/passages.jsonl.gz", _field("text")),
        ("wiki_split", "wiki_split/wiki_split.jsonl.gz", _field("complex")),
        ("selqa", "selqa/selqa.jsonl.gz", lambda row: row["sentences"]),
        ("clapnq", "clapnq/clapnq_dev.jsonl.gz", _field("passage")),
        ("medquad", "medquad/qa.jsonl.gz", _field("answer")),
        ("natcs_utterances", "natcs_utterances/utterances.jsonl", _field("text")),
        ("banking77", "banking77/banking77.jsonl.gz", _field("text")),
        ("clinc150", "clinc150/clinc150.jsonl.gz", _field("text")),
    )
)


def read(
    data: Path, parts: Sequence[str] | None = None, corpora: Sequence[Corpus] = CORPORA
) -> Iterator[str]:
    """Yield the sentences of `corpora`, with `parts` only of rows of these parts.

    A sentence that is said in many calls comes many times. Raises SystemExit if a file is missing.
    """
    for corpus in corpora:
        for row in rows(
            require_file(
                data / corpus.file,
                "contexts of phrases are looked for in it; give --data, the folder of data sets",
            )
        ):
            if parts is None or row.get("part", TRAIN) in parts:
                for text in corpus.texts(row):
                    yield from (text[start:end] for start, end in sentences(text))

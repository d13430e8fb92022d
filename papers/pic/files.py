"""Read PiC: the authors' files if a user has put them there, else the sample.

Below ``pic/`` of the data folder, each as .jsonl or .json, gzipped (.gz) or not, as
``load_dataset(...)[split].to_json(...)`` writes what the Hugging Face hub has:

- ``ps_train``, ``ps_dev`` (the hub's validation), ``ps_test`` of PiC/phrase_similarity: phrase1,
  phrase2, sentence1, sentence2, label, idx;
- ``pr_pass_train``, ``_dev``, ``_test`` and ``pr_page_...`` of PiC/phrase_retrieval, PR-pass and
  PR-page, and ``psd_test`` of PiC/phrase_sense_disambiguation (all 4,858 for the paper's table 6,
  3,000 for its table A4): id, title, context, query, answers, which is ``{"text": [...],
  "answer_start": [...]}``.

A file has an object a line, a list, or an object whose ``data`` is the list, which may be nested
like SQuAD's. The samples, used where a test file is missing, are ``ps_test_sample.jsonl`` and
``pr_psd_site_examples.jsonl`` (task, query, answer, document, spans, distractor_spans).
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import regex

from benchmarks.quality.systems import Range

FOLDER = "pic"
SUFFIXES = (".jsonl", ".json", ".jsonl.gz", ".json.gz")
PS, PR_PASS, PR_PAGE, PSD = TASKS = ("ps", "pr-pass", "pr-page", "psd")
DOCUMENTS = "pr_psd_site_examples.jsonl"
SAMPLES = {PS: "ps_test_sample.jsonl", PR_PASS: DOCUMENTS, PR_PAGE: DOCUMENTS, PSD: DOCUMENTS}


@dataclass(frozen=True, slots=True)
class Pair:
    """A row of PS: `label` is 1 if the phrases mean the same, each in its sentence, else 0."""

    phrase1: str
    phrase2: str
    sentence1: str
    sentence2: str
    label: int


@dataclass(frozen=True, slots=True)
class Search:
    """A row of PR or PSD.

    `answers` are the right places in `document`, at least one, the labelled one first;
    `other_places` are those where the answer also stands, in another sense (PSD only).
    """

    id: str
    query: str
    document: str
    answers: tuple[Range, ...]
    other_places: tuple[Range, ...] = ()

    @property
    def answer(self) -> str:
        """The phrase to be found."""
        return self.document[slice(*self.answers[0])]

    @property
    def texts(self) -> list[str]:
        """The right texts."""
        return [self.document[slice(*place)] for place in self.answers]


def find_part(data: Path, task: str, name: str) -> Path | None:
    """Return the authors' file of a task's part (train, dev or test), or None if it is missing."""
    stem = f"{task.replace('-', '_')}_{name}"
    return next(
        (path for suffix in SUFFIXES if (path := data / FOLDER / f"{stem}{suffix}").is_file()), None
    )


def find_test_file(data: Path, task: str) -> Path:
    """Return the file that `task` is tested on: the authors', else the sample.

    Raises:
        SystemExit: If neither exists.
    """
    if task not in TASKS:
        raise SystemExit(f"PiC has no task {task!r}: it has {', '.join(TASKS)}")
    path = find_part(data, task, "test") or data / FOLDER / SAMPLES[task]
    if not path.is_file():
        file_name = f"{task.replace('-', '_')}_test.jsonl"
        raise SystemExit(
            f"{data / FOLDER} holds neither {file_name} nor {SAMPLES[task]}:"
            f" fetch PiC from the hub (see {__name__})"
        )
    return path


def read_pairs(path: Path) -> list[Pair]:
    """Read the rows of a PS file; raises SystemExit for a file of another form."""
    try:
        return [_pair(row) for row in read_objects(path)]
    except (KeyError, TypeError, ValueError) as error:
        raise SystemExit(
            f"{path}: not phrase1, phrase2, sentence1, sentence2 and label: {error!r}"
        ) from error


def _pair(row: dict[str, Any]) -> Pair:
    label = int(row["label"])
    return Pair(row["phrase1"], row["phrase2"], row["sentence1"], row["sentence2"], label)


def read_searches(path: Path, task: str | None = None) -> list[Search]:
    """Return the rows of a PR or PSD file; of a file of several tasks, those of `task`.

    Raises:
        SystemExit: For a file of another form.
    """
    rows = [row for row in read_objects(path) if task is None or row.get("task", task) == task]
    parsed_rows = [_search(row, path, row.get("task", task) == PSD) for row in rows]
    if not parsed_rows:
        raise SystemExit(f"{path} holds no row of {task or 'PR or PSD'}")
    return parsed_rows


def read_objects(path: Path) -> list[dict[str, Any]]:
    """Read the rows of a file in any of the forms above; raises SystemExit if it is not JSON."""
    text = (
        gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    ).decode()
    try:
        return list(_flatten_rows(json.loads(text)))
    except json.JSONDecodeError:
        pass  # several objects, one a line
    try:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except json.JSONDecodeError as error:
        raise SystemExit(f"{path}: neither JSON nor an object a line: {error}") from error


def _flatten_rows(payload: Any) -> Iterator[dict[str, Any]]:
    """Yield rows out of a list, of ``data``, and of SQuAD's articles, paragraphs and questions."""
    for row in payload if isinstance(payload, list) else payload.get("data", [payload]):
        if "paragraphs" not in row:
            yield row
            continue
        for paragraph in row["paragraphs"]:
            yield from (
                {"context": paragraph["context"], **question} for question in paragraph["qas"]
            )


def _search(row: dict[str, Any], path: Path, is_sense: bool) -> Search:
    try:
        query, document = row.get("query") or row["question"], row.get("document") or row["context"]
        answers = (
            [(start, end) for start, end in row["spans"]]
            if "spans" in row
            else list(_places(document, row["answers"]))
        )
        other_places = [(start, end) for start, end in row.get("distractor_spans", [])]
    except (KeyError, TypeError, ValueError) as error:
        raise SystemExit(
            f"{path}, row {row.get('id')}: not a query, a document and answers: {error!r}"
        ) from error
    if not answers or not all(
        0 <= start < end <= len(document) for start, end in [*answers, *other_places]
    ):
        raise SystemExit(
            f"{path}, row {row.get('id')}: no answer at {answers} of a document of {len(document)}"
            " characters"
        )
    if is_sense and not other_places:
        other_places = [
            place
            for place in find_places(document[slice(*answers[0])], document)
            if not any(overlaps(place, answer) for answer in answers)
        ]
    return Search(str(row.get("id")), query, document, tuple(answers), tuple(other_places))


def _places(document: str, answers: Any) -> Iterator[Range]:
    """Yield the places of the hub's answers; one that is not at its start is searched.

    Raises ValueError for an answer that the document does not contain.
    """
    if isinstance(answers, list):  # SQuAD has a list of objects, the hub's tools an object of lists
        answers = {name: [answer[name] for answer in answers] for name in ("text", "answer_start")}
    for text, start in zip(answers["text"], answers["answer_start"], strict=True):
        position = start if document[start : start + len(text)] == text else document.index(text)
        yield position, position + len(text)


def find_places(phrase: str, text: str) -> list[Range]:
    """Return where `phrase` stands in `text` as words, in any case, or else as letters."""
    pattern = regex.escape(phrase)
    matches = regex.finditer(rf"(?<!\w){pattern}(?!\w)", text, flags=regex.IGNORECASE)
    return [match.span() for match in matches] or [
        match.span() for match in regex.finditer(pattern, text, flags=regex.IGNORECASE)
    ]


def overlaps(a: Range, b: Range) -> bool:
    """Tell whether two places share a character."""
    return a[0] < b[1] and b[0] < a[1]

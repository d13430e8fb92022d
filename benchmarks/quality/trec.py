"""Write and measure judgements and runs in TREC's formats: ``python -m benchmarks.quality.trec``.

``--task NAME [--model DIR] [--calls N] --out FOLDER`` writes the qrels of a task, its topics
(query, text, and the document that is searched if not all are) and a run for each of `WAYS`.

``--qrels FILE --run FILE [FILE ...]`` measures runs of any system: a table with 95% intervals, also
of how much better each is than the first. Like ``trec_eval -c``, it counts 0 for a query that a run
leaves out. ID, ID#2, ID#3 are wordings of one question, and their mean counts once.
"""

from __future__ import annotations

import argparse
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from benchmarks.markdown import head, row
from benchmarks.quality import encoders, measures
from benchmarks.quality.collection import Place, ingest_task
from benchmarks.quality.retrieval import BM25, HYBRID, MEANS, SPANS, Rankings, rank
from benchmarks.quality.tasks import ALL, Query

WAYS = (BM25, SPANS, HYBRID, MEANS)
JUDGEMENT, RANKED = "query 0 document grade", "query Q0 document rank score tag"
"""The fields of a line."""

Qrels = dict[str, dict[str, int]]
"""Grades by query and document."""
Run = dict[str, list[str]]
"""Documents by query, best first."""
Values = dict[str, list[float]]
"""By measure, the value of each query."""
Number = TypeVar("Number", int, float)


def write(folder: Path, name: str, ranked: Rankings) -> list[Path]:
    """Return the files written for the task `name`.

    A run's scores fall by 1 from rank to rank, because programs order equal scores differently.
    """
    ids = query_ids(ranked.queries)
    files = {
        f"{name}.qrels": (
            f"{id_} 0 {place_id(place)} {grade}"
            for id_, right in zip(ids, ranked.right, strict=True)
            for place, grade in right.items()
        ),
        f"{name}.topics.tsv": _topics(ids, ranked.queries),
        **{f"{name}.{_tag(way)}.run": _run(ids, ranked.ways[way], _tag(way)) for way in WAYS},
    }
    folder.mkdir(parents=True, exist_ok=True)
    for file, lines in files.items():
        (folder / file).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return [folder / file for file in files]


def _topics(ids: Sequence[str], queries: Sequence[Query]) -> Iterator[str]:
    for id_, query in zip(ids, queries, strict=True):
        yield "\t".join([id_, " ".join(query.text.split()), _escape(query.within or "")])


def _run(ids: Sequence[str], rankings: Sequence[Sequence[Place]], tag: str) -> Iterator[str]:
    for id_, places in zip(ids, rankings, strict=True):
        distinct_places = list(dict.fromkeys(places))
        yield from (
            f"{id_} Q0 {place_id(place)} {number} {len(distinct_places) + 1 - number} {tag}"
            for number, place in enumerate(distinct_places, 1)
        )


def query_ids(queries: Sequence[Query]) -> list[str]:
    """Return the group of each query, and GROUP#2 for the second of a group."""
    seen: Counter[str] = Counter()
    ids = []
    for query in queries:
        seen[query.group] += 1
        ids.append(
            _escape(query.group) + (f"#{seen[query.group]}" if seen[query.group] > 1 else "")
        )
    return ids


def place_id(place: Place) -> str:
    """Return the document's id, followed by ``#4+5`` for the passage of its turns 4 and 5.

    A text without turns is turn 0, which is left out.
    """
    document, turns = place
    return _escape(document) + ("" if turns == (0,) else f"#{'+'.join(map(str, turns))}")


def _escape(id_: str) -> str:
    """Return `id_` without white space or ``#``, different for different ids."""
    return re.sub(r"[\s%#]", lambda match: quote(match[0], safe=""), id_)


def _tag(way: str) -> str:
    return re.sub(r"[^\w.]+", "_", way)


def read_qrels(path: Path) -> Qrels:
    """Read qrels; raises SystemExit that names a line of another form."""
    return _read(path, JUDGEMENT, "grade", int)


def read_run(path: Path) -> Run:
    """Return a run in trec_eval's order: by score, then by id, the last first.

    Raises SystemExit that names a line of another form.
    """
    scores = _read(path, RANKED, "score", _parse_score)
    return {
        query: sorted(document_scores, key=lambda id_: (document_scores[id_], id_), reverse=True)
        for query, document_scores in scores.items()
    }


def _parse_score(text: str) -> float:
    if math.isnan(float(text)):
        raise ValueError(text)
    return float(text)


def _read(
    path: Path, form: str, value: str, number: Callable[[str], Number]
) -> dict[str, dict[str, Number]]:
    """Return the field `value` of each line by its query and document."""
    numbers_by_query: dict[str, dict[str, Number]] = defaultdict(dict)
    for line_number, line in enumerate(_read_text(path).split("\n"), 1):
        if not (fields := line.split()):
            continue
        if len(fields) != len(form.split()):
            raise SystemExit(
                f"{path}, line {line_number} has {len(fields)} fields, and needs"
                f" {len(form.split())}: {form}"
            )
        record = dict(zip(form.split(), fields, strict=True))
        query, document = record["query"], record["document"]
        if document in numbers_by_query[query]:
            raise SystemExit(
                f"{path}, line {line_number}: document {document} comes a second time for query"
                f" {query}: remove one of the lines"
            )
        try:
            numbers_by_query[query][document] = number(record[value])
        except ValueError as error:
            raise SystemExit(
                f"{path}, line {line_number}: {value} is {record[value]!r}, and must be a"
                f" number: {form}"
            ) from error
    return dict(numbers_by_query)


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SystemExit(f"{path} cannot be read: {error}") from error


def table(qrels: Path, runs: Sequence[Path]) -> str:
    """Render a row for each run."""
    judged = read_qrels(qrels)
    groups = [re.sub(r"#\d+$", "", query) for query in judged]
    evaluations = [_evaluate(judged, run) for run in runs]
    lines = head(
        f"{len(judged)} queries", *measures.RETRIEVAL, "ndcg@10, 95%", "ndcg@10 - first", "95%"
    )
    for number, (run, values) in enumerate(zip(runs, evaluations, strict=True)):
        summary = measures.row(values, groups)
        means = [f"{summary[name]:.4f}" for name in measures.RETRIEVAL]
        lines.append(
            row(
                run.stem,
                *means,
                _interval(summary["ndcg@10 interval"]),
                *(_difference_cells(values, evaluations[0], groups) if number else ("", "")),
            )
        )
    return "\n".join(lines)


def _evaluate(judged: Qrels, run: Path) -> Values:
    documents_by_query = read_run(run)
    if not judged.keys() & documents_by_query.keys():
        run_query, judged_query = (
            next(iter(queries), "nothing") for queries in (documents_by_query, judged)
        )
        raise SystemExit(
            f"{run} has none of the judged queries: it has {run_query}, and judged are"
            f" {judged_query} and so on. Name the qrels it is for"
        )
    return measures.evaluate(
        [documents_by_query.get(query, []) for query in judged], list(judged.values())
    )


def _difference_cells(values: Values, first: Values, groups: Sequence[str]) -> tuple[str, str]:
    difference = measures.difference(values, first, groups)
    return f"{difference['mean']:+.4f}", _interval(difference["interval"], "+")


def _interval(bounds: Sequence[float], sign: str = "") -> str:
    low, high = bounds
    return f"{low:{sign}.4f} to {high:{sign}.4f}"


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    encoders.add_options(parser)
    parser.add_argument("--task", choices=sorted(ALL), help="whose files are written")
    parser.add_argument(
        "--calls", type=int, help="about so many documents of calls_sgd or medquad, evenly spread"
    )
    parser.add_argument("--out", type=Path, help="the folder for them")
    parser.add_argument("--qrels", type=Path, help="judgements")
    parser.add_argument(
        "--run",
        type=Path,
        nargs="+",
        help="what is measured by them; the first is what the others are compared with",
    )
    options = parser.parse_args()
    if options.qrels and options.run:
        print(table(options.qrels, options.run))
    elif options.task and options.out:
        task = ALL[options.task]
        collection = ingest_task(task, options.data, encoders.load_model(options), options.calls)
        for path in write(
            options.out, task.name, rank(collection, list(task.queries(options.data, "dev")))
        ):
            print(path)
    else:
        raise SystemExit(
            "give --task and --out to write the files of a task,"
            " or --qrels and --run to measure runs"
        )


if __name__ == "__main__":
    main()

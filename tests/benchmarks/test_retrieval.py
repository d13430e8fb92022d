"""The evaluation of passages: ten documents ranked and scored by hand, and how the judged answers
of medquad are read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.quality import retrieval
from benchmarks.quality.collection import Collection, Place
from benchmarks.quality.encoders import Model
from benchmarks.quality.measures import evaluate
from benchmarks.quality.tasks import ANSWERS, MEDQUAD, Query, Task, lines
from hybrid_search import connect
from hybrid_search.encoder import Encoder
from hybrid_search.ingest.options import IngestOptions
from hybrid_search.ingest.pipeline import ingest
from hybrid_search.search.calibration import Calibration
from tests.conftest import DATA
from tests.helpers.json_lines import write_rows
from tests.helpers.source_lines import make_lines
from tests.helpers.table_encoder import TableEncoder, Vector
from tests.helpers.tiny_encoder import FINEST

WORDS: dict[str, Vector] = {
    "refund": (1, 0, 0),
    "money": (0.8, 0.6, 0),
    "cash": (0.6, 0.8, 0),
    "coin": (0.28, 0.96, 0),
    "rent": (0, 1, 0),
}
TEXTS = {
    "a": "So money so.",
    "b": "A refund.",
    "c": "Cash.",
    "d": "Coin.",
    **dict.fromkeys("efghij", "Else."),
}
RIGHT = {"a": 3, "c": 1, "j": 2}
REFUND = Query("refund", "first", dict.fromkeys(RIGHT, frozenset([0])), grades=RIGHT)
RENT = Query("rent", "second", {"d": frozenset([0])}, within="d")
LOST = Query("rent", "third", {"elsewhere": frozenset([0])})
IDEAL = 3 + 2 / math.log2(3) + 1 / math.log2(4)


class SpelledModel(Model):
    """A model without a folder."""

    @property
    def encoder(self) -> Encoder:
        return TableEncoder(WORDS)

    @property
    def calibration(self) -> Calibration | None:
        return None


@pytest.fixture
def collection(tmp_path: Path) -> Iterator[Collection]:
    documents = make_lines({"id": id_, "text": text} for id_, text in TEXTS.items())
    task = Task("ten", "ten.jsonl", lambda *_: iter([REFUND]), "ten documents")
    with connect(f"embedded:{tmp_path}") as client:
        ingest(
            iter(documents),
            client.backend,
            TableEncoder(WORDS),
            IngestOptions(task.name, tmp_path / "rejected.jsonl", codes=FINEST),
        )
        yield Collection(
            task, SpelledModel(), tmp_path, client, {id_: [(id_, (0,))] for id_ in TEXTS}
        )


def join_ids(places: list[Place]) -> str:
    return "".join(id_ for id_, _ in places)


def test_ten_documents_by_hand(collection: Collection) -> None:
    ranked = retrieval.rank(collection, [REFUND, RENT, LOST])
    assert ranked.queries == [REFUND, RENT]  # the third has nothing right here
    assert ranked.right == [{("a", (0,)): 3, ("c", (0,)): 1, ("j", (0,)): 2}, {("d", (0,)): 1}]
    orders = {way: [join_ids(places) for places in ranking] for way, ranking in ranked.ways.items()}
    # cosines by the best span: b 1, a .8, c .6, d .28, the others 0, in the order of their ids. In
    # one vector a is (.8, .6, 2) / sqrt 5: .36
    assert orders[retrieval.SPANS] == orders[retrieval.HYBRID] == ["bacdefghij", "d"]
    assert orders[retrieval.MEANS] == ["bcadefghij", "d"]
    assert orders[retrieval.BM25] == ["b", ""]
    first = {
        way: {name: values[0] for name, values in evaluate(ranking, ranked.right).items()}
        for way, ranking in ranked.ways.items()
    }
    gain_of_spans = 3 / math.log2(3) + 1 / math.log2(4) + 2 / math.log2(11)
    assert first["spans"]["ndcg@10"] == pytest.approx(gain_of_spans / IDEAL)
    gain_of_means = 1 / math.log2(3) + 3 / math.log2(4) + 2 / math.log2(11)
    assert first["one vector a passage"]["ndcg@10"] == pytest.approx(gain_of_means / IDEAL)
    assert (first["spans"]["mrr@10"], first["spans"]["recall@10"]) == (0.5, 1)
    assert set(first["bm25"].values()) == {0}


def test_rows_and_differences_with_their_intervals(collection: Collection) -> None:
    measured = retrieval.measure(collection, [REFUND, RENT, LOST])
    assert {name: measured[name] for name in ("documents", "queries", "groups")} == {
        "documents": 10,
        "queries": 2,
        "groups": 2,
    }
    spans, means = measured["rankings"]["spans"], measured["rankings"]["one vector a passage"]
    first_gain = 3 / math.log2(3) + 1 / 2 + 2 / math.log2(11)
    first = round(first_gain / IDEAL, 4)
    # of two values that are drawn twice with replacement, each pair of equal ones comes a quarter
    # of the time
    assert spans["ndcg@10 interval"] == [first, 1.0]
    assert spans["ndcg@10"] == pytest.approx((first + 1) / 2, abs=1e-4)
    assert (spans["recall@10"], spans["recall@100"], spans["mrr@10"]) == (1, 1, 0.75)
    assert measured["differences"]["hybrid 0.5 - bm25"] == {
        "mean": spans["ndcg@10"],
        "interval": spans["ndcg@10 interval"],
    }
    better = measured["differences"]["spans - one vector a passage"]
    assert better == measured["differences"]["hybrid 0.5 - one vector a passage"]
    # on the second question both are right
    assert better["mean"] == pytest.approx(spans["ndcg@10"] - means["ndcg@10"], abs=2e-4)
    assert better["interval"] == [0.0, pytest.approx(2 * better["mean"], abs=1e-4)]


def write_medquad(folder: Path) -> Path:
    answers = [(f"doc_{number}", f"Because of {number}.") for number in range(10)]
    rows = [{"id": id_, "question": "Why?", "answer": answer} for id_, answer in answers]
    write_rows(folder / "medquad/qa.jsonl.gz", rows)
    judged = [("1", "doc_3", 0), ("1", "doc_5", 2), ("1", "doc_7", 3), ("2", "doc_7", 1)]
    lines = "".join(f"{query}\t{document}\t{grade}\n" for query, document, grade in judged)
    (folder / "medquad/liveqa_qrels.tsv").write_text("query_id\tdoc_id\trelevance\n" + lines)
    questions = [
        {"id": "1", "text": "Short?", "message": "A long one?"},
        {"id": "2", "text": "Other?", "message": "More?"},
    ]
    write_rows(folder / "medquad/liveqa_queries.jsonl", questions)
    return folder


def test_judged_answers_are_read_with_some_of_the_others(tmp_path: Path) -> None:
    data = write_medquad(tmp_path)
    read = [json.loads(line.data) for line in lines(MEDQUAD, data, 2)]
    # every fifth, and 3, 5 and 7
    assert [row["id"] for row in read] == ["doc_0", "doc_3", "doc_5", "doc_7"]
    assert read[1] == {"id": "doc_3", "text": "Because of 3."}
    assert len(list(lines(MEDQUAD, data))) == len(list(lines(MEDQUAD, data, 20))) == 10


def test_questions_have_grades(tmp_path: Path) -> None:
    first, second = MEDQUAD.queries(write_medquad(tmp_path), "dev")
    first_passage = frozenset([0])
    assert first == Query(
        "Short?",
        "1",
        {"doc_5": first_passage, "doc_7": first_passage},
        grades={"doc_5": 2, "doc_7": 3},
    )
    assert second.grades == {"doc_7": 1}
    assert not list(MEDQUAD.queries(tmp_path, "train"))


@pytest.mark.data
def test_all_that_is_right_is_among_the_answers_beside_the_checkout() -> None:
    ids = {json.loads(line.data)["id"] for line in lines(MEDQUAD, DATA)}
    queries = list(MEDQUAD.queries(DATA, "dev"))
    assert len(queries) == 43
    assert all(query.right and query.right.keys() <= ids for query in queries)
    assert ANSWERS <= len(ids) <= ANSWERS + 400

"""`min_probability`: the spans that are shown, and the hits that count, by the map of mining."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from hybrid_search import connect
from hybrid_search.client import Client
from hybrid_search.errors import UsageError
from hybrid_search.search.calibration import MENTIONS
from hybrid_search.topics.topic import Topic
from hybrid_search.topics.tuning import TunedMap, Tuning, digest_phrases, write_tuning
from tests.helpers.cli import invoke_cli
from tests.helpers.shipped_maps import load_map

PHRASE = "put the money back on my card"


def logistic(score: float) -> float:
    calibration = load_map(MENTIONS)
    return 1 / (1 + math.exp(-calibration.slope * (score - calibration.midpoint)))


def test_zero_gives_each_span_its_probability_and_leaves_none_out(sample: Client) -> None:
    everything = sample.query(PHRASE, size=50)
    result = sample.query(PHRASE, size=50, min_probability=0)
    assert [hit.id for hit in result] == [hit.id for hit in everything]
    assert result.total == everything.total
    spans = [span for hit in result for span in hit.spans]
    for span in spans:
        assert span.probability == pytest.approx(logistic(span.cosine + span.prior))
        assert span.to_dict()["probability"] == span.probability
    assert all("probability" not in span.to_dict() for hit in everything for span in hit.spans)
    assert everything.plan["probabilities"] == result.plan["probabilities"] == "measured"


@pytest.mark.parametrize("group_by", ["document", "passage"])
@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_hits_without_a_likely_span_are_left_out_and_not_counted(
    sample: Client, group_by: str, alpha: float
) -> None:
    everything = sample.query(
        PHRASE, size=1000, min_probability=0, group_by="passage", alpha=alpha, spans=100
    )
    likely = {
        (hit.id, hit.passage)
        for hit in everything
        if any(span.probability is not None and span.probability >= 0.1 for span in hit.spans)
    }
    result = sample.query(
        PHRASE, size=1000, min_probability=0.1, group_by=group_by, alpha=alpha, spans=100
    )
    assert 0 < len(likely) < len(everything)
    assert {(hit.id, hit.passage) for hit in result} <= likely
    assert {hit.id for hit in result} == {name for name, _ in likely}
    assert result.total == len(result)
    if group_by == "passage":
        assert len(result) == len(likely)
    for hit in result:
        assert hit.spans
        assert all(span.probability is not None and span.probability >= 0.1 for span in hit.spans)


def test_a_probability_is_that_of_mining(sample: Client) -> None:
    topics = [{"name": "refund", "phrases": [PHRASE], "threshold": 0.2}]
    mined = {(match.id, match.start): match.probability for match in sample.mine(topics)}
    result = sample.query(PHRASE, size=1000, min_probability=0.2, spans=100)
    shown = {(hit.id, span.start): span.probability for hit in result for span in hit.spans}
    common = mined.keys() & shown.keys()
    assert common
    for place in common:
        assert shown[place] == pytest.approx(mined[place], abs=1e-4)


def test_it_stays_with_refine_and_pages_join(sample: Client) -> None:
    options = {"min_probability": 0.05, "refine": "isolate"}
    long_page = sample.query(PHRASE, size=20, **options)  # type: ignore[arg-type]
    pages = [
        sample.query(PHRASE, size=2, offset=offset, **options)  # type: ignore[arg-type]
        for offset in range(0, 20, 2)
    ]
    assert [hit.id for page in pages for hit in page] == [hit.id for hit in long_page]
    assert all((span.probability or 0) >= 0.05 for hit in long_page for span in hit.spans)


OWN_MAP, OTHER_MAP = (
    TunedMap(
        midpoint, 9.0, 40, 20, 0.05, (1.0, 0.0, 1.0), (midpoint - 0.1, midpoint + 0.1), 0.9, False
    )
    for midpoint in (0.3, 0.7)
)


@contextmanager
def open_tuned(client: Client, folder: Path, model: str | None = None) -> Iterator[Client]:
    """A client of the same index with probabilities that were tuned for `PHRASE` alone."""
    path = folder / "topics.tuned.json"
    own_map = replace(OWN_MAP, phrases=digest_phrases(Topic("refund", (PHRASE,))))
    fingerprint = model or client.describe("calls").spec.fingerprint
    write_tuning(path, Tuning(fingerprint, 80, OTHER_MAP, {"refund": own_map}))
    with Client(replace(client._settings, tuning=path)) as tuned_client:
        yield tuned_client


@pytest.mark.parametrize(
    ("phrase", "tuned_map"), [(PHRASE, OWN_MAP), ("waiting on hold", OTHER_MAP)]
)
def test_tuned_probabilities_are_those_of_the_topic_else_of_all_others(
    sample: Client, tmp_path: Path, phrase: str, tuned_map: TunedMap
) -> None:
    with open_tuned(sample, tmp_path) as client:
        result = client.query(phrase, min_probability=0)
    assert result.plan["probabilities"] == "tuned"
    for span in (span for hit in result for span in hit.spans):
        logit = tuned_map.slope * (span.cosine + span.prior - tuned_map.midpoint)
        assert span.probability == pytest.approx(1 / (1 + math.exp(-logit)), abs=1e-6)


def test_probabilities_tuned_with_another_model_are_not_used(
    sample: Client, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with open_tuned(sample, tmp_path, model="another") as client:
        assert client.query(PHRASE, min_probability=0.5).plan["probabilities"] == "measured"
    assert "was tuned with model another" in caplog.text


def test_tuned_probabilities_are_not_for_spans_chosen_by_cosine(
    sample: Client, tmp_path: Path
) -> None:
    with open_tuned(sample, tmp_path) as client:
        result = client.query(PHRASE, min_probability=0.5, spans_by="cosine")
    assert result.plan["probabilities"] == "rough"


def test_a_tuning_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYBRID_SEARCH_TUNING", "gone.json")
    with pytest.raises(UsageError, match=r"the tuned probabilities 'gone.json' are not a file"):
        connect("memory:")


def test_every_backend_leaves_out_the_same(client: Client) -> None:
    client.ingest(
        [
            {"id": "a", "text": "Please put the money back on my card."},
            {"id": "b", "text": "Thank you for the card with the flowers."},
        ]
    )
    result = client.query(PHRASE, min_probability=0.5)
    assert ([hit.id for hit in result], result.total) == (["a"], 1)


def test_the_command_takes_it(sample_url: str) -> None:
    options = ("--index", "calls", "--url", sample_url, "--min-probability")
    result = invoke_cli("query", PHRASE, *options, "0.3", "--json")
    hits = result.json["hits"]
    assert hits
    assert all(span["probability"] >= 0.3 for hit in hits for span in hit["spans"])
    wrong = invoke_cli("query", PHRASE, *options, "30")
    assert wrong.error == "min_probability is 30.0: it must be a number from 0 to 1"


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_a_hit_has_the_probability_of_its_best_span(sample: Client, alpha: float) -> None:
    result = sample.query("the agent was rude to me", alpha=alpha, spans=100)
    for hit in result:
        best = max(span.cosine + span.prior for span in hit.spans)
        assert hit.probability == pytest.approx(logistic(best), abs=1e-6)


def test_a_phrase_that_stands_in_a_text_word_for_word_is_probable(client: Client) -> None:
    text = "well so i mean it was sort of MONEY BACK, you know, and then they hung up on me again"
    client.ingest([{"id": "a", "text": text}, {"id": "b", "text": "They sent me a new kettle."}])
    first, second = client.query("money back").hits
    assert (first.id, second.id) == ("a", "b")
    assert first.probability is not None
    assert second.probability is not None
    assert second.probability < 0.5 <= 0.9 <= first.probability


def test_without_a_measured_map_nobody_says_what_is_likely(sample: Client) -> None:
    result = sample.query(PHRASE, spans_by="cosine")
    assert {hit.probability for hit in result} == {None}
    assert result.likely is None


def test_hits_are_tuned_without_a_least_probability_too(sample: Client, tmp_path: Path) -> None:
    with open_tuned(sample, tmp_path) as client:
        result = client.query("waiting on a line", spans=100)
    assert result.plan["probabilities"] == "tuned"
    for hit in result:
        best = max(span.cosine + span.prior for span in hit.spans)
        logit = OTHER_MAP.slope * (best - OTHER_MAP.midpoint)
        assert hit.probability == pytest.approx(1 / (1 + math.exp(-logit)), abs=1e-6)

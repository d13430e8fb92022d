"""What no topic covers: clauses, the sample that fits into memory, ranking, and the command."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from hybrid_search import Topics, connect
from hybrid_search.backends.memory import MemoryBackend
from hybrid_search.client import Client
from hybrid_search.discover.clauses import find_clauses
from hybrid_search.discover.discover import ClauseStore, discover
from hybrid_search.discover.groups import group_phrases
from hybrid_search.discover.options import DiscoverOptions
from hybrid_search.discover.small_talk import has_content, is_detail
from hybrid_search.discover.types import Discovery, Occurrence
from hybrid_search.errors import IndexMissingError, ModelError, UsageError
from hybrid_search.ingest.shards import ALL_DOCUMENTS
from hybrid_search.text import spans, word_codes
from hybrid_search.text.boundaries import join_probabilities
from hybrid_search.topics.blocks import read_blocks
from tests.helpers.cli import invoke_cli
from tests.helpers.tiny_encoder import DIMENSION, TinyEncoder
from tests.topics.test_mining import CALIBRATION, ClauseEncoder, fill, make_documents

ENCODER = ClauseEncoder()


def fill_store(seed: int = 0) -> MemoryBackend:
    store = MemoryBackend()
    fill(store, ENCODER, make_documents(seed))
    return store


def run(store: MemoryBackend, topics: Any = None, **options: Any) -> Discovery:
    known = Topics.load(topics) if topics else None
    limits = {name: options.pop(name) for name in ("capacity", "sample") if name in options}
    chosen = cast("DiscoverOptions", options)
    return discover(store, ENCODER, lambda *_: CALIBRATION, "calls", known, chosen, **limits)


@pytest.mark.parametrize("seed", range(3))
def test_each_clause_is_one_span_with_the_largest_prior(seed: int) -> None:
    store, prior = fill_store(seed), ENCODER.load_prior(DIMENSION)
    for block in read_blocks(store.scan_codes("calls"), ALL_DOCUMENTS):
        found = find_clauses(block, DIMENSION, prior, least_words=1)
        places = Counter(zip(found.passages.tolist(), found.starts.tolist(), strict=True))
        for number, passage in enumerate(block.passages):
            codes = passage.tokens
            clauses = np.cumsum(join_probabilities([codes]) >= 0.5)
            first, last = spans.bounds(codes.counts)
            priors = prior.score_spans(codes)
            starts = []
            for clause in dict.fromkeys(clauses.tolist()):
                inside = np.flatnonzero((clauses[first] == clause) & (clauses[last] == clause))
                if len(inside):
                    best = inside[np.argmax(priors[inside])]
                    starts.append(passage.start + int(codes.words[first[best], 0]))
            assert sum(count for (owner, _), count in places.items() if owner == number) == len(
                starts
            )
            assert {start for owner, start in places if owner == number} == set(starts)


def test_the_vector_of_a_clause_is_that_of_its_span() -> None:
    store, prior = fill_store(1), ENCODER.load_prior(DIMENSION)
    probe = np.random.default_rng(0).standard_normal(DIMENSION).astype(np.float32)
    probe /= np.linalg.norm(probe)
    for block in read_blocks(store.scan_codes("calls"), ALL_DOCUMENTS):
        found = find_clauses(block, DIMENSION, prior, least_words=2)
        assert len(found.starts)
        for row, number in enumerate(found.passages.tolist()):
            passage = block.passages[number]
            first, last = spans.bounds(passage.tokens.counts)
            places = passage.start + passage.tokens.words
            is_span = (places[first, 0] == found.starts[row]) & (places[last, 1] == found.ends[row])
            (span,) = np.flatnonzero(is_span)
            assert last[span] - first[span] >= 1
            cosine = word_codes.cosines(probe, passage.tokens)[span]
            assert found.vectors[row] @ probe == pytest.approx(float(cosine), abs=8e-3)


def occurrence(id: str, number: int) -> Occurrence:
    return Occurrence(id, 0, None, number, number + 1, f"word {id} {number}", 0.0)


def store_all(places: Sequence[Occurrence], capacity: int, seed: int = 0) -> ClauseStore:
    store = ClauseStore(seed, capacity)
    for place in places:
        store.add(place, np.ones(2, np.float32))
    return store


def test_the_sample_fits_and_does_not_depend_on_the_order() -> None:
    places = [occurrence(f"call-{call}", number) for call in range(200) for number in range(5)]
    store = store_all(places, 300)
    assert len(store) <= 300
    assert store.sampled == 0.25
    backwards = store_all(places[::-1], 300)
    assert set(backwards.places) == set(store.places)
    counts = Counter(place.id for place in store.places)
    assert set(counts.values()) == {5}  # whole documents
    assert set(store_all(places, 300, seed=1).places) != set(store.places)
    assert set(store_all(places, 999).places) < set(places)
    assert store_all(places, 1000).sampled == 1.0


def test_examples_are_where_they_say_and_counts_add_up() -> None:
    store = fill_store(2)
    texts = {
        raw["id"]: "\n".join(turn["text"] for turn in raw["turns"])
        for raw in make_documents(2)
        if "turns" in raw
    }
    discovery = run(store, groups=1000, least_words=1)
    assert discovery.sampled == 1.0
    assert discovery.documents == 8
    assert discovery.clauses == sum(group.count for group in discovery.groups)
    assert discovery.wordings == sum(group.wording_count for group in discovery.groups)
    examples = [example for group in discovery.groups for example in group.examples]
    assert len(examples) >= len(discovery.groups)
    for example in examples:
        assert texts[example.id][example.start : example.end] == example.text


def test_what_a_topic_covers_is_left_out() -> None:
    store = fill_store(3)
    everything = run(store, groups=1000, least_words=1)
    common = max(everything.groups, key=lambda group: group.count)
    topic = {"name": "known", "phrases": [common.name], "threshold": 0.9}
    rest = run(store, [topic], groups=1000, least_words=1)
    assert rest.covered > 0
    assert rest.covered + rest.clauses == everything.clauses
    assert all(group.topic == "known" for group in rest.groups)
    assert common.name not in {wording.text for group in rest.groups for wording in group.wordings}
    broad = {"name": "broad", "phrases": ["zebra"], "threshold": 0.01}
    not_meant = {**broad, "not": [common.name]}
    covered = run(store, [broad], least_words=1).covered
    assert 0 < run(store, [not_meant], least_words=1).covered < covered
    by_nobody = run(store, [{**topic, "speaker": "nobody"}], least_words=1)
    assert by_nobody.covered == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("789 745 2525", True),
        ("my ssn is 1234", False),  # one word of four: nothing else is left
        ("968 e 15", True),
        ("kooi and hj 2584", True),
        ("2586 lk and suhas", True),
        ("I need 500 gb", False),
        ("mail ines@example.org please", True),
        ("this is Ines Maria Schmidt", True),
        ("I need 2 red vine pizzas", False),
        ("I WANT A NEW CARD", False),
        ("Cancel my contract please", False),
    ],
)
def test_numbers_codes_addresses_and_names_are_details(text: str, *, expected: bool) -> None:
    assert is_detail(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "my card number is 6572876497276465",
        "My account number is 1234, and my PIN is 5678.",
        "booking confirmation number lkj 456",
        "my confirmation no asa 852",
        "sorry send me another mail id please its tharun 123 gmailcom",
        "city ko zip 458999",
        "company name junga p limited and otp 4935",
        "my last name is pandi",
        "my email address ia karanprabu 03 gmailcom",
        "the last 4 digits of my ssn are 9833",
        "Thank you very much, Spencer.",
        "ok thank you for your order",
        "my side over have a good day",
        "thaks for your help",
        "tats all jesse",
        "yes its ok",
        "it is enough for me sir",
    ],
)
def test_nothing_is_left_without_details_and_thanks(text: str) -> None:
    assert not has_content(text)


@pytest.mark.parametrize(
    "text",
    [
        "I want to change my seat",
        "report a lost card",
        "thank you please cancel my order",
        "Thanks, I lost my card.",
        "thank you could you transfer 1000 from account 4432 to account 1234",
        "block my card 1234 today",
        "send the boarding pass to ines@example.org",
        "a new credit card",
        "my password is not working",
        "what is my account number",
        "my name is wrong on the ticket",
        "my phone number has changed",
        "I need a 10 GB plan",
        "can you pay 300 dollars back",
        "I want to buy the intercom",
        "it is not ok",
    ],
)
def test_what_callers_want_is_content(text: str) -> None:
    assert has_content(text)


def test_small_talk_is_left_out_and_counted(client: Client) -> None:
    said = {
        "thanks": ["thank you so much", "thanks a lot for your help", "have a nice day"],
        "details": ["my name is peter", "789 745 2525", "my ssn is 1234", "this is johnson"],
        "wish": ["I lost my credit card", "please cancel my flight to Rome"],
    }
    client.ingest(
        [
            {"id": f"{kind} {number}", "text": f"{text}."}
            for kind, texts in said.items()
            for number, text in enumerate(texts)
        ],
        rejects="rejected.jsonl",
    )
    discovery = client.discover(groups=100)
    assert {group.name for group in discovery.groups} == set(said["wish"])
    assert (discovery.clauses, discovery.small_talk) == (2, 7)


def test_the_same_seed_gives_the_same_groups() -> None:
    store = fill_store(4)
    first = run(store, capacity=44, sample=10, seed=3, least_words=1)
    assert first.sampled < 1.0
    assert first.clauses <= 44
    assert first.compared == 10 < first.wordings
    assert run(store, capacity=44, sample=10, seed=3, least_words=1) == first
    assert run(store, capacity=44, sample=10, seed=4, least_words=1) != first


def test_speakers_metadata_and_lengths_cut_what_is_looked_at() -> None:
    store = fill_store(5)
    everything = run(store, least_words=1)
    agents = run(store, least_words=1, speakers=("agent",))
    customers = run(store, least_words=1, speakers=("customer",))
    shop = run(store, least_words=1, where={"sector": "shop"})
    assert 0 < agents.clauses < everything.clauses
    # the document without turns has no words
    assert agents.clauses + customers.clauses == everything.clauses
    assert 0 < shop.clauses < everything.clauses
    assert run(store, least_words=6).clauses < everything.clauses
    assert run(store, speakers=("nobody",)).groups == ()


def test_formulas_and_what_is_near_a_topic_come_last(sample: Client) -> None:
    plain = sample.discover(groups=1000)
    supports = [min(group.documents, group.wording_count) for group in plain.groups]
    assert supports == sorted(supports, reverse=True)
    topics = [{"name": "first", "phrases": [plain.groups[0].name], "threshold": 0.999}]
    known = sample.discover(topics, groups=1000)
    scores = [
        min(group.documents, group.wording_count)
        * min(1.0, max(0.0, (1 - (group.topic_cosine or 0.0)) / 0.25))
        for group in known.groups
    ]
    assert scores == pytest.approx(sorted(scores, reverse=True))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups": 0}, "groups is 0: it must be an integer of at least 1"),
        ({"least_words": 21}, "least_words is 21: it must be an integer from 1 to 20"),
        ({"distance": -1}, "distance is -1: it must be a number from 0 to 2"),
        ({"seed": -1}, "seed is -1: it must be an integer of at least 0"),
        ({"where": {"colour": "red"}}, "colour"),
    ],
)
def test_a_wrong_value_is_one_clear_error(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        run(fill_store(), **options)


def test_a_model_that_does_not_know_clauses_is_refused() -> None:
    store, encoder = MemoryBackend(), TinyEncoder()
    fill(store, encoder, make_documents(0))
    with pytest.raises(ModelError, match="does not tell where a clause ends"):
        discover(store, encoder, lambda *_: CALIBRATION, "calls", None, DiscoverOptions())


def test_the_client_and_the_command_agree(sample_url: str, tmp_path: Path) -> None:
    topics = tmp_path / "topics.json"
    topics.write_text(json.dumps([{"name": "refund", "phrases": ["I want my money back"]}]))
    with connect(sample_url, device="cpu") as client:
        discovery = client.discover(topics, speakers=["customer"], groups=4)
        with pytest.raises(IndexMissingError):
            client.discover(index="other")
    assert len(discovery.groups) == 4
    base = ("--url", sample_url, "--device", "cpu", "--speaker", "customer", "--groups", "4")
    printed = invoke_cli("discover", "--topics", str(topics), *base, "--json")
    assert printed.status == 0
    assert printed.json == json.loads(json.dumps(discovery.to_dict()))
    shown = invoke_cli("discover", "--topics", str(topics), *base)
    assert shown.stdout.startswith(f"1. {discovery.groups[0].name}")
    assert "nearest topic refund" in shown.stdout
    assert "wordings were compared with each other, seed 0" in shown.stderr


def test_the_command_says_what_is_wrong(sample_url: str, tmp_path: Path) -> None:
    wrong = invoke_cli("discover", "--distance", "9", "--url", sample_url)
    assert wrong.error == "distance is 9.0: it must be a number from 0 to 2"
    missing = invoke_cli("discover", "--topics", str(tmp_path / "no.yaml"), "--url", sample_url)
    assert "no.yaml" in missing.error


def test_a_group_takes_more_documents_than_were_compared() -> None:
    store = ClauseStore(0)
    for number in range(6):
        text = "abc" if number < 4 else f"x{number}"
        place = Occurrence(f"call-{number}", 0, None, 0, 3, text, 0.0)
        store.add(place, np.array([1.0, 0.0], np.float32))
    grouping = group_phrases(store.fold(), 0.4, seed=0, largest=2)
    assert grouping.count_documents().tolist() == [6]
    assert grouping.count_places().tolist() == [6]

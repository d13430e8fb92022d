"""Phrases and mentions in groups: contexts, names, files with mistakes."""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybrid_search import Match, connect
from hybrid_search.backends.memory import MemoryBackend
from hybrid_search.client import Client
from hybrid_search.discover import groups
from hybrid_search.discover.cluster import encode_alone, find_phrases, read_contexts, read_source
from hybrid_search.discover.groups import describe_groups, group_phrases
from hybrid_search.discover.linkage import cluster_vectors, find_telling_words
from hybrid_search.discover.phrase_table import build_table
from hybrid_search.discover.types import Occurrence
from hybrid_search.discover.word_tree import WordTree, find_words, normalize
from hybrid_search.errors import MissingExtraError, UsageError
from hybrid_search.search.phrase_vector import query_vector
from tests.helpers.cli import invoke_cli
from tests.helpers.tiny_encoder import DIMENSION, TinyEncoder
from tests.topics.test_mining import fill, make_documents

PHRASES = ["refund money", "Refund money!", "money refund", "late order", "order late now"]
MATCH = Match(
    "refund", "refund", "a", 0, None, 0, 6, "refund", 0.9, 0.9, None, None, {}, "tiny"
).to_dict()


def test_average_linkage_merges_up_to_the_mean_distance() -> None:
    angles = np.array([0.0, 0.1, 1.0, 1.1, 3.0])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)

    def clusters(limit: float) -> list[set[int]]:
        labels = cluster_vectors(vectors, limit)
        return sorted(
            (set(np.flatnonzero(labels == label).tolist()) for label in set(labels.tolist())),
            key=min,
        )

    assert clusters(0.01) == [{0, 1}, {2, 3}, {4}]
    assert clusters(0.6) == [{0, 1, 2, 3}, {4}]
    assert clusters(2.0) == [{0, 1, 2, 3, 4}]
    assert cluster_vectors(vectors[:1], 0.4).tolist() == [0]


def test_telling_words_are_those_that_the_others_do_not_have() -> None:
    texts = [["the", "refund", "refund"], ["the", "order"], ["the"]]
    assert [words[0] for words in find_telling_words(texts, 1)] == ["refund", "order", "the"]
    assert find_telling_words([[], []], 3) == [[], []]


def test_wordings_are_compared_by_their_words() -> None:
    assert normalize("That's  ALL, thanks!") == "that's all thanks"
    tree = WordTree(["money back", "Money, back", "back", "..."])
    words = find_words("My money back.")
    assert list(tree.find(words)) == [(["money back", "Money, back"], 1, 2), (["back"], 2, 2)]


def test_phrases_of_the_same_words_are_one_and_count_as_often() -> None:
    table = encode_alone(TinyEncoder(), PHRASES)
    assert table.texts == ["refund money", "money refund", "late order", "order late now"]
    assert table.counts.tolist() == [2, 1, 1, 1]
    grouping = group_phrases(table, 0.3, seed=0)
    found = {group.name: group for group in describe_groups(grouping, range(len(grouping.means)))}
    refund = next(group for name, group in found.items() if "refund" in name)
    assert (refund.count, refund.wording_count, refund.documents) == (3, 2, 0)
    assert refund.cohesion == pytest.approx(1.0, abs=1e-3)
    assert refund.wordings[0].text == "refund money"
    assert set(refund.words) == {"refund", "money"}
    assert refund.examples == ()


def test_phrases_that_were_not_compared_go_to_the_nearest_group_that_is_near_enough() -> None:
    phrases = ["refund money"] * 9 + ["money refund", "zebra"]
    table = encode_alone(TinyEncoder(), phrases)
    grouping = group_phrases(table, 0.3, seed=1, largest=1)
    assert grouping.compared == 1
    assert grouping.labels.tolist() == [0, 0, groups.NO_GROUP]
    again = group_phrases(table, 0.3, seed=1, largest=1)
    assert again.labels.tolist() == grouping.labels.tolist()


class ContextEncoder(TinyEncoder):
    """Each word's vector depends on the first word of its text."""

    def encode(self, texts: Any) -> list[Any]:
        encodings = super().encode(texts)
        for encoding in encodings:
            encoding.vectors[1:] += 0.5 * encoding.vectors[:1]
        return encodings


def test_the_vector_of_a_phrase_is_the_mean_over_its_contexts() -> None:
    store, encoder = MemoryBackend(), ContextEncoder()
    texts = ["late money back", "card Money back now", "hold on"]
    fill(store, encoder, [{"id": str(i), "text": text} for i, text in enumerate(texts)])
    contexts = read_contexts(store, "calls", DIMENSION)
    table = build_table(find_phrases(contexts, ["money back", "zebra"], encoder))
    assert table.texts == ["money back", "zebra"]
    assert table.counts.tolist() == [2, 1]
    assert table.documents.tolist() == [0, 1, -1]
    in_context = [query_vector(encoder, "money back", text) for text in texts[:2]]
    mean = np.mean(in_context, axis=0)
    assert table.vectors[0] @ (mean / np.linalg.norm(mean)) > 0.999
    assert table.vectors[0] @ query_vector(encoder, "money back") < 0.99
    assert table.vectors[1] @ query_vector(encoder, "zebra") == pytest.approx(1.0, abs=1e-5)
    example = table.examples[0]
    assert example
    assert (example.id, example.start, example.end, example.text) == ("0", 5, 15, "money back")


def test_the_places_of_phrases_in_long_turns_are_counted_once() -> None:
    store, encoder = MemoryBackend(), TinyEncoder()
    documents = [document for document in make_documents(4) if "turns" in document]
    fill(store, encoder, documents)
    phrases = ["refund", "money", "hold", "w7"]
    contexts = read_contexts(store, "calls", DIMENSION)
    table = build_table(find_phrases(contexts, phrases, encoder))
    texts = [turn["text"] for document in documents for turn in document["turns"]]
    for name, count in zip(table.texts, table.counts.tolist(), strict=True):
        occurrences = sum(text.split().count(name.lower()) for text in texts)
        assert count == max(1, occurrences)


def test_mentions_that_the_index_does_not_have_any_more_are_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with connect("memory:", device="cpu") as client:
        client.ingest(
            [{"id": "a", "text": "Please send my money back. I want a refund."}],
            rejects=tmp_path / "rejected.jsonl",
        )
        rows = [
            {**MATCH, "start": 0, "end": 25, "text": "Please send my money back"},
            {**MATCH, "start": 27, "end": 42, "text": "I want a refund", "topic": "other"},
            {**MATCH, "start": 0, "end": 6, "text": "Refund"},
            {**MATCH, "id": "gone"},
        ]
        path = tmp_path / "matches.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        found = client.cluster(path, distance=2.0)
        (group,) = client.cluster(path, distance=2.0, topic="other")
        with pytest.raises(UsageError, match="has none of 1 matches"):
            client.cluster(write(tmp_path, json.dumps({**MATCH, "id": "gone"})))
    assert [found[0].count, found[0].documents, len(found)] == [2, 1, 1]
    assert "2 matches were left out" in caplog.text
    (example,) = group.examples
    assert example.cosine == pytest.approx(1.0, abs=1e-3)
    assert replace(example, cosine=1.0) == Occurrence("a", 0, None, 27, 42, "I want a refund", 1.0)


def write(folder: Path, text: str, name: str = "some.jsonl") -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "name", "topic", "message"),
    [
        ("", "empty.txt", None, "has no phrase and no match"),
        ("refund\n", "phrases.txt", "refund", "belong to no topic"),
        (
            "refund\n",
            "phrases.jsonl",
            None,
            r"phrases.jsonl:1 is not a match: .*ends in .jsonl has matches",
        ),
        ("refund\n", "matches.csv", None, "ends in .csv, and matches are read from JSON lines"),
        ("\n[1]\n", "list.jsonl", None, r"list.jsonl:2 is not a match: it needs"),
        (json.dumps({**MATCH, "start": "0"}), "a.jsonl", None, "a.jsonl:1 is not a match"),
        (json.dumps({**MATCH, "id": 4}), "a.jsonl", None, "a.jsonl:1 is not a match"),
        (json.dumps({**MATCH, "end": 0}), "a.jsonl", None, "a.jsonl:1 is not a match"),
        (json.dumps(MATCH), "a.jsonl", "late", "no match of topic 'late': its topics are refund"),
    ],
)
def test_a_wrong_file_is_one_clear_error(
    tmp_path: Path, text: str, name: str, topic: str | None, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        read_source(write(tmp_path, text, name), topic)


def test_other_wrong_sources_are_errors_too(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_source(tmp_path / "missing.txt", None)
    (tmp_path / "latin.txt").write_bytes(b"r\xe9fund")
    with pytest.raises(UsageError, match="is not text in UTF-8"):
        read_source(tmp_path / "latin.txt", None)
    with pytest.raises(UsageError, match="the phrase is blank"):
        read_source(["refund", " "], None)
    wrong: Any = [5]
    with pytest.raises(UsageError, match="phrase is 5"):
        read_source(wrong, None)


def test_without_scikit_learn_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.cluster", None)
    monkeypatch.delitem(sys.modules, "hybrid_search.discover.linkage")
    with pytest.raises(MissingExtraError, match=r"need scikit-learn: pip install .*\[cluster\]"):
        importlib.import_module("hybrid_search.discover.linkage")


def test_the_client_groups_what_it_mines(sample: Client) -> None:
    topic = {"name": "refund", "phrases": ["I want my money back"], "threshold": 0.05}
    matches = list(sample.mine([topic]))
    assert len(matches) > 3
    found = sample.cluster(matches)
    assert sum(group.count for group in found) == len(matches)
    assert found == sample.cluster(matches)


def test_the_command_takes_a_file(sample_url: str, tmp_path: Path) -> None:
    base = ("--url", sample_url, "--device", "cpu")
    path = write(tmp_path, "refund money\nplease hold\n", "phrases.txt")
    printed = invoke_cli("cluster", str(path), "--json", *base)
    assert [group["count"] for group in printed.json["groups"]] == [1, 1]
    shown = invoke_cli("cluster", str(path), *base)
    assert shown.stdout.startswith("1. ")
    wrong = invoke_cli("cluster", str(path), "--distance", "3", *base)
    assert wrong.error == "distance is 3.0: it must be a number from 0 to 2"

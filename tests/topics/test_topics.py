"""Files of topics: what they say, and one clear line for each mistake."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hybrid_search import Topic, Topics
from hybrid_search.errors import UsageError
from tests.helpers.topic_files import load_and_fail

FILE = """
- name: refund
  phrases: [refund request, I want my money back]
  not: [refund policy]
  speaker: customer
  where: {sector: [shop, bank], year: {gte: 2025}}
  threshold: 0.6
  notes: Asked for, not explained.
- name: hold
  phrases: [waiting on hold]
  precision: 0.9
"""

REFUND = Topic(
    "refund",
    ("refund request", "I want my money back"),
    ("refund policy",),
    ("customer",),
    {"sector": ["shop", "bank"], "year": {"gte": 2025}},
    threshold=0.6,
    notes="Asked for, not explained.",
)
HOLD = Topic("hold", ("waiting on hold",), precision=0.9)


def test_a_file_in_yaml_has_all_keys(tmp_path: Path) -> None:
    path = tmp_path / "topics.yaml"
    path.write_text(FILE)
    assert list(Topics.load(path)) == [REFUND, HOLD]


@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".yml"])
def test_a_file_in_json_is_taken_too(tmp_path: Path, suffix: str) -> None:
    topics = [{"name": "hold", "phrases": ["waiting on hold"], "precision": 0.9}]
    path = tmp_path / f"topics{suffix}"
    path.write_text(json.dumps(topics[0] if suffix == ".jsonl" else topics))
    assert list(Topics.load(str(path))) == [HOLD]


def test_a_date_in_a_condition_is_text_as_in_metadata(tmp_path: Path) -> None:
    path = tmp_path / "topics.yaml"
    path.write_text("- {name: a, phrases: [b], where: {date: {gte: 2026-01-31}}}")
    (topic,) = Topics.load(path)
    assert topic.where == {"date": {"gte": "2026-01-31"}}


def test_topics_are_taken_from_dicts_and_chosen_by_name() -> None:
    topics = Topics.load([{"name": name, "phrases": [name]} for name in ("a", "b", "c")])
    assert [topic.name for topic in topics.select(["c", "a"])] == ["a", "c"]
    with pytest.raises(UsageError, match="there is no topic 'd': the topics are a, b, c"):
        topics.select(["d"])


def test_a_phrase_that_stands_twice_counts_once() -> None:
    (topic,) = Topics.load([{"name": "a", "phrases": ["x", "y", "x"]}])
    assert topic.phrases == ("x", "y")


BAD_FILES = {
    "": "holds nothing: a file of topics is a list",
    "name: a": "holds a mapping: a file of topics is a list",
    "[]": "has no topics: give at least one",
    "- [": "is not YAML: expected the node content, but found '<stream end>' in line 1, column 4",
    "- 3": "topic 1 is 3: it must be a mapping with name and phrases",
    "- {phrases: [a]}": "topic 1: it has no name: every topic has name, and phrases or rule",
    "- {name: a}": "topic 1 ('a'): it has no phrases",
    "- {name: 3, phrases: [a]}": "topic 1: name is 3: it must be a string (in quotes",
    "- {name: ' ', phrases: [a]}": "topic 1: name: the name is blank",
    f"- {{name: {'a' * 201}, phrases: [a]}}": "name: name has 201 characters: it may have at most",
    "- {name: a, phrases: b}": "topic 1 ('a'): phrases is 'b': it must be a list of strings",
    "- {name: a, phrases: []}": "phrases is []: it must be a list of at least one phrase",
    "- {name: a, phrases: ['']}": "phrases[0]: the phrase is blank",
    "- {name: a, phrases: [b, yes]}": "phrases[1] is True: it must be a string (in quotes",
    f"- {{name: a, phrases: {['b'] * 101}}}": "it must be a list of at most 100 phrases",
    f"- {{name: a, phrases: [{'b' * 5001}]}}": "phrase has 5,001 characters",
    "- {name: a, phrases: [b], not: [b]}": "'b' is among its phrases and under not",
    "- {name: a, phrase: [b]}": "unknown key 'phrase': did you mean 'phrases'?; topic 1",
    "- {name: a, phrases: [b], colour: red}": "unknown key 'colour': the keys are name, phrases",
    "- {name: a, phrases: [b], speaker: 3}": "speaker is 3: it must be a list of strings",
    "- {name: a, phrases: [b], speaker: [x, 3]}": "speaker[1] is 3: it must be a string",
    "- {name: a, phrases: [b], where: shop}": "where is 'shop': it must be a mapping of metadata",
    "- {name: a, phrases: [b], where: {year: {above: 3}}}": "cannot filter 'year' by above",
    "- {name: a, phrases: [b], threshold: 2}": "threshold is 2: it must be a number between 0",
    "- {name: a, phrases: [b], threshold: '.5'}": "threshold is '.5': it must be a number between",
    "- {name: a, phrases: [b], precision: 0}": "precision is 0: it must be a number between 0",
    "- {name: a, phrases: [b], threshold: .5, precision: .5}": "are both given: give one of them",
    "- {name: a, phrases: [b]}\n- {name: a, phrases: [c]}": "2 topics have the name 'a'",
    "- name: a\n  name: b\n  phrases: [c]": "the key 'name' stands twice in one mapping in line 1",
    "- name: a\n  phrases: &x [c]\n- name: b\n  phrases: *x": "an alias (*) up to line 4",
    "- !!python/object/apply:os.getcwd []": "is not YAML: could not determine a constructor",
    "- {name: a, phrases: [b], no: [c]}": "topic 1 ('a'): unknown key False (YAML takes no, off,",
    "- {3: a}": "topic 1: unknown key 3: the keys are name, phrases, not",
    '- {name: "a\\ud800", phrases: [b]}': "has control characters: leave them out",
    '- {name: "a\\nb", phrases: [b]}': "has control characters: leave them out",
    '- {name: a, phrases: ["b\\ud800"]}': "phrases[0]: 'b\\ud800' has half a character",
    "- {name: a, phrases: ['...']}": "topic 1 ('a'): phrases[0]: '...' has no word",
    "- {name: a, phrases: [b], where: {shop: []}}": "where: 'shop' has no values, which no",
    "- {name: a, phrases: [b], where: {3: x}}": "where has the field 3: the name of a field is a",
    "- name: refund: now": "not allowed here in line 1, column 15: put words with : or # in quotes",
    "- {name: a, phrases: [Refund], not: [refund ]}": "'Refund' is among its phrases and under not",
}


@pytest.mark.parametrize("text", BAD_FILES, ids=range(len(BAD_FILES)))
def test_a_mistake_is_one_line_that_names_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "topics.yaml"
    path.write_text(text)
    assert BAD_FILES[text] in load_and_fail(path)


def test_a_file_with_several_mistakes_names_the_first_five_of_them() -> None:
    with pytest.raises(UsageError) as caught:
        Topics.load([{"name": name} for name in "abcdefg"])
    mistakes = "; ".join(
        f"topic {number} ({name!r}): it has no phrases: every topic has name, and phrases or rule"
        for number, name in enumerate("abcde", 1)
    )
    assert str(caught.value).endswith(f": {mistakes}; and 2 more mistakes")


@pytest.mark.parametrize(
    ("name", "data", "mistake"),
    [
        ("topics.txt", b"[]", "has the ending '.txt': a file of topics ends in .yaml, .yml, .json"),
        ("topics.json", b"[", "is not JSON: Expecting value"),
        ("topics.jsonl", b'{}\n{"name":', "is not JSON: line 2: Expecting value"),
        ("topics.jsonl", b'{"name": "a", "name": "b"}', "line 1: the key 'name' stands twice"),
        ("topics.json", b'[{"name": "a", "name": "b"}]', "the key 'name' stands twice"),
        ("topics.yaml", b"\xff\xfe\xff", "is not UTF-8 at byte 0"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_line(
    tmp_path: Path, name: str, data: bytes, mistake: str
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(UsageError) as caught:
        Topics.load(path)
    assert mistake in str(caught.value)


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot be read \(No such file"):
        Topics.load(tmp_path / "topics.yaml")

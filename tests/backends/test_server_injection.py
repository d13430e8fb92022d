"""Whatever users write is data to a server, or a clear error.

Phrases, filters, names, ids, speakers and metadata look like something else here.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybrid_search.backends import open_backend
from hybrid_search.backends.base import Backend
from hybrid_search.backends.types import Request
from hybrid_search.errors import IndexMissingError, UsageError
from hybrid_search.text.filters import Condition, Range, compile_where
from tests.helpers import live_servers
from tests.helpers.tiny_encoder import DIMENSION, fill_index, make_entries, make_request, make_spec

pytestmark = pytest.mark.server

HOSTILE = [
    '"', "'", "\\", '\\"', "`", '{"match_all":{}}', '"}}', '"}},{"match_all":{}}',
    '{"$ref": "x"}', "[]", "{}", "}", "{{x}}", "${x}", "$name",
    "*", "?", "a*", "*a", "a?b", "_all", "_id", "_id:*", "_source", "_search", "a,b", "a, b",
    "-a", "+a", "<a-{now/d}>", "metadata.*", "#", "a#0",
    "../", "../../_search", "..", ".", "/", "a/b", "//", "%2e%2e", "%2F", "%", "%00", "%0a",
    "a&b=c", "a?pretty", "a∕b", "a／b", "⁄", "c:\\d",
    "AND", "OR", "NOT", "a AND b", "a OR NOT b", "~", "a~2", '"a b"~3', "^", "a^5", ":",
    "text:a", "+a -b", "!", "(", "(a", "[a TO z]", "/a.*/",
    "&&", "||", "|", ";", "<script>", "; DROP TABLE", "' OR 1=1 --", "null", "true", "0", "1e3",
    "NaN", "__proto__", "constructor",
    "é", "e\u0301", "\u202e", "\u2028", "\u200b", "😀", "\x01", "\x7f", "\n", "\r\n", "\t", " a",
    "a ", "a\nb",
    '\n{"delete":{"_id":"bystander#0"}}\n',
    '"}\n{"index":{"_id":"bystander#0"}}\n{}\n',
    '\n{}\n{"query":{"match_all":{}}}\n',
]  # fmt: skip
"""Texts that mean something to some server, shell, browser or JSON parser."""

BYSTANDER = {"id": "bystander", "text": "zebra crossing"}


@pytest.fixture(scope="module", params=live_servers.URLS)
def store(request: pytest.FixtureRequest) -> Iterator[Backend]:
    """Each real server."""
    open_store = open_backend(request.param)
    yield open_store
    open_store.close()


@pytest.fixture
def index(store: Backend) -> Iterator[str]:
    """The name of an index with one document that no test looks for."""
    name = f"hostile-{secrets.token_hex(4)}"
    fill_index(store, [BYSTANDER], index=name)
    yield name
    assert "bystander" in find_ids_by_bm25(store, name, "zebra")
    store.drop_index(name)


def find_ids_by_bm25(store: Backend, index: str, phrase: str, *conditions: Condition) -> set[str]:
    """Return the ids of the documents of the BM25 leg."""
    bm25_request = Request(
        phrase, np.zeros(DIMENSION, np.float32), 1000, conditions, semantic=False
    )
    return {passage.document_id for passage in store.find(index, bm25_request).passages}


def find_ids_by_span(store: Backend, index: str, *conditions: Condition) -> set[str]:
    """Return the ids of all documents, by the span leg."""
    span_request = make_request("anything", 1000, conditions, lexical=False)
    return {passage.document_id for passage in store.find(index, span_request).passages}


def write_documents(
    store: Backend, index: str, documents: Sequence[dict[str, Any]]
) -> dict[str, str]:
    """Write documents together; return the reasons of those refused, by id."""
    with store.writer(index, make_spec()) as writer:
        return {
            item.document.id: item.reason
            for item in writer.write([entry for item in documents for entry in make_entries(item)])
        }


def read_metadata(store: Backend, index: str, *ids: str) -> list[Any]:
    contents = store.fetch_contents(index, [f"{document_id}#0" for document_id in ids])
    return [json.loads(contents[f"{document_id}#0"].metadata) for document_id in ids]


# Phrases and texts


def test_a_phrase_is_words_and_nothing_else(store: Backend, index: str) -> None:
    fill_index(store, [{"id": "apple", "text": "apple pie"}], index=index)
    for hostile in HOSTILE:
        assert find_ids_by_bm25(store, index, f"{hostile} apple {hostile}") == {"apple"}, hostile
        assert find_ids_by_bm25(store, index, hostile) == set(), hostile


def test_a_text_is_found_by_its_words_and_comes_back_as_it_was(store: Backend, index: str) -> None:
    texts = {
        f"t{number}": f"{hostile} word{number} {hostile}" for number, hostile in enumerate(HOSTILE)
    }
    assert fill_index(
        store, [{"id": name, "text": text} for name, text in texts.items()], index=index
    ).documents == len(HOSTILE)
    contents = store.fetch_contents(index, [f"{name}#0" for name in texts])
    assert {key.removesuffix("#0"): content.text for key, content in contents.items()} == texts
    for number in range(0, len(HOSTILE), 7):
        assert find_ids_by_bm25(store, index, f"word{number}") == {f"t{number}"}


def test_too_many_words_are_refused_in_words_or_answered(store: Backend, index: str) -> None:
    for words in (900, 1500, 20_000):
        try:
            assert find_ids_by_bm25(
                store, index, " ".join(["zebra", *(f"word{number}" for number in range(words))])
            ) == {"bystander"}
        except UsageError as error:
            assert words > 1000  # OpenSearch takes 1,024, Elasticsearch what its memory allows
            assert "the query is too large for the server" in str(error)
            assert "Use a shorter phrase" in str(error)


def test_a_word_longer_than_any_term_finds_nothing(store: Backend, index: str) -> None:
    assert find_ids_by_bm25(store, index, "a" * 40_000) == set()


# Ids


LONGEST = ("x" * 500, "é" * 250, "/" * 500, "%" * 500, "#" * 500)
IDS = list(
    dict.fromkeys([*filter(str.strip, HOSTILE), "x", "x#0", "x#1", "x#1#0", "#", "##", *LONGEST])
)


def test_every_id_is_found_again_exactly_and_deletes_exactly_itself(
    store: Backend, index: str
) -> None:
    summary = fill_index(
        store, [{"id": document_id, "text": "some apple"} for document_id in IDS], index=index
    )
    assert (summary.documents, summary.failed) == (len(IDS), 0)
    assert find_ids_by_bm25(store, index, "apple") == set(IDS)
    with store.writer(index, make_spec()) as writer:
        assert set(writer.read_source_hashes(IDS)) == set(IDS)
        for document_id in IDS:
            assert (
                find_ids_by_bm25(store, index, "apple", Condition("id", (document_id,)))
                == find_ids_by_span(store, index, Condition("id", (document_id,)))
                == {document_id}
            )
        for document_id in IDS[::3]:
            assert writer.delete([document_id]) == 1, document_id
            assert set(writer.read_source_hashes([document_id, "bystander"])) == {"bystander"}
        deleted_ids = set(IDS[::3])
        assert set(writer.read_source_hashes(IDS)) == set(IDS) - deleted_ids
        assert writer.delete(IDS) == len(IDS) - len(deleted_ids)
    assert store.describe_index(index).documents == 1


def test_a_shorter_version_replaces_a_longer_one_whatever_its_id(
    store: Backend, index: str
) -> None:
    turns = [{"text": f"turn{number} " + "blah " * 60} for number in range(3)]
    write_documents(store, index, [{"id": document_id, "turns": turns} for document_id in IDS[::5]])
    write_documents(
        store, index, [{"id": document_id, "text": "short"} for document_id in IDS[::5]]
    )
    assert store.describe_index(index).passages == len(IDS[::5]) + 1
    assert find_ids_by_bm25(store, index, "blah") == set()


def test_ids_that_a_filter_asks_for_are_plain(store: Backend, index: str) -> None:
    fill_index(
        store,
        [{"id": document_id, "text": "some apple"} for document_id in ("a", "b", "ab")],
        index=index,
    )
    for hostile in ("*", "a*", "?", "_all", "a,b", "a OR b", "[a TO b]", "/a.*/", "a b", "A", ""):
        assert find_ids_by_span(store, index, Condition("id", (hostile,))) == set(), hostile


# Filters


def test_a_value_is_found_again_exactly(store: Backend, index: str) -> None:
    fill_index(
        store,
        [
            {"id": str(number), "text": "apple", "v": value, "more": ["x", value]}
            for number, value in enumerate(HOSTILE)
        ],
        index=index,
    )
    for number, value in enumerate(HOSTILE):
        for condition in (
            Condition("v", (value,)),
            Condition("v", ranges=(Range((("gte", value), ("lte", value))),)),
            Condition("more", (value, "nobody's")),
        ):
            assert (
                find_ids_by_bm25(store, index, "apple", condition)
                == find_ids_by_span(store, index, condition)
                == {str(number)}
            ), condition
    counted = store.count_facets(index, make_request("apple"), ["v"])["v"]
    assert set(counted) <= set(HOSTILE)
    assert set(counted.values()) == {1}


def test_a_field_is_found_again_exactly_by_its_name(store: Backend, index: str) -> None:
    keys = [
        key
        for key in HOSTILE
        if key.strip() and "" not in [step.strip() for step in key.split(".")]
    ]
    assert len(keys) > 80
    summary = fill_index(
        store,
        [{"id": str(number), "text": "apple", "m": {key: "v"}} for number, key in enumerate(keys)],
        index=index,
    )
    assert (summary.documents, summary.failed) == (len(keys), 0)
    fields = store.read_head(index)[1]
    for number, key in enumerate(keys):
        (condition,) = compile_where({f"m.{key}": "v"}, fields)
        assert (
            find_ids_by_bm25(store, index, "apple", condition)
            == find_ids_by_span(store, index, condition)
            == {str(number)}
        ), key
    assert store.count_facets(index, make_request("apple"), [f"m.{key}" for key in keys]) == {
        f"m.{key}": {"v": 1} for key in keys
    }
    assert read_metadata(store, index, *map(str, range(len(keys)))) == [
        {"m": {key: "v"}} for key in keys
    ]


def test_a_name_that_no_document_has_is_refused(store: Backend, index: str) -> None:
    fill_index(store, [{"id": "a", "text": "apple", "m": {"n": 1}}], index=index)
    fields = store.read_head(index)[1]
    of_the_server = "m m.* m.n.long metadata.m.n text document_id spans.start tokens ID"
    for name in [*HOSTILE, *of_the_server.split()]:
        with pytest.raises(
            UsageError,
            match=r"cannot filter on .*the index has no such field. Its fields: id, m\.n",
        ):
            compile_where({name: 1}, fields)


def test_values_too_long_to_be_found_are_refused(store: Backend, index: str) -> None:
    longest, longer = ("y" * 8191, "😀" * 4095), ("y" * 8192, "😀" * 4096, "y" * 100_000)
    fill_index(
        store,
        [
            {"id": value[0] + str(len(value)), "text": "apple", "v": value}
            for value in (*longest, *longer)
        ],
        index=index,
    )
    for value in longest:
        assert find_ids_by_bm25(store, index, "apple", Condition("v", (value,))) == {
            value[0] + str(len(value))
        }
    for value in longer:
        for condition in (
            Condition("v", ("short", value)),
            Condition("v", ranges=(Range((("gt", value),)),)),
            Condition("id", (value,)),
        ):
            with pytest.raises(
                UsageError, match=r"cannot filter .* servers index at most 8191 characters"
            ):
                find_ids_by_bm25(store, index, "apple", condition)
    assert [
        fields["v"] for fields in read_metadata(store, index, "y8192", "😀4096", "y100000")
    ] == list(longer)


def test_too_many_values_are_refused_in_words(store: Backend, index: str) -> None:
    id_condition = Condition("id", ("bystander", *(f"nobody-{number}" for number in range(70_000))))
    for ask in (find_ids_by_bm25, lambda *args: find_ids_by_span(args[0], args[1], args[3])):
        with pytest.raises(
            UsageError, match=r"the query is too large for the server.*65536.*fewer values in where"
        ):
            ask(store, index, "zebra", id_condition)


# Names of indexes


def _is_invalid_name(name: str) -> bool:
    if set(name) & set(' "\\/*?<>|,#:') or name[0] in "-_+.":
        return True
    return name != name.lower() or not name.isprintable()


REFUSED = list(filter(_is_invalid_name, HOSTILE))
VALID_NAMES = [
    "%2e%2e", "a%2fb", "%", "{}", "${x}", "a;b", "a&b=c", "a'b", "a~2", "a^5", "a..b", "a∕b",
    "a／b", "e\u0301", "null", "0", "[a]", "(", "!", "😀",
]  # fmt: skip


def test_a_name_of_an_index_is_refused_or_names_that_index_alone(
    store: Backend, index: str
) -> None:
    assert len(REFUSED) > 60
    before = store.list_indexes()
    for name in [
        *REFUSED,
        f"{index},{index}",
        f"{index}*",
        f"-{index}",
        f"{index}/_search",
        f"{index}?",
        f"<{index}>",
        "*",
        "_all",
        f"{index}#",
        "",
    ]:
        for ask in (
            store.read_head,
            store.describe_index,
            store.drop_index,
            lambda index_name: find_ids_by_bm25(store, index_name, "zebra"),
            lambda index_name: store.writer(index_name, make_spec()),
        ):
            with pytest.raises(UsageError, match="index name"):
                ask(name)
    assert store.list_indexes() == before


@pytest.mark.parametrize("name", VALID_NAMES)
def test_an_odd_name_is_a_name(store: Backend, index: str, name: str) -> None:
    odd = f"{index}{name}"  # of our own, whatever else is on the server
    for missing in (
        store.read_head,
        store.describe_index,
        store.drop_index,
        lambda index_name: find_ids_by_bm25(store, index_name, "zebra"),
    ):
        with pytest.raises(IndexMissingError):
            missing(odd)
    try:
        write_documents(store, odd, [{"id": "x", "text": "apple"}])
        assert odd in store.list_indexes()
        assert (
            find_ids_by_bm25(store, odd, "apple zebra"),
            find_ids_by_span(store, odd),
            store.describe_index(odd).documents,
        ) == ({"x"}, {"x"}, 1)
        assert find_ids_by_bm25(store, index, "apple zebra") == {"bystander"}
    finally:
        store.drop_index(odd)
    assert odd not in store.list_indexes()
    assert index in store.list_indexes()


# Speakers


def test_speakers_and_what_else_a_turn_has_come_back_as_they_were(
    store: Backend, index: str
) -> None:
    turns = [
        {"text": f"turn {number}", "speaker": speaker, speaker: {speaker: [speaker]}}
        for number, speaker in enumerate(HOSTILE)
    ]
    fill_index(store, [{"id": "x", "turns": turns}], index=index)
    passages = store.describe_index(index).passages - 1
    contents = store.fetch_contents(index, [f"x#{ordinal}" for ordinal in range(passages)])
    stored_turns = [
        turn for ordinal in range(passages) for turn in json.loads(contents[f"x#{ordinal}"].layout)
    ]
    assert [turn["speaker"] for turn in stored_turns] == HOSTILE
    assert [turn["extra"] for turn in stored_turns] == [
        {speaker: {speaker: [speaker]}} for speaker in HOSTILE
    ]


def test_a_speaker_may_have_a_very_long_name(store: Backend, index: str) -> None:
    fill_index(
        store, [{"id": "x", "turns": [{"text": "apple", "speaker": "S" * 100_000}]}], index=index
    )
    assert (
        json.loads(store.fetch_contents(index, ["x#0"])["x#0"].layout)[0]["speaker"]
        == "S" * 100_000
    )


# Metadata

ODD: dict[str, Any] = {
    "names of ours": {
        "start": "a",
        "tokens": "b",
        "layout": "c",
        "spans": {"vector": [1, 2], "start": 3},
        "document_id": "d",
        "metadata": {"a": "b"},
    },
    "names of servers": {
        "_id": "a",
        "_source": {"b": 1},
        "_index": "c",
        "_routing": "d",
        "_doc_count": 3,
        "_type": "e",
        "_ignored": ["f"],
        "_seq_no": 4,
    },
    "names of mappings": {
        "type": "nested",
        "properties": {"x": {"type": "text"}},
        "fields": {},
        "dynamic": "false",
        "enabled": False,
        "long": 7,
    },
    "names of a prototype": {
        "__proto__": {"admin": True},
        "constructor": {"prototype": 1},
        "toString": "x",
    },
    "very long names": {"k" * 8000: "v", "é" * 400: {"ü" * 400: 1}},
    "a dotted path": {"a.b.c": {"d.e": 1}, "a": {"b": {"f": 2}}},
    "objects in lists": {"l": [{"a": [{"b": 1}, {"b": [2, 3]}]}, {"c": "x"}]},
    "nothing": {"n": None, "e": [], "o": {}, "l": [None, {}]},
    "numbers at their limits": {
        "n": [2**63 - 1, -(2**63), 0, -0.0, 5e-324, 1.7976931348623157e308, 0.1, 1e22]
    },
    "what looks like a date": {
        "d": ["2026-01-01", "not a date", "2026-13-45", "12:00"],
        "n": "1234",
    },
    "18 objects deep": {"m": json.loads('{"a":' * 16 + "1" + "}" * 16)},
}


@pytest.mark.parametrize("case", ODD)
def test_odd_metadata_comes_back_unchanged_beside_its_neighbours(
    store: Backend, index: str, case: str
) -> None:
    documents = [
        {"id": "before", "text": "apple"},
        {"id": "x", "text": "apple", **ODD[case]},
        {"id": "behind", "text": "apple", "fine": 1},
    ]
    summary = fill_index(store, documents, index=index)
    assert (summary.documents, summary.failed) == (3, 0)
    assert read_metadata(store, index, "x", "behind") == [ODD[case], {"fine": 1}]
    assert (
        find_ids_by_bm25(store, index, "apple")
        == find_ids_by_span(store, index) - {"bystander"}
        == {"before", "x", "behind"}
    )


IMPOSSIBLE: dict[str, tuple[dict[str, Any], str]] = {
    "a leading dot": ({".a": 1}, "has an empty name or an empty step between dots"),
    "two dots": ({"a..b": 1}, "has an empty name or an empty step between dots"),
    "a trailing dot": ({"m": {"a.": 1}}, "has an empty name or an empty step between dots"),
    "no name": ({"m": {"": 1}}, "has an empty name or an empty step between dots"),
    "a blank name": ({" ": 1}, "has an empty name or an empty step between dots"),
    "more fields than an index takes": (
        {"m": {f"k{number}": "v" for number in range(1100)}},
        "the server refused it: .*exception.*total fields .1000.",
    ),
    "a path deeper than an index takes": (
        {".".join("abcdefghijklmnopqrstuvwxyz"): 1},
        "the server refused it: .*exception.*mapping depth .20.",
    ),
    "a value that is an object too": (
        {"a": 1, "a.b": 2},
        "'a' is a object here and a number in the index",
    ),
}


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_metadata_that_no_server_holds_is_refused_with_a_reason_and_its_neighbours_go_on(
    store: Backend, index: str, case: str
) -> None:
    fields, reason = IMPOSSIBLE[case]
    documents = [
        {"id": "before", "text": "apple"},
        {"id": "x", "text": "apple", **fields},
        {"id": "behind", "text": "apple", "fine": 1},
    ]
    rejects = Path("hostile.rejected.jsonl")
    summary = fill_index(store, documents, rejects, index)
    assert (summary.documents, summary.failed) == (2, 1)
    (rejected,) = (json.loads(line) for line in rejects.read_text(encoding="utf-8").splitlines())
    assert rejected["line"] == 2
    assert re.search(reason, f"{rejected['reason']} {rejected.get('detail', '')}"), rejected
    assert find_ids_by_bm25(store, index, "apple") == {"before", "behind"}
    assert "fine" in store.read_head(index)[1]


def test_an_index_whose_fields_are_used_up_still_takes_documents_of_the_fields_it_has(
    store: Backend, index: str
) -> None:
    fill_index(
        store,
        [{"id": "many", "text": "apple", "m": {f"k{number}": "v" for number in range(950)}}],
        index=index,
    )
    summary = fill_index(
        store,
        [{"id": str(number), "text": "apple", f"k{number}": "v"} for number in range(60)],
        index=index,
    )
    assert summary.documents > 0
    assert summary.failed > 0
    assert summary.documents + summary.failed == 60
    assert store.describe_index(index).documents == summary.documents + 2
    more = fill_index(
        store,
        [{"id": "more", "text": "pear", "k0": "w"}, {"id": "plain", "text": "pear"}],
        index=index,
    )
    assert (more.documents, more.failed) == (2, 0)
    assert find_ids_by_bm25(store, index, "pear", Condition("k0", ("w",))) == {"more"}

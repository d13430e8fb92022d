"""Spans for an index of another program: of three shapes, followed, and joined by document."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from hybrid_search import connect, encoder
from hybrid_search.backends.server.attachment import Attachment, Version, parse_text_option
from hybrid_search.backends.server.backend import ServerBackend
from hybrid_search.client import Client
from hybrid_search.errors import DocumentMissingError, IndexStoreError, ServerError, UsageError
from tests.helpers.cli import invoke_cli
from tests.helpers.live_servers import URLS, unique_index_name
from tests.helpers.tiny_encoder import FINEST, TinyEncoder, make_spec
from tools.pages import read_blocks

ROOT = Path(__file__).parents[2]
Source = dict[str, Any]

CALLS: dict[str, list[tuple[str, str]]] = {
    "call-1": [("agent", "Good morning."), ("caller", "The kettle leaks, I want my money back.")],
    "call-2": [("caller", "Nobody picked up for an hour."), ("agent", "The line was busy.")],
    "call-3": [("caller", "Please change my address to Garden Lane."), ("agent", "Done.")],
    "call-4": [("caller", "My neighbour Ignatz has the parcel."), ("agent", "I see.")],
    "call-5": [("agent", "Your card was charged twice."), ("caller", "Twice? Return one of them.")],
    "call-6": [("caller", "🫖 The café sold me a broken teapot."), ("agent", "How awful.")],
}
SECTORS = {id_: "bank" if id_ in ("call-4", "call-5") else "shop" for id_ in CALLS}
DATES = {id_: f"2026-03-0{number}" for number, id_ in enumerate(CALLS, 1)}


@dataclass(frozen=True, slots=True)
class Shape:
    """A mapping of somebody else, and the options by which it is attached.

    `build` makes the document of turns, and `read_turn` reads the text of a turn from it.
    """

    attach: Mapping[str, Any]
    properties: Mapping[str, Any]
    build: Callable[[list[tuple[str, str]]], Source]
    read_turn: Callable[[Source, int], str]
    word_query: Callable[[str], Source]
    speakers: bool = True
    settings: Mapping[str, Any] | None = None
    indexes: int = 1


def _match(field: str) -> Callable[[str], Source]:
    return lambda phrase: {"match": {field: phrase}}


def _build_lines(turns: list[tuple[str, str]]) -> Source:
    return {"talk": {"lines": [{"who": who, "words": words} for who, words in turns]}}


def _build_utterances(turns: list[tuple[str, str]]) -> Source:
    rows = [
        {"speaker": who, "text": text, "at_ms": 1000 * number}
        for number, (who, text) in enumerate(turns)
    ]
    return {"utterances": rows}


OWN_ANALYZER = {
    "analysis": {
        "filter": {"plain": {"type": "stop", "stopwords": ["the", "my"]}},
        "analyzer": {
            "own": {"type": "custom", "tokenizer": "standard", "filter": ["lowercase", "plain"]}
        },
    }
}
PLAIN_SHAPE = Shape(
    {"text": "transcript"},
    {"transcript": {"type": "text", "analyzer": "own"}},
    lambda turns: {"transcript": "\n".join(text for _, text in turns)},
    lambda source, _: str(source["transcript"]),
    _match("transcript"),
    speakers=False,
    settings=OWN_ANALYZER,
)
LISTED_SHAPE = Shape(
    {"text": "turns=utterances.text", "columns": {"speaker": "speaker", "start": "at_ms"}},
    {"utterances": {"properties": {"text": {"type": "text"}, "speaker": {"type": "keyword"}}}},
    _build_utterances,
    lambda source, turn: str(source["utterances"][turn]["text"]),
    _match("utterances.text"),
)
ROLLED_SHAPE = Shape(
    {"text": "turns=talk.lines.words", "columns": {"speaker": "who"}},
    {
        "talk": {
            "properties": {
                "lines": {
                    "type": "nested",
                    "properties": {"words": {"type": "text"}, "who": {"type": "keyword"}},
                }
            }
        }
    },
    _build_lines,
    lambda source, turn: str(source["talk"]["lines"][turn]["words"]),
    lambda phrase: {
        "nested": {
            "path": "talk.lines",
            "query": {"match": {"talk.lines.words": phrase}},
            "score_mode": "max",
        }
    },
    indexes=2,
)
SHAPES = {
    "text with an analyzer of its own": PLAIN_SHAPE,
    "list of utterances": LISTED_SHAPE,
    "nested lines, rolled over": ROLLED_SHAPE,
}
LISTED = "list of utterances"
ROLLED = "nested lines, rolled over"
PLAIN = "text with an analyzer of its own"


@dataclass(slots=True)
class ForeignIndex:
    """An index of another program, behind an alias over one or two indexes, and a client."""

    name: str
    client: Client
    shape: Shape

    @property
    def backend(self) -> ServerBackend:
        assert isinstance(self.client.backend, ServerBackend)
        return self.client.backend

    def make(self) -> None:
        """Make the indexes behind the alias, as rollovers do, and fill them."""
        kinds = {"sector": {"type": "keyword"}, "at": {"type": "date"}, "labels": LABELS}
        for number in range(1, self.shape.indexes + 1):
            body = {
                "settings": {"number_of_replicas": 0, **(self.shape.settings or {})},
                "mappings": {"properties": {**self.shape.properties, **kinds}},
                "aliases": {self.name: {"is_write_index": number == self.shape.indexes}},
            }
            self.backend.server.request("PUT", f"/{self.name}-{number:06d}", body=body)
        self.change({id_: self.build(id_, turns) for id_, turns in CALLS.items()})

    def build(self, id_: str, turns: list[tuple[str, str]], sector: str = "") -> Source:
        sector = sector or SECTORS.get(id_, "shop")
        return {
            **self.shape.build(turns),
            "sector": sector,
            "at": DATES.get(id_, "2026-04-01"),
            "labels": [{"name": "sector", "value": sector}],
        }

    def change(self, sources: Mapping[str, Source | None]) -> None:
        """Write documents, each into the index where it was; None deletes one."""
        lines: list[Any] = []
        for id_, source in sources.items():
            part = 1 + list(CALLS).index(id_) % self.shape.indexes if id_ in CALLS else 1
            place = {"_index": f"{self.name}-{part:06d}", "_id": id_}
            lines += [{"delete": place}] if source is None else [{"index": place}, source]
        params = {"refresh": "true"}
        answer = self.backend.server.request("POST", "/_bulk", lines=lines, params=params)
        assert not answer["errors"], answer

    def search(self, body: Source) -> list[Source]:
        path = f"/{self.name}/_search"
        hits: list[Source] = self.backend.server.request("POST", path, body=body)["hits"]["hits"]
        return hits

    def read(self, id_: str) -> Source:
        (hit,) = self.search({"query": {"ids": {"values": [id_]}}, "seq_no_primary_term": True})
        return hit

    def attach(self) -> Any:
        return self.client.attach(self.name, **self.shape.attach, codes=FINEST)

    def sync(self) -> tuple[int, int, int]:
        """Return how many documents were encoded, skipped and deleted."""
        summary = self.client.attach(self.name)
        return summary.documents, summary.skipped, summary.deleted

    def query(self, phrase: str, **options: Any) -> Any:
        return self.client.query(phrase, index=self.name, **options)

    def list_stored(self) -> list[Source]:
        """Return all that the sidecar gives out: sources and columns."""
        columns = ["document_id", "speakers", "turn_speakers", "source_hash", "text_hash"]
        body = {"size": 1000, "docvalue_fields": columns, "stored_fields": ["*"], "_source": True}
        path = f"/{self.name}.spans/_search"
        hits: list[Source] = self.backend.server.request("POST", path, body=body)["hits"]["hits"]
        return hits


LABELS = {
    "type": "nested",
    "properties": {"name": {"type": "keyword"}, "value": {"type": "keyword"}},
}


@pytest.fixture(scope="module", autouse=True)
def _tiny() -> Iterator[None]:
    """Let clients encode by the tiny encoder, also for the indexes of the whole module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoder, "load", lambda *_, **__: TinyEncoder())
        patch.setattr(encoder, "truncate_encoder", lambda full_encoder, *_: full_encoder)
        yield


@contextmanager
def make_foreign(url: str, shape: str) -> Iterator[ForeignIndex]:
    with unique_index_name(url) as name, connect(url) as client:
        foreign = ForeignIndex(name, client, SHAPES[shape])
        foreign.make()
        yield foreign


@pytest.fixture(scope="module", params=URLS)
def url(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module", params=SHAPES)
def foreign(url: str, request: pytest.FixtureRequest) -> Iterator[ForeignIndex]:
    """An attached index of each shape, which is only read."""
    with make_foreign(url, request.param) as made:
        assert made.attach().documents == len(CALLS)
        yield made


def test_a_span_stands_where_it_says_in_the_field_of_the_other_index(foreign: ForeignIndex) -> None:
    for id_, turns in CALLS.items():
        number, (speaker, text) = max(enumerate(turns), key=lambda item: len(item[1][1]))
        hit = foreign.query(text, alpha=1, spans=1).hits[0]
        (span,) = hit.spans
        source = foreign.read(id_)["_source"]
        assert hit.id == id_
        assert len(span.text) > len(text) / 2  # punctuation at its ends is none of it
        if foreign.shape.speakers:
            own_text = foreign.shape.read_turn(source, number)
            assert (span.turn, span.speaker) == (number, speaker)
            assert own_text[span.turn_start : span.turn_end] == span.text
        else:
            assert foreign.shape.read_turn(source, 0)[span.start : span.end] == span.text
        kept = {name: source[name] for name in ("sector", "at", "labels")}
        assert {name: hit.metadata[name] for name in kept} == kept
        assert span.text not in json.dumps(hit.metadata, ensure_ascii=False)


def test_the_sidecar_has_no_word_of_a_text_and_no_speaker(foreign: ForeignIndex) -> None:
    stored = foreign.list_stored()
    assert len(stored) == len(CALLS)
    everything = json.dumps([hit.get("_source", {}) | hit.get("fields", {}) for hit in stored])
    words = {
        word.strip(".,?").lower()
        for turns in CALLS.values()
        for _, t in turns
        for word in t.split()
    }
    for word in {*words, "agent", "caller"} - {"i", "a", "to"}:
        assert f'"{word}' not in everything.lower()
        assert len(word) < 5 or word not in everything.lower()


def test_bm25_is_the_score_that_the_index_itself_gives_a_document(foreign: ForeignIndex) -> None:
    phrase = "the parcel of my neighbour was busy"
    body = {"query": foreign.shape.word_query(phrase), "_source": False}
    expected = {hit["_id"]: pytest.approx(hit["_score"]) for hit in foreign.search(body)}
    assert len(expected) > 1
    for alpha in (0, 0.5):
        hits = foreign.query(phrase, alpha=alpha).hits
        assert {hit.id: hit.bm25 for hit in hits if hit.bm25} == expected
    assert [hit.id for hit in foreign.query(phrase, alpha=0)] == list(expected)


def test_conditions_and_a_filter_in_the_language_of_the_server_hold(foreign: ForeignIndex) -> None:
    banks = {"call-4", "call-5"}
    nested = {"nested": {"path": "labels", "query": {"term": {"labels.value": "bank"}}}}
    for alpha in (0, 0.5, 1):
        conditions: list[dict[str, Any]] = [
            {"where": {"sector": "bank"}},
            {"where": {"sector": {"ne": "shop"}}},
            {"where": {"at": {"gte": "2026-03-04", "lt": "2026-03-06"}}},
            {"where": {"id": sorted(banks)}},
            {"server_filter": {"term": {"sector": "bank"}}},
            {"server_filter": nested},
        ]
        for options in conditions:
            found = {
                hit.id for hit in foreign.query("the parcel was charged", alpha=alpha, **options)
            }
            assert found == banks, (alpha, options)
    assert foreign.query("parcel", where={"sector": "none"}).total == 0
    with pytest.raises(UsageError, match="cannot filter on 'colour'"):
        foreign.query("parcel", where={"colour": "red"})


@pytest.mark.parametrize("shape", [PLAIN, ROLLED])
def test_new_changed_and_vanished_documents_are_followed(url: str, shape: str) -> None:
    with make_foreign(url, shape) as foreign:
        foreign.attach()
        assert foreign.sync() == (0, 6, 0)
        foreign.change(
            {
                "call-1": foreign.build("call-1", [("caller", "All is well with the toaster.")]),
                "call-2": foreign.build("call-2", CALLS["call-2"], sector="bank"),
                "call-9": foreign.build("call-9", [("caller", "The lamp flickers at night.")]),
                "call-3": None,
                "call-6": {"sector": "shop"},
            }
        )
        by_words = foreign.query("toaster", alpha=0).hits  # as yet without spans
        assert (by_words[0].id, by_words[0].spans) == ("call-1", [])
        assert "toaster" in by_words[0].text
        shown = {hit.id: hit.spans for hit in foreign.query("I want my money back").hits}
        assert not shown.get("call-1")
        assert "call-3" not in shown

        # 1 has another text and 1 is new; 1 has other metadata, and 2 are untouched; 1 is gone, and
        # 1 has no text any more
        assert foreign.sync() == (2, 3, 2)
        assert foreign.sync() == (0, 5, 0)
        spans = {hit.id: hit.spans for hit in foreign.query("toaster", alpha=1).hits}
        assert set(spans) == {"call-1", "call-2", "call-4", "call-5", "call-9"}
        assert all(spans.values())
        assert foreign.query("busy", where={"sector": "bank"}, alpha=1).total == 3


def test_a_text_that_changed_unnoticed_is_never_shown_by_its_old_offsets(url: str) -> None:
    with make_foreign(url, PLAIN) as foreign:
        foreign.attach()
        text = "Ignatz lives elsewhere these days, with another parcel."
        foreign.change(
            {"call-4": foreign.build("call-4", [("caller", text)]), "call-5": {"at": None}}
        )
        version = str(Version.from_hit(foreign.read("call-4")))
        attachment = foreign.backend.find_attachment(foreign.name)
        assert attachment
        spec = replace(make_spec(), codes=FINEST)
        with foreign.backend.attach(attachment, spec) as writer:
            writer.stamp({"call-4": version})  # as if its new text had been read
        result = foreign.query("My neighbour Ignatz has the parcel")
        assert "call-4" not in {hit.id for hit in result}
        (warning,) = result.plan["warnings"]
        assert "its text has changed since the last sync" in warning
        assert f"hybrid-search attach --index {foreign.name} --sync" in warning


def test_only_what_an_alias_shows_is_found_and_told(foreign: ForeignIndex) -> None:
    """An alias with a filter stands in for a role, which OpenSearch has by a plugin alone."""
    part = f"{foreign.name}-banks"
    add = {"alias": part, "filter": {"term": {"sector": "bank"}}}
    numbers = range(1, foreign.shape.indexes + 1)
    actions = [{"add": {"index": f"{foreign.name}-{number:06d}", **add}} for number in numbers]
    foreign.backend.server.request("POST", "/_aliases", body={"actions": actions})
    assert_told_nothing(foreign.client, part, visible={"call-4", "call-5"})


def assert_told_nothing(client: Client, index: str, visible: set[str]) -> None:
    """Ask for the words of all other calls, and assert that none of them is told."""
    hidden = {id_: turns for id_, turns in CALLS.items() if id_ not in visible}
    words = {word.strip(".,?") for turns in hidden.values() for _, t in turns for word in t.split()}
    long_words = {word for word in words if len(word) > 4}
    for id_, turns in hidden.items():
        for options in ({"alpha": 0}, {"highlight": True}, {"alpha": 1, "feedback": 2}):
            result = client.query(turns[0][1], index=index, **options)
            assert {hit.id for hit in result} <= visible
            assert result.total <= len(visible)
            told = json.dumps(result.to_dict(texts=True)["hits"], ensure_ascii=False)
            assert not {word for word in long_words if word in told}
        with pytest.raises(DocumentMissingError):
            client.open_document(id_, index=index)
    phrase = CALLS["call-1"][1][1]
    topic = {"name": "all", "phrases": [phrase], "threshold": 0.01}
    assert {match.id for match in client.mine([topic], index=index)} <= visible
    similar = client.similar(phrase, index=index, min_cosine=-1)
    assert similar
    assert not {word for row in similar for word in long_words if word in row.text}


def test_speakers_are_told_apart(foreign: ForeignIndex) -> None:
    if not foreign.shape.speakers:
        pytest.skip("this shape has no speakers")
    text = "The line was busy"
    assert "line" in foreign.query(text, alpha=1, speaker="agent").hits[0].spans[0].text
    said_by_callers = foreign.query(text, alpha=1, speaker="caller").hits
    assert {span.speaker for hit in said_by_callers for span in hit.spans} == {"caller"}


def test_a_document_is_opened_mined_and_verified(foreign: ForeignIndex) -> None:
    view = foreign.client.open_document("call-4", "the parcel", index=foreign.name, spans=1)
    assert view.text == "\n".join(text for _, text in CALLS["call-4"])
    assert "parcel" in view.spans[0].text
    phrase = "My neighbour Ignatz has the parcel"
    topic = {"name": "parcel", "phrases": [phrase], "threshold": 0.8}
    (match,) = foreign.client.mine([topic], index=foreign.name)
    assert match.id == "call-4"
    assert match.text in CALLS["call-4"][0][1]
    assert foreign.client.verify(foreign.name, full=True).is_sound


def test_the_index_itself_is_never_written(foreign: ForeignIndex) -> None:
    for attempt in (
        lambda: foreign.client.ingest([{"id": "x", "text": "y"}], index=foreign.name),
        lambda: foreign.client.ingest([{"id": "x", "text": "y"}], index=f"{foreign.name}.spans"),
        lambda: foreign.client.delete(["call-1"], index=foreign.name),
        lambda: foreign.client.drop(foreign.name),
        lambda: foreign.client.reindex(foreign.name),
    ):
        with pytest.raises(UsageError, match="its documents are those of another program"):
            attempt()
    assert len(foreign.search({})) == len(CALLS)


def test_a_field_that_has_no_searchable_text_is_refused_with_those_that_have(
    foreign: ForeignIndex,
) -> None:
    own = foreign.shape.attach["text"].rpartition("=")[2]
    for text, described in (("body", "is not in its mapping"), ("sector", "is a keyword")):
        with pytest.raises(UsageError, match=f"{described}.*: its texts are {own}"):
            foreign.client.attach(foreign.name, text)


def test_a_template_decides_what_bm25_asks_and_the_spans_go_without_the_index(url: str) -> None:
    with make_foreign(url, PLAIN) as foreign:
        with pytest.raises(IndexStoreError, match="hybrid-search attach"):
            foreign.query("parcel")
        words = {"match": {"transcript": "{{phrase}}"}}
        sector = {"constant_score": {"filter": {"term": {"sector": "bank"}}, "boost": 50}}
        template = {"bool": {"must": [words], "should": [sector]}}
        foreign.client.attach(foreign.name, "transcript", template=template)
        hits = foreign.query("was", alpha=0).hits
        assert [(hit.id, hit.bm25 > 50) for hit in hits] == [("call-5", True), ("call-2", False)]
        with pytest.raises(UsageError, match="was made with template"):
            foreign.client.attach(foreign.name, "transcript")
        with pytest.raises(UsageError, match=r'no "\{\{phrase\}\}"'):
            foreign.client.attach(foreign.name, "transcript", template={"match_all": {}})
        foreign.client.drop(f"{foreign.name}.spans")
        assert len(foreign.search({})) == len(CALLS)


def test_a_data_stream_is_read(url: str) -> None:
    with unique_index_name(url) as name, connect(url) as client:
        assert isinstance(client.backend, ServerBackend)
        server = client.backend.server
        mapping = {"properties": {"transcript": {"type": "text"}}}
        template = {"settings": {"number_of_replicas": 0}, "mappings": mapping}
        body = {"index_patterns": [name], "data_stream": {}, "template": template}
        server.request("PUT", f"/_index_template/{name}", body=body)
        try:
            server.request("PUT", f"/_data_stream/{name}")
        except ServerError:
            pytest.skip("this distribution has no data streams")
        try:
            for number, (id_, turns) in enumerate(CALLS.items()):
                if number == 3:
                    server.request("POST", f"/{name}/_rollover")
                document = {"@timestamp": DATES[id_], "transcript": turns[0][1]}
                server.request("PUT", f"/{name}/_create/{id_}", body=document)
            server.request("POST", f"/{name}/_refresh")
            assert client.attach(name, "transcript", codes=FINEST).documents == len(CALLS)
            hit = client.query("The café sold me a broken teapot", index=name).hits[0]
            assert (hit.id, hit.spans[0].start) == ("call-6", 2)  # behind the teapot and a blank
        finally:
            server.request("DELETE", f"/_data_stream/{name}")
            server.request("DELETE", f"/_index_template/{name}")


WORKER = """
import sys
from hybrid_search import connect, encoder
from hybrid_search.ingest import attach, pipeline
from tests.helpers.tiny_encoder import TinyEncoder

encoder.load = lambda *_: TinyEncoder()
encoder.truncate_encoder = lambda whole, *_: whole
pipeline.BLOCK_PASSAGES, attach.READ = 8, 5
url, index = sys.argv[1:]

def report(summary):
    if summary.documents:
        print(summary.documents, flush=True)
        sys.stdin.readline()

with connect(url) as client:
    client.attach(index, "transcript", report=report, codes=8)
"""


def test_after_a_kill_in_the_middle_the_same_command_leaves_every_document_once(url: str) -> None:
    with make_foreign(url, PLAIN) as foreign:
        words = [f"word{number}" for number in range(97)]
        texts = [
            " ".join(words[number * step % 97] for step in range(1, 300)) for number in range(60)
        ]
        names = [f"long-{number}" for number in range(60)]
        long = {
            name: foreign.build(name, [("caller", text)])
            for name, text in zip(names, texts, strict=True)
        }
        foreign.change(long)
        command = [sys.executable, "-c", WORKER, url, foreign.name]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout
        written = int(process.stdout.readline())
        process.kill()
        process.communicate()
        assert 0 < written < 66
        summary = foreign.attach()
        assert summary.documents + summary.skipped == 66
        assert summary.documents <= 66 - written
        assert foreign.sync() == (0, 66, 0)
        stored = [hit["_source"] for hit in foreign.list_stored()]
        places = {(source["document_id"], source["ordinal"]) for source in stored}
        assert len(places) == len(stored) > 66
        assert {id_ for id_, _ in places} == {*CALLS, *long}
        assert len(stored) == sum(source["passages"] for source in stored if not source["ordinal"])


def test_the_command_attaches_and_follows(url: str) -> None:
    with make_foreign(url, LISTED) as foreign:
        place = ("--index", foreign.name, "--url", url)
        assert "--text transcript" in invoke_cli("attach", *place).error
        texts = ("--text", "turns=utterances.text", "--columns", "speaker=speaker")
        first = invoke_cli("attach", *place, *texts)
        assert (first.status, first.json["documents"]) == (0, len(CALLS))
        foreign.change({"call-3": None})
        again = invoke_cli("attach", *place, "--sync")
        assert (again.json["documents"], again.json["deleted"]) == (0, 1)
        dsl = json.dumps({"term": {"sector": "bank"}})
        answer = invoke_cli("query", "the parcel", *place, "--server-filter", dsl, "--json")
        assert {hit["id"] for hit in answer.json["hits"]} == {"call-4", "call-5"}
        assert "object of JSON" in invoke_cli("query", "x", *place, "--server-filter", "[").error


def test_the_commands_of_its_page_run(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYBRID_SEARCH_URL", url)
    text = "Where is it? I want my money back."
    calls = {"transcript": text, "status": "closed"}
    chats = {"utterances": [{"who": "customer", "text": text}]}
    with unique_index_name(url) as name, connect(url) as client:
        assert isinstance(client.backend, ServerBackend)
        names = {"raw-calls": name, "raw-chats": f"{name}-chats"}
        for index, source in zip(names.values(), (calls, chats), strict=True):
            path = f"/{index}/_doc/call-1"
            body = {"mappings": {"properties": {"status": {"type": "keyword"}}}}
            client.backend.server.request("PUT", f"/{index}", body=body)
            client.backend.server.request("PUT", path, body=source, params={"refresh": "true"})
        commands = [
            shlex.split(command)
            for block in read_blocks(ROOT / "docs" / "attach.md")
            for command in block.commands
        ]
        outcomes = [
            invoke_cli(*[names.get(word, word) for word in words[1:]]) for words in commands
        ]
    assert [outcome.status for outcome in outcomes] == [0] * 4
    assert "1. call-1 " in outcomes[1].stdout
    assert [outcomes[number].json["documents"] for number in (0, 2, 3)] == [1, 1, 0]


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        ("words=a.b", {}, "give a field"),
        ("turns=lines", {}, "the field of a turn"),
        ("", {}, "give a field"),
        ("body", {"id": "x"}, "columns has id"),
    ],
)
def test_a_text_option_of_another_form_is_refused(
    text: str, columns: dict[str, str], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        parse_text_option(text, columns)


def test_only_a_server_has_indexes_to_attach() -> None:
    with connect("memory:") as client, pytest.raises(UsageError, match="only an index on a server"):
        client.attach("calls", "text")


def test_the_phrase_is_a_value_in_a_template() -> None:
    template = {
        "bool": {"should": [{"match": {"a": "{{phrase}}"}}, {"term": {"b": "x {{phrase}}"}}]}
    }
    attachment = Attachment("raw", {"text": "a"}, template=template)
    phrase = '"}, "match_all": {}'
    assert attachment.build_match(phrase) == {
        "bool": {"should": [{"match": {"a": phrase}}, {"term": {"b": f"x {phrase}"}}]}
    }

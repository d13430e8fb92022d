"""The commands ``indexes`` and ``show``, and what is said where an index has nothing."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hybrid_search import connect
from hybrid_search.client import Client
from hybrid_search.errors import AccessError
from tests.helpers.cli import invoke_cli
from tests.helpers.fake_cluster import FakeCluster
from tests.helpers.fake_server import HttpRequest, Reply, ScriptedServer

CALL = {
    "id": "call-17",
    "turns": [
        {"speaker": "agent", "text": "Good morning, how can I help?", "start_ms": 1000},
        {"speaker": "customer", "text": "I want my money back.", "start_ms": 3_723_000},
    ],
    "sector": "bank",
    "queue": ["billing", "cards"],
}
NOTE = {"id": "note-1", "text": "The customer asked for a refund.", "sector": "shop"}


@pytest.fixture
def _store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody whose index calls has two documents, and whose index empty has none."""
    monkeypatch.setenv("HYBRID_SEARCH_URL", f"embedded:{tmp_path / 'store'}")
    source = tmp_path / "calls.jsonl"
    source.write_text("".join(f"{json.dumps(document)}\n" for document in (CALL, NOTE)))
    assert invoke_cli("ingest", str(source)).status == 0
    assert invoke_cli("setup", "--index", "empty").status == 0


def test_an_index_tells_its_size_and_when_it_was_written(client: Client, empty_url: str) -> None:
    """On every backend; an index in memory is no file, and nobody wrote down the time."""
    before = datetime.now(UTC) - timedelta(seconds=1)
    client.ingest([CALL, NOTE], index="calls")
    info = client.describe("calls")
    if empty_url.startswith("memory"):
        assert (info.bytes, info.written_at) == (None, None)
    else:
        assert info.bytes is not None
        assert info.bytes > 1000  # two texts and their word codes
        assert info.written_at is not None
        assert before <= info.written_at <= datetime.now(UTC) + timedelta(seconds=1)
    assert info.to_dict()["documents"] == 2


@pytest.mark.usefixtures("_store")
def test_the_time_of_an_index_is_that_of_its_writing_and_not_of_its_reading() -> None:
    written_at = invoke_cli("indexes", "--json").json["indexes"][0]["written_at"]
    invoke_cli("query", "refund")
    assert invoke_cli("indexes", "--json").json["indexes"][0]["written_at"] == written_at


@pytest.mark.usefixtures("_store")
def test_the_indexes_are_listed_for_people_and_for_programs() -> None:
    calls, empty = invoke_cli("indexes", "--json").json["indexes"]
    assert (calls["name"], calls["documents"]) == ("calls", 2)
    assert (empty["name"], empty["documents"]) == ("empty", 0)
    heading, *lines = invoke_cli("indexes").stdout.splitlines()
    assert heading.split() == ["index", "documents", "size", "model", "last", "written"]
    assert [line.split()[:2] for line in lines] == [["calls", "2"], ["empty", "0"]]
    assert all(line.split()[4] == calls["model"] for line in lines)
    assert all(line.endswith("UTC") for line in lines)


def test_without_an_index_the_command_that_makes_one_is_named() -> None:
    result = invoke_cli("indexes", "--url", "embedded:nothing")
    assert (result.status, result.stdout) == (
        0,
        "there is no index yet: hybrid-search ingest FILE makes one\n",
    )
    assert invoke_cli("indexes", "--url", "embedded:nothing", "--json").json == {"indexes": []}


@pytest.mark.usefixtures("_store")
def test_an_index_that_cannot_be_read_is_named_and_the_others_are_listed(tmp_path: Path) -> None:
    (tmp_path / "store" / "broken.index").mkdir()
    (tmp_path / "store" / "broken.index" / "head.json").write_bytes(b"no head" * 100)
    result = invoke_cli("indexes", "--json")
    assert [row["name"] for row in result.json["indexes"]] == ["broken", "calls", "empty"]
    assert result.json["indexes"][0] == {"name": "broken"}
    assert "index 'broken' cannot be described" in result.stderr
    assert invoke_cli("indexes").stdout.splitlines()[1].split() == ["broken", "?", "?", "?", "?"]


@pytest.mark.parametrize("engine", ["opensearch", "elasticsearch"])
def test_a_login_that_may_not_ask_for_the_size_is_told_so_and_a_wrong_one_is_refused(
    engine: str, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = FakeCluster(engine)
    refusals = {"status": 403}

    def answer(request: HttpRequest) -> Reply:
        if "/_stats/store" not in request.target:
            return cluster(request)
        return Reply(refusals["status"], {"error": {"reason": "not for you"}})

    with ScriptedServer(answer) as server:
        arguments = ("indexes", "--url", f"{engine}+{server.url}")
        result = invoke_cli(*arguments)
        assert result.status == 0
        assert result.stdout.splitlines()[1].split()[:3] == ["calls", "2", "?"]
        (record,) = caplog.records
        assert "the size of index 'calls' is left out: " in record.getMessage()
        assert "do GET /calls/_stats/store (403): not for you" in record.getMessage()
        refusals["status"] = 401
        assert "(401): not for you" in invoke_cli(*arguments).stderr
        with (
            connect(f"{engine}+{server.url}") as client,
            pytest.raises(AccessError, match=r"\(401\)"),
        ):
            client.describe("calls")


@pytest.mark.usefixtures("_store")
def test_a_document_is_shown_with_its_metadata_its_speakers_and_their_times() -> None:
    assert invoke_cli("show", "call-17").stdout.splitlines() == [
        "call-17",
        "sector: bank",
        'queue: ["billing", "cards"]',
        "",
        "0:01  agent  Good morning, how can I help?",
        "1:02:03  customer  I want my money back.",
    ]
    assert invoke_cli("show", "note-1").stdout.splitlines() == [
        "note-1",
        "sector: shop",
        "",
        "The customer asked for a refund.",
    ]


@pytest.mark.usefixtures("_store")
def test_the_spans_of_a_phrase_are_marked_in_the_document() -> None:
    result = invoke_cli("show", "call-17", "--phrase", "money back", "--spans", "1")
    assert "1:02:03  customer  [I want my money back]." in result.stdout
    view = invoke_cli("show", "call-17", "--phrase", "money back", "--spans", "1", "--json").json
    (span,) = view["spans"]
    assert f"{span['cosine']:.3f} [{span['start']}:{span['end']}]" in result.stdout
    assert (view["id"], view["metadata"]["sector"], len(view["turns"])) == ("call-17", "bank", 2)


@pytest.mark.usefixtures("_store")
def test_a_document_or_index_that_is_not_there_is_one_line_with_the_remedy() -> None:
    assert "take the id of a hit" in invoke_cli("show", "call-99").error
    error = invoke_cli("show", "call-17", "--index", "cals").error
    assert "indexes there: calls, empty" in error
    assert "hybrid-search ingest FILE --index cals" in error


@pytest.mark.usefixtures("_store")
@pytest.mark.parametrize("command", [["query", "refund"], ["similar", "refund"], ["discover"]])
def test_an_empty_index_is_called_empty_once(
    command: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    result = invoke_cli(*command, "--index", "empty")
    assert result.status == 0
    lines = [*result.stderr.splitlines(), *caplog.messages]
    assert [line for line in lines if "index 'empty'" in line] == [
        "index 'empty' is empty: hybrid-search ingest FILE --index empty"
    ]


@pytest.mark.usefixtures("_store")
def test_a_value_that_no_document_has_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    result = invoke_cli("query", "refund", "--where", "sector=bnk")
    (line,) = [*result.stderr.splitlines(), *caplog.messages]
    assert "no document fulfils 'sector'" in line


@pytest.mark.usefixtures("_store")
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--speaker", "client"], "no speaker of the nearest passages is called 'client'"),
        (["--speaker", "client", "--where", "sector=bnk"], "no document fulfils 'sector'"),
    ],
)
def test_a_speaker_that_nobody_is_is_told_once(
    options: list[str], expected: str, caplog: pytest.LogCaptureFixture
) -> None:
    result = invoke_cli("query", "refund", *options)
    (line,) = [*result.stderr.splitlines(), *caplog.messages]
    assert expected in line
    assert "0 of 0 hits" in result.stdout


@pytest.mark.usefixtures("_store")
def test_words_that_no_document_has_are_told_where_words_alone_count(
    caplog: pytest.LogCaptureFixture,
) -> None:
    result = invoke_cli("query", "xyzzy", "--alpha", "0")
    assert (result.status, result.stdout) == (0, "0 of 0 hits\n")
    (line,) = caplog.messages
    assert line == (
        "no document has a word of 'xyzzy', and alpha 0 is BM25 only: "
        "a larger alpha finds what means the same"
    )


@pytest.mark.usefixtures("_store")
def test_options_that_leave_nothing_are_named() -> None:
    result = invoke_cli("query", "refund", "--where", "sector=bank", "--min-score", "2")
    assert result.stderr == "nothing is left: try it without --where sector=bank, --min-score 2\n"
    assert invoke_cli("query", "refund").stderr == ""


@pytest.mark.parametrize("variables", [{}, {"FORCE_COLOR": "1", "NO_COLOR": "1"}])
def test_the_spans_of_a_text_stand_in_brackets_where_no_colours_are_seen(
    variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a pipe, and on a terminal whose user wants none."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    text = "Well, I want my money back, please."
    result = invoke_cli("best-spans", "refund request", "--text", text)
    assert "Well, [I want my money back], please." in result.stdout

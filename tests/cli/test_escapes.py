"""What a terminal would obey, in ids, texts, file names and answers of servers, is shown escaped.

So are the names in messages few, where an index has thousands.
"""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path

import pytest

from hybrid_search import connect
from hybrid_search.errors import UsageError
from hybrid_search.observability import logs
from hybrid_search.observability.escapes import blank_controls, escape_json
from hybrid_search.text.filters import compile_where
from tests.helpers.cli import invoke_cli
from tests.helpers.fake_server import Reply, ScriptedServer, reply_in_turn

OBEYED = "\x1b]0;title\x07\x1b[2J\r\x9b31m\x7f\u202e\u2066"
ID = f"call{OBEYED}[red]:bomb:[/]\n2. forged  score 1.000"
SPEAKER = f"agent{OBEYED}[/]"
UNSAFE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture(scope="module")
def hostile_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of an index with one document, whose names are full of escape characters."""
    folder = tmp_path_factory.mktemp("hostile")
    turn = {"speaker": SPEAKER, "text": f"I want my money back{OBEYED}[bold] please"}
    with connect(f"embedded:{folder}") as client:
        client.ingest(
            [{"id": ID, "turns": [turn], "sector": f"bank{OBEYED}[/]"}],
            rejects=folder / "rejected.jsonl",
        )
    return f"embedded:{folder}"


def test_ids_speakers_and_values_are_shown_escaped_and_are_no_markup(hostile_url: str) -> None:
    result = invoke_cli("query", "money back", "--url", hostile_url, "--facet", "sector")
    assert result.status == 0
    assert not UNSAFE.search(result.stdout)
    (heading,) = [line for line in result.stdout.splitlines() if line.startswith("1. ")]
    assert heading.startswith(r"1. call\x1b]0;title\x07\x1b[2J\r\x9b31m\x7f\u202e\u2066")
    assert r"[red]:bomb:[/]\n2. forged" in "".join(result.stdout.splitlines())
    assert r"sector: bank\x1b]0;title" in result.stdout


def test_json_is_the_same_and_holds_nothing_that_a_terminal_obeys(hostile_url: str) -> None:
    result = invoke_cli("query", "money back", "--url", hostile_url, "--json")
    assert not UNSAFE.search(result.stdout)
    assert result.json["hits"][0]["id"] == ID
    assert result.json["hits"][0]["spans"][0]["speaker"] == SPEAKER


def test_offsets_stay_where_controls_are_shown_as_blanks() -> None:
    text = f"a{OBEYED}b\tc\nd"
    assert blank_controls(text) == "a ]0;title  [2J  31m   b\tc\nd"
    assert len(blank_controls(text)) == len(text)


def test_the_words_of_a_server_are_one_escaped_line() -> None:
    reply = Reply(400, {"error": {"type": "x", "reason": f"no{OBEYED}\nerror: forged"}})
    with ScriptedServer(reply_in_turn(reply)) as server:
        url = f"opensearch+{server.url}"
        result = invoke_cli("query", "money", "--url", url, "--index", "calls")
        checks = invoke_cli("doctor", "--url", url)
    assert result.error.endswith(
        r"no\x1b]0;title\x07\x1b[2J\r\x9b31m\x7f\u202e\u2066\nerror: forged"
    )
    assert not UNSAFE.search(result.stderr + checks.stdout)


def test_a_file_name_is_shown_escaped(tmp_path: Path) -> None:
    name = f"calls{OBEYED.replace('/', '')}.jsonl"
    result = invoke_cli("ingest", str(tmp_path / name), "--url", f"embedded:{tmp_path}")
    assert r"\x1b]0;title" in result.error
    assert not UNSAFE.search(result.stderr)


@pytest.mark.parametrize("format", list(logs.Format))
def test_a_log_record_is_one_line_without_anything_that_a_terminal_obeys(
    format: logs.Format, capsys: pytest.CaptureFixture[str]
) -> None:
    logger = logging.getLogger("hybrid_search.test")
    with logs.configure_logging(format, logs.Level.info):
        try:
            raise ValueError(OBEYED)
        except ValueError:
            logger.warning("the server warns: %s\nWARNING: forged", OBEYED, exc_info=True)
    output = capsys.readouterr().err
    assert not UNSAFE.search(output)
    assert not [line for line in output.splitlines() if line.startswith("WARNING: forged")]
    if format is logs.Format.json:
        assert OBEYED in json.loads(output)["message"]


def test_json_of_any_text_says_the_same_after_escaping() -> None:
    text = "".join(map(chr, range(0x3000))) + "\ud800 ü 😀"
    line = json.dumps(text, ensure_ascii=False)
    assert json.loads(escape_json(line)) == text
    assert escape_json(json.dumps("ü 😀", ensure_ascii=False)) == '"ü 😀"'


def test_an_unknown_field_of_thousands_is_answered_with_those_like_it() -> None:
    fields = {f"field_{number}": "string" for number in range(3000)} | {"sector": "string"}
    with pytest.raises(UsageError) as caught:
        compile_where({"sektor": "bank"}, fields)
    assert str(caught.value) == (
        "cannot filter on 'sektor': the index has no such field. Its fields: sector and 3,001 more"
    )
    with pytest.raises(UsageError, match=r"field_0, field_1, .* and 2,997 more$"):
        compile_where({"~": "bank"}, fields)


def test_a_missing_index_among_hundreds_is_answered_with_those_like_it(tmp_path: Path) -> None:
    url = f"embedded:{tmp_path}"
    for number in range(300):
        (tmp_path / f"index-{number}.index").mkdir()
        (tmp_path / f"index-{number}.index" / "head.json").touch()
    result = invoke_cli("query", "money", "--url", url, "--index", "index-29x")
    assert re.search(r"indexes there: index-\d+(, index-\d+){4} and 295 more", result.error)

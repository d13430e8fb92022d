"""Test ingest, query and best-spans as commands: output, JSON, errors of one line, exit status."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hybrid_search.cli import commands
from hybrid_search.cli.commands import build_command
from hybrid_search.client import Client
from hybrid_search.search.result import Result
from tests.helpers.cli import invoke_cli, run_cli
from tests.helpers.json_lines import write_rows

SUMMARY = {"read", "documents", "passages", "spans", "failed", "skipped", "seconds"}
REFUND = {"id": "refund", "text": "I want a refund, and I want it today."}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a user who has set nothing."""
    folder = str(tmp_path_factory.mktemp("home"))
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("HYBRID_SEARCH")
    }
    cache = str(Path(folder, ".cache"))
    return {**environment, "HOME": folder, "XDG_DATA_HOME": folder, "XDG_CACHE_HOME": cache}


@pytest.fixture(autouse=True)
def _use_the_sample(sample_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYBRID_SEARCH_URL", sample_url)


def write_documents(*documents: dict[str, Any], name: str = "calls.jsonl") -> str:
    return str(write_rows(Path(name), documents))


def test_ingest_query_and_the_python_call_work_in_three_processes(
    home: dict[str, str], calls: list[dict[str, Any]]
) -> None:
    source = write_documents(*calls[:5])
    ingested = run_cli("--index", "calls", source, module="hybrid_search.ingest", env=home)
    assert (ingested.status, len(ingested.stdout.splitlines())) == (0, 1)
    assert set(ingested.json) >= SUMMARY
    assert ingested.json["documents"] == 5
    assert ingested.stderr.splitlines()[-1].endswith("into index 'calls'")
    result = run_cli(
        "query", "refund request", "--index", "calls", "--alpha", "0.5", "--json", env=home
    )
    assert (result.status, len(result.json["hits"]), result.stderr) == (0, 5, "")
    program = (
        "import hybrid_search; "
        'print([hit.id for hit in hybrid_search.query("refund request", alpha=0.5)])'
    )
    from_python = subprocess.run(
        [sys.executable, "-c", program], env=home, capture_output=True, text=True, check=True
    ).stdout
    assert from_python.strip() == str([hit["id"] for hit in result.json["hits"]])


def test_a_run_that_wrote_nothing_names_no_index(tmp_path: Path) -> None:
    source = tmp_path / "bad.jsonl"
    source.write_text('{"id": "a"}\n')
    result = invoke_cli("ingest", str(source), "--url", f"embedded:{tmp_path / 'store'}")
    assert result.status == 1
    assert "s and nothing was written" in result.stderr.splitlines()[0]


@pytest.mark.parametrize("options", [(), ("--explain",)])
def test_json_is_that_of_python(options: tuple[str, ...], sample: Client) -> None:
    result = sample.query("refund request", explain=bool(options)).to_dict()
    printed = invoke_cli("query", "refund request", "--json", *options).json
    assert printed["hits"] == result["hits"]
    assert printed.keys() == result.keys()


def test_people_are_shown_the_text_with_the_matching_words_in_it() -> None:
    result = invoke_cli("query", "refund request", "--size", "1")
    assert result.status == 0
    assert result.stdout.startswith("1 of ")
    hit = invoke_cli("query", "refund request", "--size", "1", "--json").json["hits"][0]
    assert f"1. {hit['id']}  score {hit['score']:.3f}" in result.stdout
    assert hit["spans"][0]["text"].split()[0] in result.stdout


def test_text_that_looks_like_markup_is_shown_as_it_is() -> None:
    source = write_documents(
        {"id": "[bold]x", "text": "please [/] refund [red]me[/red] \\[now] :car:"}
    )
    invoke_cli("ingest", "--url", "embedded:here", source)
    result = invoke_cli("query", "refund", "--url", "embedded:here")
    assert "[bold]x" in result.stdout
    assert "[please [/] refund] [red]me[/red] \\[now] :car:" in result.stdout


def test_on_a_terminal_the_matching_words_are_marked_and_nothing_in_the_text_is_obeyed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    invoke_cli(
        "ingest",
        "--url",
        "embedded:here",
        write_documents({"id": "x", "text": "Well,\r\n\x1b[2J\x07 about that refund, please."}),
    )
    for arguments in (
        ["query", "refund", "--spans", "1"],
        ["best-spans", "refund", "--text", "Well,\r\n\x1b[2J\x07 about that refund, please."],
    ):
        output = invoke_cli(
            *arguments, *(["--url", "embedded:here"] if arguments[0] == "query" else [])
        ).stdout
        assert re.search(r"\x1b\[[0-9;]+m[^\x1b]*about that refund\x1b\[0m, please\.", output)
        assert "\x1b[2J" not in output
        assert "\x07" not in output


@pytest.mark.parametrize(
    ("options", "sectors"),
    [
        (["--where", "sector=bank"], {"bank"}),
        (["--where", "sector=bank", "--where", "sector=shop"], {"bank", "shop"}),
        (["--where", "sector=bank", "--where", "language=en"], {"bank"}),
    ],
)
def test_where_filters_and_a_key_given_twice_may_have_either_value(
    options: list[str], sectors: set[str]
) -> None:
    hits = invoke_cli("query", "card", "--json", "--size", "50", *options).json["hits"]
    assert {hit["metadata"]["sector"] for hit in hits} == sectors


def test_a_comparison_in_where_is_of_values() -> None:
    rows = [
        {"id": "a", "text": "a card", "at": "2026-03-01T23:30-05:00", "queue": "Sales", "n": 9},
        {"id": "b", "text": "a card", "at": "2026-03-02T12:00Z", "queue": "Tech", "n": 10},
        {"id": "c", "text": "a card", "at": "2026-03-03", "queue": "a=b>c", "n": 11},
    ]
    Path("rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    place = ("--url", "embedded:here", "--index", "rows")
    assert invoke_cli("ingest", "rows.jsonl", *place).status == 0

    def find(*conditions: str) -> str:
        options = [part for condition in conditions for part in ("--where", condition)]
        result = invoke_cli("query", "card", *place, "--json", *options)
        return "".join(sorted(hit["id"] for hit in result.json["hits"]))

    assert find("at>=2026-03-02") == "abc"
    assert find("at<=2026-03-02") == "ab"
    assert find("at<2026-03-02") == ""
    assert find("at>2026-03-02T04:30Z", "n<11") == "b"
    assert find("queue!=Sales") == "bc"
    assert find("queue!=Sales", "queue!=Tech", "n>=9") == "c"
    assert find("queue=a=b>c") == "c"


def test_every_option_of_query_reaches_the_query() -> None:
    options = (
        "--size 2 --offset 1 --spans 1 --fusion min_max --group-by passage --refine isolate "
        "--feedback 3 --alpha 0.7 --min-score 0.01 --sort -date --highlight "
        "--facet sector --facet language --facets-over matches --json"
    )
    context = ("--context", "I asked for a refund")
    result = invoke_cli("query", "refund", *context, *options.split()).json
    assert len(result["hits"]) == 2
    assert all(len(hit["spans"]) == 1 for hit in result["hits"])
    assert (result["plan"]["fusion"], result["plan"]["alpha"]) == ("min_max", 0.7)
    assert result["plan"]["feedback"] == 3
    assert all(hit["score"] >= 0.01 and "highlights" in hit for hit in result["hits"])
    first, second = (hit["metadata"]["date"] for hit in result["hits"])
    assert (result["plan"]["sort"], first >= second) == ("-date", True)
    assert set(result["facets"]) == {"sector", "language"}


def test_counts_of_values_are_printed_below_the_hits() -> None:
    counts = invoke_cli("query", "router", "--facet", "sector", "--json").json["facets"]["sector"]
    assert counts
    printed = ", ".join(f"{sector} ({count})" for sector, count in counts)
    output = invoke_cli("query", "router", "--facet", "sector").stdout
    assert f"\nsector: {printed}\n" in output


def test_values_are_counted_over_all_matches() -> None:
    options = ("--facet", "sector", "--facets-over", "matches", "--json")
    counts = dict(invoke_cli("query", "router", *options).json["facets"]["sector"])
    lexical = invoke_cli("query", "router", "--alpha", "0", "--size", "100", "--json").json["hits"]
    sectors = [hit["metadata"]["sector"] for hit in lexical if hit["bm25"] > 0]
    assert counts["telecom"] == sectors.count("telecom") > 0


def test_a_query_that_finds_nothing_succeeds() -> None:
    result = invoke_cli("query", "refund", "--json", "--min-score", "0.9999")
    assert (result.status, result.json["hits"]) == (0, [])


def test_letters_of_all_scripts_come_out_as_they_are() -> None:
    write_documents({"id": "日本", "text": "返金してください 👋 größer"})
    invoke_cli("ingest", "--url", "embedded:here", "calls.jsonl")
    assert '"id": "日本"' in invoke_cli("query", "返金", "--url", "embedded:here", "--json").stdout


def test_sources_may_be_gzipped_several_or_standard_input() -> None:
    plain, zipped = (
        write_documents({"id": "a", "text": "one"}),
        write_documents({"id": "b", "text": "two"}, name="more.jsonl.gz"),
    )
    result = invoke_cli(
        "ingest",
        "--url",
        "embedded:here",
        plain,
        "-",
        zipped,
        stdin=json.dumps({"id": "c", "text": "three"}),
    )
    assert (result.status, result.json["documents"]) == (0, 3)


def test_the_sample_is_not_mentioned_where_a_source_is_given() -> None:
    assert (
        "sample"
        not in invoke_cli("ingest", "--url", "embedded:here", write_documents(REFUND)).stderr
    )


def test_exit_status_is_1_where_some_documents_were_refused_and_the_file_is_named() -> None:
    result = invoke_cli(
        "ingest",
        "--url",
        "embedded:here",
        "--rejects",
        "no.jsonl",
        write_documents(REFUND, {"id": "x"}),
    )
    assert (
        result.status,
        result.json["documents"],
        result.json["failed"],
        result.json["rejected"],
    ) == (1, 1, 1, "no.jsonl")
    assert "refused documents, with reasons: no.jsonl" in result.stderr
    assert json.loads(Path("no.jsonl").read_text())["line"] == 2


def test_the_file_of_refused_documents_is_not_overwritten_while_it_is_read() -> None:
    """A user who corrects the file in place would lose the lines that are refused again."""
    source = "here/calls.rejected.jsonl"
    Path("here").mkdir()
    Path(source).write_text('{"id": 1}\n')
    assert invoke_cli("ingest", "--url", "embedded:here", source).error.startswith(
        "source here/calls.rejected.jsonl is the file that refused"
    )
    assert Path(source).read_text() == '{"id": 1}\n'
    assert (
        invoke_cli("ingest", "--url", "embedded:here", "--rejects", "again.jsonl", source).json[
            "rejected"
        ]
        == "again.jsonl"
    )


def test_a_bare_environment_variable_says_where_the_index_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HYBRID_SEARCH_URL", "embedded:there")
    invoke_cli("ingest", write_documents(REFUND))
    assert Path("there/calls.index").is_dir()
    assert invoke_cli("query", "money", "--json").json["hits"][0]["id"] == "refund"


ERRORS: dict[str, tuple[list[str], str]] = {
    "an unknown URL scheme": (
        ["query", "x", "--url", "ftp://host"],
        "unknown URL scheme 'ftp': use embedded:",
    ),
    "a host without a scheme": (
        ["query", "x", "--url", "localhost:9200"],
        "the URL of a server begins with a scheme, as in https://localhost:PORT",
    ),
    "no folder in the URL": (["query", "x", "--url", "embedded:"], "embedded: needs a folder"),
    "a missing source": (["ingest", "nowhere.jsonl"], "source nowhere.jsonl does not exist"),
    "an empty folder as source": (["ingest", "."], "source . is a folder without files"),
    "a missing index": (["query", "x", "--index", "nope"], "there is no index 'nope' in "),
    "a path as index name": (
        ["ingest", "--index", "../calls"],
        "index name '../calls' must begin with",
    ),
    "a huge size": (
        ["query", "x", "--size", "99999999999999999999"],
        "size is 99999999999999999999: it must be an integer from 1 to 10,000",
    ),
    "an unknown field": (
        ["query", "x", "--where", "colour=red"],
        "cannot filter on 'colour': the index has no such field. Its fields: agent, date, id",
    ),
    "a condition without =": (
        ["query", "x", "--where", "sector"],
        "--where takes KEY=VALUE, also with !=, <, <=, > or >=, and 'sector' is not of that form",
    ),
    "a condition without a key": (
        ["query", "x", "--where", "=bank"],
        "--where takes KEY=VALUE, also with !=, <, <=, > or >=, and '=bank' is not of that form",
    ),
    "a condition of two kinds": (
        ["query", "x", "--where", "date=2026-03-01", "--where", "date>2026-03-02"],
        "--where has date= and another comparison of date: give one",
    ),
    "a bound that comes twice": (
        ["query", "x", "--where", "date>2026-03-01", "--where", "date>2026-03-02"],
        "--where has date> twice: give it once",
    ),
    "a condition that no text can meet": (
        ["query", "x", "--where", "sector=\udcff"],
        "cannot filter 'sector' by '\\udcff': the field is a string, ",
    ),
    "a phrase that is no text": (
        ["query", "\udcff"],
        "the text holds a lone surrogate, U+DCFF, which UTF-8 cannot encode",
    ),
    "a folder without a model": (
        ["query", "x", "--model", "."],
        ". is not a model folder: encoder.json is missing.",
    ),
    "an unknown device": (
        ["query", "x", "--device", "gpu"],
        "device 'gpu' is not one of auto, cpu, cuda, tensorrt",
    ),
    "neither text nor file": (
        ["best-spans", "x"],
        "give a PHRASE with --text TEXT, or --file JSONL alone",
    ),
    "a phrase beside the file": (
        ["best-spans", "x", "--file", "z"],
        "give a PHRASE with --text TEXT, or --file JSONL alone",
    ),
    "a missing file": (
        ["best-spans", "--file", "nowhere.jsonl"],
        "file nowhere.jsonl does not exist",
    ),
    "k 0": (
        ["best-spans", "x", "--text", "y", "--k", "0"],
        "k is 0: it must be an integer of at least 1",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_an_error_is_one_line_with_the_value_and_the_remedy_and_exit_status_2(case: str) -> None:
    arguments, message = ERRORS[case]
    result = invoke_cli(*arguments)
    assert result.error.startswith(message)
    assert result.stdout == ""


def test_an_error_is_one_line_in_a_real_process_too() -> None:
    result = run_cli("query", "x", "--alpha", "2")
    assert len(result.stderr.splitlines()) == 1
    assert result.error.startswith("alpha is 2.0")


def test_a_folder_that_is_a_file_is_one_error() -> None:
    Path("file").write_text("x")
    assert invoke_cli("ingest", "--url", "embedded:file", write_documents(REFUND)).error == (
        "file is a file, and indexes lie in a folder: use another folder"
    )
    assert invoke_cli(
        "ingest", "--url", "embedded:file/x", write_documents(REFUND)
    ).error.startswith("file/x: Not a directory: ")


def unprivileged_prefix() -> list[str]:
    """Return a command that takes root's right to write everywhere from what it runs."""
    if os.geteuid() != 0:
        return []
    if not shutil.which("setpriv"):
        pytest.skip("root may write everywhere, and setpriv, which would forbid it, is not here")
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]


@pytest.mark.parametrize("url", ["embedded:locked", "embedded:locked/deeper"])
def test_a_folder_that_one_may_not_write_to_is_one_error(url: str) -> None:
    source = write_documents(REFUND)
    Path("locked").mkdir(mode=0o500)
    error = run_cli("ingest", "--url", url, source, prefix=unprivileged_prefix()).error
    assert "locked" in error
    assert "Permission denied" in error


def test_a_source_that_one_may_not_read_is_refused_with_its_reason() -> None:
    Path(write_documents(REFUND)).chmod(0)
    result = run_cli(
        "ingest", "--url", "embedded:here", "calls.jsonl", prefix=unprivileged_prefix()
    )
    assert (result.status, result.json["failed"]) == (1, 1)
    assert (
        "Permission denied" in json.loads(Path("here/calls.rejected.jsonl").read_text())["reason"]
    )


@pytest.mark.parametrize(("name", "text"), [("a.jsonl", ""), ("b.jsonl", "\n \n"), ("c.csv", "")])
def test_a_source_without_a_document_is_named(name: str, text: str) -> None:
    Path(name).write_text(text)
    result = invoke_cli("ingest", "--url", "embedded:here", name)
    assert result.status == 0
    assert f"{name} has no document in it" in result.stderr.splitlines()


def test_warnings_are_lines_on_standard_error() -> None:
    changed = {**REFUND, "text": "I want my money."}
    result = run_cli("ingest", "--url", "embedded:here", write_documents(REFUND, changed))
    assert (
        "WARNING: id 'refund' is at calls.jsonl:1 and again at calls.jsonl:2: the last one wins; "
        "--rows turn makes one call of them" in result.stderr.splitlines()
    )
    assert "1 documents have the id of another one before them and replaced it" in result.stderr


def test_best_spans_of_a_text_as_json() -> None:
    text = "Well, [hm] I would like to have my money back."
    spans = invoke_cli("best-spans", "refund", "--text", text, "--k", "2", "--json").json["spans"]
    assert len(spans) == 2
    assert all(text[span["start"] : span["end"]] == span["text"] for span in spans)
    scores = [span["cosine"] + span["prior"] for span in spans]
    assert scores[0] >= scores[1]


def test_best_spans_of_a_text_for_people() -> None:
    text = "Well, [hm] my money back."
    span = invoke_cli("best-spans", "money", "--text", text, "--json").json["spans"][0]
    start, end = span["start"], span["end"]
    marked = f"{text[:start]}[{text[start:end]}]{text[end:]}"
    assert (
        invoke_cli("best-spans", "money", "--text", text).stdout
        == f"{span['cosine']:.3f} [{start}:{end}] {marked}\n"
    )


def test_a_quotation_is_found_with_status_0(bundled_url: str) -> None:
    place = ("--url", bundled_url, "--index", "calls")
    result = invoke_cli("check-quote", "i'd like my money back!", *place)
    assert result.status == 0
    assert result.stdout.splitlines()[0] == "found at 1 place"
    assert "shop-001 [392:414]" in result.stdout
    assert "I'd like my money back" in result.stdout
    answer = invoke_cli("check-quote", "i'd like my money back!", *place, "--json").json
    assert (answer["found"], answer["complete"]) == (True, True)
    assert answer["places"][0]["speaker"] == "customer"


def test_what_nobody_said_has_status_1_and_what_comes_nearest(bundled_url: str) -> None:
    place = ("--url", bundled_url)
    result = invoke_cli("check-quote", "I would like my money back", *place)
    assert result.status == 1
    assert result.stdout.splitlines()[0] == "nobody said it; what comes nearest:"
    assert "I'd like my money back" in result.stdout
    result = invoke_cli("check-quote", "no money would like", *place, "--json")
    assert result.status == 1
    assert (result.json["found"], result.json["places"]) == (False, [])


def test_best_spans_of_a_text_without_a_word_are_none() -> None:
    assert invoke_cli("best-spans", "x", "--text", "...", "--json").json == {"spans": []}


def test_best_spans_of_a_file_answer_line_by_line_with_all_that_was_given() -> None:
    Path("pairs.jsonl").write_text(
        '{"phrase": "refund", "text": "my money back", "n": 1}\n'
        '{"phrase": "cat", "text": "a dog"}\n'
    )
    answers = [
        json.loads(line)
        for line in invoke_cli("best-spans", "--file", "pairs.jsonl").stdout.splitlines()
    ]
    assert [(answer["phrase"], answer["text"], answer.get("n")) for answer in answers] == [
        ("refund", "my money back", 1),
        ("cat", "a dog", None),
    ]
    for answer in answers:
        text = answer["text"]
        assert all(text[span["start"] : span["end"]] == span["text"] for span in answer["spans"])
    assert [len(answer["spans"]) for answer in answers] == [1, 1]


@pytest.mark.parametrize(
    "line",
    [
        b"{bad",
        b"[1]",
        b'{"phrase": "x"}',
        b'{"phrase": "x", "text": 1}',
        b'{"phrase": "", "text": "y"}',
        b'{"phrase": "x", "text": "y", "weight": NaN}',
        b"\xff",
    ],
)
def test_a_bad_line_of_best_spans_is_one_error_with_its_number(line: bytes) -> None:
    Path("pairs.jsonl").write_bytes(b'{"phrase": "x", "text": "y"}\n' + line + b"\n")
    result = invoke_cli("best-spans", "--file", "pairs.jsonl")
    assert result.error.startswith('pairs.jsonl:2 is not {"phrase", "text"}: ')
    assert len(result.stdout.splitlines()) == 1


def test_a_reader_that_leaves_early_is_no_error_and_the_status_tells_of_it() -> None:
    """``| head -1`` ends while all output is in Python's buffer, or exceeds what a pipe holds.

    The status is that of every program whose reader has left: 128 and 13, the number of SIGPIPE.
    """
    Path("pairs.jsonl").write_text('{"phrase": "refund", "text": "my money back"}\n' * 400)
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    for arguments in (["query", "refund", "--json"], ["best-spans", "--file", "pairs.jsonl"]):
        for read in (0, 10):
            with subprocess.Popen(
                [sys.executable, "-m", "hybrid_search", *arguments],
                stdout=-1,
                stderr=-1,
                env=buffered,
            ) as process:
                assert process.stdout is not None
                assert process.stderr is not None
                process.stdout.read(read)
                process.stdout.close()
                assert process.stderr.read() == b""
                # a short output may be in the pipe before its reader leaves
                assert process.wait() in ({0, 141} if read else {141})


COMMANDS: dict[str, Any] = {name: build_command(name) for name in commands.COMMANDS}


@pytest.mark.parametrize("command", COMMANDS)
def test_help_names_every_option_and_says_what_it_is_for(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    output = " ".join(invoke_cli(command, "--help").stdout.split())
    assert COMMANDS[command].help
    for parameter in COMMANDS[command].params:
        assert parameter.help, parameter.name
        assert all(option in output for option in parameter.opts if option.startswith("--")), (
            parameter.name
        )
        assert parameter.help.split()[0] in output


def test_without_a_command_the_commands_are_listed() -> None:
    output = run_cli().stdout
    assert all(command in output for command in COMMANDS)


def test_a_number_that_json_lacks_is_an_error_and_not_nan(
    sample_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Result, "to_dict", lambda _: {"score": float("nan")})
    result = invoke_cli("query", "refund", "--url", sample_url, "--json")
    assert (result.status, result.stdout) == (2, "")
    assert "cannot be printed as JSON" in result.stderr

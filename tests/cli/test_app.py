"""The program around the commands: errors in a command line, the version, and shell completion."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import hybrid_search
from tests.helpers.cli import invoke_cli, run_cli

SCRIPT = Path(sys.executable).with_name("hybrid-search")
SETTINGS = SPINNING, PLUGINS = "OPENBLAS_THREAD_TIMEOUT", "PYDANTIC_DISABLE_PLUGINS"


def see_help(command: str) -> str:
    return f"(see hybrid-search {command} --help)"


HELP = see_help("query")

WRONG_COMMAND_LINES: dict[str, tuple[list[str], str]] = {
    "a misspelt option": (
        ["query", "x", "--alfa", "1"],
        f"no such option --alfa: did you mean --alpha? {HELP}",
    ),
    "an option unlike any other": (["query", "x", "--zzz"], f"no such option --zzz {HELP}"),
    "a misspelt option of the program": (
        ["--versoin"],
        "no such option --versoin: did you mean --version? (see hybrid-search --help)",
    ),
    "a misspelt command": (
        ["quer", "x"],
        "no such command quer: did you mean query? (see hybrid-search --help)",
    ),
    "a command unlike any other": (["zzz"], "no such command zzz (see hybrid-search --help)"),
    "what others call a command, misspelt": (
        ["serach", "x"],
        "no such command serach: did you mean query? (see hybrid-search --help)",
    ),
    "an argument of no known value": (
        ["topics", "chekc", "topics.yaml"],
        "invalid value for 'action': 'chekc' is not one of 'check' (see hybrid-search topics "
        "--help)",
    ),
    "a missing argument": (
        ["query"],
        "missing argument 'phrase': as in hybrid-search query \"refund request\" --index calls",
    ),
    "a missing option": (
        ["mine", "topics.yaml"],
        "missing option --topics: as in hybrid-search mine --topics topics.yaml",
    ),
    "too many arguments": (["doctor", "now"], f"unexpected argument now {see_help('doctor')}"),
    "a phrase without quotes": (
        ["query", "refund", "request", "--size", "3"],
        'the phrase has several words: put it in quotes, as in hybrid-search query "refund request"'
        f" {HELP}",
    ),
    "a phrase without quotes, of another command": (
        ["similar", "money", "--size", "3", "back", "please"],
        "the phrase has several words: put it in quotes, as in hybrid-search similar "
        f'"money back please" {see_help("similar")}',
    ),
    "what others call --size": (
        ["query", "x", "--limit", "5"],
        f"no such option --limit: did you mean --size? {HELP}",
    ),
    "what others call --size, in two words": (
        ["query", "x", "--top-k=5"],
        f"no such option --top-k: did you mean --size? {HELP}",
    ),
    "what others call --size, as a letter": (
        ["query", "x", "-n", "5"],
        f"no such option -n: did you mean --size? {HELP}",
    ),
    "an option of another command": (
        ["query", "x", "--k", "5"],
        f"no such option --k: did you mean --size? {HELP}",
    ),
    "what others call --k": (
        ["best-spans", "x", "--text", "y", "--limit", "5"],
        f"no such option --limit: did you mean --k? {see_help('best-spans')}",
    ),
    "a text without its option": (
        ["best-spans", "refund", "I want my money back, please."],
        'the text stands behind --text, as in "refund" --text "I want my money back, please." '
        f"{see_help('best-spans')}",
    ),
    "a key of a document as an option": (
        ["ingest", "calls.csv", "--id", "call"],
        f"no such option --id: did you mean --columns? {see_help('ingest')}",
    ),
    "what others call --where": (
        ["query", "x", "--filter", "a=b"],
        f"no such option --filter: did you mean --where? {HELP}",
    ),
    "what others call a command": (
        ["search", "x"],
        "no such command search: did you mean query? (see hybrid-search --help)",
    ),
    "a folder for a file": (
        ["mine", "--topics", "."],
        f"--topics is '.', a folder: name a file {see_help('mine')}",
    ),
    "a folder for a file to write": (
        ["mine", "--topics", "topics.yaml", "--out", "."],
        f"--out is '.', a folder: name a file {see_help('mine')}",
    ),
    "a file for a folder": (
        ["ingest", "--follow", __file__],
        f"--follow is {__file__!r}, a file: name a folder {see_help('ingest')}",
    ),
    "an option without its value": (
        ["query", "x", "--alpha"],
        f"option --alpha requires an argument {HELP}",
    ),
    "a bad number": (["query", "x", "--alpha", "much"], "--alpha is 'much': "),
    "a number that is a word": (
        ["query", "x", "--size", "abc"],
        f"--size is 'abc': it must be a whole number {HELP}",
    ),
    "a bad number behind an equals sign": (["query", "x", "--alpha=much"], "--alpha is 'much': "),
    "a number out of range": (["plan", "--documents", "0"], "--documents is '0': "),
    "a value that is not in the list": (["ingest", "--log-format", "xml"], "--log-format is 'xml'"),
}


@pytest.mark.parametrize("case", WRONG_COMMAND_LINES)
def test_a_wrong_command_line_is_one_line_with_the_remedy_and_exit_status_2(case: str) -> None:
    arguments, message = WRONG_COMMAND_LINES[case]
    result = invoke_cli(*arguments)
    assert result.error.startswith(message)
    assert (len(result.stderr.splitlines()), result.stdout) == (1, "")


@pytest.mark.parametrize(
    ("command", "help_command"),
    [
        ([sys.executable, "-m", "hybrid_search", "ingest"], "hybrid-search ingest"),
        ([str(SCRIPT), "ingest"], "hybrid-search ingest"),
        ([sys.executable, "-m", "hybrid_search.ingest"], "python -m hybrid_search.ingest"),
    ],
)
def test_the_line_is_the_same_under_the_three_names(command: list[str], help_command: str) -> None:
    process = subprocess.run(
        [*command, "--clumns", "x"], capture_output=True, text=True, check=False, timeout=60
    )
    message = "no such option --clumns: did you mean --columns?"
    assert process.stderr == f"error: {message} (see {help_command} --help)\n"
    assert (process.returncode, process.stdout) == (2, "")


@pytest.mark.parametrize("option", [["--log-format", "json"], ["--log-format=json"]])
def test_the_line_is_a_record_where_logs_are_json(option: list[str]) -> None:
    result = run_cli(*option, "--clumns", "x", module="hybrid_search.ingest")
    (line,) = result.stderr.splitlines()
    record = json.loads(line)
    assert (result.status, record["level"]) == (2, "error")
    assert record["message"].startswith("no such option --clumns: did you mean --columns?")


def test_the_version_is_printed_with_the_name() -> None:
    result = invoke_cli("--version")
    assert (result.status, result.stderr) == (0, "")
    assert result.stdout == f"hybrid-search {hybrid_search.__version__}\n"


@pytest.mark.parametrize(
    ("words", "completion"), [("que", "query"), ("query --alp", "--alpha"), ("best", "best-spans")]
)
def test_the_shell_is_told_how_a_word_may_end(words: str, completion: str) -> None:
    request = {
        "_HYBRID_SEARCH_COMPLETE": "complete_bash",
        "COMP_WORDS": f"hybrid-search {words}",
        "COMP_CWORD": str(len(words.split())),
    }
    result = run_cli(env={**os.environ, **request})
    assert (result.status, result.stdout.split(), result.stderr) == (0, [completion], "")


@pytest.mark.skipif(not shutil.which("bash"), reason="the completion of bash is installed")
def test_completion_is_shown_and_installed_for_the_shell_that_runs(tmp_path: Path) -> None:
    def run_in_bash(option: str) -> str:
        command = ["bash", "-c", f"{SCRIPT} {option}; true"]
        environment = {**os.environ, "HOME": str(tmp_path)}
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True, timeout=60
        ).stdout

    script = run_in_bash("--show-completion")
    assert "_HYBRID_SEARCH_COMPLETE=complete_bash" in script
    assert "bash completion installed" in run_in_bash("--install-completion")
    (installed,) = (tmp_path / ".bash_completions").iterdir()
    assert installed.read_text().strip() == script.strip()
    assert str(installed) in (tmp_path / ".bashrc").read_text()


TUNING = """
import atexit, gc, os, sys
report = lambda: print(os.environ["OPENBLAS_THREAD_TIMEOUT"], gc.get_freeze_count() > 0)
atexit.register(report)  # the first that is registered runs last
from hybrid_search.cli.app import app
sys.argv = ["hybrid-search", "--version"]
app()
"""


@pytest.mark.parametrize(("setting", "expected"), [({}, "4"), ({SPINNING: "20"}, "20")])
def test_the_program_saves_idle_work_unless_the_user_decided_otherwise(
    setting: dict[str, str], expected: str
) -> None:
    """4 is the least that OpenBLAS takes: its idle threads then spin for 16 cycles only."""
    env = {name: value for name, value in os.environ.items() if name != SPINNING}
    output = subprocess.run(
        [sys.executable, "-c", TUNING],
        env=env | setting,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert output.splitlines()[-1] == f"{expected} True"


@pytest.mark.parametrize(("setting", "is_loaded"), [({}, False), ({PLUGINS: "0"}, True)])
def test_the_program_leaves_out_plugins_unless_the_user_decided_otherwise(
    tmp_path: Path, setting: dict[str, str], is_loaded: bool
) -> None:
    """A plugin of pydantic sees all that pydantic reads, such as a line of a document."""
    offer = tmp_path / "spying-1.dist-info"
    offer.mkdir()
    (offer / "METADATA").write_text("Metadata-Version: 2.1\nName: spying\nVersion: 1\n")
    (offer / "entry_points.txt").write_text("[pydantic]\nspying = spying:plugin\n")
    (tmp_path / "spying.py").write_text("print('spying'); raise ImportError")
    documents = tmp_path / "calls.jsonl"
    documents.write_text('{"id": "a", "text": "Send my money back."}\n')
    env = {name: value for name, value in os.environ.items() if name != PLUGINS}
    command = ["ingest", str(documents), "--url", f"embedded:{tmp_path / 'store'}"]
    output = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "hybrid_search", *command],
        env={**env, "PYTHONPATH": str(tmp_path)} | setting,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert ("spying" in output) == is_loaded


def test_the_library_leaves_the_settings_of_its_host_alone() -> None:
    program = f"import hybrid_search, os; print({{*{SETTINGS!r}}} & {{*os.environ}})"
    env = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    output = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True
    ).stdout
    assert output == "set()\n"

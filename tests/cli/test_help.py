"""The help: options in panels, types in plain words, two examples, and a first screen."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest

from hybrid_search.cli.command import PANELS
from hybrid_search.cli.commands import COMMAND_PANELS, COMMANDS, build_command, list_examples
from tests.helpers.cli import invoke_cli

BUILT: dict[str, Any] = {name: build_command(name) for name in COMMANDS}
SCREEN = 40
"""Lines of a window."""
FIRST_PANEL = {
    "ingest": {"--index", "--columns", "--where", "--help"},
    "query": {"--index", "--alpha", "--size", "--where", "--json", "--help"},
}
"""What somebody who begins needs, by command."""


def read_help(command: str, monkeypatch: pytest.MonkeyPatch, columns: int = 80) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(columns))
    return invoke_cli(command, "--help").stdout.splitlines()


@pytest.mark.parametrize("columns", [80, 100])
@pytest.mark.parametrize("command", FIRST_PANEL)
def test_the_first_screen_has_what_a_newcomer_needs(
    command: str, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = "\n".join(read_help(command, monkeypatch, columns)[:SCREEN])
    panel = screen.partition("─ Options ─")[2].partition("╰─")
    assert panel[1], "the first panel goes on behind the first screen"
    assert set(re.findall(r"(--[a-z-]+) ", panel[0])) >= FIRST_PANEL[command]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_ends_with_its_examples(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [line.strip() for line in read_help(command, monkeypatch) if line.strip()]
    examples = [f"hybrid-search {example}" for example in list_examples(command)]
    assert lines[-3:] == ["Examples:", *examples]


@pytest.mark.parametrize("example", [item for name in COMMANDS for item in list_examples(name)])
def test_the_options_of_an_example_exist(example: str) -> None:
    name, *arguments = shlex.split(example)
    BUILT[name].make_context(name, arguments)


@pytest.mark.parametrize("command", COMMANDS)
def test_types_are_plain_words(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "\n".join(read_help(command, monkeypatch, 200))
    assert not re.search(r"<(str|int|float|bool|path|list|file)\b|\b(TEXT|INTEGER)\b RANGE", text)


def test_the_commands_stand_in_their_panels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    text = invoke_cli("--help").stdout
    for panel_name, names in COMMAND_PANELS.items():
        panel = text.partition(f"─ {panel_name} ─")[2].partition("╰─")[0]
        for name in names.split():
            assert re.search(rf"^│ {name} ", panel, flags=re.MULTILINE), name


def test_the_tables_of_panels_and_types_name_parameters_that_exist() -> None:
    placed = [name for names in PANELS.values() for name in names.split()]
    known = {param.name for command in BUILT.values() for param in command.params}
    assert len(placed) == len(set(placed))
    assert {*placed} <= known

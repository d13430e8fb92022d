"""The commands: the module, help panel and two examples of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pkgutil import resolve_name
from typing import Any

import typer

from hybrid_search.cli.callback import build_callback
from hybrid_search.cli.command import Command

FIRST_STEPS, ASKING, TOPICS = "First steps", "Asking", "Topics"
CARE, SERVICES = "Index care", "Services"


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """A command: its module and function, its panel, and its examples without program name."""

    function: str
    panel: str
    examples: tuple[str, str]


COMMANDS: Mapping[str, CommandEntry] = {
    "ingest": CommandEntry(
        "ingest:ingest",
        FIRST_STEPS,
        ("ingest calls.jsonl --index calls", "ingest calls.csv --columns id=call_id,text=body"),
    ),
    "query": CommandEntry(
        "query:query",
        FIRST_STEPS,
        (
            'query "refund request" --index calls',
            'query "refund request" --where sector=bank --size 20 --json',
        ),
    ),
    "indexes": CommandEntry(
        "index_admin:indexes", FIRST_STEPS, ("indexes", "indexes --url embedded:FOLDER --json")
    ),
    "show": CommandEntry(
        "query:show",
        FIRST_STEPS,
        ("show call-17 --index calls", 'show call-17 --phrase "refund request"'),
    ),
    "doctor": CommandEntry("doctor:doctor", FIRST_STEPS, ("doctor", "doctor --index calls --json")),
    "best-spans": CommandEntry(
        "query:best_spans",
        ASKING,
        (
            'best-spans "refund request" --text "I want my money back."',
            "best-spans --file pairs.jsonl --k 3",
        ),
    ),
    "similar": CommandEntry(
        "grouping:similar",
        ASKING,
        ('similar "refund request"', 'similar "refund request" --speaker customer --size 50'),
    ),
    "cluster": CommandEntry(
        "grouping:cluster",
        ASKING,
        ("cluster matches.jsonl", "cluster --topics topics.yaml --topic refund"),
    ),
    "discover": CommandEntry(
        "grouping:discover",
        ASKING,
        ("discover --index calls", "discover --topics topics.yaml --speaker customer"),
    ),
    "mine": CommandEntry(
        "mine:mine",
        TOPICS,
        (
            "mine --topics topics.yaml --out matches.jsonl",
            "mine --topics topics.yaml --out matches.jsonl --report page.html",
        ),
    ),
    "topics": CommandEntry(
        "topics:topics",
        TOPICS,
        ("topics check topics.yaml", "topics check topics.yaml --json"),
    ),
    "judge": CommandEntry(
        "judge:judge",
        TOPICS,
        ("judge --topics topics.yaml", "judge --topics topics.yaml --topic refund --count 20"),
    ),
    "tune": CommandEntry(
        "topics:tune",
        TOPICS,
        (
            "tune --topics topics.yaml --judgments judgments.jsonl",
            "tune --topics topics.yaml --judgments judgments.jsonl --json",
        ),
    ),
    "setup": CommandEntry(
        "index_admin:setup",
        CARE,
        ("setup --index calls", "setup --index calls --url https://HOST:9200 --shards 3"),
    ),
    "reindex": CommandEntry(
        "index_admin:reindex",
        CARE,
        ("reindex --index calls", "reindex calls.jsonl --index calls --model other-model"),
    ),
    "delete": CommandEntry(
        "index_admin:delete",
        CARE,
        ("delete call-17 call-18 --index calls", "delete --index calls --yes"),
    ),
    "verify": CommandEntry(
        "verify:verify", CARE, ("verify --index calls", "verify --index calls --repair")
    ),
    "plan": CommandEntry(
        "plan:plan", CARE, ("plan calls.jsonl", "plan calls.jsonl --documents 1000000")
    ),
    "serve": CommandEntry(
        "services:serve", SERVICES, ("serve", "serve --host 0.0.0.0 --token-file token")
    ),
    "mcp": CommandEntry("services:mcp", SERVICES, ("mcp", "mcp --http --port 8080")),
}
"""The commands in the order of the help."""


class Commands(Mapping[str, Any]):
    """The commands by name, each imported and built on demand.

    Importing all of them took 35 ms of a query's first half second.
    """

    def __getitem__(self, name: str) -> Any:
        return build_command(name)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


@cache
def build_command(name: str, kind: type[Command] = Command) -> Any:
    """Return a command, as a class of commands has it."""
    entry = COMMANDS[name]
    program = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    program.command(name, cls=kind, rich_help_panel=entry.panel, epilog=list_examples(name))(
        build_callback(resolve_name(f"{__package__}.{entry.function}"))
    )
    return typer.main.get_command(program)


def list_examples(name: str) -> str:
    """Return the examples of a command, as shown at the end of its help."""
    lines = (f"  hybrid-search {example}" for example in COMMANDS[name].examples)
    return "\n\n".join(["Examples:", *lines])

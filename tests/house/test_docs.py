"""Tests that the documentation is true.

Its code runs and prints what the pages show, and every command, option and variable is described.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks import tables as benchmark_tables
from hybrid_search import config
from hybrid_search.cli import commands
from hybrid_search.cli.commands import build_command
from hybrid_search.errors import MissingExtraError
from hybrid_search.ingest import document_parser
from papers import tables as paper_tables
from tools import pages, parameters, picture
from tools.pages import NUMBER, PAGES, TARGETS

ROOT = Path(__file__).parents[2]
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]
CLI = ROOT / "docs" / "cli.md"
COMMANDS = {name: build_command(name) for name in commands.COMMANDS}
CONFIGURATION = ROOT / "docs" / "configuration.md"
OPTIONAL_PAGES = {"docs/frameworks.md": "make test-frameworks"}
"""Pages whose code needs what is not in the extra [dev], and what runs them."""
WORDS = 800
"""The README is read in five minutes."""


@pytest.fixture
def _user(bundled_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody who has ingested the sample and has its files beside him."""
    store = Path(bundled_url.removeprefix("embedded:"))
    for name, value in pages.prepare_folder(tmp_path, store).items():
        monkeypatch.setenv(name, value)


def assert_same_output(printed: str, expected: str, number: re.Pattern[str] = NUMBER) -> None:
    if not pages.is_same_output(printed, expected, number):
        assert printed == expected, "python -m tools.pages writes what is printed today"


def parse_command(command: str) -> None:
    """Raise if `command` is ours and has an unknown option."""
    words = [word for word in shlex.split(command) if not re.match(r"[A-Z_]+=", word)]
    prefix_lengths = {
        ("hybrid-search",): 1,
        ("python", "-m", "hybrid_search"): 3,
        ("python", "-m", "hybrid_search.ingest"): 3,
    }
    prefix_length = next(
        (count for names, count in prefix_lengths.items() if tuple(words[:count]) == names), 0
    )
    if not prefix_length:
        return
    name, *arguments = (
        words[prefix_length:]
        if words[prefix_length - 1] != "hybrid_search.ingest"
        else ["ingest", *words[prefix_length:]]
    )
    COMMANDS[name].make_context(name, arguments)


@pytest.mark.pages
@pytest.mark.usefixtures("_user")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.frameworks if name in OPTIONAL_PAGES else ())
        for name in NAMES
    ],
)
def test_the_code_and_the_commands_of_a_page_run_in_their_order(name: str) -> None:
    page = ROOT / name
    for block in pages.read_blocks(page):
        if block.language == "shell":  # for a server
            for command in block.commands:
                parse_command(command)
    try:
        for block, printed in pages.run_page(page):
            assert_same_output(printed, block.text)
    except MissingExtraError as missing:
        if name not in OPTIONAL_PAGES:
            raise
        pytest.skip(f"{missing} ({OPTIONAL_PAGES[name]} runs this page)")


def test_the_readme_has_the_two_lines_that_everybody_will_try() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "python -m hybrid_search.ingest --index calls" in text
    assert 'hybrid_search.query("refund request", alpha=0.5)' in text


@pytest.mark.parametrize("name", NAMES)
def test_the_json_of_a_page_is_json_and_its_documents_are_documents(name: str) -> None:
    for block in pages.read_blocks(ROOT / name):
        if block.language == "json":
            for line in block.text.splitlines():
                if "id" in json.loads(line):
                    document_parser.parse(line.encode())


@pytest.mark.parametrize("name", NAMES)
def test_links_to_files_lead_to_files(name: str) -> None:
    page = ROOT / name
    links = re.findall(r"\]\((?!https?:|#|mailto:)([^)#]+)", page.read_text(encoding="utf-8"))
    assert not [link for link in links if not (page.parent / link).exists()]


def section(command: str) -> str:
    """What docs/cli.md says under the heading of a command."""
    match = re.search(
        rf"^## {command}\n(.*?)(?=^## |\Z)",
        CLI.read_text(encoding="utf-8"),
        flags=re.MULTILINE | re.DOTALL,
    )
    assert match, f"docs/cli.md has no section {command}"
    return match[1]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_of_a_command_stands_in_its_section(command: str) -> None:
    documented = set(re.findall(r"`(--[a-z-]+)`", section(command)))
    assert documented == {
        option
        for param in COMMANDS[command].params
        for option in param.opts
        if option.startswith("--")
    }


@pytest.mark.parametrize("command", COMMANDS)
def test_a_default_that_is_given_is_the_default(command: str) -> None:
    defaults: dict[str, Any] = {
        option: param.default for param in COMMANDS[command].params for option in param.opts
    }
    for option, documented_default in re.findall(
        r"^\| `(--[a-z-]+)` \|.*\| ([^|]*) \|$", section(command), flags=re.MULTILINE
    ):
        if defaults[option] not in (None, False):
            assert documented_default.strip("` ") == str(defaults[option]), option


def test_every_command_is_in_the_documentation() -> None:
    assert set(
        re.findall(r"^## (.+)$", CLI.read_text(encoding="utf-8"), flags=re.MULTILINE)
    ) == set(COMMANDS)


def variables(text: str) -> set[str]:
    return set(re.findall(r"HYBRID_SEARCH_[A-Z_]*[A-Z]", text))


def test_every_environment_variable_is_in_the_configuration_and_no_other() -> None:
    read = variables(Path(config.__file__).read_text(encoding="utf-8"))
    assert variables(CONFIGURATION.read_text(encoding="utf-8")) == read
    assert all(variables(page.read_text(encoding="utf-8")) <= read for page in PAGES)


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= WORDS


def test_the_picture_is_what_the_readmes_command_prints_today(
    bundled_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HYBRID_SEARCH_URL", bundled_url)
    pictures = picture.draw(picture.run_query()), picture.PICTURE.read_text(encoding="utf-8")
    drawn, expected = (picture.HITS.sub("#", text) for text in pictures)
    assert_same_output(drawn, expected, picture.SCORE)
    hits = [int(number) for text in pictures for number in picture.HITS.findall(text)]
    assert hits[0] == pytest.approx(hits[1], abs=2)
    assert f"$ {picture.COMMAND}\n" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_picture_loads_nothing() -> None:
    drawn = picture.PICTURE.read_text(encoding="utf-8")
    assert re.findall(r"https?:[^\"]*", drawn) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"@import|@font-face|<script|<image|href=", drawn)


def test_every_page_is_in_the_sites_menu() -> None:
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    pages = {path.name for path in (ROOT / "docs").glob("*.md")}
    assert set(re.findall(r"[\w-]+\.md", str(nav))) == pages


def test_the_site_links_to_no_file_outside_it() -> None:
    for page in (ROOT / "docs").glob("*.md"):
        assert "](../" not in page.read_text(encoding="utf-8"), page


def test_the_paths_in_contributing_exist() -> None:
    """Those in a top folder of this checkout; ``NAME`` and ``*`` stand for any name."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    paths = [path for path in re.findall(r"`([\w./*]+/[\w./*]*)`", text) if "NAME" not in path]
    checked = [path for path in paths if (ROOT / path.split("/")[0]).exists()]
    assert len(checked) > 20
    assert not [path for path in checked if not list(ROOT.glob(path.rstrip("/")))]


@pytest.mark.parametrize("page", parameters.PAGES, ids=lambda page: page.name)
def test_what_is_listed_of_parameters_is_that_of_the_code(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "`" in text.split("<!-- table: query_")[1].split("<!-- end")[0]
    assert benchmark_tables.fill_tables(text, parameters.TABLES) == text


def test_every_make_target_explains_itself_or_is_a_helper() -> None:
    help_text = subprocess.run(
        ["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert set(re.findall(r"^make ([a-z-]+)", help_text, flags=re.MULTILINE)) == TARGETS - {
        "help",
        "format",
        "clean",
    }


def test_the_tables_are_those_that_the_results_give() -> None:
    for page in (*benchmark_tables.PAGES, *paper_tables.PAGES):
        text = page.read_text(encoding="utf-8")
        assert "| ---" in text.split("<!-- table:")[1]
        assert paper_tables.fill_tables(text) == text  # its tables are all of both

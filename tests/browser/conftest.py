"""A real browser, Debian's Chromium driven by Playwright, on a service with calls of all kinds."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hybrid_search import connect
from hybrid_search.ingest.sources.files import read
from tests.conftest import HARD_CALLS
from tests.helpers.service import RunningService, run_service

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
HYPHENS = "\u00ad" * 400
"""Soft hyphens, at each of which a browser may break the line, and which the encoder drops."""

WORDS = 4_900
"""With the hyphens in each they are 2 MB, and encoded within seconds."""

MARKUP = '<img src=x onerror="document.title=1"><script>document.title=2</script>'
DIRECTIONS = "\u202eevil\u202c \u2067rtl\u2066 \U0001f525 שלום"
HOSTILE: list[dict[str, Any]] = [
    {
        "id": f"hostile<b>'\"/?#&%2F {DIRECTIONS}",
        "title": MARKUP,
        "note": [MARKUP, "</dl>"],
        "turns": [
            {"speaker": MARKUP, "text": f"{DIRECTIONS} I demand a zebra refund {MARKUP} now."},
            {"speaker": "__proto__", "text": "constructor </textarea></style> {{7*7}}"},
        ],
    },
    {"id": "huge", "text": f"wo{HYPHENS}rd " * WORDS + "I demand a zebra refund now."},
]
"""Calls that try to be more than text, and one of 2 MB in one turn."""


@pytest.fixture(scope="session")
def pictures(run_folder: Path) -> Path:
    """The folder of the screenshots."""
    folder = Path(os.environ.get("HYBRID_SEARCH_PICTURES") or run_folder / "pictures")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def judgments_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that the service adds judgments to."""
    return tmp_path_factory.mktemp("judgments") / "judgments.jsonl"


@pytest.fixture(scope="session")
def service(
    sample_url: str, tmp_path_factory: pytest.TempPathFactory, judgments_file: Path
) -> Iterator[RunningService]:
    store = tmp_path_factory.mktemp("browser") / "store"
    shutil.copytree(sample_url.removeprefix("embedded:"), store)
    url = f"embedded:{store}"
    with connect(url) as client:
        assert client.ingest(HOSTILE, index="hostile").documents == len(HOSTILE)
    with connect(url, dimension=64) as client:
        client.ingest_lines(read([str(HARD_CALLS)]), index="short")
    arguments = ("--log-level", "info", "--judgments", str(judgments_file))
    with run_service(url, *arguments) as running:
        yield running


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="make test-browser installs playwright")
    if not CHROMIUM:
        pytest.skip("there is no chromium: apt-get install chromium, or set CHROMIUM")
    with api.sync_playwright() as playwright:
        # a container's root may not make the sandbox's namespaces
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Any, service: RunningService) -> Iterator[Any]:
    """The inspector, opened; a test fails if the page logs an error or asks another host."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    new_page = context.new_page()
    faults: list[str] = []

    def check_address(request: Any) -> None:
        if not request.url.startswith(f"{service.url}/"):
            faults.append(request.url)

    def check_line(line: Any) -> None:
        # the browser itself logs a line for every answer of status 400 and more
        if line.type == "error" and not line.text.startswith("Failed to load resource"):
            faults.append(line.text)

    new_page.on("pageerror", lambda error: faults.append(str(error)))
    new_page.on("console", check_line)
    new_page.on("dialog", lambda dialog: faults.append(f"dialog {dialog.message}"))
    new_page.on("request", check_address)
    new_page.goto(service.url)
    new_page.wait_for_selector("body[data-ready]")
    yield new_page
    context.close()
    assert not faults, json.dumps(faults)

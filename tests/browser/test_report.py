"""The page of ``mine --report`` in a browser: readable at every width, and silent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hybrid_search import connect
from tests.browser.conftest import HOSTILE
from tests.browser.test_inspector import WIDTHS
from tests.helpers.cli import invoke_cli

pytestmark = pytest.mark.browser

TOPICS = """
- name: zebra refund <b>
  phrases: [I demand a zebra refund]
  threshold: 0.05
- name: refund
  phrases: [I want my money back, please refund me]
  threshold: 0.05
"""
CALLS: list[dict[str, Any]] = [
    {
        "id": f"call-{number}",
        "call_date": f"2026-03-{1 + 3 * number:02}",
        "product": "kettle" if number % 2 else "toaster, the very large one with two handles",
        "turns": [{"speaker": "customer", "text": "It broke, so I want my money back please."}],
    }
    for number in range(9)
]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of two topics in calls of which two are hostile."""
    folder = tmp_path_factory.mktemp("report")
    url = f"embedded:{folder / 'store'}"
    with connect(url) as client:
        client.ingest([*CALLS, *HOSTILE])
    (folder / "topics.yaml").write_text(TOPICS, encoding="utf-8")
    page = folder / "report.html"
    arguments = ("--topics", str(folder / "topics.yaml"), "--out", str(folder / "matches.jsonl"))
    result = invoke_cli("mine", *arguments, "--report", str(page), "--by", "product", "--url", url)
    assert result.status == 0, result.stderr
    return page


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_it_is_accessible_fits_and_asks_nobody(
    browser: Any, report: Path, pictures: Path, width: int, scheme: str
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True
    )
    page = context.new_page()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(report.as_uri())
    page.screenshot(path=pictures / f"report-{width}-{scheme}.png", full_page=True)
    assert requests == [report.as_uri()]
    violations = Axe().run(page).response["violations"]
    assert not [(item["id"], [node["html"] for node in item["nodes"]][:3]) for item in violations]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    context.close()


def test_hostile_words_are_text_under_its_own_policy(browser: Any, report: Path) -> None:
    """The policy is in force here: a style or a script that it forbids would be a fault."""
    context = browser.new_context()
    page = context.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda line: faults.append(line.text))
    page.on("dialog", lambda dialog: faults.append(dialog.message))
    page.goto(report.as_uri())
    assert page.locator("img, script").count() == 0
    assert "zebra refund <b>" in page.locator("body").inner_text()
    assert "zebra refund" in " ".join(page.locator("mark").all_inner_texts())
    assert page.locator("body").evaluate("body => getComputedStyle(body).fontFamily") != "Times"
    assert not faults
    context.close()

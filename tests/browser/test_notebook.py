"""A result in a notebook, as a browser shows its HTML."""

from __future__ import annotations

from typing import Any

import pytest

from hybrid_search.client import Client
from tests.browser.test_inspector import PHRASE

pytestmark = pytest.mark.browser

GROUNDS = {"light": ("#ffffff", "#111111"), "dark": ("#111111", "#eeeeee")}
"""Background and text of the page around it."""


@pytest.mark.parametrize("ground", GROUNDS)
def test_it_is_readable_and_shows_what_the_inspector_shows(
    browser: Any, sample: Client, ground: str
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    hit = sample.query(PHRASE, size=1)
    paper, ink = GROUNDS[ground]
    page = browser.new_page(viewport={"width": 800, "height": 400})
    page.set_content(
        f"<!doctype html><html lang=en><title>notebook</title>"
        f"<main style='background:{paper};color:{ink}'><h1>1</h1>{hit._repr_html_()}</main>"
    )
    assert "customer  01:02" in page.locator("main").text_content()
    assert not Axe().run(page).response["violations"]
    page.close()

"""Time the inspector in a browser, from Enter to the first hit: ``-m benchmarks.speed.inspector``.

Each phrase of the hard sample is asked in a page that was just opened. It needs Playwright and
Chromium, as `make test-browser` installs them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Browser, sync_playwright

from benchmarks import results
from benchmarks.quality import hard_sample
from hybrid_search import connect
from tests.helpers.service import run_service

SETTLED_MILLISECONDS = 500
"""How long after the first hit the page is watched for anything that moves."""

OBSERVE = """
window.timing = {shifts: []};
new PerformanceObserver(list => window.timing.shifts.push(
  ...list.getEntries().map(entry => ({value: entry.value, at: entry.startTime}))
)).observe({type: "layout-shift", buffered: true});
document.addEventListener("keydown", event => {
  if (event.key === "Enter") window.timing.asked = performance.now();
}, true);
new MutationObserver(() => {
  if (!window.timing.shown && document.querySelector(".hit"))
    requestAnimationFrame(() => setTimeout(() => {
      window.timing.shown ??= performance.now();
    }));
}).observe(document.body, {childList: true, subtree: true});
"""
"""Notes when Enter was pressed, when the first hit was painted, and what moved."""

READ = """() => ({
  milliseconds: window.timing.shown - window.timing.asked,
  moved: window.timing.shifts.filter(shift => shift.at > window.timing.shown)
    .reduce((sum, shift) => sum + shift.value, 0),
})"""


def time_phrase(browser: Browser, url: str, phrase: str) -> dict[str, float]:
    """Return the milliseconds from Enter to the first painted hit, and how much moved after it.

    What moved is the sum of layout shifts as https://web.dev/articles/cls defines them.
    """
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(url)
    page.wait_for_selector("body[data-ready]")
    page.evaluate(OBSERVE)
    page.fill("#phrase", phrase)
    page.press("#phrase", "Enter")
    page.wait_for_selector(".hit")
    page.wait_for_timeout(SETTLED_MILLISECONDS)
    timing: dict[str, float] = page.evaluate(READ)
    page.close()
    return timing


def measure(chromium: str, phrases: Sequence[str]) -> dict[str, Any]:
    """Return the percentiles over the phrases, of a service that has answered once before."""
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        url = f"embedded:{Path(folder) / 'store'}"
        with connect(url) as client:
            client.ingest(
                map(json.loads, hard_sample.CALLS.read_text(encoding="utf-8").splitlines())
            )
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        with run_service(url) as service:
            first = time_phrase(browser, service.url, phrases[0])
            timings = [time_phrase(browser, service.url, phrase) for phrase in phrases]
        browser.close()
    milliseconds = [timing["milliseconds"] for timing in timings]
    return {
        "phrases": len(phrases),
        "browser": browser.version,
        "the service's first answer": round(first["milliseconds"], 1),
        "milliseconds": {
            f"p{share}": round(float(np.percentile(milliseconds, share)), 1)
            for share in (50, 95, 100)
        },
        "moved after the first hit": max(timing["moved"] for timing in timings),
    }


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    default = os.environ.get("CHROMIUM") or shutil.which("chromium")
    parser.add_argument("--chromium", default=default, help="the browser's program")
    options = parser.parse_args()
    if not options.chromium:
        parser.error("there is no chromium: install it, or name one with --chromium")
    results.write(
        "inspector-sample", measure(options.chromium, hard_sample.read_phrases()), results.SPEED
    )


if __name__ == "__main__":
    main()

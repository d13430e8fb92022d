"""The inspector as people use it: ask, slide, open, compare, by mouse and by keyboard alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from hybrid_search.client import Client
from hybrid_search.phrases.judgments import read_judgments
from tests.browser.conftest import HOSTILE, MARKUP
from tests.helpers.service import RunningService

pytestmark = pytest.mark.browser

PHRASE = "I want my money back"


def ask(page: Any, phrase: str = PHRASE) -> None:
    page.fill("#phrase", phrase)
    page.press("#phrase", "Enter")
    page.wait_for_selector(".hit")


def list_ids(page: Any) -> list[str]:
    ids: list[str] = page.eval_on_selector_all(".hit", "hits => hits.map(hit => hit.dataset.id)")
    return ids


def slide(page: Any, alpha: float, *, release: bool = True) -> None:
    page.eval_on_selector(
        "#alpha",
        "(slider, [alpha, events]) => { slider.value = alpha;"
        " for (const event of events) slider.dispatchEvent(new Event(event)); }",
        [str(alpha), ["input", "change"] if release else ["input"]],
    )


def test_a_query_shows_the_calls_that_python_finds_with_the_span_marked(
    page: Any, sample: Client
) -> None:
    ask(page)
    hits = sample.query(PHRASE, size=10).hits
    assert list_ids(page) == [hit.id for hit in hits]
    first = page.locator(".hit").first
    assert hits[0].spans[0].text in first.locator(".words").first.text_content()
    marked = "".join(first.locator(".words").first.locator("mark").all_text_contents())
    assert marked == hits[0].spans[0].text
    assert first.locator(".speaker").first.inner_text().split() == ["customer", "00:55"]
    assert first.locator(".score .number").inner_text() == f"{hits[0].score:.2f}"
    assert "money" in first.locator("b.term").all_text_contents()


WATCH_SHIFTS = """
window.shifts = 0;
new PerformanceObserver(list => {
  for (const entry of list.getEntries()) window.shifts += entry.value;
}).observe({type: "layout-shift"});
"""


def test_nothing_moves_once_the_first_hit_is_there(page: Any) -> None:
    """A layout shift is what https://web.dev/articles/cls says; 0 is none."""
    page.fill("#phrase", PHRASE)
    page.press("#phrase", "Enter")
    page.wait_for_selector(".hit")
    page.evaluate(WATCH_SHIFTS)
    page.wait_for_timeout(500)
    assert page.evaluate("window.shifts") == 0


def test_why_tells_both_parts_of_the_score(page: Any, sample: Client) -> None:
    ask(page)
    hit = sample.query(PHRASE, size=1, explain=True).hits[0]
    assert hit.explanation is not None
    first = page.locator(".hit").first
    first.locator("summary").click()
    table = first.locator("table").inner_text()
    for number in (hit.cosine, hit.prior, hit.bm25, hit.explanation["spans"]):
        assert f"{number:.3f}" in table
    assert "of 100" in table


def test_the_slider_ranks_again_at_once_without_asking(page: Any, sample: Client) -> None:
    ask(page)
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    slide(page, 0, release=False)
    assert list_ids(page)[:5] == [hit.id for hit in sample.query(PHRASE, size=5, alpha=0)]
    assert page.inner_text("#alpha-value") == "0.00"
    assert requests == []


@pytest.mark.parametrize("alpha", [0.0, 0.25, 1.0])
def test_where_the_slider_rests_the_list_is_that_of_a_query(
    page: Any, sample: Client, alpha: float
) -> None:
    ask(page)
    with page.expect_response("**/v1/query"):
        slide(page, alpha)
    page.wait_for_timeout(100)
    assert list_ids(page) == [hit.id for hit in sample.query(PHRASE, size=10, alpha=alpha)]


def test_several_phrases_and_filters(page: Any, sample: Client) -> None:
    page.focus("#phrase")
    page.keyboard.type("refund")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("waiting on hold")
    page.keyboard.press("Enter")
    page.wait_for_selector(".hit")
    phrases = ["refund", "waiting on hold"]
    assert list_ids(page) == [hit.id for hit in sample.query(phrases, size=10)]
    with page.expect_response("**/v1/query"):
        page.get_by_label("bank").check()
    page.wait_for_function("document.querySelector('.hit').dataset.id.startsWith('bank')")
    where = {"sector": ["bank"]}
    assert list_ids(page) == [hit.id for hit in sample.query(phrases, size=10, where=where)]


def test_a_call_is_opened_whole_with_its_spans_to_jump_between(page: Any, sample: Client) -> None:
    ask(page)
    page.click(".hit .open >> nth=0")
    page.wait_for_selector(".pane .turn")
    view = sample.open_document("shop-001", PHRASE)
    assert page.locator(".pane .turn").count() == len(view.turns)
    texts = page.locator(".pane .turn .words").all_text_contents()
    assert texts == [view.text[turn.start : turn.end] for turn in view.turns]
    assert page.locator(".best li").count() == len(view.spans)
    shaded = page.locator(".pane mark:has(.heat-4)").all_text_contents()
    assert view.spans[0].text.startswith(shaded[0])
    page.click("[data-jump='0']")
    current = page.locator(".pane mark[aria-current]")
    assert "".join(current.all_text_contents()) == view.spans[0].text
    assert current.first.evaluate("mark => mark === document.activeElement")


def test_a_call_is_compared_with_itself_under_another_phrase(page: Any, sample: Client) -> None:
    ask(page)
    page.click(".hit .open >> nth=0")
    page.click(".compare")
    page.wait_for_selector("#pane-phrase-1")
    page.fill("#pane-phrase-1", "a dog bed")
    with page.expect_response("**/v1/documents/**"):
        page.press("#pane-phrase-1", "Enter")
    page.wait_for_function("document.querySelectorAll('.pane').length === 2")
    spans = sample.open_document("shop-001", "a dog bed").spans
    second = page.locator(".pane").nth(1)
    second.locator("[data-jump='0']").wait_for()
    assert spans[0].text in second.locator("[data-jump='0']").inner_text()
    assert "money" in page.locator(".pane").first.locator("[data-jump='0']").inner_text()


def test_a_call_is_compared_with_itself_in_another_index(
    page: Any, service: RunningService
) -> None:
    ask(page)
    page.click(".hit .open >> nth=0")
    page.click(".compare")
    page.wait_for_selector("#pane-index-1")
    names = page.locator("#pane-index-1 option").all_text_contents()
    assert names == [f"{name} (slice-minilm-l6)" for name in ("calls", "hostile", "short")]
    with page.expect_response("**/v1/documents/**index=short**"):
        page.select_option("#pane-index-1", "short")
    expected = service.get(
        "/v1/documents/shop-001?" + urlencode({"phrase": PHRASE, "index": "short"})
    )
    page.wait_for_timeout(200)
    second = page.locator(".pane").nth(1).locator("[data-jump='0'] .number")
    assert second.inner_text() == f"{expected.json['spans'][0]['cosine']:.2f}"
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_selector("#pane-index-1")
    assert page.input_value("#pane-index-1") == "short"
    assert page.input_value("#pane-index-0") == "calls"
    page.select_option("#pane-index-1", "hostile")
    page.wait_for_selector("#problem:not([hidden])")
    assert "shop-001" in page.inner_text("#problem")


def test_yes_and_no_are_written_and_shown_again(page: Any, judgments_file: Path) -> None:
    ask(page)
    question = page.locator(".hit").first.locator(".question").first
    for name in ("Yes", "No"):
        with page.expect_response("**/v1/judgments"):
            question.get_by_role("button", name=name).click()
    page.wait_for_selector("[data-answer=no][aria-pressed=true]")
    judgment = next(item for item in read_judgments(judgments_file) if item.topic == PHRASE)
    assert (judgment.id, judgment.answer) == ("shop-001", "no")
    assert judgment.text == "Could you just put the money back on my card instead"
    page.reload()
    page.wait_for_selector("[data-answer=no][aria-pressed=true]")


def test_a_link_shows_the_same_again(page: Any) -> None:
    ask(page)
    with page.expect_response("**/v1/query"):
        slide(page, 0.3)
    page.get_by_label("shop").check()
    page.wait_for_timeout(300)
    page.click(".hit .open >> nth=1")
    page.wait_for_selector(".pane .turn")
    ids, title, address = list_ids(page), page.inner_text(".pane h2"), page.url
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_selector(".pane .turn")
    page.wait_for_selector(".hit")
    assert list_ids(page) == ids
    assert page.inner_text(".pane h2") == title
    assert page.input_value("#phrase") == PHRASE
    assert page.inner_text("#alpha-value") == "0.30"
    assert page.get_by_label("shop").is_checked()


def test_everything_works_by_keyboard_alone(page: Any) -> None:
    page.keyboard.press("/")
    page.keyboard.type(PHRASE)
    page.keyboard.press("Enter")
    page.wait_for_selector(".hit")
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.classList.contains('open')"):
            break
    opened = page.evaluate("document.activeElement.dataset.id")
    assert opened == list_ids(page)[0]
    page.keyboard.press("Enter")
    page.wait_for_selector(".pane .turn")
    assert page.evaluate("document.activeElement.tagName") == "H2"
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.dataset.jump") == "0":
            break
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.tagName") == "MARK"
    page.keyboard.press("Escape")
    page.wait_for_selector(".pane", state="detached")
    assert page.evaluate("document.activeElement.dataset.id") == opened


def test_errors_are_shown_as_the_service_words_them(page: Any, service: RunningService) -> None:
    page.goto(f"{service.url}/#q=money&index=nothing")
    page.wait_for_selector("#problem:not([hidden])")
    assert "no index of this name" in page.inner_text("#problem")
    page.fill("#phrase", "money")
    page.select_option("#index", "calls")
    page.wait_for_selector(".hit")
    assert page.is_hidden("#problem")


def test_a_hostile_transcript_is_text(page: Any) -> None:
    page.select_option("#index", "hostile")
    ask(page, "a zebra refund")
    document = HOSTILE[0]
    text = "\n".join(turn["text"] for turn in document["turns"])
    first = page.locator(".hit:not([data-id=huge])").first
    assert first.locator(".id").text_content() == document["id"]
    assert first.locator(".title").text_content() == MARKUP
    assert "zebra refund" in first.locator(".words").first.text_content()
    first.locator(".open").click()
    page.wait_for_selector(".pane .turn")
    shown = "\n".join(page.locator(".pane .turn .words").all_text_contents())
    assert shown == text
    assert page.locator(".pane .speaker").first.text_content() == MARKUP
    assert page.locator("main img, main script").count() == 0
    assert page.title() == "hybrid-search inspector"
    mark = "".join(page.locator(".pane mark").all_text_contents())
    assert "zebra refund" in mark
    page.reload()
    page.wait_for_selector(".pane .turn")
    assert page.locator(".pane .id").text_content() == document["id"]


def test_a_turn_of_two_megabytes_is_shown_to_its_end(page: Any) -> None:
    huge = HOSTILE[1]
    assert len(huge["text"]) > 1_950_000
    page.select_option("#index", "hostile")
    ask(page, "a zebra refund")
    page.locator(".hit[data-id=huge] .open").click()
    page.wait_for_selector(".pane .turn")
    shown = page.locator(".pane .text .words").evaluate_all("all => all.map(p => p.textContent)")
    assert "".join(shown) == huge["text"]
    page.click("[data-jump='0']")
    mark = page.locator(".pane mark[aria-current]")
    assert "zebra refund" in "".join(mark.all_text_contents())
    assert mark.first.evaluate("mark => mark.getBoundingClientRect().top < innerHeight")


WIDTHS = (360, 800, 1400)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_it_is_accessible_and_fits_at_every_width_and_scheme(
    browser: Any, service: RunningService, pictures: Path, width: int, scheme: str
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True
    )
    page = context.new_page()
    page.goto(service.url)
    page.wait_for_selector("body[data-ready]")

    def examine(name: str) -> None:
        page.screenshot(path=pictures / f"{name}-{width}-{scheme}.png")
        violations = Axe().run(page).response["violations"]
        assert not [
            (item["id"], [node["html"] for node in item["nodes"]][:3]) for item in violations
        ]
        assert page.evaluate("document.documentElement.scrollWidth") <= width

    examine("empty")
    ask(page)
    page.locator(".why summary").first.click()
    examine("hits")
    page.click(".hit .open >> nth=0")
    page.wait_for_selector(".pane .turn")
    page.click("[data-jump='0']")
    examine("call")
    page.click(".compare")
    page.wait_for_selector("#pane-phrase-1")
    page.fill("#pane-phrase-1", "a dog bed")
    with page.expect_response("**/v1/documents/**"):
        page.press("#pane-phrase-1", "Enter")
    page.wait_for_timeout(200)
    examine("compared")
    context.close()


LARGEST_PICTURE = 150_000
"""Bytes of a picture in the documentation."""


def test_the_pictures_of_the_documentation(
    browser: Any, service: RunningService, pictures: Path
) -> None:
    context = browser.new_context(viewport={"width": 1120, "height": 620}, color_scheme="light")
    page = context.new_page()
    page.goto(f"{service.url}/#q=somebody+wants+their+money+back&alpha=0.7")
    page.wait_for_selector(".hit")
    page.locator(".why summary").first.click()
    page.screenshot(path=pictures / "inspector-hits.png")
    page.emulate_media(color_scheme="dark")
    page.click(".hit .open >> nth=0")
    page.wait_for_selector(".pane .turn")
    page.screenshot(path=pictures / "inspector-call.png")
    context.close()
    for name in ("inspector-hits.png", "inspector-call.png"):
        assert (pictures / name).stat().st_size < LARGEST_PICTURE

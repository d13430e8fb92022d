"""The inspector as people use it: ask, slide, open, compare, by mouse and by keyboard alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from hybrid_search.client import Client
from hybrid_search.encoder import SHIPPED
from hybrid_search.topics.judgments import read_judgments
from tests.browser.conftest import HOSTILE, MARKUP
from tests.helpers.service import RunningService

pytestmark = pytest.mark.browser

PHRASE = "put the money back on my card"


def ask(page: Any, phrase: str = PHRASE) -> None:
    page.fill("#phrase", phrase)
    page.press("#phrase", "Enter")
    page.wait_for_selector(".hit")


def list_ids(page: Any) -> list[str]:
    ids: list[str] = page.eval_on_selector_all(".hit", "hits => hits.map(hit => hit.dataset.id)")
    return ids


def find_box(page: Any, value: str) -> Any:
    """Return the box of a value of the filters, also where they are not seen."""
    return page.locator(".filters label", has_text=value).locator("input")


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
    # the turn begins at 00:55, and the words in the middle of it
    assert first.locator(".speaker").first.inner_text().split() == ["customer", "01:02"]
    assert first.locator(".score .number").inner_text() == f"{hits[0].score:.2f}"
    assert hits[0].probability is not None
    assert first.locator(".probability").inner_text() == f"probability {hits[0].probability:.2f}"
    assert "money" in first.locator("b.term").all_text_contents()


def test_that_nothing_likely_was_found_stands_above_the_list(page: Any) -> None:
    ask(page, "a solar eclipse over the glacier")
    assert page.inner_text("#status").startswith("Nothing likely found. ")
    ask(page)
    page.wait_for_function("!document.querySelector('#status').textContent.includes('likely')")


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


def test_feedback_searches_a_second_time_and_is_in_the_link(page: Any, sample: Client) -> None:
    ask(page, "lost luggage")
    with page.expect_response("**/v1/query"):
        page.check("#feedback")
    page.wait_for_timeout(300)
    again = [hit.id for hit in sample.query("lost luggage", feedback=10)]
    assert list_ids(page) == again
    assert again != [hit.id for hit in sample.query("lost luggage")]
    with page.expect_response("**/v1/query"):
        slide(page, 1)
    page.wait_for_timeout(300)
    again = [hit.id for hit in sample.query("lost luggage", feedback=10, alpha=1)]
    assert list_ids(page) == again
    page.reload()
    page.wait_for_selector(".hit")
    assert page.is_checked("#feedback")
    assert list_ids(page) == again


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
        find_box(page, "bank").check()
    page.wait_for_selector(".hit:first-child[data-id^=bank]")
    where = {"sector": ["bank"]}
    assert list_ids(page) == [hit.id for hit in sample.query(phrases, size=10, where=where)]


def test_a_second_value_of_a_filter_can_be_added_also_from_a_link(
    page: Any, service: RunningService, sample: Client
) -> None:
    page.goto(f"{service.url}/#q=refund&where=" + quote('["sector","bank"]'))
    page.wait_for_selector(".hit")
    assert find_box(page, "bank").is_checked()
    find_box(page, "telecom").check()
    page.wait_for_selector(".hit[data-id^=telecom]")
    where = {"sector": ["bank", "telecom"]}
    assert list_ids(page) == [hit.id for hit in sample.query("refund", size=10, where=where)]
    unfiltered = sample.query("refund", size=60, group_by="passage", facets=["sector"]).facets
    assert unfiltered is not None
    shown = page.locator(".filters fieldset:has-text('sector') label").all_inner_texts()
    assert [text.split() for text in shown] == [
        [value, str(count)] for value, count in unfiltered["sector"].items()
    ]


def test_of_several_phrases_a_call_is_opened_and_judged_under_the_one_that_it_fits(
    page: Any, service: RunningService, sample: Client
) -> None:
    phrases = ["refund", "waiting on hold"]
    page.goto(f"{service.url}/#" + urlencode({"q": phrases}, doseq=True))
    page.wait_for_selector(".hit")
    hits = sample.query(phrases, size=10).hits
    hit = next(hit for hit in hits if hit.phrase == "waiting on hold")
    shown = page.locator(f".hit[data-id={hit.id}]")
    assert "waiting on hold" in shown.locator(".fits").inner_text()
    with page.expect_request("**/v1/judgments") as sent:
        shown.locator("[data-answer=yes]").first.click()
    assert sent.value.post_data_json["phrase"] == "waiting on hold"
    shown.locator(".open").click()
    page.wait_for_selector(".pane .turn")
    assert page.input_value("#pane-phrase-0") == "waiting on hold"


def test_examples_can_be_tried_by_a_click(page: Any, sample: Client) -> None:
    page.get_by_role("link", name="refund request").click()
    page.wait_for_selector(".hit")
    assert page.input_value("#phrase") == "refund request"
    assert list_ids(page) == [hit.id for hit in sample.query("refund request", size=10)]


def test_hits_of_an_earlier_phrase_do_not_stay_beside_an_error(page: Any) -> None:
    ask(page)
    page.route("**/v1/query", lambda route: route.fulfill(status=503, json={"detail": "ask again"}))
    page.fill("#phrase", "something else")
    page.press("#phrase", "Enter")
    page.wait_for_selector("#problem:not([hidden])")
    assert page.locator(".hit").count() == 0
    assert page.inner_text("#status") == ""


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


def test_an_opened_call_has_its_whole_height_and_jumps_leave_the_hits_where_they_are(
    page: Any,
) -> None:
    page.set_viewport_size({"width": 1280, "height": 700})
    ask(page)
    page.click(".hit .open >> nth=1")
    page.wait_for_selector(".pane .turn")
    height = "document.querySelector('.pane .text').offsetHeight"
    before = page.evaluate(height)
    for _ in range(3):
        page.click(".pane .next")
        mark = page.locator(".pane mark[aria-current]").first
        top, bottom = mark.evaluate("m => [m.getBoundingClientRect().top, innerHeight]")
        assert 0 < top < bottom
        assert page.evaluate("scrollY") == 0
    page.wait_for_timeout(200)
    assert page.evaluate(height) == before


def test_words_are_shaded_within_their_turn(page: Any, service: RunningService) -> None:
    page.goto(f"{service.url}/#q=dog&open=" + quote('["shop-001","a dog bed",0.5]'))
    page.wait_for_selector(".pane .heat")
    shaded = page.locator(".pane .turn .heat:not(mark .heat)").all_text_contents()
    assert [text for text in shaded if text.strip() and not any(map(str.isalnum, text))] == []
    assert page.locator(".pane .legend .heat").count() == 5


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
    assert names == [f"{name} ({SHIPPED.name})" for name in ("calls", "hostile", "short")]
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
    problem = page.locator(".pane").nth(1).locator(".problem")
    problem.wait_for()
    assert "shop-001" in problem.inner_text()
    page.select_option("#pane-index-1", "calls")
    problem.wait_for(state="detached")


def test_a_view_that_cannot_be_shown_says_why_beside_the_other_and_can_be_closed(
    page: Any, service: RunningService
) -> None:
    views = [["shop-001", "money", 0.5], ["shop-001", "money", 0.5, "nothing"]]
    page.goto(
        f"{service.url}/#"
        + urlencode({"q": "money", "open": [*map(json.dumps, views)]}, doseq=True)
    )
    page.wait_for_selector(".hit", state="attached")
    page.wait_for_selector(".pane .turn")
    second = page.locator(".pane").nth(1)
    assert "no index of this name" in second.locator(".problem").inner_text()
    second.get_by_role("button", name="Close").click()
    page.wait_for_selector(".pane .turn")
    assert page.locator(".pane").count() == 1


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
    find_box(page, "shop").check()
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
    assert find_box(page, "shop").is_checked()


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
    hits, pane = (page.locator(name).bounding_box() for name in (".hits", ".pane"))
    assert pane["y"] == hits["y"]  # side by side, also where there are no filters
    shown = page.locator(".pane .text .words").evaluate_all("all => all.map(p => p.textContent)")
    assert "".join(shown) == huge["text"]
    pieces = page.locator(".pane").evaluate("pane => [...pane.childNodes].map(n => n.nodeName)")
    assert "#text" not in pieces  # it has no metadata, of which nothing is shown
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

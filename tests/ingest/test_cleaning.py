"""HTML and quoted mail are taken out if asked for; offsets are those of what is left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hybrid_search.client import Client
from hybrid_search.ingest.cleaning import Cleaning, strip_quotes
from hybrid_search.ingest.document_parser import parse
from hybrid_search.ingest.html_text import has_html, strip_html

TICKETS = Path(__file__).parents[3] / "shared" / "data" / "found" / "tickets.jsonl"
pytestmark = pytest.mark.usefixtures("tiny_encoder")

MAIL = "Yes please go ahead.\n\nOn Tue, 3 Mar 2026 at 10:12, Support <help@shop.example> wrote:\n"


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>Hi&nbsp;all,</p><p>it <b>broke</b> &amp; I&#39;m</p>", "Hi all,\nit broke & I'm"),
        ("one<br>two<br/>three", "one\ntwo\nthree"),
        ("<table><tr><td>kettle</td><td>20</td></tr></table>", "kettle\n20"),
        ("<style>p{color:red}</style><p>seen</p><script>hidden()</script>", "seen"),
        ('<p title="a > b">x</p><!-- no --><img src="refund.png" alt="">', "x"),
        ("first line\nsecond <b>line</b>\n", "first line\nsecond line"),
        ("<p>one\n   two</p>", "one two"),
        ("<p>Write to <help@shop.example> if 1 < 2</p>", "Write to <help@shop.example> if 1 < 2"),
        ("<div><p>unclosed <b>tags", "unclosed tags"),
        ("<p>kept</p><blockquote>said before</blockquote>", "kept\nsaid before"),
        ("<p></p>", ""),
    ],
)  # fmt: skip
def test_html_is_read_as_a_reader_sees_it(html: str, text: str) -> None:
    assert has_html(html)
    assert strip_html(html) == text


@pytest.mark.parametrize(
    "text", ["I paid <50 & waited", "mail <help@shop.example> me", "a <x> b", "", "1 < 2 > 0"]
)
def test_a_text_without_tags_is_left_as_it_is(text: str) -> None:
    assert not has_html(text)
    assert Cleaning(html=True).clean_text(text) == text


@pytest.mark.parametrize(
    ("mail", "own_words"),
    [
        (f"{MAIL}> Cancel?\n>> I want to.\n> Regards\n--\nJ Doe\nSecret", "Yes please go ahead."),
        (f"{MAIL}Shall we cancel?\nRegards", "Yes please go ahead."),
        (MAIL.replace("10:12, ", "10:12,\n") + "> Shall we cancel?", "Yes please go ahead."),
        ("> Shall we cancel?\nNo.\n> When?\nNever.", "No.\nNever."),
        ("Where is it?\n\n-- \nJane Doe\nRefunds Manager", "Where is it?"),
        ("Done.\n\n-----Original Message-----\nFrom: a\nI want my money.", "Done."),
        ("Done.\n\nFrom: Ann\nSent: Monday\nTo: us\nSubject: refund\n\nI want my money.", "Done."),
        ("> all of it is quoted", ""),
    ],
)  # fmt: skip
def test_own_words_are_left_of_a_mail(mail: str, own_words: str) -> None:
    assert strip_quotes(mail) == own_words
    assert strip_quotes(mail.replace("\n", "\r\n")) == own_words


@pytest.mark.parametrize(
    "text",
    [
        "On Monday I wrote:\nplease call me.",
        "From: the beginning it was late.\nI want my money.",
        "a -- b\nthe cost is > 50",
        "list:\n--\n" + "\n".join(f"item {number}" for number in range(16)),
    ],
)
def test_what_only_resembles_a_quote_stays(text: str) -> None:
    assert strip_quotes(text) == text


def test_a_quote_in_html_is_a_blockquote() -> None:
    html = (
        "<div>No thanks.</div><div>On 3 Mar 2026, Ann wrote:<blockquote>Cancel?</blockquote></div>"
    )
    assert Cleaning(html=True, quotes=True).clean_text(html) == "No thanks."


def test_the_times_of_words_go_with_the_words() -> None:
    turns = [
        {"text": "<b>Hi</b> there", "word_times": [[3, 5, 0, 10]], "start_ms": 0},
        {"text": "Hi", "word_times": [[0, 2, 20, 30]]},
    ]
    document, _ = parse(json.dumps({"id": "a", "turns": turns}).encode(), Cleaning(html=True))
    assert document.text == "Hi there\nHi"
    assert [turn.word_times for turn in document.turns] == [(), ((0, 2, 20, 30),)]


def test_offsets_are_those_of_the_text_that_is_stored(client: Client) -> None:
    document = {
        "id": "a",
        "text": "<p>Hello,</p>\n<p>I want my <b>money</b> back.</p>\n<p>-- </p>\nAnn",
    }
    client.ingest([document], strip_html=True, strip_quotes=True)
    stored = "Hello,\nI want my money back."
    assert client.open_document("a").text == stored
    for span in client.query("money back", spans=5).hits[0].spans:
        assert stored[span.start : span.end] == span.text


def test_a_document_is_written_again_if_it_is_cleaned_otherwise(client: Client) -> None:
    document = {"id": "a", "text": "<p>I want my money back.</p>"}
    assert client.ingest([document]).documents == 1
    assert client.ingest([document], strip_html=True).documents == 1
    assert client.ingest([document], strip_html=True).skipped == 1


@pytest.mark.data
def test_found_tickets() -> None:
    cleaning = Cleaning(html=True, quotes=True)
    raw = [json.loads(line) for line in TICKETS.read_text().splitlines()]
    cleaned = {item["id"]: cleaning.clean_text(item["text"]) for item in raw}
    assert cleaned["html"].splitlines() == [
        "Hello team,",
        "My blender stopped working after two days & I'd like my money back.",
        "link",
    ]
    assert cleaned["html-nomatch"] == "Where is the nearest store?"
    assert cleaned["thread"] == "Yes please go ahead."
    assert cleaned["sig"] == "Where is my parcel? It was due on Monday."
    others = {item["id"]: item["text"] for item in raw} | cleaned
    changed = {item["id"] for item in raw if others[item["id"]] != item["text"]}
    assert changed == {"html", "html-nomatch", "thread", "sig"}

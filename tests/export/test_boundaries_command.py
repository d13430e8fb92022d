"""The command that trains the span prior: what it writes and prints, and what it never reads."""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from export import card
from export.boundaries import corpora, examples, gaps, marked_turns, npz
from export.boundaries.__main__ import main
from hybrid_search import encoder
from hybrid_search.encoder import SHIPPED
from hybrid_search.system import file_digest
from hybrid_search.text.languages import detect_language
from tests.helpers.tiny_encoder import TinyEncoder

TURN = "My card is gone, so I need a new one. It costs 3.50, doesn't it?"
SGD_CALL = {
    "metadata": {"split": "train", "services": ["Hotels_1"]},
    "turns": [
        {
            "text": "Hello, I'm back, please book the same room again, it was lovely.",
            "intents": ["Hotels.BookRoom"],
        }
    ],
}
SECRET = "Never, ever, train on any words of this row, please."


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = "\n".join(map(json.dumps, rows)).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder of data sets with a few rows each, `SECRET` in those that are not for training."""
    folder = tmp_path / "data"
    requests = [
        {"intent": intent, "text": text, "part": "train"}
        for intent, text in (
            ("lost_card", "My card is gone, I think, so please send me a new one today."),
            ("lost_card", "I lost my card on a train"),
            ("exchange_rate", "Which rate do you use, and when, and why is it so low now?"),
            ("exchange_rate", "The exchange rate was wrong."),
            ("oos", SECRET),
        )
    ]
    secret_request = {"intent": "kept_back", "text": SECRET, "part": "dev"}
    for name in ("banking77", "clinc150"):
        write_rows(folder / name / f"{name}.jsonl.gz", [*requests, secret_request])
    calls = folder / "calls_sgd"
    queries = [{"id": "Hotels.BookRoom", "part": "train"}, {"id": "Media.Play", "part": "dev"}]
    write_rows(calls / "queries.jsonl", queries)
    secret_turns = [{"text": SECRET, "intents": ["Media.Play"]}]
    mixed = {"split": "train", "services": ["Hotels_2", "Media_1"]}
    unused = {"split": "dev", "services": ["Hotels_2"]}
    secret_calls = [{"metadata": kind, "turns": secret_turns} for kind in (mixed, unused)]
    write_rows(calls / "calls.jsonl.gz", [SGD_CALL, *secret_calls])
    for name in ("calls_taskmaster4", "calls_multiwoz"):
        write_rows(folder / name / "calls.jsonl.gz", [{"turns": [{"text": TURN}]}])
    sentences = ["It was cold outside.", "They sang all night long.", "Then they went home."]
    answer = {"question": "What did they do?", "sentences": sentences, "answers": [1]}
    write_rows(folder / "selqa" / "selqa.jsonl.gz", [answer])
    host = "Many birds live here, and they nest early. Nobody counts them, at least these days."
    for name in ("qmsum", "squad", "banking77", "selqa", "medquad"):
        numbered = [{"positive": f"{number} years ago. {host}"} for number in range(4)]
        write_rows(folder / "train_triples" / f"{name}.jsonl.gz", numbered)
    pair = {"query": "The bridge was built in 1901 .", "positive": "Built then , it stands ."}
    write_rows(folder / "train_triples" / "wiki_split.jsonl.gz", [pair])
    topics = [make_topic("shoes", "I want my money back"), make_topic("water", SECRET)]
    for name in ("topics", "long_turns", "more_topics"):
        write_rows(folder / "written" / f"{name}.jsonl", topics)
    request = {"id": "1", "text": "Hi, my name is Ann and I need to buy stocks."}
    mark = {"id": "1", "phrase": "buy stocks", "min": [34, 43], "max": [23, 43]}
    write_rows(folder / "natcs_utterances" / "utterances.jsonl", [request])
    write_rows(folder / "natcs_utterances" / "marks.jsonl", [mark])
    return folder


def make_topic(domain: str, clause: str) -> dict[str, Any]:
    turn = {"text": f"Listen, {clause} by Monday", "span": clause, "core": clause.split(" ", 2)[2]}
    return {"domain": domain, "phrases": {"name": "a refund", "said": "pay it"}, "says": [turn]}


class TwoSizes(TinyEncoder):
    """The tiny encoder as a model with vectors of two sizes."""

    info = replace(TinyEncoder.info, sizes=(4, TinyEncoder.info.dimension))


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A model folder with settings and a card, whose encoder is the tiny one."""
    folder = tmp_path / "model"
    folder.mkdir()
    settings = json.loads((SHIPPED / "encoder.json").read_text())
    (folder / "encoder.json").write_text(json.dumps({**settings, "sha256": {"other": "digest"}}))
    (folder / "README.md").write_text("# tiny\n\n## Limits\n\n- Small.\n")
    texts: list[str] = []

    class Recording(TwoSizes):
        def encode(self, batch: Any) -> Any:
            texts.extend(batch)
            return super().encode(batch)

    monkeypatch.setattr(encoder, "load", lambda *_: Recording())
    yield folder
    assert texts
    assert not [text for text in texts if SECRET.split(",")[0].lower() in text.lower()]


def run_command(monkeypatch: pytest.MonkeyPatch, *arguments: Any) -> None:
    monkeypatch.setattr(examples, "COMPOSED", {"clinc150": 40, "banking77": 30})
    monkeypatch.setattr(examples, "WOVEN_COUNT", 20)
    more_topics = arguments[arguments.index("--data") + 1] / "written" / "more_topics.jsonl"
    monkeypatch.setattr(marked_turns, "MORE_TOPICS", more_topics)
    monkeypatch.setattr(sys, "argv", ["export.boundaries", *map(str, arguments)])
    main()


def test_a_model_of_several_languages_learns_from_turns_in_them(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(marked_turns, "MORE_TOPICS", data / "written" / "more_topics.jsonl")
    english = gaps.read_labelled_texts(data, 1, ("en",))
    several = gaps.read_labelled_texts(data, 1, ("de", "en"))
    assert {text.source for text in several} - {text.source for text in english} == {
        gaps.TRANSLATED
    }
    added = [text for text in several if text.source == gaps.TRANSLATED]
    assert len(added) > 1000
    assert {detect_language(text.text, ("de", "en", "fr", "es")) for text in added[:50]} == {"de"}
    assert len({text.number for text in gaps.read_labelled_texts(data, 1, ("en",), 5)}) == 5
    count = Counter(text.source for text in several)[gaps.TOPICS]
    assert count > Counter(text.source for text in english)[gaps.TOPICS]  # German topics


def test_the_command_writes_file_digest_and_card_the_same_again(
    model: Path, data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_command(monkeypatch, "--model", model, "--data", data, "--json")
    report = json.loads(capsys.readouterr().out)
    assert list(report["sizes"]) == ["4", "8"]
    assert set(report["texts"]) == {*gaps.SOURCES, gaps.TOPICS}
    assert report["examples"]["written topics, written"] == 3
    assert report["examples"]["marked requests, written"] == 1
    path = model / npz.FILE
    digests = json.loads((model / "encoder.json").read_text())["sha256"]
    assert digests == {"other": "digest", npz.FILE: file_digest(path)}
    model_card = (model / card.FILE).read_text()
    assert model_card.index("## Span prior") < model_card.index("## Limits")
    content = path.read_bytes()
    run_command(monkeypatch, "--model", model, "--data", data)
    assert path.read_bytes() == content
    assert (model / card.FILE).read_text() == model_card
    assert "| turns of clinc150, written | 40 |" in capsys.readouterr().out
    run_command(monkeypatch, "--model", model, "--data", data, "--seed", 2)
    assert path.read_bytes() != content
    assert (model / "README.md").read_text().count("## Span prior") == 1


def test_a_section_of_the_card_is_replaced_in_its_place(tmp_path: Path) -> None:
    path = tmp_path / card.FILE
    path.write_text("# tiny\n\n## Ours\n\nold\nwords\n\n## Then\n\nmore\n")
    card.replace_section(tmp_path, "Ours", "new")
    assert path.read_text() == "# tiny\n\n## Ours\n\nnew\n\n## Then\n\nmore\n"
    path.write_text("# tiny\n\n## Ours\n\nold\n")
    card.replace_section(tmp_path, "Ours", "new")
    assert path.read_text() == "# tiny\n\n## Ours\n\nnew\n"
    path.unlink()
    card.replace_section(tmp_path, "Ours", "new")
    assert path.read_text() == "## Ours\n\nnew\n"


def test_a_missing_data_set_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"calls\.jsonl\.gz is missing: name the folder"):
        corpora.read_turns(tmp_path, "calls_multiwoz")


def test_intents_are_named_in_words() -> None:
    assert corpora.name_intent("Flights.BookFlight") == "book flight"
    assert corpora.name_intent("card_not_working") == "card not working"

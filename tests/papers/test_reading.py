"""Readers: the best start and end, windows and labels, and a small model from training to use."""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.helpers.tiny_bert import save_weights

# torch warns of its own future
pytestmark = [pytest.mark.export, pytest.mark.filterwarnings("ignore")]

torch = pytest.importorskip("torch", reason="the extra [export] is not installed: make test-export")
transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

from benchmarks.quality.tasks import spread_evenly  # noqa: E402
from papers import reading  # noqa: E402
from papers.evaluations import EVALUATIONS  # noqa: E402 (torch is asked for first)
from papers.reading import Example  # noqa: E402
from papers.systems import registry  # noqa: E402
from papers.systems.huggingface import HuggingFace  # noqa: E402
from papers.systems.reader import ANSWER, Reader, find_best_span  # noqa: E402

WORDS = [
    f"{a}{b}"
    for a in ("ba", "de", "fi", "go", "lu", "ma")
    for b in ("ras", "nel", "tik", "vom", "xar", "dun", "sel", "mip")
]
LENGTH = 32
"""Tokens a window of the tiny model. A query of two words and three special tokens leave 27 of the
document, of which windows share 8.
"""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A BERT of two layers of 64 dimensions with random weights."""
    folder = tmp_path_factory.mktemp("tiny")
    names = {name: f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep")}
    vocabulary = {word: number for number, word in enumerate([*names.values(), ".", *WORDS])}
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordLevel(vocabulary, unk_token=names["unk"])
    )
    tokenizer.normalizer = tokenizers.normalizers.Lowercase()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    edges = [(name, vocabulary[name]) for name in (names["cls"], names["sep"])]
    pair = "[CLS] $A [SEP] $B:1 [SEP]:1"
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair=pair, special_tokens=edges
    )
    special = {f"{name}_token": text for name, text in names.items()}
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(
        folder
    )
    save_weights(
        folder,
        len(vocabulary),
        hidden_size=64,
        num_attention_heads=4,
        intermediate_size=128,
        max_position_embeddings=64,
    )
    yield folder


@pytest.fixture
def reader(tiny: Path) -> Reader:
    torch.manual_seed(3)  # its heads are made at random
    return Reader(tiny, length=LENGTH, fresh=True)


def make_example(seed: int, words: int = 20) -> Example:
    """The answer is the two words before the query's."""
    random = Random(seed)  # noqa: S311 (no secret)
    document = random.sample(WORDS, words)
    place = random.randrange(2, words - 2)
    start = len(" ".join(document[: place - 2])) + (place > 2)
    answer = " ".join(document[place - 2 : place])
    return Example(
        " ".join(document[place : place + 2]), " ".join(document), start, start + len(answer)
    )


EXAMPLES = [make_example(seed) for seed in range(8)]


def format_rows(examples: list[Example]) -> str:
    """Examples as PiC's files have them."""
    records = [
        {
            "id": str(number),
            "query": item.query,
            "context": item.document,
            "answers": {"text": [answer_text(item)], "answer_start": [item.start]},
        }
        for number, item in enumerate(examples)
    ]
    return "".join(json.dumps(row) + "\n" for row in records)


def answer_text(item: Example) -> str:
    return item.document[item.start : item.end]


def options(**more: Any) -> argparse.Namespace:
    return argparse.Namespace(
        **{"epochs": 40, "batch": 4, "rate": 2e-3, "seed": 1, "bfloat16": False, **more}
    )


# --- the best span ---


def test_the_best_span_is_that_of_trying_all() -> None:
    random = np.random.default_rng(5)
    starts, ends = (random.standard_normal(50).astype(np.float32) for _ in range(2))
    tried = {(i, j): starts[i] + ends[j] for i in range(50) for j in range(i, min(i + ANSWER, 50))}
    score, first, last = find_best_span(starts, ends)
    assert (first, last) == max(tried, key=lambda span: tried[span])
    assert score == pytest.approx(max(tried.values()))


# --- windows ---


def test_a_window_is_the_query_and_a_part_of_the_document(reader: Reader) -> None:
    [window] = reader.windows("baras banel", "Fitik. Govom")
    tokens = reader.tokenizer.convert_ids_to_tokens(window.inputs["input_ids"])
    assert tokens == ["[CLS]", "baras", "banel", "[SEP]", "fitik", ".", "govom", "[SEP]"]
    assert (window.first, window.offsets.tolist()) == (4, [[0, 5], [5, 6], [7, 12]])


def test_windows_hold_every_token_and_share_a_quarter(reader: Reader) -> None:
    words = WORDS + WORDS  # 96: windows of 27 tokens, each 19 further than the one before
    document = " ".join(words)
    windows = reader.windows("baras banel", document)
    assert [len(window.offsets) for window in windows] == [27, 27, 27, 27, 20]
    edges = [(0, 27), (19, 46), (38, 65), (57, 84), (76, 96)]
    starts = np.cumsum([0, *(len(word) + 1 for word in words)])
    word_ranges = [(start, start + len(word)) for start, word in zip(starts, words, strict=False)]
    assert [window.offsets.tolist() for window in windows] == [
        [list(map(int, word_range)) for word_range in word_ranges[a:b]] for a, b in edges
    ]
    assert max(len(window.inputs["input_ids"]) for window in windows) == LENGTH


def test_only_windows_with_the_whole_answer_point_to_it(reader: Reader) -> None:
    document = " ".join(WORDS + WORDS)
    # words 44 to 46: of the windows above 19..46 holds one and two thirds of it, 38..65 all
    start = len(" ".join(WORDS[:44])) + 1
    labelled = list(
        reading.label_windows(
            reader, Example("baras banel", document, start, start + len(" ".join(WORDS[44:47])))
        )
    )
    nowhere = (0, 0)  # [CLS]
    assert [window.label for window in labelled] == [
        nowhere,
        nowhere,
        (4 + 6, 4 + 8),
        nowhere,
        nowhere,
    ]


def test_a_long_query_is_cut(reader: Reader) -> None:
    [window] = reader.windows(" ".join(WORDS), "fitik")
    assert window.first == 1 + LENGTH // 4 + 1


def test_a_document_without_a_token_has_no_answer(reader: Reader) -> None:
    assert reader.answer("baras", "") == (0, 0, float("-inf"))


def test_the_window_is_as_long_as_the_model_takes(tiny: Path) -> None:
    # its tokenizer knows no length, its configuration has 64 positions
    assert Reader(tiny, fresh=True).length == 64
    with pytest.raises(SystemExit, match="give --weights FOLDER"):
        Reader(tiny / "nothing")


# --- training ---


def test_every_window_is_in_a_batch_of_every_epoch_among_others_of_its_length(
    reader: Reader,
) -> None:
    windows = [
        window
        for number in range(150)
        for window in reader.windows("baras banel", " ".join(WORDS[: 1 + number % 20]))
    ]
    plan = list(reading.batches(windows, options(epochs=2)))
    assert [len(batch) for batch in plan].count(4) == 2 * 37  # and one of 2
    for epoch in (plan[:38], plan[38:]):
        assert {id(window) for batch in epoch for window in batch} == {
            id(window) for window in windows
        }
    lengths = [[len(window.offsets) for window in batch] for batch in plan]
    assert max(max(batch_lengths) - min(batch_lengths) for batch_lengths in lengths) <= 12
    assert lengths[:38] != sorted(lengths[:38])
    assert lengths[:38] != lengths[38:]


def count_right(model: Reader, examples: list[Example]) -> int:
    return sum(
        model.answer(item.query, item.document)[:2] == (item.start, item.end) for item in examples
    )


def test_it_learns_a_handful_of_examples_is_saved_and_answers_the_same(
    reader: Reader, tmp_path: Path
) -> None:
    assert count_right(reader, EXAMPLES) < 4
    curve = reading.fit(reader, EXAMPLES, EXAMPLES, options())
    assert count_right(reader, EXAMPLES) == 8
    assert curve[-1]["dev"] < 0.2 < 2 < curve[0]["dev"]
    reading.save(reader, tmp_path)
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= {
        path.name for path in tmp_path.iterdir()
    }
    reloaded = Reader(tmp_path, length=LENGTH)
    answers = [
        model.answer(item.query, item.document) for model in (reader, reloaded) for item in EXAMPLES
    ]
    assert [answer[:2] for answer in answers[:8]] == [answer[:2] for answer in answers[8:]]
    assert [answer[2] for answer in answers[:8]] == pytest.approx(
        [answer[2] for answer in answers[8:]], abs=1e-5
    )


def test_the_best_of_all_windows_counts(reader: Reader) -> None:
    """Documents of two windows: each answer lies in one of them, and the other points to [CLS]."""
    long = [make_example(seed, 46) for seed in range(8)]
    labels = [
        [window.label != (0, 0) for window in reading.label_windows(reader, long_example)]
        for long_example in long
    ]
    assert [True, False] in labels and [False, True] in labels
    reading.fit(reader, long, long[:1], options())
    assert count_right(reader, long) == 8


def test_the_weights_with_the_least_dev_loss_are_kept(reader: Reader) -> None:
    """What is learned makes the loss on wrong answers grow."""
    wrong = [Example(item.query, item.document, *wrong_place(item)) for item in EXAMPLES]
    curve = reading.fit(reader, EXAMPLES, wrong, options())
    least = min(point["dev"] for point in curve)
    assert least < curve[-1]["dev"]
    windows = [window for item in wrong for window in reading.label_windows(reader, item)]
    assert reading.mean_loss(reader, windows) == pytest.approx(least, abs=1e-3)


def wrong_place(item: Example) -> tuple[int, int]:
    """The first word, or the last where the answer holds the first."""
    words = item.document.split()
    return (
        (0, len(words[0]))
        if item.start
        else (len(item.document) - len(words[-1]), len(item.document))
    )


def test_the_same_seed_gives_the_same_weights(tiny: Path) -> None:
    weights = []
    for _ in range(2):
        torch.manual_seed(3)
        model = Reader(tiny, length=LENGTH, fresh=True)
        reading.fit(model, EXAMPLES, EXAMPLES[:2], options(epochs=2))
        weights.append(model.full_model.state_dict())
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


# --- the commands ---


@pytest.fixture
def threads() -> Iterator[None]:
    """The commands set how many torch uses."""
    thread_count = torch.get_num_threads()
    yield
    torch.set_num_threads(thread_count)


def write_training_files(folder: Path) -> None:
    """All examples as rows, and two of them as triples beside one without a span."""
    (folder / "train.jsonl").write_text(format_rows(EXAMPLES))
    triples_with_span = [
        {
            "query": item.query,
            "positive": item.document,
            "negative": "x",
            "span": [item.start, item.end],
        }
        for item in EXAMPLES[:2]
    ]
    triples_without_span = [{"query": "x", "positive": "x", "negative": "x"}]
    lines = map(json.dumps, [*triples_with_span, *triples_without_span])
    (folder / "triples.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))


@pytest.mark.usefixtures("threads")
def test_a_model_is_made_and_asked(
    tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_training_files(tmp_path)
    options = (
        f"--data train.jsonl --dev train.jsonl --triples triples.jsonl.gz --base {tiny} --out made "
        f"--epochs 40 --batch 4 --rate .002 --length {LENGTH} --threads 1"
    )
    reading.main(["train", *options.split()])
    run = json.loads((tmp_path / "made" / "run.json").read_text())
    assert json.loads(capsys.readouterr().out) == run
    assert (run["examples"], run["length"], run["epochs"]) == ({"train": 10, "dev": 8}, LENGTH, 40)
    assert run["kept"]["dev"] == min(point["dev"] for point in run["curve"])
    assert run["files"].keys() == {"train.jsonl", "triples.jsonl.gz"}
    predict = "predict --model made --data train.jsonl --out answers.jsonl --threads 1"
    reading.main(predict.split())
    figures = json.loads(capsys.readouterr().out)
    assert (figures["rows"], figures["EM"]["mean"], figures["F1+loc"]["mean"]) == (8, 1.0, 1.0)
    answers = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    assert [answer["text"] for answer in answers] == [answer_text(item) for item in EXAMPLES]
    assert [(answer["start"], answer["end"]) for answer in answers] == [
        (item.start, item.end) for item in EXAMPLES
    ]


def test_a_reader_is_a_system_of_the_tables(tiny: Path, tmp_path: Path, reader: Reader) -> None:
    """It ranks by its encoder, and selects spans by its heads."""
    (tmp_path / "pic").mkdir()
    for task in ("psd", "pr_pass"):
        (tmp_path / "pic" / f"{task}_test.jsonl").write_text(format_rows(EXAMPLES))
    reading.save(reader, tmp_path / "made")
    system = registry.load("reader-slice", str(tmp_path / "made"), tmp_path)
    assert isinstance(system, Reader)
    texts = [item.document for item in EXAMPLES]
    assert np.allclose(
        system.encode_texts(texts), HuggingFace(str(tiny)).encode_texts(texts), atol=1e-6
    )
    ranked = EVALUATIONS["pic-pr-pass"].measure(system, tmp_path)["setups"]
    assert {"phrase", "phrase in context", "span selection"} <= ranked.keys()
    assert ranked["span selection"]["rows"] == 8
    # no phrase stands twice: no choice
    figures = EVALUATIONS["pic-psd"].measure(system, tmp_path)["setups"]["span selection"]
    assert 0 <= figures["EM+loc"] <= figures["EM"] <= figures["F1"] <= 1
    assert figures["EM"] == ranked["span selection"]["EM"]  # the same rows


def test_an_encoder_without_heads_is_no_reader(tiny: Path, tmp_path: Path) -> None:
    message = r"has no qa_outputs\.bias and qa_outputs\.weight, so it is not a reader: train one"
    with pytest.raises(SystemExit, match=message):
        registry.load("reader-slice", str(tiny), tmp_path)


def test_examples_are_kept_for_dev_by_document() -> None:
    examples = [
        Example(f"query {number}", f"document {number // 3}", 0, 1) for number in range(900)
    ]
    dev_examples = [item for item in examples if reading.held_out(item.document)]
    assert {item.document for item in dev_examples}.isdisjoint(
        item.document for item in examples if not reading.held_out(item.document)
    )
    assert 25 <= len(dev_examples) <= 75  # one of 20 of 900 is 45
    assert [item.query for item in spread_evenly(examples, 3)] == [
        "query 0",
        "query 300",
        "query 600",
    ]
    assert len(spread_evenly(examples, None)) == len(spread_evenly(examples, 1000)) == 900


def test_what_cannot_be_trained_on_is_said(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "bare.jsonl").write_text(
        json.dumps({"query": "x", "positive": "x", "negative": "x"})
    )
    train = ["train", "--base", str(tiny), "--out", "made"]
    with pytest.raises(SystemExit, match="nothing to train on"):
        reading.train(reading.arguments([*train, "--triples", "bare.jsonl"]))
    (tmp_path / "one.jsonl").write_text(format_rows(EXAMPLES[:1]))
    with pytest.raises(SystemExit, match=r"[01] examples to train on and [01] for the dev loss"):
        reading.train(reading.arguments([*train, "--data", "one.jsonl"]))

"""Training the McPhraSy embedder: the loss against numbers written out, what a step reads, and
small runs that learn.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.tiny_bert import save_bert

pytestmark = [pytest.mark.export]

torch = pytest.importorskip("torch", reason="the extra [export] is not installed: make test-export")
transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

from export.training.corpora import held_out  # noqa: E402
from hybrid_search.discover.word_tree import split_words  # noqa: E402
from papers.mcphrasy import corpora, measured_on, wordnet  # noqa: E402 (torch is asked for first)
from papers.mcphrasy import training as training  # noqa: E402
from papers.mcphrasy.contexts import Context  # noqa: E402
from papers.mcphrasy.embedder import Embedder  # noqa: E402
from papers.mcphrasy.similarity import Cloud, mcphrasy  # noqa: E402
from papers.mcphrasy.system import Base, Initial  # noqa: E402
from tests.helpers.tiny_encoder import TinyEncoder  # noqa: E402
from tests.papers.test_mcphrasy import (  # noqa: E402
    definition_row,
    example_row,
    tiny_base,
    write_lines,
)

SETTINGS = training.Settings(batch=40, together=5, epochs=12, hidden=32, output=8)

# --- the paper's models ---


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield save_bert(tmp_path_factory.mktemp("bert"))


def test_masks_of_hugging_face_weights_are_what_the_model_says_of_them(bert: Path) -> None:
    contexts = [
        Context("Please give me a refund for it.", 17, 23),
        Context("The cab was late.", 4, 7),
    ]
    base = Base.from_encoder(TinyEncoder(), str(bert), str(bert))
    vectors = base.masks.vectors(contexts)
    model = transformers.AutoModel.from_pretrained(bert).eval()
    tokenizer = tokenizers.Tokenizer.from_file(str(bert / "tokenizer.json"))
    tokenizer.no_padding()
    for vector, context in zip(vectors, contexts, strict=True):
        encoding = tokenizer.encode(context.mask_phrase("[MASK]"))
        with torch.no_grad():
            hidden = model(input_ids=torch.tensor([encoding.ids])).last_hidden_state[0]
        assert vector == pytest.approx(hidden[encoding.tokens.index("[MASK]")].numpy(), abs=1e-5)
    assert base.phrases.encode_texts(["refund"]).shape == (1, 32)
    assert base.name == bert.name
    assert (
        Base.from_encoder(TinyEncoder(), phrasebert=str(bert)).name
        == f"tiny-fingerprint, {bert.name}"
    )


# --- the loss ---

ANCHORS = torch.tensor([[1.0, 0.0], [0.0, 2.0], [0.6, 0.8]])
POSITIVES = torch.tensor([[0.0, 1.0], [0.8, 0.6], [3.0, 0.0]])
LABELS = torch.tensor([5, 5, 9])
"""Distances: 1, .2, 0 from the first anchor, 0, .4, 1 from the second, .2, .04, .4 from the third,
whose phrase has no other context.
"""


def test_the_loss_by_hand() -> None:
    # the first: to its other context .2, to the third 0; the second: 0, and 1. With a margin of .3:
    # max(.5, 0) and max(-.7, 0)
    assert training.triplet_loss(ANCHORS, POSITIVES, LABELS, 0.3).item() == pytest.approx(0.5 / 2)
    assert training.triplet_loss(ANCHORS, POSITIVES, LABELS, 1.1).item() == pytest.approx(
        (1.3 + 0.1) / 2
    )
    assert training.triplet_loss(
        ANCHORS, POSITIVES, LABELS, 0.3, "hardest"
    ).item() == pytest.approx(0.5 / 2)


def test_without_a_triplet_the_loss_is_nothing() -> None:
    for sampling in training.SAMPLING:
        for labels in ([1, 2, 3], [1, 1, 1]):
            assert (
                training.triplet_loss(
                    ANCHORS, POSITIVES, torch.tensor(labels), 0.3, sampling
                ).item()
                == 0
            )


PHRASE_NUMBERS = torch.tensor([1, 1, 1, 2, 2, 2])


def test_the_hardest_triplet_is_the_farthest_of_the_phrase_and_the_nearest_of_another() -> None:
    """Of the first anchor's own phrase others are .3 and .5 away, of the other .2, .4 and .6."""
    distances = torch.tensor([[0.0, 0.3, 0.5, 0.2, 0.4, 0.6]] * 6)
    same = PHRASE_NUMBERS[:, None] == PHRASE_NUMBERS[None, :]
    positive, negative = training.hardest(distances, same, torch.eye(6, dtype=torch.bool))
    assert (positive[0].item(), negative[0].item()) == pytest.approx((0.5, 0.2))


def test_semi_hard_triplets_are_those_of_trying_all() -> None:
    torch.manual_seed(2)
    distances, labels = torch.rand(9, 9), torch.tensor([0, 0, 0, 1, 1, 1, 2, 2, 3])
    by_trying = []
    for anchor in range(9):
        negative_distances = [
            distances[anchor, row].item() for row in range(9) if labels[row] != labels[anchor]
        ]
        for row in range(9):
            if row != anchor and labels[row] == labels[anchor]:
                positive_distance = distances[anchor, row].item()
                by_trying.append(
                    (
                        positive_distance,
                        min(
                            (
                                distance
                                for distance in negative_distances
                                if distance > positive_distance
                            ),
                            default=max(negative_distances),
                        ),
                    )
                )
    triplets = training.semi_hard(
        distances, labels[:, None] == labels[None, :], torch.eye(9, dtype=torch.bool)
    )
    assert torch.stack(triplets, dim=1).numpy() == pytest.approx(np.array(by_trying))


def test_the_gradient_is_the_numerical_one() -> None:
    torch.manual_seed(3)
    anchors, positives = (
        torch.randn(6, 4, dtype=torch.float64, requires_grad=True) for _ in range(2)
    )
    for sampling in training.SAMPLING:
        assert torch.autograd.gradcheck(
            lambda a, b, name=sampling: training.triplet_loss(a, b, PHRASE_NUMBERS, 0.2, name),
            (anchors, positives),
        )


# --- what a step reads ---


def test_batches_hold_each_context_once_and_a_few_of_a_phrase() -> None:
    numbers = np.repeat(np.arange(30, dtype=np.int32), 7)
    settings = training.Settings(batch=40, together=5)
    rows = list(training.batches(numbers, settings, np.random.default_rng(1)))
    assert sorted(np.concatenate(rows).tolist()) == list(range(210))
    assert all(len(batch) <= 40 for batch in rows)
    pieces = [np.bincount(numbers[batch], minlength=30) for batch in rows]
    # five, and two of the same phrase if they fell into one batch
    assert max(count.max() for count in pieces) <= 7
    assert any((count == 5).any() for count in pieces)
    again = list(training.batches(numbers, settings, np.random.default_rng(1)))
    assert all((a == b).all() for a, b in zip(rows, again, strict=True))
    assert (
        rows[0].tolist()
        != next(training.batches(numbers, settings, np.random.default_rng(2))).tolist()
    )


def test_an_anchor_does_not_see_its_phrase() -> None:
    data = make_samples(np.random.default_rng(1), 3)
    rows = np.array([0, 9], dtype=np.int32)
    blind, seeing = (data.inputs(rows, with_own) for with_own in (False, True))
    assert (blind[:, :6] == seeing[:, :6]).all()
    assert not blind[:, 6:].any()
    # the root of its four numbers
    assert torch.linalg.norm(seeing[:, 6:], dim=1).tolist() == pytest.approx([2, 2])


def test_a_phrase_with_a_single_context_is_not_trained_on() -> None:
    initial = [
        Initial(np.ones((count, 2), dtype=np.float16), np.full(3, count, dtype=np.float32))
        for count in (3, 1, 2)
    ]
    data = training.Samples.from_initial(initial)
    assert data.phrases.tolist() == [0, 0, 0, 1, 1]
    assert data.own[:, 0].tolist() == [3, 2]


# --- small runs ---


def make_samples(random: Any, phrases: int, contexts: int = 8, noise: float = 1.0) -> Any:
    """Masks of six numbers, of which only the first two tell the phrase.

    The others are larger and the same for all phrases.
    """
    directions = np.array(
        [[np.cos(angle), np.sin(angle)] for angle in np.arange(phrases) * 2 * np.pi / phrases]
    )
    masks = random.standard_normal((phrases, contexts, 6)) * [0.1, 0.1, *[noise] * 4]
    masks[..., :2] += directions[:, None]
    own = np.random.default_rng(0).standard_normal((phrases, 4)).astype(np.float32)
    numbers = np.repeat(np.arange(phrases, dtype=np.int32), contexts)
    return training.Samples(masks.reshape(-1, 6).astype(np.float16), numbers, own)


def test_made_up_phrases_are_told_apart(tmp_path: Path) -> None:
    train, dev = (
        make_samples(np.random.default_rng(1), 6, 40),
        make_samples(np.random.default_rng(2), 6),
    )
    model, curve = training.train(train, dev, replace(SETTINGS, epochs=40))
    assert [line["epoch"] for line in curve] == list(range(41))
    assert min(line["dev"] for line in curve) < 0.5 * curve[0]["dev"]
    path = tmp_path / "embedder.npz"
    model.embedder("made", "a/spanbert").save(path)
    embedder = Embedder.load(path)
    assert (embedder.base, embedder.spanbert, embedder.phrasebert) == ("made", "a/spanbert", "")
    masks = dev.masks.astype(np.float32)
    assert similarity_gap(embedder(masks)) > similarity_gap(masks) + 0.2
    with torch.no_grad():
        by_torch = model(dev.inputs(np.arange(8, dtype=np.int32), True)).numpy()
    assert embedder(masks[:8], dev.own[0]) == pytest.approx(by_torch, abs=1e-5)


def similarity_gap(vectors: Any) -> float:
    """How much more alike two halves of a phrase's eight contexts are than halves of two phrases',
    on average.
    """
    halves = [Cloud.from_vectors(half) for half in np.split(vectors, len(vectors) // 4)]
    own = [mcphrasy(halves[index], halves[index + 1]) for index in range(0, len(halves), 2)]
    cross_similarities = [
        mcphrasy(a, b) for index, a in enumerate(halves) for b in halves[index - index % 2 + 2 :]
    ]
    return float(np.mean(own) - np.mean(cross_similarities))


def test_a_run_follows_from_its_seed() -> None:
    data = make_samples(np.random.default_rng(1), 6)
    settings = replace(SETTINGS, epochs=2)
    curves = [training.train(data, data, replace(settings, seed=seed))[1] for seed in (1, 1, 2)]
    assert curves[0] == curves[1] != curves[2]


def test_the_weights_kept_are_those_of_the_best_epoch() -> None:
    train, dev = (
        make_samples(np.random.default_rng(1), 6),
        make_samples(np.random.default_rng(2), 6),
    )
    wild = replace(SETTINGS, rate=0.5, epochs=4)
    model, curve = training.train(train, dev, wild)
    best = min(line["dev"] for line in curve)
    assert training._mean(model, dev, wild) == pytest.approx(best)


def write_data(folder: Path) -> Path:
    """Corpora of 25 phrases of two words, with 6 contexts each, and what the evaluations read."""
    colours = [f"green {letter}ish{letter}" for letter in "abcdefghijklmnopqrstuvwxy"]
    sentences = [
        f"They had {name} {number} on the table" for name in colours for number in range(6)
    ]
    names = dict.fromkeys(("text", "complex", "passage", "answer"), "Nothing.")
    for corpus in corpora.CORPORA:
        write_lines(
            folder,
            corpus.file,
            [
                {
                    "turns": [{"text": f"{sentence}."} for sentence in sentences],
                    "sentences": ["Nothing."],
                    **names,
                }
            ],
        )
    dev = [
        {"intent": f"intent {number}", "text": f"request {number} {k}", "part": "dev"}
        for number in range(17)
        for k in range(4)
    ]
    for name in ("banking77", "clinc150"):
        write_lines(folder, f"{name}/{name}.jsonl.gz", dev)
    write_lines(
        folder, wordnet.DEFINITIONS, [definition_row("green aisha", "another", "a meaning")]
    )
    write_lines(
        folder, wordnet.EXAMPLES, [example_row("a meaning", "green aisha was there", "green aisha")]
    )
    return folder


def test_the_command_writes_an_embedder_and_what_it_was_made_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, output = write_data(tmp_path / "data"), tmp_path / "out"
    arguments = (
        f"--data {folder} --out {output} --phrases 30 --contexts 6 --epochs 2 "
        "--hidden 16 --output 8"
    ).split()
    training.main(arguments)
    run = json.loads((output / "run.json").read_text())
    assert run["settings"]["hidden"] == 16
    assert [line["epoch"] for line in run["curve"]] == [0, 1, 2]
    assert 20 <= run["phrases"] <= 25
    embedder = Embedder.load(output / training.FILE)
    assert embedder.base == run["base"]
    assert embedder(np.ones((2, embedder.first.shape[0] // 2), dtype=np.float32)).shape == (2, 8)
    assert "epoch 2" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="at least 20 are needed: give fewer --contexts"):
        training.main([*arguments, "--contexts", "7"])


def test_nothing_that_is_measured_on_is_trained_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_data(tmp_path)
    measured = {("green", "aisha"), ("green", "bishb")}
    monkeypatch.setattr(measured_on, "phrases", lambda _: measured)
    requested_phrases: list[str] = []

    class EmptyStore:
        def __init__(self, *_: Any) -> None: ...

        def represent(self, names: list[str]) -> dict[str, None]:
            requested_phrases.extend(names)
            return dict.fromkeys(names)

    monkeypatch.setattr(training, "Store", EmptyStore)
    names, _ = training.sample_phrases(tiny_base(), folder, 30, 6)
    assert names == requested_phrases
    assert len(names) == 23
    assert not {tuple(split_words(name)) for name in names} & measured


def test_the_tenth_that_is_never_trained_on_is_that_of_the_encoders_training() -> None:
    made_up_words = [f"{a}{b}{c}ly" for a in "abcdefghij" for b in "aeiou" for c in "klmnopqrst"]
    assert [wordnet.is_untrained(word) for word in made_up_words] == [
        held_out(word) for word in made_up_words
    ]
    assert 20 < sum(map(wordnet.is_untrained, made_up_words)) < 80

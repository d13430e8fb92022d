"""McPhraSy: contexts of phrases, the similarity by hand, the variants, and each evaluation on rows
that are scored by hand.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.quality.systems import Scorer, TokenMeans
from hybrid_search.encoder import Encoder
from hybrid_search.text.types import Encoding, Floats
from papers.mcphrasy import (
    choice,
    clusters,
    corpora,
    groups,
    measured_on,
    pairs,
    phrases,
    ppdb,
    senses,
    synonyms,
    wordnet,
)
from papers.mcphrasy.contexts import LEAST_WORDS, MOST_WORDS, Context, ContextCache, search
from papers.mcphrasy.embedder import Embedder
from papers.mcphrasy.masks import Masks
from papers.mcphrasy.similarity import Cloud, average, differences, mcphrasy
from papers.mcphrasy.system import Base, Contextual, McPhraSy, Store, Variant
from tests.conftest import DATA
from tests.helpers.json_lines import write_rows
from tests.helpers.table_encoder import TableEncoder, Vector
from tests.helpers.tiny_encoder import TinyEncoder

Row = dict[str, Any]

# --- contexts ---


def masked_texts(contexts: Iterable[Context]) -> list[str]:
    return [context.mask_phrase("_") for context in contexts]


def test_a_context_is_a_sentence_with_a_mask_for_the_phrase() -> None:
    contexts = search(["hair dye", "dye", "die"], ["Thanks to this Hair Dye, I'm a brunette now!"])
    assert masked_texts(contexts["hair dye"]) == ["Thanks to this _, I'm a brunette now!"]
    assert masked_texts(contexts["dye"]) == ["Thanks to this Hair _, I'm a brunette now!"]
    assert contexts["die"] == []


def test_phrases_are_whole_words() -> None:
    sentences = [
        "My hair dyes are not here.",
        "A chair dye is not here.",
        "No hair-dye is here.",
        "Wet hair, dye and a brush.",
    ]
    # nor does a phrase go across a comma
    assert masked_texts(search(["hair dye"], sentences)["hair dye"]) == ["No _ is here."]
    assert sorted(masked_texts(search(["hair, dye"], sentences)["hair, dye"])) == [
        "No _ is here.",
        "Wet _ and a brush.",
    ]  # which has one itself


def test_every_place_of_a_sentence_is_a_context() -> None:
    assert sorted(masked_texts(search(["no"], ["No means no, he said."])["no"])) == [
        "No means _, he said.",
        "_ means no, he said.",
    ]


def test_a_sentence_that_says_nothing_of_the_phrase_and_one_that_is_none_are_passed_over() -> None:
    short, enough = (
        "the refund " + "a " * (LEAST_WORDS - 2),
        "the refund " + "a " * (LEAST_WORDS - 1),
    )
    fits, long = "b refund " * (MOST_WORDS // 2), "refund " + "b " * MOST_WORDS
    contexts = search(["refund", "..."], [short, enough, fits, long])
    assert {context.text for context in contexts["refund"]} == {enough, fits}
    assert contexts["..."] == []  # has no word


def test_what_is_said_again_counts_once() -> None:
    sentences = [
        "Is there a refund for me?",
        "is there a refund for me?",
        "Is there a Refund for me?",
    ]
    assert len(search(["refund"], sentences)["refund"]) == 1


def test_a_sample_depends_neither_on_the_order_nor_on_its_size() -> None:
    sentences = [f"A refund of {number} dollars is due." for number in range(100)]
    contexts, again = search(["refund"], sentences, 10), search(["refund"], sentences[::-1], 10)
    assert contexts == again
    assert len(contexts["refund"]) == 10
    numbers = sorted(int(context.text.split()[3]) for context in contexts["refund"])
    assert numbers[0] < 30  # spread over all of them
    assert numbers[-1] > 70
    assert search(["refund"], sentences, 4)["refund"] == contexts["refund"][:4]
    every = search(["refund"], sentences, 100)["refund"]
    assert len(every) == 100
    assert every[:10] == contexts["refund"]


def test_many_phrases_take_one_pass_and_known_ones_none() -> None:
    passes = 0

    def sentences() -> Iterator[str]:
        nonlocal passes
        passes += 1
        yield from ["The cab was late again.", "The taxi was late again."]

    library = ContextCache(sentences)
    assert {
        name: len(contexts)
        for name, contexts in library.find_contexts(["cab", "taxi", "bus", "cab"]).items()
    } == {"cab": 1, "taxi": 1, "bus": 0}
    assert list(library.find_contexts(["bus", "taxi"])) == ["bus", "taxi"]
    assert passes == 1
    library.find_contexts(["late"])
    assert passes == 2


def test_a_corpus_is_read_by_sentences_and_parts(tmp_path: Path) -> None:
    corpus = corpora.Corpus("made", "made.jsonl", lambda row: [row["text"]])
    rows = [
        {"text": "One. Two?", "part": "train"},
        {"text": "Three.", "part": "dev"},
        {"text": "Four."},
    ]
    write_rows(tmp_path / "made.jsonl", rows)
    assert list(corpora.read(tmp_path, corpora=[corpus])) == ["One.", "Two?", "Three.", "Four."]
    assert list(corpora.read(tmp_path, [corpora.TRAIN], [corpus])) == ["One.", "Two?", "Four."]
    with pytest.raises(SystemExit, match=r"calls\.jsonl\.gz: no such file"):
        list(corpora.read(tmp_path))


def test_frequent_phrases() -> None:
    sentences = [f"I lost my {word} credit card, number {word}!" for word in ("old", "new", "red")]
    sentences += [
        f"The health care provider {word} is the best." for word in ("there", "here", "nearby")
    ] * 2
    sentences += ["My card number is gone."] * 3
    frequent_phrases = phrases.find_frequent_phrases(lambda: iter(sentences), 10, 3)
    # "lost my" ends with a word of grammar, "card number" goes across a comma, what is repeated
    # counts once, and "health care" is in the longer one
    assert frequent_phrases == ["credit card", "health care provider"]
    assert phrases.find_frequent_phrases(lambda: iter(sentences), 1, 3) == ["credit card"]
    assert phrases.find_frequent_phrases(lambda: iter(sentences), 10, 3, [("credit", "card")]) == [
        "health care provider"
    ]
    assert phrases.find_frequent_phrases(lambda: iter(sentences), 10, 4) == []


# --- masks ---


class NeighbourEncoder:
    """An encoder whose token vectors are the sum of both neighbours, so a mask shows its context
    alone.
    """

    info = TableEncoder.info

    def __init__(self, table: Mapping[str, Vector]) -> None:
        self._words = TableEncoder(table)

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        return [
            Encoding(self._sum_neighbours(encoding.vectors), encoding.offsets)
            for encoding in self._words.encode(texts)
        ]

    def _sum_neighbours(self, vectors: Floats) -> Floats:
        padded = np.pad(vectors, ((1, 1), (0, 0)))
        sums: Floats = padded[:-2] + padded[2:]
        return sums


MASK = "MASKED"
CONTEXT_VECTORS: dict[str, Vector] = {
    "fast": (1, 0, 0),
    "late": (0.8, 0.6, 0),
    "hot": (0, 1, 0),
    "salty": (-0.6, 0.8, 0),
    "the": (0, 0, 0),
    "was": (0, 0, 0),
}


def test_a_mask_has_a_vector_in_each_context() -> None:
    contexts = [Context("The old cab fast was hot.", 4, 11), Context("Late cab salty was.", 5, 8)]
    vectors = Masks(NeighbourEncoder(CONTEXT_VECTORS), MASK).vectors(contexts)
    assert vectors == pytest.approx(np.array([[1, 0, 0], [0.8 - 0.6, 0.6 + 0.8, 0]]))
    assert Masks(NeighbourEncoder(CONTEXT_VECTORS), MASK).vectors([]).shape == (0, 3)


def test_a_mask_that_is_not_one_token_is_refused() -> None:
    with pytest.raises(
        SystemExit, match=r"spelled makes 1 tokens of '\[MASK\]', not one"
    ):  # a word without its brackets
        Masks(TableEncoder(CONTEXT_VECTORS)).vectors([Context("The cab was late.", 4, 7)])
    with pytest.raises(SystemExit, match="spelled makes 2 tokens of 'MASK ED'"):
        Masks(TableEncoder(CONTEXT_VECTORS), "MASK ED").vectors(
            [Context("The cab was late.", 4, 7)]
        )


def test_the_shipped_model_reads_masks(real_encoder: Encoder) -> None:
    contexts = [
        Context("Please give me a refund for it.", 17, 23),
        Context("The refund was late.", 4, 10),
        Context("The cab was late.", 4, 7),
    ]
    vectors = Masks(real_encoder).vectors(contexts)
    assert vectors.shape == (3, real_encoder.info.dimension)
    tolerance = 0.1 * float(np.abs(vectors[1]).max())
    # the same masked text; int8 sees its neighbours in a batch
    assert vectors[1] == pytest.approx(vectors[2], abs=tolerance)
    assert not np.allclose(vectors[0], vectors[1], atol=tolerance)


# --- the embedder ---


def make_embedder(output_size: int = 2) -> Embedder:
    """An embedder of two mask and two phrase numbers.

    It returns ``relu(x + y)`` and ``relu(x)`` of the parts' first and second.
    """
    first = np.array([[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 1, 1]], dtype=np.float32)
    return Embedder(
        "made",
        first,
        np.array([0, -1, 0], dtype=np.float32),
        np.eye(3, output_size, dtype=np.float32),
        np.zeros(output_size, dtype=np.float32),
    )


def test_two_layers_by_hand() -> None:
    masks, own = (
        np.array([[3.0, 4.0], [-1.0, 0.0]], dtype=np.float32),
        np.array([0.0, 2.0], dtype=np.float32),
    )
    # unit parts times the root of 2: (.6, .8) and (-1, 0), and (0, 1). Hidden: x1 + y1, x2 + y2 -
    # 1, y2; below 0 none is left
    root = math.sqrt(2)
    assert make_embedder()(masks) == pytest.approx(np.array([[0.6 * root, 0.8 * root - 1], [0, 0]]))
    assert make_embedder()(masks, own) == pytest.approx(
        np.array([[0.6 * root, 1.8 * root - 1], [0, root - 1]])
    )
    assert make_embedder(3)(masks, own)[:, 2] == pytest.approx(np.array([root, root]))


def test_an_embedder_is_kept_with_what_it_was_trained_on(tmp_path: Path) -> None:
    path = tmp_path / "embedder.npz"
    replace(make_embedder(), phrasebert="a/phrase-bert").save(path)
    masks = np.array([[3.0, 4.0]], dtype=np.float32)
    loaded = Embedder.load(path)
    assert (loaded(masks) == make_embedder()(masks)).all()
    assert (loaded.base, loaded.spanbert, loaded.phrasebert) == ("made", "", "a/phrase-bert")
    for wrong in (tmp_path / "missing.npz", Path(__file__)):
        with pytest.raises(SystemExit, match="is not an embedder"):
            Embedder.load(wrong)
    np.savez(tmp_path / "half.npz", base="made")
    with pytest.raises(SystemExit, match="is not an embedder"):
        Embedder.load(tmp_path / "half.npz")


# --- similarity ---


def make_cloud(*rows: tuple[float, ...]) -> Cloud:
    return Cloud.from_vectors(np.array(rows, dtype=np.float32))


A, B = make_cloud((1, 0), (8, 6)), make_cloud((0, 1), (-0.6, 0.8))
"""Distances: .2 inside either; across 1 and 1.6 from the first of A, .4 and 1 from the second."""


def test_differences_by_hand() -> None:
    assert A.closest == pytest.approx([0.2, 0.2])
    assert differences(A, B) == pytest.approx([1 - 0.2, 0.4 - 0.2, 0.4 - 0.2, 1 - 0.2])


def test_the_similarity_by_hand() -> None:
    # the distribution function is 0 up to .2, a half up to .8, then 1: its integral over [0, 1] is
    # .6 / 2 + .2
    assert mcphrasy(A, B) == pytest.approx(0.5)
    assert mcphrasy(A, B, -2, 2) == pytest.approx(0.6 / 2 + 1.2)
    assert mcphrasy(A, B, -2, 2) == pytest.approx(2 - differences(A, B).mean())
    assert mcphrasy(A, B, 0, 0.6) == pytest.approx(0.4 / 2)
    # means (.9, .3) and (-.3, .9) are at a right angle
    assert average(A, B) == pytest.approx(0, abs=1e-6)


def make_random_clouds(count: int) -> list[Cloud]:
    random = np.random.default_rng(4)
    return [
        Cloud.from_vectors(random.standard_normal((size, 5)).astype(np.float32))
        for size in random.integers(1, 9, count)
    ]


def test_the_integral_is_that_of_the_empirical_distribution_function() -> None:
    for a, b in combinations(make_random_clouds(8), 2):
        deltas = np.sort(differences(a, b), axis=None)
        for low, high in ((0.0, 1.0), (-2.0, 2.0)):
            grid = np.linspace(low, high, 20_001)
            share_below = np.searchsorted(deltas, grid) / deltas.size
            by_sums = float(share_below.mean() * (high - low))
            assert mcphrasy(a, b, low, high) == pytest.approx(by_sums, abs=2e-4)


def test_single_contexts_have_their_cosine() -> None:
    assert mcphrasy(make_cloud((3, 4)), make_cloud((1, 0))) == pytest.approx(0.6)
    assert mcphrasy(make_cloud((3, 4)), make_cloud((-1, 0))) == 0  # the integral begins at 0
    # the single one has no distance of its own: .4 and .4 less nothing; those of A are at 0 and .2,
    # less .2
    assert differences(make_cloud((1, 0)), A) == pytest.approx([0, -0.2, 0])


def test_zero_vectors_are_like_nothing() -> None:
    nothing = make_cloud((0, 0), (0, 0))
    assert average(nothing, A) == 0
    assert math.isfinite(mcphrasy(nothing, A))


# --- the variants ---

SENTENCES = [
    "The fast cab late was fine.",
    "So fast cab hot it was.",
    "The fast taxi late was fine.",
    "So fast taxi hot it was.",
    "The salty soup hot was fine.",
    "So hot soup salty it was.",
]
PHRASE_VECTORS: dict[str, Vector] = {
    "cab": (1, 0, 0),
    "taxi": (0, 1, 0),
    "soup": (0.6, 0.8, 0),
    "bus": (0.6, 0.8, 0),
}


def make_store(
    sentences: Sequence[str] = SENTENCES, names: Mapping[str, Vector] = PHRASE_VECTORS
) -> Store:
    models = Base(
        Masks(NeighbourEncoder(CONTEXT_VECTORS), MASK), TokenMeans(TableEncoder(names)), "made"
    )
    return Store(models, ContextCache(lambda: iter(sentences)))


def wide_embedder() -> Embedder:
    """Three numbers and three, added up, with both signs."""
    signed_identity = np.concatenate([np.eye(3), -np.eye(3)], axis=1).astype(np.float32)
    layers = (
        np.concatenate([signed_identity, signed_identity]),
        np.zeros(6, np.float32),
        signed_identity.T.copy(),
        np.zeros(3, np.float32),
    )
    return Embedder("made", *layers)


VARIANTS = {
    "mask only": Variant(),
    "mask only average": Variant(average),
    "+emb": Variant(embedder=wide_embedder()),
    "+emb average": Variant(average, wide_embedder()),
    "McPhraSy": Variant(embedder=wide_embedder(), own=True),
    "McPhraSy average": Variant(average, wide_embedder(), own=True),
}


def test_phrases_in_the_same_contexts_are_alike() -> None:
    system = McPhraSy(make_store(), Variant())
    assert isinstance(system, Scorer)
    assert isinstance(system, Contextual)
    # masks of cab and taxi: (1.8, .6, 0) and (1, 1, 0) for both, whose differences are 0 less what
    # is between the two: below 0, all
    assert system.scores(["cab", "cab"], ["taxi", "soup"]) == pytest.approx(
        [1, 1 - soup_distance()], abs=2e-3
    )


def soup_distance() -> float:
    """Masks of soup: (-.6, 1.8, 0), twice the same direction, so that each is 0 from the other."""
    cab = [(1.8, 0.6), (1.0, 1.0)]
    soup_norm = math.hypot(0.6, 1.8)
    to_soup = [1 - (-0.6 * x + 1.8 * y) / soup_norm / math.hypot(x, y) for x, y in cab]
    between = 1 - (1.8 + 0.6) / math.hypot(1.8, 0.6) / math.sqrt(2)
    deltas = [to_soup[0] - between, to_soup[1] - between, min(to_soup), min(to_soup)]
    return sum(min(max(delta, 0), 1) for delta in deltas) / 4


def test_what_each_variant_sees() -> None:
    """+emb sees contexts alone, the full variant the phrases as well.

    Of two phrases with the same contexts only the full variant tells the names apart.
    """
    same_names = {**PHRASE_VECTORS, "taxi": PHRASE_VECTORS["cab"]}
    for name, variant in VARIANTS.items():
        different, alike = (
            float(McPhraSy(make_store(names=names), variant).scores(["cab"], ["taxi"])[0])
            for names in (PHRASE_VECTORS, same_names)
        )
        assert alike == pytest.approx(1, abs=1e-3), name
        if variant.own:
            assert different < alike - 0.01, name
        else:
            assert different == pytest.approx(alike), name


def test_averages_by_hand() -> None:
    # means of unit masks, cab's (1.8, .6) and (1, 1), and soup's direction (-.6, 1.8)
    x, y = (
        1.8 / math.hypot(1.8, 0.6) + 1 / math.sqrt(2),
        0.6 / math.hypot(1.8, 0.6) + 1 / math.sqrt(2),
    )
    by_hand = (-0.6 * x + 1.8 * y) / math.hypot(0.6, 1.8) / math.hypot(x, y)
    assert McPhraSy(make_store(), Variant(average)).scores(["cab"], ["soup"]) == pytest.approx(
        [by_hand], abs=1e-3
    )
    assert McPhraSy(make_store(), Variant(average, wide_embedder())).scores(
        ["cab"], ["soup"]
    ) == pytest.approx([by_hand], abs=1e-3)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_phrase_that_is_held_nowhere_is_compared_by_itself(name: str) -> None:
    system = McPhraSy(make_store(), VARIANTS[name])
    assert system.scores(["bus", "cab", "bus"], ["cab", "bus", "soup"]) == pytest.approx(
        [0.6, 0.6, 1.0]
    )
    assert system.coverage(["bus", "cab", "soup", "bus"]) == {
        "phrases": 3,
        "held nowhere": 1,
        "contexts a phrase": 2.0,
    }


def test_contexts_that_are_given_are_the_only_ones() -> None:
    system = McPhraSy(make_store(), Variant())
    fast, salty = Context("A fast cab late.", 7, 10), Context("A salty cab hot.", 8, 11)
    # one mask each: (1.8, .6) and (-.6, 1.8) are at a right angle
    assert system.compare_contexts(
        [("cab", [fast]), ("cab", [fast])], [("cab", [fast]), ("cab", [salty])]
    ) == pytest.approx([1, 0], abs=1e-3)
    # against both: 0 from the first of them, which is 1 from its other; and that is as far from the
    # single one as from the first
    assert system.compare_contexts([("cab", [fast])], [("cab", [fast, salty])]) == pytest.approx(
        [1], abs=1e-3
    )


# --- pairs, Turney, PPDB ---

ENCODER = TableEncoder(
    {"big": (1, 0, 0), "large": (0.8, 0.6, 0), "odd": (0.6, 0.8, 0), "wrong": (0, 1, 0)}
)
PLAIN = TokenMeans(ENCODER)


class LengthScorer:
    """A scorer without vectors: the nearer two lengths, the more alike."""

    def scores(self, queries: Sequence[str], texts: Sequence[str]) -> Floats:
        return np.array(
            [-abs(len(a) - len(b)) for a, b in zip(queries, texts, strict=True)], dtype=np.float32
        )


TURNEY = [
    "big big | large | big | big | odd | wrong | none | none",  # .8 against .6, 0, 0, 0: right
    "big big | odd | big | big | wrong | none | other | none",  # .6: right
    # (1.6, .8): (1.28 + .48) / 1.79 = .98: right
    "big odd | large | big | odd | wrong | none | none | none",
    "wrong big | odd | wrong | big | none | none | none | none",  # (1, 1): 1.4 against 0: right
    "big big | wrong | big | big | odd | none | none | none",  # 0 against .6
    "big big | odd | big | big | large | none | none | none",  # .6 against .8
    "big big | none | big | big | wrong | other | some | any",  # five are 0: a fifth
    "big big | large | big | big | large | none | none | none",  # two are .8: a half
    "wrong wrong | big | wrong | wrong | odd | none | none | none",  # 0 against .8
    "odd odd | odd | odd | odd | big | large | none | none",  # 1 against .6 and .96: right
]


def write_turney(folder: Path, lines: Sequence[str]) -> Path:
    (folder / "turney").mkdir(exist_ok=True)
    (folder / choice.FILE).write_text("\n".join(lines) + "\n")
    return folder


def test_ten_choices_by_hand(tmp_path: Path) -> None:
    assert choice.measure(PLAIN, write_turney(tmp_path, TURNEY)) == {
        "questions": 10,
        "accuracy": round((5 + 0.2 + 0.5) / 10, 4),
    }
    question = choice.read(tmp_path / choice.FILE)[0]
    # its own words are no choices
    assert question == choice.Question("big big", ("large", "odd", "wrong", "none", "none"))


def test_choices_that_are_not_there_or_not_of_their_form(tmp_path: Path) -> None:
    message = r"turney/data\.txt: no such file: put there https://\S+turney/data\.txt"
    with pytest.raises(SystemExit, match=message):
        choice.measure(PLAIN, tmp_path)
    with pytest.raises(SystemExit, match=r"data\.txt, line 2: 3 fields between \|, not 8"):
        choice.measure(PLAIN, write_turney(tmp_path, [TURNEY[0], "big | large | odd"]))


PPDB = [["none", "big", "pos"]] * 14 + [
    ["big", "large", "pos"],  # dev, .8
    ["big", "odd", "neg"],  # dev, .6: the threshold is between the two
    ["big", "wrong", "neg"],  # dev, 0
    ["large", "odd", "pos"],  # test, .96: right
    ["odd", "big", "pos"],  # test, .6: missed
    ["odd", "wrong", "neg"],  # test, .8: taken for one
]


def write_paraphrases(folder: Path, rows: Sequence[Any]) -> Path:
    (folder / "ppdb_filtered").mkdir(exist_ok=True)
    (folder / ppdb.FILE).write_text(json.dumps(list(rows)))
    return folder


def test_paraphrases_by_hand(tmp_path: Path) -> None:
    measured = ppdb.measure(PLAIN, write_paraphrases(tmp_path, PPDB))
    # under the curve: .96 is above .8, .6 is not
    assert measured == {
        "dev": 3,
        "test": 3,
        "threshold": 0.7,
        "accuracy": round(1 / 3, 4),
        "auc": 0.5,
    }


def test_paraphrases_that_are_not_there_or_not_of_their_form(tmp_path: Path) -> None:
    message = r"examples\.json: no such file: put there https://\S+ppdb_exact/examples\.json"
    with pytest.raises(SystemExit, match=message):
        ppdb.measure(PLAIN, tmp_path)
    for wrong in (["big", "large", "yes"], ["big", "large"], 3):
        with pytest.raises(SystemExit, match=r"row 2: .* is not \[phrase, phrase, pos \| neg\]"):
            ppdb.measure(PLAIN, write_paraphrases(tmp_path, [PPDB[0], wrong]))


def test_the_threshold_is_the_best_of_all() -> None:
    random = np.random.default_rng(5)
    for _ in range(30):
        scores, labels = random.integers(0, 6, 9).astype(np.float32), random.integers(0, 2, 9)
        right = {at: int(((scores > at) == labels).sum()) for at in np.arange(-0.5, 7)}
        assert ((scores > ppdb.threshold(scores, labels)) == labels).sum() == max(right.values())
    assert ppdb.threshold(np.array([0.2, 0.4], dtype=np.float32), [0, 1]) == pytest.approx(0.3)


# --- clusters ---

GROUP = groups.Group("roads", ("big", "large", "odd", "wrong"), ("a", "a", "b", "b"))
"""Cosines with the one before: .8, .96, .8."""


def test_complete_linkage_by_hand() -> None:
    # large and odd are joined first; big is 1 - .6 from the farther of them, wrong 1 - .6 from
    # large: then all but one, here the first pair
    scores = pairs.similarities(PLAIN, *zip(*combinations(GROUP.phrases, 2), strict=True))
    assert scores == pytest.approx([0.8, 0.6, 0, 0.96, 0.6, 0.8])
    three = clusters.cluster_phrases(scores, 4, 3)
    assert (three[1] == three[2], len(set(three.tolist()))) == (True, 3)
    assert len(set(clusters.cluster_phrases(scores, 4, 4).tolist())) == 4


def test_clusters_that_are_right_and_one_that_is_not() -> None:
    gold = groups.Group("lengths", ("a", "b", "cc", "dd", "eeeeee"), ("1", "1", "2", "2", "3"))
    measured = clusters.score(LengthScorer(), [gold])
    assert measured["groups"] == 1
    assert measured["k"]["gold"] == {"V": 1, "ARI": 1, "AMI": 1}
    wrong = groups.Group("lengths", gold.phrases, ("1", "2", "1", "2", "3"))
    # found {a b} {cc dd} {eeeeee}: no pair of gold is found. Of 10 pairs 2 are in either: the
    # adjusted index is (0 - 2 * 2 / 10) / (2 - .4)
    assert clusters.score(LengthScorer(), [wrong])["k"]["gold"]["ARI"] == pytest.approx(
        -0.4 / 1.6, abs=1e-4
    )
    # half of the entropy is shared, by the phrase that stands alone
    entropy = -2 * 0.4 * math.log(0.4) - 0.2 * math.log(0.2)
    by_hand = (entropy - 0.8 * math.log(2)) / entropy
    assert clusters.score(LengthScorer(), [wrong])["k"]["gold"]["V"] == pytest.approx(
        by_hand, abs=1e-4
    )
    mean_v = clusters.score(LengthScorer(), [gold, wrong])["k"]["gold"]["V"]
    assert mean_v == pytest.approx((1 + by_hand) / 2, abs=1e-4)
    # five phrases cannot be cut into ten: each is its own, and every pair is lost
    assert measured["k"]["10"]["ARI"] == 0


def test_groups_are_read(tmp_path: Path) -> None:
    hot = {"group": 7, "phrases": ["hot tea", "hot coffee", "hot sauce"], "clusters": [0, 0, 1]}
    path = write_rows(tmp_path / "groups.jsonl", [hot])
    assert groups.read(path) == [
        groups.Group("7", ("hot tea", "hot coffee", "hot sauce"), ("0", "0", "1"))
    ]
    write_rows(path, [{"group": 7, "phrases": ["hot tea", "hot coffee"], "clusters": [0]}])
    with pytest.raises(SystemExit, match="group 7: 2 phrases and 1 clusters"):
        groups.read(path)
    with pytest.raises(SystemExit, match=r"groups\.jsonl: no such file: the paper says"):
        clusters.measure(PLAIN, tmp_path / "elsewhere", ["reviews"])


def test_groups_are_made_of_a_seed_alone() -> None:
    meanings = {
        f"meaning {number}": [f"{number}{letter}" for letter in "abcd"[: 1 + number % 4]]
        for number in range(40)
    }
    sampled_groups = groups.draw_groups(meanings, groups.SIZES, 3)
    assert sampled_groups == groups.draw_groups(dict(reversed(meanings.items())), groups.SIZES, 3)
    for group in sampled_groups:
        assert len(group.phrases) == len(set(group.phrases)) == 25
        assert sorted(map(group.clusters.count, set(group.clusters)), reverse=True) == list(
            groups.SIZES
        )
        assert all(
            phrase in meanings[name]
            for phrase, name in zip(group.phrases, group.clusters, strict=True)
        )
    assert sampled_groups[0] != sampled_groups[1]
    with pytest.raises(SystemExit, match="2 clusters are too few for a group of 17"):
        groups.draw_groups({"a": ["x", "y"], "b": ["z"]}, groups.SIZES, 1)


def test_an_expression_is_in_one_meaning_only() -> None:
    synonym_pairs = [
        wordnet.Synonyms("cut", "chop", "sever"),
        wordnet.Synonyms("cut", "reduce", "make less"),
        wordnet.Synonyms("Chop", "axe", "sever"),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(groups, "PAIRED", (3, 1))
        group = groups.group_synonyms(synonym_pairs, 1)[0]
    assert dict(zip(group.phrases, group.clusters, strict=True)) == {
        "cut": "sever",
        "chop": "sever",
        "axe": "sever",
        "reduce": "make less",
    }


# --- WordNet ---

WORDS = [
    f"{a}{b}{c}y"
    for a, b, c in product(
        ("bra", "dre", "fio", "glu", "kna", "mel"), "bcdfghklmnprstw", "bcdfghklmnprstw"
    )
]
HELD_OUT_WORDS = [word for word in WORDS if wordnet.is_untrained(word)]
"""Made-up words of the tenth that is never trained on."""

TRAINED_WORDS = [word for word in WORDS if not wordnet.is_untrained(word)]


def definition_row(first: str, second: str, meaning: str) -> Row:
    return {"query": first, "positive": f"{second}: {meaning}", "negative": "another"}


def example_row(meaning: str, sentence: str, word: str) -> Row:
    start = sentence.index(word)
    return {
        "query": meaning,
        "positive": sentence,
        "negative": "another",
        "span": [start, start + len(word)],
        "same_word": True,
    }


def write_lines(folder: Path, file: str, rows: Iterable[Row]) -> Path:
    write_rows(folder / file, rows)
    return folder


def test_synonyms_that_are_not_trained_on(tmp_path: Path) -> None:
    rows = [
        definition_row(HELD_OUT_WORDS[0], TRAINED_WORDS[0], "kept"),
        definition_row(HELD_OUT_WORDS[0], TRAINED_WORDS[0], "kept"),
        definition_row(TRAINED_WORDS[1], TRAINED_WORDS[2], "trained on"),
        definition_row(HELD_OUT_WORDS[1], TRAINED_WORDS[3], "taught by the next"),
        definition_row(TRAINED_WORDS[3], HELD_OUT_WORDS[1], "taught by the next"),
        definition_row(
            HELD_OUT_WORDS[2], f"{HELD_OUT_WORDS[2]} of {TRAINED_WORDS[4]}", "a word in common"
        ),
        {"query": HELD_OUT_WORDS[3], "positive": "a definition alone", "negative": "another"},
        definition_row(
            HELD_OUT_WORDS[4], HELD_OUT_WORDS[5], "kept, and the other way round as well"
        ),
        definition_row(
            HELD_OUT_WORDS[5], HELD_OUT_WORDS[4], "kept, and the other way round as well"
        ),
    ]
    synonym_pairs = wordnet.synonyms(write_lines(tmp_path, wordnet.DEFINITIONS, rows))
    assert [(pair.first, pair.second) for pair in synonym_pairs] == [
        (HELD_OUT_WORDS[0], TRAINED_WORDS[0]),
        (HELD_OUT_WORDS[4], HELD_OUT_WORDS[5]),
        (HELD_OUT_WORDS[5], HELD_OUT_WORDS[4]),
    ]
    with pytest.raises(SystemExit, match=r"wordnet_definitions\.jsonl\.gz: no such file"):
        wordnet.synonyms(tmp_path / "elsewhere")


def test_senses_that_are_not_trained_on(tmp_path: Path) -> None:
    word = HELD_OUT_WORDS[0]
    rows = [
        example_row("first", f"a {word} road", word),
        example_row(
            f"{TRAINED_WORDS[0]}: first", f"{word}s were there", f"{word}s"
        ),  # a synonym and the definition; another form
        example_row("second", f"a {word} tree", word),
        example_row("only one sense", f"a {HELD_OUT_WORDS[1]} tree", HELD_OUT_WORDS[1]),
        example_row("only one sentence each", f"a {HELD_OUT_WORDS[2]} tree", HELD_OUT_WORDS[2]),
        example_row("of either sense", f"an old {HELD_OUT_WORDS[2]} tree", HELD_OUT_WORDS[2]),
        example_row("trained on", f"a {TRAINED_WORDS[1]} tree", TRAINED_WORDS[1]),
        example_row("trained on", f"the {TRAINED_WORDS[1]} tree", TRAINED_WORDS[1]),
        example_row("trained on, too", f"a {TRAINED_WORDS[1]} bush", TRAINED_WORDS[1]),
        {"query": "no span", "positive": "text", "negative": "text"},
    ]
    sense_groups = list(wordnet.senses(write_lines(tmp_path, wordnet.EXAMPLES, rows)))
    assert [[(sense.definition, sense.words) for sense in senses] for senses in sense_groups] == [
        [("first", (word, f"{word}s")), ("second", (word,))]
    ]
    assert [
        context.text[context.start : context.end] for context in sense_groups[0][0].contexts
    ] == [word, f"{word}s"]


def test_questions_are_made_of_what_the_corpora_hold() -> None:
    pairs = [
        wordnet.Synonyms(first, second, "")
        for first, second in zip(HELD_OUT_WORDS[:8], TRAINED_WORDS[:8], strict=True)
    ]
    sentences = [
        f"{word} is said {number} times here"
        for pair in pairs[:7]
        for word in (pair.first, pair.second)
        for number in range(3)
    ]
    covered_pairs = synonyms.filter_frequent(pairs, sentences, 3)
    assert covered_pairs == pairs[:7]
    assert (
        synonyms.filter_frequent(
            [*pairs, wordnet.Synonyms("A", "adenine", "")],
            [*sentences, *["A adenine is said"] * 3],
            1,
        )
        == pairs[:7]
    )
    questions = synonyms.build_questions(covered_pairs)
    assert [entry.phrase for entry in questions] == HELD_OUT_WORDS[:7]
    for number, question in enumerate(questions):
        assert question.choices[0] == TRAINED_WORDS[number]
        assert len(set(question.choices)) == 5
        assert not {wordnet.stems(wrong).pop() for wrong in question.choices[1:]} & wordnet.stems(
            question.phrase
        )
    assert questions == synonyms.build_questions(covered_pairs)
    assert synonyms.build_questions(covered_pairs[:4]) == []  # too few to choose from


def test_another_synonym_is_no_wrong_choice() -> None:
    pairs = [
        wordnet.Synonyms(first, second, "")
        for first, second in zip(HELD_OUT_WORDS[:6], TRAINED_WORDS[:6], strict=True)
    ]
    twice = [*pairs, wordnet.Synonyms(HELD_OUT_WORDS[0], TRAINED_WORDS[1], "")]
    for question in synonyms.build_questions(twice):
        if question.phrase == HELD_OUT_WORDS[0]:
            assert TRAINED_WORDS[1] not in question.choices


USE_VECTORS: dict[str, Vector] = {
    "bank": (1, 0, 0),
    "banks": (1, 0, 0),
    "river": (0, 1, 0),
    "money": (0, 0, 1),
    "a": (0, 0, 0),
    "of": (0, 0, 0),
}


def bank_senses() -> list[wordnet.Sense]:
    """A word with two senses: three sentences, of which two are of the river's."""
    river = ("river bank of a", "of a river bank")
    contexts = tuple(
        Context(text, text.index("bank"), text.index("bank") + 4)
        for text in (*river, "money bank of money")
    )
    return [
        wordnet.Sense("bank", "slope", ("bank", "bank"), contexts[:2]),
        wordnet.Sense("bank", "house", ("bank",), contexts[2:]),
    ]


def test_uses_of_a_word_are_compared_with_each_of_its_senses() -> None:
    cases = senses.build_cases([bank_senses()])
    assert [
        (case.use, case.context.text, [context.text for context in case.other_contexts], case.same)
        for case in cases
    ] == [
        (0, "river bank of a", ["of a river bank"], 1),
        (0, "river bank of a", ["money bank of money"], 0),
        (1, "of a river bank", ["river bank of a"], 1),
        (1, "of a river bank", ["money bank of money"], 0),
    ]


def test_senses_by_hand() -> None:
    measured = senses.score(
        TokenMeans(TableEncoder(USE_VECTORS)), senses.build_cases([bank_senses()])
    )
    assert {name: measured[name] for name in ("uses", "cases", "chance")} == {
        "uses": 2,
        "cases": 4,
        "chance": 0.5,
    }
    # the word is the same; a sentence is (1, 1, 0) or (1, 0, 2): 1 against 1 / sqrt 10; in its
    # sentence the word is what it is elsewhere
    assert measured["setups"]["word alone"] == {"auc": 0.5, "chosen": 0.5}
    assert measured["setups"]["sentence"] == {"auc": 1.0, "chosen": 1.0}
    assert measured["setups"]["word in its sentence"] == {"auc": 0.5, "chosen": 0.5}


def test_senses_by_contexts_and_by_scores_alone() -> None:
    models = Base(
        Masks(NeighbourEncoder({**USE_VECTORS, "bank": (0, 0, 0)}), MASK),
        TokenMeans(TableEncoder(USE_VECTORS)),
        "made",
    )
    system = McPhraSy(Store(models, ContextCache(lambda: iter(()))), Variant())
    # what stands beside the mask: the river, again the river, the money
    assert senses.score(system, senses.build_cases([bank_senses()]))["setups"] == {
        "contexts": {"auc": 1.0, "chosen": 1.0}
    }
    assert list(senses.score(LengthScorer(), senses.build_cases([bank_senses()]))["setups"]) == [
        "word alone",
        "sentence",
    ]


# --- all of it ---


def write_data(folder: Path) -> Path:
    """Write every file that the evaluations read, of made-up words.

    Words of one meaning are used alike, and so are requests of one intent.
    """
    pairs = list(zip(HELD_OUT_WORDS[::2], HELD_OUT_WORDS[1::2], strict=False))[:40]
    templates = ["the {} was {} late today", "we saw {} and {} again", "no {} of the {} is left"]
    sentences = [
        sentence.format(word, TRAINED_WORDS[number]) + f" {k}"
        for number, pair in enumerate(pairs)
        for word in pair
        for sentence in templates
        for k in range(4)
    ]
    sentences += [
        f"my {TRAINED_WORDS[number]} card number {k} was lost"
        for number in range(30)
        for k in range(12)
    ]
    for corpus in corpora.CORPORA:
        text = {
            "turns": [{"text": "Nothing."}],
            "text": "Nothing.",
            "complex": "Nothing.",
            "sentences": ["Nothing."],
            "passage": "Nothing.",
            "answer": ".",
        }
        write_lines(folder, corpus.file, [text])
    write_lines(
        folder,
        "calls_sgd/calls.jsonl.gz",
        [{"turns": [{"text": f"{sentence}."} for sentence in sentences]}],
    )
    write_lines(
        folder,
        wordnet.DEFINITIONS,
        [definition_row(*pair, f"meaning {number}") for number, pair in enumerate(pairs)],
    )
    uses = [
        (HELD_OUT_WORDS[0], "first", "a {} road"),
        (HELD_OUT_WORDS[0], "first", "one {} road"),
        (HELD_OUT_WORDS[0], "second", "a {} tree"),
    ]
    write_lines(
        folder,
        wordnet.EXAMPLES,
        [example_row(meaning, sentence.format(word), word) for word, meaning, sentence in uses],
    )
    for name in ("banking77", "clinc150"):
        dev_rows = [
            {
                "intent": TRAINED_WORDS[number],
                "text": f"{TRAINED_WORDS[number]} {k} please",
                "part": "dev",
            }
            for number in range(20)
            for k in range(4)
        ]
        write_lines(
            folder,
            f"{name}/{name}.jsonl.gz",
            [*dev_rows, {"intent": "other", "text": "A train row.", "part": "train"}],
        )
    return folder


def tiny_base() -> Base:
    encoder = TinyEncoder()
    return Base(Masks(encoder, MASK), TokenMeans(encoder), "tiny")


def test_contexts_are_measured_on_all_that_is_here_as_phrases_are(tmp_path: Path) -> None:
    folder = write_data(tmp_path)
    models = tiny_base()
    contexts = McPhraSy(Store(models, ContextCache(partial(corpora.read, folder))), Variant())
    measures = {
        "synonyms": synonyms.measure,
        "clusters": clusters.measure,
        "senses": senses.measure,
    }
    phrase_results, context_results = (
        {name: measure(system, folder) for name, measure in measures.items()}
        for system in (models.phrases, contexts)
    )
    assert context_results["clusters"]["banking77"]["held nowhere"] > 0
    assert context_results["synonyms"]["held nowhere"] == 0
    assert phrase_results["synonyms"]["questions"] == 40
    # requests are held nowhere, and so are compared by themselves
    assert (
        context_results["clusters"]["banking77"]["k"]
        == phrase_results["clusters"]["banking77"]["k"]
    )
    assert json.loads(json.dumps([phrase_results, context_results])) == [
        phrase_results,
        context_results,
    ]


def test_nothing_that_is_measured_on_may_be_trained_on(tmp_path: Path) -> None:
    folder = write_paraphrases(write_turney(write_data(tmp_path), TURNEY), PPDB)
    write_lines(folder, groups.PUBLISHED, [{"group": 1, "phrases": ["Hot Tea"], "clusters": [0]}])
    measured_phrases = measured_on.phrases(folder)
    assert {
        (HELD_OUT_WORDS[0],),
        (HELD_OUT_WORDS[1],),
        ("hot", "tea"),
        ("big", "big"),
        ("large",),
        (TRAINED_WORDS[0], "0", "please"),
    } <= measured_phrases
    assert ("a", "train", "row") not in measured_phrases


@pytest.mark.data
def test_the_data_beside_the_checkout_give_questions_uses_and_groups() -> None:
    pairs = wordnet.synonyms(DATA)
    covered_pairs = synonyms.filter_frequent(
        pairs,
        corpora.read(
            DATA, corpora=[corpus for corpus in corpora.CORPORA if corpus.name == "medquad"]
        ),
    )
    assert len(synonyms.build_questions(covered_pairs)) > 50
    assert all(not wordnet.stems(pair.first) & wordnet.stems(pair.second) for pair in pairs)
    assert len({case.use for case in senses.build_cases(list(wordnet.senses(DATA)))}) > 400
    assert all(
        len(group.phrases) == 25
        for name in ("banking77", "clinc150")
        for group in clusters.SOURCES[name](DATA)
    )

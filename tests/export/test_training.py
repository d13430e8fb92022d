"""Training: losses against written-out numbers, the texts of a step, and small runs.

The runs learn, are interrupted and go on.
"""

from __future__ import annotations

import gzip
import json
import math
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.helpers.tiny_bert import save_weights

# torch's exporter warns of its own future
pytestmark = [pytest.mark.export, pytest.mark.filterwarnings("ignore")]

torch = pytest.importorskip("torch", reason="the extra [export] is not installed: make test-export")
transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")
sentence_transformers = pytest.importorskip("sentence_transformers")

from export import to_onnx, train  # noqa: E402 (after torch)
from export.restore import restore  # noqa: E402
from export.training import compose, corpora, data, loop, losses, recipe, texts  # noqa: E402
from export.training.batch import Batcher, _allowed_mask  # noqa: E402
from export.training.encoder import TorchEncoder  # noqa: E402
from export.training.model import SpanEncoder, read  # noqa: E402
from export.training.objective import goals_of, losses_of  # noqa: E402
from export.training.pool import Pool  # noqa: E402
from export.training.recipe import TeacherMixture  # noqa: E402
from export.training.teacher import FrozenEncoder, principal  # noqa: E402
from hybrid_search.encoder.onnx import OnnxEncoder  # noqa: E402
from hybrid_search.search import span_search  # noqa: E402
from hybrid_search.text.spans import MAX_WORDS  # noqa: E402
from hybrid_search.text.types import Floats  # noqa: E402

Table = dict[str, Any]


def assert_near(found: Any, expected: Any, tolerance: float = 1e-5) -> None:
    torch.testing.assert_close(found, expected, atol=tolerance, rtol=0)


def parse_stage(table: Table) -> recipe.Stage:
    """Return a stage as a recipe of it alone has it."""
    return recipe.parse({"name": "x", "stages": [table]}).stages[0]


# --- losses ---


def test_the_papers_loss_is_what_it_is_by_hand() -> None:
    true, false = torch.tensor([0.6, 0.0]), torch.tensor([0.2, 0.4])
    # cosines on [0, 1]: .8 against .6, .5 against .7; times 30 the differences are 6 and -6; -s_t +
    # log(e^s_t + e^s_f) = log(1 + e^(s_f - s_t))
    by_hand = (math.log(1 + math.exp(-6)) + math.log(1 + math.exp(6))) / 2
    assert losses.slice_loss(true, false, 30.0).item() == pytest.approx(by_hand, rel=1e-5)
    assert by_hand == pytest.approx(3.00248, abs=1e-5)


def test_in_a_batch_every_passage_that_is_allowed_is_a_negative() -> None:
    scores = torch.tensor([[0.6, 0.2, -0.2], [0.0, 0.4, 0.4]])
    right, every = torch.tensor([0, 1]), torch.ones(2, 3, dtype=torch.bool)
    # on [0, 1] and times 30 a difference of cosines counts 15-fold: row 0 is 6 and 12 above the
    # others, row 1 6 above the first, level with the last
    rows = math.log(1 + math.exp(-6) + math.exp(-12)), math.log(1 + math.exp(-6) + 1)
    assert losses.in_batch(scores, right, every).item() == pytest.approx(sum(rows) / 2, rel=1e-5)
    without = every.clone()
    without[1, 2] = False
    without[0, 0] = False  # its own passage counts whatever the mask says
    rows = math.log(1 + math.exp(-6) + math.exp(-12)), math.log(1 + math.exp(-6))
    assert losses.in_batch(scores, right, without).item() == pytest.approx(sum(rows) / 2, rel=1e-5)


def test_distillation_and_relations_by_hand() -> None:
    student, teacher = (
        torch.tensor([[3.0, 4.0], [0.0, 2.0]]),
        torch.tensor([[1.0, 0.0], [0.0, 1.0]]),
    )
    # cosines 0.6 and 1
    assert losses.distillation(student, teacher).item() == pytest.approx((0.4 + 0.0) / 2)
    relations = torch.tensor([[0.5], [0.5]])  # the student's are 0.6 and 0
    relational_loss = losses.relational(student, torch.tensor([[7.0, 0.0]]), relations)
    assert relational_loss.item() == pytest.approx((0.1**2 + 0.5**2) / 2)


# --- the best span ---


def test_of_equal_spans_the_first_is_the_best_and_without_a_token_there_is_none() -> None:
    tokens = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]])
    query, every = torch.tensor([[1.0, 1.0]]), torch.ones(1, 3, dtype=torch.bool)
    cosine, bounds = losses.best_span(query, tokens, every, 1)
    assert (bounds.tolist(), cosine.item()) == ([[[0, 1]]], pytest.approx(math.sqrt(0.5)))
    cosine, bounds = losses.best_span(query, tokens, torch.zeros(1, 3, dtype=torch.bool), 3)
    assert (bounds.tolist(), cosine.item()) == ([[[0, 0]]], 0.0)


def test_the_best_span_is_that_of_trying_all() -> None:
    torch.manual_seed(3)
    query, tokens = torch.randn(3, 6), torch.randn(4, 9, 6)
    mask = torch.rand(4, 9) > 0.2
    cosine, bounds = losses.best_span(query, tokens, mask, 5)
    spans_of_five = [(i, j) for i in range(9) for j in range(i + 1, min(i + 5, 9) + 1)]
    for q in range(3):
        for b in range(4):
            spans = [(i, j) for i, j in spans_of_five if mask[b, i:j].all()]
            cosines_by_span = {
                span: torch.cosine_similarity(
                    query[q], tokens[b, span[0] : span[1]].mean(0), dim=0
                ).item()
                for span in spans
            }
            assert tuple(bounds[q, b].tolist()) == max(
                cosines_by_span, key=lambda span: cosines_by_span[span]
            )
            assert cosine[q, b].item() == pytest.approx(max(cosines_by_span.values()), abs=1e-5)


def test_the_gradient_is_the_numerical_one_and_flows_through_the_best_span_alone() -> None:
    torch.manual_seed(5)
    query, tokens = (
        torch.randn(2, 4, dtype=torch.float64, requires_grad=True),
        torch.randn(4, 6, 4, dtype=torch.float64, requires_grad=True),
    )
    mask = torch.ones(4, 6, dtype=torch.bool)
    mask[1, 4:] = False

    def loss(query: Any, tokens: Any) -> Any:
        cosine, _ = losses.best_span(query, tokens, mask, 3)
        own = torch.arange(2)
        return losses.slice_loss(cosine[own, own], cosine[own, own + 2]) + losses.in_batch(
            cosine, own, torch.ones(2, 4, dtype=torch.bool)
        )

    assert torch.autograd.gradcheck(loss, (query, tokens))
    cosine, bounds = losses.best_span(query[:1], tokens[:1], mask[:1], 3)
    cosine.sum().backward()
    start, end = bounds[0, 0].tolist()
    touched = tokens.grad[0].abs().sum(-1) > 0
    assert touched.tolist() == [start <= i < end for i in range(6)]


# --- a tiny encoder and tiny triples ---

WORDS = [
    f"{a}{b}"
    for a in ("ba", "de", "fi", "go", "lu", "ma", "ne", "po")
    for b in ("ras", "nel", "tik", "vom", "xar", "dun", "sel", "mip")
]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A BERT of two layers of 32 dimensions with random weights and a vocabulary of 64 words and
    some marks.
    """
    folder = tmp_path_factory.mktemp("tiny")
    vocabulary = {
        word: i
        for i, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", ".", ",", "?", ":", *WORDS])
    }
    unknown = "[UNK]"
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token=unknown))
    tokenizer.normalizer = tokenizers.normalizers.Lowercase()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    edges = [(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=edges
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    save_weights(folder, len(vocabulary))
    yield folder


def make_random(seed: int) -> Random:
    return Random(seed)  # noqa: S311 (no secret)


def sentence(random: Random, count: int) -> str:
    return " ".join(random.sample(WORDS, count)).capitalize() + "."


def triples() -> list[Table]:
    """Eight: the query is a run of words of its positive."""
    random = make_random(1)
    rows = []
    for _ in range(8):
        head, tail, negative = (sentence(random, 9) for _ in range(3))
        words = head[:-1].lower().split()[2:5]
        start = head.lower().index(words[0])
        rows.append(
            {
                "query": " ".join(words),
                "positive": f"{head} {tail}",
                "negative": negative,
                "span": [start, start + len(" ".join(words))],
            }
        )
    return rows


@pytest.fixture(scope="module")
def triples_path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("triples") / "made.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(json.dumps(row) for row in triples()).encode()))
    yield path


def run(
    base: Path,
    triple_file: Path,
    output_folder: Path,
    table: Table,
    score: Callable[[Any], dict[str, float]] | None = None,
    teacher: Path | None = None,
) -> Any:
    """A run of the recipe `table`, as `export.train` prepares it."""
    output_folder.mkdir(parents=True, exist_ok=True)
    (output_folder / "asked.toml").write_text(toml(table))
    asked = output_folder / "asked.toml"
    argument_list = ["--base", str(base), "--triples", str(triple_file), "--recipe", str(asked)]
    argument_list += ["--out", str(output_folder)]
    argument_list += ["--teacher", str(teacher)] if teacher else []
    options = train.arguments([*argument_list, "--device", "cpu", "--threads", "1"])
    return replace(train.prepare(options), score=score)


MakeRun = Callable[..., Any]


@pytest.fixture
def make_run(tiny: Path, triples_path: Path, tmp_path: Path) -> MakeRun:
    """A run of a recipe on the tiny encoder and triples, in the folder ``out`` or another."""

    def make(table: Table, *score: Any, name: str = "out", **more: Any) -> Any:
        return run(tiny, triples_path, tmp_path / name, table, *score, **more)

    return make


def toml(table: Table) -> str:
    """`table` as TOML, which reads JSON's values."""
    lines = [_format_line(key, value) for key, value in table.items() if key != "stages"]
    for stage_table in table["stages"]:
        lines += ["[[stages]]", *(_format_line(key, value) for key, value in stage_table.items())]
    return "\n".join(lines)


def _format_line(key: str, value: Any) -> str:
    """A key and its value; a text that begins like a table is one already."""
    is_table = isinstance(value, str) and value.startswith("{")
    return f"{key} = {value if is_table else json.dumps(value)}"


def stage(steps: int, weights: str, **more: Any) -> Table:
    return {"steps": steps, "warmup": 2, "passages": 0, "shorts": 0, "weights": weights, **more}


DISTIL = stage(
    6,
    "{ distil = 1.0, relational = 1.0, contrast = 0.5, within = 0.1 }",
    passages=2,
    shorts=2,
    triples=3,
    spans=3,
    eval_every=2,
    average=0.5,
)


def weights_of(folder: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return dict(load_file(folder / "model.safetensors"))


# --- what is read ---


def test_texts_read_together_have_the_vectors_of_texts_read_alone(tiny: Path) -> None:
    model, cutter = SpanEncoder.load(tiny), texts.Cutter(tiny)
    cut = cutter.tokenize([sentence(make_random(i), n) for i, n in enumerate((3, 20, 1, 7, 7, 12))])
    together = read(model, cutter, cut, budget=64)
    padded, mask = together.pad_texts([1, 2])
    for i, text in enumerate(cut):
        alone = read(model, cutter, [text], budget=64)
        assert alone.flat.shape == (len(text.ids), 32)  # special tokens are left out
        start = together.starts[i]
        assert_near(together.flat[start : start + len(text.ids)], alone.flat)
        assert_near(together.text_means([i])[0], alone.flat.mean(0))
    assert_near(together.means([(1, 4, 6)])[0], padded[0, 4:6].mean(0))
    assert mask.sum(1).tolist() == [len(cut[1].ids), len(cut[2].ids)]
    assert not padded[1, len(cut[2].ids) :].any()


def test_the_teacher_gives_what_the_base_model_says_of_a_text_by_itself(tiny: Path) -> None:
    cutter = texts.Cutter(tiny)
    teacher = FrozenEncoder(SpanEncoder.load(tiny), cutter, budget=64)
    plain = transformers.AutoModel.from_pretrained(tiny).eval()
    sentences = [sentence(make_random(i), n) for i, n in enumerate((3, 11, 1, 3))]
    tokenizer = tokenizers.Tokenizer.from_file(str(tiny / "tokenizer.json"))

    def encode_alone(text: str) -> Any:
        hidden = plain(input_ids=torch.tensor([tokenizer.encode(text).ids])).last_hidden_state[0]
        return hidden.mean(0) / hidden.mean(0).norm()  # special tokens too, as the base was trained

    with torch.no_grad():
        assert_near(
            teacher.alone([*sentences, sentences[0]]),
            torch.stack([encode_alone(text) for text in [*sentences, sentences[0]]]),
        )
    long = cutter.tokenize([sentences[1]])[0]
    start, end = (int(edge) for edge in (long.words[4, 0], long.words[5, 1]))
    window_vector = teacher.window([(long, start, end)], 2)[0]
    with torch.no_grad():
        window = tokenizer.encode(long.text[int(long.words[2, 0]) : int(long.words[7, 1])])
        hidden = plain(input_ids=torch.tensor([window.ids])).last_hidden_state[0]
    goal = hidden[3:5].mean(0)  # behind [CLS] two words of context, then the span's two
    assert_near(window_vector, goal / goal.norm())
    mixed_vector = teacher.mix_teachers(
        [(long, start, end)], TeacherMixture(alone=3.0, window=1.0, words=2)
    )[0]
    mixed = 3 * teacher.alone([long.text[start:end]])[0] + window_vector
    assert_near(mixed_vector, mixed / mixed.norm())


def make_corpus(rows: list[Table]) -> data.Corpus:
    return data.Corpus("made", "0", [make_triple(row) for row in rows], 0)


def make_triple(row: Table) -> data.Triple:
    span = tuple(row["span"]) if "span" in row else None
    return data.Triple(row["query"], row["positive"], row["negative"], span)


def test_spans_are_whole_words_of_the_text_and_a_woven_clause_is_one(tiny: Path) -> None:
    composer = compose.Composer(
        data.Sampler([make_corpus(triples())], {}, 1.0),
        recipe.Mixture(natural=0.25, shuffled=0.25, woven=0.25, single=0.25),
    )
    cutter, random, units = texts.Cutter(tiny, 60), make_random(4), 0
    for _ in range(60):
        passage = composer.passage(random)
        text = cutter.tokenize([passage.text])[0]
        spans = compose.spans(text, passage.unit, 6, 0.0, 0.4, random)
        edges = text.words.tolist()
        assert len(spans) == len(set(spans))
        for start, end in spans:
            assert start in {a for a, _ in edges}
            assert end in {b for _, b in edges}
            assert len([1 for a, b in edges if a >= start and b <= end]) <= MAX_WORDS
        if passage.unit and passage.unit[1] <= edges[-1][1]:
            assert passage.unit in spans
            units += 1
    assert units > 5


def test_an_echo_is_words_of_a_clause_in_their_order() -> None:
    composer, random = (
        compose.Composer(data.Sampler([make_corpus(triples())], {}, 1.0), recipe.Mixture()),
        make_random(5),
    )
    passage = compose.Composed(
        "First comes a long clause of words, then another clause of seven words. No?"
    )
    clauses = (
        ["First", "comes", "a", "long", "clause", "of", "words"],
        ["then", "another", "clause", "of", "seven", "words"],
    )
    lengths = set()
    for _ in range(40):
        echo = composer.echo(passage, random).split()
        clause_iterators = [iter(clause) for clause in clauses]
        assert echo
        # an iterator: in order, none twice
        assert any(all(word in words for word in echo) for words in clause_iterators)
        lengths.add(len(echo))
    assert len(lengths) > 3
    assert composer.echo(compose.Composed("Hello"), random) == "Hello"


def test_spans_are_distilled_without_short_texts_and_equal_words_are_read_once(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cutter = texts.Cutter(tiny, 60)
    teacher = FrozenEncoder(SpanEncoder.load(tiny), cutter, 1024)
    batch_sizes: list[int] = []
    alone = teacher.alone

    def count_and_encode(inputs: list[str]) -> Any:
        batch_sizes.append(len(inputs))
        return alone(inputs)

    monkeypatch.setattr(teacher, "alone", count_and_encode)
    for weights, more in (("distil", {"shorts": 0}), ("score", {"echoes": 2, "triples": 3})):
        table = {**DISTIL, "triples": 0, **more, "weights": {"distil": 1.0, weights: 1.0}}
        parsed_stage = parse_stage(table)
        batch = Batcher([make_corpus(triples())], parsed_stage, cutter, "1/0").batch(0)
        goals = goals_of(batch, teacher, parsed_stage)
        assert goals is not None
        expected = alone(
            [batch.texts[number].text[start:end] for number, start, end in batch.spans]
        )
        assert_near(goals.spans, expected)
        assert len(goals.shorts) == len(batch.shorts)
    # all of a batch in one pass, in which a clause that is both distilled and scored is read once
    assert len(batch_sizes) == 2


def test_scores_without_anything_to_score_are_refused() -> None:
    with pytest.raises(SystemExit, match="no echoes and no triples"):
        recipe.parse({"name": "x", "stages": [{**DISTIL, "triples": 0, "weights": {"score": 1.0}}]})


def test_pairs_are_scored_by_the_best_clause(tiny: Path) -> None:
    stage = parse_stage(
        {**DISTIL, "triples": 4, "echoes": 2, "sharpen": 1.5, "weights": {"score": 1.0}}
    )
    cutter = texts.Cutter(tiny, 60)
    student, teacher = SpanEncoder.load(tiny), FrozenEncoder(SpanEncoder.load(tiny), cutter, 1024)
    batch = Batcher([make_corpus(triples())], stage, cutter, "1/0").batch(0)
    assert {
        (query, batch.positives[(i + step) % 4])
        for i, query in enumerate(batch.queries)
        for step in (0, 1, 2)
    } <= {*batch.pairs}
    assert {*zip(batch.queries, batch.negatives, strict=True)} <= {*batch.pairs}
    # queries with four passages each, echoes with both that there are
    assert len(batch.pairs) == 4 * 4 + 2 * 2
    goals = goals_of(batch, teacher, stage)
    assert goals is not None
    assert goals.scores is not None
    expected = torch.empty(len(batch.pairs))
    for row, (short, passage) in enumerate(batch.pairs):
        clauses = [
            batch.texts[passage].text[start:end]
            for number, start, end in batch.units
            if number == passage
        ]
        expected[row] = (teacher.alone([batch.texts[short].text]) @ teacher.alone(clauses).T).max()
    assert_near(goals.scores, expected)
    batch_vectors = read(student, cutter, batch.texts, 1024)
    loss_values = losses_of(batch, goals, batch_vectors, stage, [student.hidden])
    best = [
        _best(batch_vectors.text_means([short])[0], _tokens(batch_vectors, passage), stage.longest)
        for short, passage in batch.pairs
    ]
    sharp = [math.copysign(abs(score) ** 1.5, score) for score in expected.tolist()]
    assert loss_values.keys() == {"score"}
    assert loss_values["score"].item() == pytest.approx(
        1 - np.corrcoef(best, sharp)[0, 1], abs=1e-5
    )


def test_turns_that_were_written_to_mislead_are_not_scored_by_the_teacher(tiny: Path) -> None:
    stage = parse_stage({**DISTIL, "triples": 40, "echoes": 2, "weights": {"score": 1.0}})
    plain, *others = make_corpus(triples()).triples
    written = [replace(triple, span=(0, 3), core=(0, 3)) for triple in others]
    corpus = data.Corpus("made", "0", [plain, *written], 0)
    batch = Batcher([corpus], stage, texts.Cutter(tiny, 60), "1/0").batch(0)
    scored = {batch.texts[short].text for short, _ in batch.pairs if short in batch.queries}
    assert {triple.query for triple in corpus.triples} > scored == {plain.query}


def test_texts_of_the_pool_are_drawn_towards_the_larger_teacher(tiny: Path) -> None:
    random = make_random(4)
    sentences = [sentence(random, 4) for _ in range(12)]
    vectors = torch.nn.functional.normalize(torch.randn(12, 48), dim=-1).half()
    pool = Pool(sentences, vectors, vectors[:, :32], torch.eye(vectors.shape[1])[:32], "x")
    weights = {"transfer": 1.0, "similarity": 1.0}
    plan = {"steps": 1, "passages": 0, "shorts": 0, "texts": 5, "weights": weights}
    stage = recipe.parse({"name": "x", "pool": {"texts": 12}, "stages": [plan]}).stages[0]
    cutter, student = texts.Cutter(tiny, 60), SpanEncoder.load(tiny)
    batch = Batcher([make_corpus(triples())], stage, cutter, "1/0", pool).batch(0)
    assert [batch.texts[number].text for number in batch.pooled] == [
        sentences[row] for row in batch.rows
    ]
    encoded = read(student, cutter, batch.texts, 1024)
    loss_values = losses_of(batch, None, encoded, stage, [8, 32], pool)
    student_vectors = encoded.text_means(batch.pooled)
    goals, teacher = pool.goals[batch.rows].float(), pool.vectors[batch.rows].float()
    for name in ("transfer", "similarity"):
        expected = []
        for size in (8, 32):
            part = torch.nn.functional.normalize(student_vectors[:, :size], dim=-1)
            goal = torch.nn.functional.normalize(goals[:, :size], dim=-1)
            distance = 1 - (part * goal).sum(1)
            difference = part @ part.T - teacher @ teacher.T
            expected.append((distance if name == "transfer" else difference**2).mean())
        assert loss_values[name].item() == pytest.approx(torch.stack(expected).mean().item(), 1e-4)
    assert loss_values.keys() == {"transfer", "similarity"}


def test_a_pool_without_a_teacher_and_readers_without_a_pool_are_refused(make_run: MakeRun) -> None:
    table = {"head": "aligned", "pool": "{ texts = 20 }", "stages": [DISTIL]}
    with pytest.raises(SystemExit, match="name its folder with --teacher"):
        make_run(table)
    plan = {"steps": 1, "texts": 5, "weights": {"transfer": 1.0}}
    with pytest.raises(SystemExit, match="the pool is empty"):
        recipe.parse({"name": "x", "stages": [plan]})
    with pytest.raises(SystemExit, match="texts is 0, and a loss needs at least 2"):
        recipe.parse({"name": "x", "pool": {"texts": 9}, "stages": [{**plan, "texts": 0}]})


@pytest.mark.parametrize(("has_head", "fast"), [(False, False), (True, False), (True, True)])
def test_a_run_learns_from_a_larger_teacher_and_then_from_itself(
    make_run: MakeRun,
    tiny: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    has_head: bool,
    fast: bool,
) -> None:
    """The second stage's teacher is what the first one ended with, less special tokens.

    A teacher with a head was trained here, so it leaves them out, too. Where AMX or a GPU is, it
    computes in bfloat16.
    """
    monkeypatch.setattr(train, "_is_fast", lambda _: fast)
    larger = tmp_path / "larger"
    save_weights(larger, 8 + len(WORDS), hidden_size=48, num_hidden_layers=1)
    (larger / "tokenizer.json").write_bytes((tiny / "tokenizer.json").read_bytes())
    if has_head:
        head = torch.linalg.qr(torch.randn(48, 48, generator=torch.manual_seed(1)))[0]
        SpanEncoder(SpanEncoder.load(larger).body, head).save(larger, larger)
    transfer = stage(
        40, "{ transfer = 1.0, similarity = 1.0 }", texts=8, lr=3e-3, distil_from="larger"
    )
    table = {
        "head": "aligned",
        "pool": "{ texts = 60 }",
        "stages": [
            transfer,
            stage(2, "{ distil = 1.0 }", distil_from="previous") | {"passages": 2},
        ],
    }
    teachers: list[Any] = []
    prepared = make_run(table, teacher=larger)
    goals = torch.nn.functional.normalize(prepared.pool.goals.float(), dim=-1)
    read_by_larger = prepared.larger.alone(prepared.pool.texts)  # lies where the goals do
    assert_near(read_by_larger, goals, 1e-2)
    original = loop.Run.make_teacher

    def note_teacher(*arguments: Any) -> Any:
        teachers.append(original(*arguments))
        return teachers[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop.Run, "make_teacher", note_teacher)
        state = loop.train(prepared)
    distances = [line["losses"]["transfer"] for line in state.curve if "transfer" in line["losses"]]
    assert distances[-1] < 0.7 * distances[0]
    tokenized = prepared.cutter.tokenize(prepared.pool.texts[:20])
    model = SpanEncoder.load(tmp_path / "out" / "stages" / "1")
    means = read(model, prepared.cutter, tokenized, 1024).text_means(range(20)).detach()
    assert_near(
        teachers[0].alone(prepared.pool.texts[:20]),
        torch.nn.functional.normalize(means, dim=-1),
        1e-2,
    )


def _best(query: Any, tokens: Any, longest: int) -> float:
    count = len(tokens)
    ends = (
        (first, last)
        for first in range(count)
        for last in range(first + 1, min(first + longest, count) + 1)
    )
    return max(_cosine(query, tokens[first:last].sum(0)) for first, last in ends)


def _tokens(batch_vectors: Any, text: int) -> Any:
    return batch_vectors.flat[
        batch_vectors.starts[text] : batch_vectors.starts[text] + batch_vectors.counts[text]
    ]


def _cosine(a: Any, b: Any) -> float:
    return float(torch.nn.functional.cosine_similarity(a, b, dim=0))


def test_a_passage_is_cut_around_its_span_and_a_negative_to_what_is_like_the_query() -> None:
    words = [f"w{i}" for i in range(200)]
    text = " ".join(words)
    start = text.index("w150 ")
    cut = data.positive(data.Triple("q", text, "n", (start, start + 9)))
    assert cut.span is not None
    assert cut.text[slice(*cut.span)] == "w150 w151"
    assert len(cut.text.split()) == data.WINDOW_WORDS
    parts = [f"S{i} " + "filler " * 30 + "end." for i in range(9)]
    parts[6] = "Here the refund was asked for, in the end."
    assert "refund" in data.negative(data.Triple("a refund", "p", " ".join(parts))).text


def test_passages_that_may_be_right_are_no_negatives() -> None:
    rows = [
        data.Triple("q", "p1", "n1", intent="a"),
        data.Triple("r", "p2", "n2", intent="a"),
        data.Triple("q", "p3", "n3"),
        data.Triple("s", "p1", "p2"),
    ]
    # row 0: of the same intent, the same query, the same passage; row 1: the last one's negative is
    # its own passage
    masks = ("10001111", "01111110", "01111111", "01111111")
    assert _allowed_mask(rows).tolist() == [[bit == "1" for bit in mask] for mask in masks]


def test_one_stem_in_ten_is_kept_out_with_its_inflections(tmp_path: Path) -> None:
    held_out_word = next(word for word in WORDS if corpora.held_out(word))
    training_word = next(word for word in WORDS if not corpora.held_out(word))
    assert corpora.held_out(f"{held_out_word.upper()}s") == corpora.held_out(held_out_word)
    path = tmp_path / "wordnet_definitions.jsonl"
    path.write_text(
        "".join(
            json.dumps({"query": word, "positive": "p", "negative": "n"}) + "\n"
            for word in (held_out_word, training_word)
        )
    )
    (read,) = corpora.read([path])
    assert ([triple.query for triple in read.triples], read.held_out) == ([training_word], 1)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", '{"query": "q", "positive": "p"}', "a.jsonl, line 1: not a triple"),
        ("a.jsonl", "nonsense", "line 1: no JSON"),
        ("a.jsonl", "[1]", "line 1: not an object"),
        ("a.jsonl", "", "contains no triples"),
    ],
)
def test_a_bad_file_of_triples_is_named_with_its_line(
    tmp_path: Path, name: str, content: str, message: str
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(SystemExit, match=message):
        corpora.read([tmp_path / name])


# --- recipes ---


def test_every_recipe_of_the_project_is_one() -> None:
    for path in sorted(recipe.RECIPES.glob("*.toml")):
        parsed_recipe = recipe.read(path)
        assert parsed_recipe.name == path.stem
        assert parsed_recipe.about
    paper = recipe.read(recipe.find(Path("paper"))).stages[0]
    assert (paper.triples, paper.scale, paper.longest, paper.weights) == (
        32,
        30.0,
        10,
        recipe.Weights(slice=1.0),
    )


STEP: Table = {"steps": 1, "weights": {"distil": 1.0}}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, "no \\[\\[stages\\]\\]"),
        ({"speed": 1, "stages": [STEP]}, "unknown key speed; known are name"),
        (
            {"stages": [{**STEP, "weights": {"distill": 1.0}}]},
            "stage 1, weights: unknown key distill",
        ),
        ({"stages": [{**STEP, "steps": "ten"}]}, "stage 1: steps is 'ten': it must be int"),
        ({"stages": [{**STEP, "weights": {}}]}, "no loss has a weight"),
        ({"stages": [{**STEP, "weights": {"contrast": 1.0}}]}, "triples is 0"),
        ({"stages": [{"weights": {"distil": 1.0}}]}, "stage 1: .*steps"),
        ({"head": "big", "stages": [STEP]}, "head is 'big': one of none"),
        ({"stages": [{**STEP, "decay": "square"}]}, "decay is 'square'"),
        ({"stages": [{**STEP, "blend": 0.0}]}, "blend is 0.0"),
        (
            {"soup": {"b": 1.0}, "stages": [{**STEP, "name": "a"}]},
            "soup names 'b', the name of 0 stages: .* a$",
        ),
        ({"soup": {"a": 0.9}, "stages": [{**STEP, "name": "a"}]}, "shares of soup sum to 0.9"),
        (
            {"soup": {"a": "1"}, "stages": [{**STEP, "name": "a"}]},
            "soup, a is '1': it must be float",
        ),
    ],
)
def test_what_is_wrong_with_a_recipe_is_said(table: Table, message: str) -> None:
    with pytest.raises(SystemExit, match=message):
        recipe.parse({"name": "x"} | table)


def test_the_defaults_count_where_a_stage_does_not_say_otherwise() -> None:
    stages = [{"steps": 1}, {"steps": 2, "lr": 1e-3, "weights": {"relational": 2.0}}]
    parsed_recipe = recipe.parse(
        {"name": "x", "defaults": {"lr": 1e-4, "weights": {"distil": 1.0}}, "stages": stages}
    )
    assert [parsed_stage.lr for parsed_stage in parsed_recipe.stages] == [1e-4, 1e-3]
    assert parsed_recipe.stages[1].weights == recipe.Weights(distil=1.0, relational=2.0)


def test_a_file_that_the_recipe_weighs_must_be_there(make_run: MakeRun) -> None:
    training_run = make_run(
        {"stages": [stage(1, "{ slice = 1.0 }", triples=2) | {"data": "{ other = 1.0 }"}]}
    )
    with pytest.raises(SystemExit, match="weights for other, but no --triples"):
        loop.train(training_run)


# --- runs ---


def best_cosines(folder: Path) -> tuple[list[float], list[float]]:
    """The cosines of each triple's query with the best spans of its positive and negative."""
    encoder = TorchEncoder(SpanEncoder.load(folder), texts.Cutter(folder))
    scored = [
        [span_search.best_spans(encoder, row["query"], row[side])[0].cosine for row in triples()]
        for side in ("positive", "negative")
    ]
    return scored[0], scored[1]


def test_a_tiny_model_overfits_eight_triples_by_the_papers_loss(
    make_run: MakeRun, tmp_path: Path
) -> None:
    table = {"stages": [stage(60, "{ slice = 1.0 }", triples=8, lr=3e-3, decay="none")]}
    state = loop.train(make_run(table))
    loss_curve = [line["losses"]["slice"] for line in state.curve if "losses" in line]
    assert loss_curve[-1] < 0.01 < loss_curve[0]
    true, false = best_cosines(tmp_path / "out")
    assert min(a - b for a, b in zip(true, false, strict=True)) > 0.2


def constant_score(_: Any) -> dict[str, float]:
    """A dev score that never gets better."""
    return {"chosen": 0.5}


def test_an_interrupted_run_leaves_usable_weights_and_ends_with_those_of_a_whole_run(
    make_run: MakeRun, tiny: Path, tmp_path: Path
) -> None:
    table = {
        "head": "principal",
        "dimensions": [8],
        "checkpoint_every": 2,
        "stages": [{**DISTIL, "keep": "last", "blend": 0.5}],
    }
    loop.train(make_run(table, constant_score, name="whole"))
    score_calls = 0

    def interrupt_third_score(_: Any) -> dict[str, float]:
        nonlocal score_calls
        score_calls += 1
        if score_calls == 3:  # before the first step, at step 2, at step 4
            signal.raise_signal(signal.SIGTERM)
        return {"chosen": 0.5}

    with pytest.raises(SystemExit, match="interrupted at step 4"):
        loop.train(make_run(table, interrupt_third_score, name="parts"))
    assert SpanEncoder.load(tmp_path / "parts").head is not None
    state = loop.train(make_run(table, constant_score, name="parts"))
    assert state.sittings == 2
    uninterrupted, parts = weights_of(tmp_path / "whole"), weights_of(tmp_path / "parts")
    assert all(torch.equal(uninterrupted[name], parts[name]) for name in uninterrupted)
    assert not torch.equal(
        uninterrupted[(name := "encoder.layer.1.output.dense.weight")], weights_of(tiny)[name]
    )
    steps = [
        [
            (line["step"], sorted(line))
            for line in map(json.loads, (tmp_path / name / "curve.jsonl").open())
        ]
        for name in ("whole", "parts")
    ]
    assert steps[0] == steps[1]


def test_a_folder_that_holds_another_run_is_refused(make_run: MakeRun) -> None:
    table = {"stages": [stage(1, "{ slice = 1.0 }", triples=2)]}
    first = make_run(table)
    loop.train(first)
    second = make_run({**table, "seed": 2})
    message = f"its digest is {first.digest}, this run's {second.digest}"
    with pytest.raises(SystemExit, match=message):
        loop.train(second)


def test_the_best_weights_are_kept_and_patience_ends_a_stage(
    make_run: MakeRun, tmp_path: Path
) -> None:
    scores = iter([0.1, 0.9, 0.5, 0.4, 0.3, 0.2])
    table = {"stages": [stage(10, "{ slice = 1.0 }", triples=2, eval_every=1, patience=2)]}
    state = loop.train(make_run(table, lambda _: {"chosen": next(scores)}))
    evaluations = [(line["step"], line["kept"]) for line in state.curve if "dev" in line]
    assert evaluations == [(0, True), (1, True), (2, False), (3, False)]
    impatient_table = {
        "stages": [stage(10, "{ slice = 1.0 }", triples=2, eval_every=1, patience=1)]
    }
    impatient_scores = iter([0.1, 0.9, 0.0])
    loop.train(make_run(impatient_table, lambda _: {"chosen": next(impatient_scores)}, name="one"))
    best, same = weights_of(tmp_path / "out"), weights_of(tmp_path / "one")
    assert all(torch.equal(best[name], same[name]) for name in best)  # those of step 1


def test_blended_weights_lie_between_where_the_stage_began_and_where_it_went(
    make_run: MakeRun, tmp_path: Path
) -> None:
    stages = [stage(2, "{ slice = 1.0 }", triples=4, average=0.5, keep="last") for _ in range(2)]
    loop.train(make_run({"stages": stages[:1]}, name="first"))
    loop.train(make_run({"stages": stages}, name="own"))
    loop.train(make_run({"stages": [stages[0], {**stages[1], "blend": 0.25}]}, name="blended"))
    start_weights, own, blended = (
        weights_of(tmp_path / name) for name in ("first", "own", "blended")
    )
    assert any(not torch.equal(start_weights[name], own[name]) for name in own)
    for name, value in blended.items():
        torch.testing.assert_close(
            value,
            start_weights[name] + 0.25 * (own[name] - start_weights[name]),
            rtol=1e-5,
            atol=1e-7,
        )


def test_a_soup_may_have_a_share_of_the_weights_that_the_run_began_with(
    make_run: MakeRun, tmp_path: Path
) -> None:
    recipe = {
        "stages": [stage(2, "{ slice = 1.0 }", triples=4, name="a")],
        "head": "principal",
        "soup": "{ a = 0.25, start = 0.75 }",
    }
    loop.train(make_run(recipe, constant_score, name="soup"))
    first, last = (weights_of(tmp_path / "soup" / "stages" / number) for number in "01")
    assert any(not torch.equal(first[name], last[name]) for name in last)
    for name, value in weights_of(tmp_path / "soup").items():
        torch.testing.assert_close(
            value, 0.75 * first[name] + 0.25 * last[name], rtol=1e-5, atol=1e-7
        )


def test_a_soup_is_the_weighted_mean_of_stages_and_other_shares_need_no_training(
    make_run: MakeRun, tmp_path: Path
) -> None:
    stages = [stage(2, "{ slice = 1.0 }", triples=4, name=name) for name in ("a", "b", "c")]
    for folder_name, shares in (("soup", "{ a = 0.25, c = 0.75 }"), ("alone", "{ a = 1.0 }")):
        loop.train(
            make_run(
                {"stages": stages, "head": "principal", "soup": shares},
                constant_score,
                name=folder_name,
            )
        )
    first, last = (weights_of(tmp_path / "soup" / "stages" / number) for number in "13")
    assert any(not torch.equal(first[name], last[name]) for name in last)
    for name, value in weights_of(tmp_path / "soup").items():
        torch.testing.assert_close(
            value, 0.25 * first[name] + 0.75 * last[name], rtol=1e-5, atol=1e-7
        )
    alone = weights_of(tmp_path / "alone")
    assert all(torch.equal(alone[name], value) for name, value in first.items())
    before = (tmp_path / "soup" / "checkpoint.pt").read_bytes()
    again = loop.train(
        make_run(
            {"stages": stages, "head": "principal", "soup": "{ a = 1.0 }"},
            constant_score,
            name="soup",
        )
    )
    assert (tmp_path / "soup" / "checkpoint.pt").read_bytes() == before
    assert all(
        torch.equal(alone[name], value) for name, value in weights_of(tmp_path / "soup").items()
    )
    # the soup's own scores, after three stages
    assert [line["stage"] for line in again.curve if "dev" in line][-1] == 4


def test_only_the_top_layers_are_trained_where_the_recipe_says_so(
    make_run: MakeRun, tiny: Path, tmp_path: Path
) -> None:
    loop.train(make_run({"stages": [stage(2, "{ slice = 1.0 }", triples=2, layers=1)]}))
    before, after = weights_of(tiny), weights_of(tmp_path / "out")
    changed = {
        name.split(".")[2] if "layer." in name else name
        for name in before
        if not torch.equal(before[name], after[name])
    }
    assert changed == {"1"}


def test_the_learning_rate_rises_and_falls() -> None:
    linear_stage = replace(recipe.Stage(steps=12, lr=1.0, warmup=2, floor=0.0), decay="linear")
    assert [round(linear_stage.rate_at(step), 2) for step in (0, 1, 2, 7, 12)] == [
        0.5,
        1.0,
        1.0,
        0.5,
        0.0,
    ]
    # half of the way from 1 to .2
    assert replace(linear_stage, decay="cosine", floor=0.2).rate_at(7) == pytest.approx(0.6)
    assert replace(linear_stage, decay="none").rate_at(11) == 1.0


# --- the head, and what comes out ---


def test_the_first_directions_hold_the_most_and_cosines_stay(tiny: Path) -> None:
    teacher = FrozenEncoder(SpanEncoder.load(tiny), texts.Cutter(tiny), budget=64)
    sentences = [sentence(make_random(i), 4) for i in range(80)]
    head, vectors = principal(teacher, sentences), teacher.alone(sentences)
    assert_near(head @ head.T, torch.eye(32))
    rotated = vectors @ head.T
    assert_near(rotated @ rotated.T, vectors @ vectors.T)
    energy = (rotated**2).sum(0)
    assert (energy[:-1] >= energy[1:] - 1e-4).all()


def write_dev_table(data_folder: Path) -> None:
    """The triples as rows of dev.tsv, with scores from 0 to 7."""
    (data_folder / "stsb-context").mkdir(parents=True)
    rows = [
        (row["query"], row["positive"], row["positive"][slice(*row["span"])], *row["span"], score)
        for row, score in zip(triples(), range(8), strict=True)
    ]
    table = [
        "query\tcontext\ttarget\tstart\tend\tscore",
        *("\t".join(map(str, row)) for row in rows),
    ]
    (data_folder / "stsb-context" / "dev.tsv").write_text("\n".join(table))


def by_sentence_transformers(folder: Path, sentences: list[str]) -> Floats:
    """The first 8 numbers of the sentences' vectors, as sentence-transformers makes them."""
    model = sentence_transformers.SentenceTransformer(str(folder), device="cpu", truncate_dim=8)
    vectors: Floats = model.encode(sentences)
    return vectors


def test_the_command_goes_from_nothing_to_a_checked_model_folder(
    tiny: Path, triples_path: Path, tmp_path: Path
) -> None:
    (tmp_path / "asked.toml").write_text(
        toml({"head": "principal", "dimensions": [8], "stages": [DISTIL]})
    )
    write_dev_table(tmp_path / "data")
    output_folder = tmp_path / "out"
    folders = ["--base", str(tiny), "--triples", str(triples_path), "--out", str(output_folder)]
    asked = ["--recipe", str(tmp_path / "asked.toml"), "--dev", str(tmp_path / "data")]
    train.main([*folders, *asked, "--device", "cpu", "--threads", "1", "--dimension", "8"])
    weights = {"config.json", "model.safetensors", "head.safetensors", "tokenizer.json"}
    record = {"recipe.toml", "run.json", "curve.jsonl", "curve.svg"}
    assert weights | record <= {path.name for path in output_folder.iterdir()}
    run_record = json.loads((output_folder / "run.json").read_text())
    assert run_record["data"]["made"]["triples"] == 8
    assert {"pearson", "spearman", "found", "sentence-wise", "pearson 8"} <= set(
        run_record["dev"]["dev"]
    )
    encoder_json = json.loads((output_folder / "onnx" / "encoder.json").read_text())
    assert encoder_json["dimension"] == 8
    assert encoder_json["parity"].keys() == {"int8", "float16"}

    source = to_onnx.Source(str(output_folder), "made", "Apache-2.0", "here")
    eight = to_onnx.build(source, tmp_path / "eight", "float32", 126, "turn", 8)
    full_dimension = to_onnx.build(source, tmp_path / "all", "float32", 126, "turn")
    # the dimension is in it, the precision is not
    assert eight["fingerprint"] == encoder_json["fingerprint"] != full_dimension["fingerprint"]
    sentences = [sentence(make_random(3), 5), sentence(make_random(4), 20)]
    torch_encoder = TorchEncoder(SpanEncoder.load(output_folder), texts.Cutter(output_folder), 8)
    by_torch = torch_encoder.encode(sentences)
    means = np.array([encoding.vectors.mean(axis=0) for encoding in by_torch])
    np.testing.assert_allclose(by_sentence_transformers(output_folder, sentences), means, atol=1e-5)
    for dimension, folder in ((8, "eight"), (32, "all")):
        by_onnx = OnnxEncoder(tmp_path / folder, device="cpu").encode(sentences)
        for ours, theirs in zip(by_onnx, by_torch, strict=True):
            assert ours.vectors.shape[1] == dimension
            # a prefix of the whole
            np.testing.assert_allclose(ours.vectors[:, :8], theirs.vectors, atol=1e-5)
            np.testing.assert_array_equal(ours.offsets, theirs.offsets)
    with pytest.raises(SystemExit, match=r"head\.safetensors is missing"):
        to_onnx.load(to_onnx.Source(str(tiny), "tiny", "", ""), 8)


def test_a_model_folder_becomes_weights_again(make_run: MakeRun, tmp_path: Path) -> None:
    trained = tmp_path / "trained"
    table = {"head": "principal", "dimensions": [8], "stages": [DISTIL]}
    loop.train(make_run(table, name="trained"))
    source = to_onnx.Source(str(trained), "made", "Apache-2.0", "here")
    to_onnx.build(source, tmp_path / "model", "int8", 126, "turn")
    restore(tmp_path / "model", tmp_path / "restored")
    sentences = [sentence(make_random(3), 5), sentence(make_random(4), 20)]
    encodings = [
        TorchEncoder(SpanEncoder.load(folder), texts.Cutter(folder)).encode(sentences)
        for folder in (trained, tmp_path / "restored")
    ]
    for before, after in zip(*encodings, strict=True):
        # weights were rounded to 127 steps of the largest in their column
        products = (before.vectors * after.vectors).sum(axis=1)
        lengths = np.linalg.norm(before.vectors, axis=1) * np.linalg.norm(after.vectors, axis=1)
        assert (products / lengths).min() > 0.999
    to_onnx.build(source, tmp_path / "float32", "float32", 126, "turn")
    restore(tmp_path / "float32", tmp_path / "exact")
    (exact,) = TorchEncoder(
        SpanEncoder.load(tmp_path / "exact"), texts.Cutter(tmp_path / "exact")
    ).encode(sentences[:1])
    np.testing.assert_allclose(encodings[0][0].vectors, exact.vectors, atol=1e-4)
    to_onnx.build(source, tmp_path / "eight", "int8", 126, "turn", 8)
    with pytest.raises(SystemExit, match="8 of 32 numbers"):
        restore(tmp_path / "eight", tmp_path / "cut")
    (tmp_path / "model" / "config.json").unlink()
    with pytest.raises(SystemExit, match=r"has no config\.json"):
        restore(tmp_path / "model", tmp_path / "nothing")


def write_calls(path: Path, count: int) -> None:
    """Calls of three turns each, without labels."""
    calls = [
        {
            "id": f"call {number}",
            "turns": [{"text": sentence(make_random(10 * number + turn), 9)} for turn in range(3)],
        }
        for number in range(count)
    ]
    path.write_text("\n".join(json.dumps(call) for call in calls))


@pytest.mark.parametrize("taught", [False, True])
def test_a_model_adapts_to_calls_without_labels(tiny: Path, tmp_path: Path, taught: bool) -> None:
    model = SpanEncoder.load(tiny)
    with torch.no_grad():  # one that was trained has no two weights that are the same
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn(parameter.shape))
    model.save(tmp_path / "base", tiny)
    source = to_onnx.Source(str(tmp_path / "base"), "made", "Apache-2.0", "here")
    to_onnx.build(source, tmp_path / "model", "int8", 126, "turn")
    write_calls(tmp_path / "calls.jsonl", 60)
    lesson = stage(
        30, "{ distil = 1.0 }", passages=4, shorts=2, spans=3, lr=3e-3, decay="none", keep="last"
    )
    transfer = stage(2, "{ transfer = 1.0 }", texts=4)
    table = {"stages": [transfer, lesson], "pool": "{ texts = 40 }"}
    (tmp_path / "asked.toml").write_text(toml(table if taught else {"stages": [lesson]}))
    argument_list = ["--adapt", str(tmp_path / "calls.jsonl"), "--base", str(tmp_path / "model")]
    argument_list += ["--out", str(tmp_path / "out"), "--recipe", str(tmp_path / "asked.toml")]
    argument_list += ["--teacher", str(tiny)] if taught else []
    train.main([*argument_list, "--device", "cpu", "--threads", "1", "--no-export"])
    run_record = json.loads((tmp_path / "out" / "run.json").read_text())
    before, after = (run_record["adaptation"][name] for name in ("before", "after"))
    assert before.keys() == after.keys() == {"agreement", "context"}
    assert after["agreement"] > before["agreement"]
    assert abs(after["context"]) < abs(before["context"])
    assert run_record["data"]["calls"]["held out"] > 0


def test_nothing_to_train_on_and_calls_that_are_none_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        train.arguments(["--base", "x", "--out", "y"])
    assert "--triples or --adapt" in capsys.readouterr().err
    write_calls(tmp_path / "calls.jsonl", 1)
    with pytest.raises(SystemExit, match="at least 2 are needed"):
        train.arguments(["--adapt", str(tmp_path / "calls.jsonl"), "--out", "y"])
    (tmp_path / "calls.jsonl").write_text('{"id": 3}')
    with pytest.raises(SystemExit, match="line 1: neither of text and turns"):
        train.arguments(["--adapt", str(tmp_path / "calls.jsonl"), "--out", "y"])


def test_a_long_text_is_read_in_windows(tiny: Path) -> None:
    encoder = TorchEncoder(SpanEncoder.load(tiny), texts.Cutter(tiny), limit=60)
    (encoding,) = encoder.encode([" ".join(WORDS * 3)])
    assert encoding.vectors.shape == (192, 32)
    assert encoding.vectors.any(axis=1).all()

"""Tuned probabilities: fitted to judgments, kept beside the topics, and used by mining."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hybrid_search import Topics
from hybrid_search.client import Client
from hybrid_search.errors import UsageError
from hybrid_search.search.calibration import MENTIONS
from hybrid_search.topics.judgments import Judgment, append_judgments
from hybrid_search.topics.match import Match
from hybrid_search.topics.tuning import (
    Tuning,
    find_threshold,
    fit_map,
    read_tuning,
    tune,
    write_tuning,
)
from tests.helpers.cli import invoke_cli
from tests.helpers.shipped_maps import load_map

FILE = """
- {name: refund, phrases: [I want my money back], threshold: 0.002}
- {name: hold, phrases: [waiting on hold], threshold: 0.002}
- {name: card, phrases: [I lost my card], threshold: 0.002}
"""


@pytest.fixture
def topics_file(tmp_path: Path) -> Path:
    path = tmp_path / "topics.yaml"
    path.write_text(FILE)
    return path


def judge(sample: Client, topics_file: Path, path: Path) -> int:
    """Judge what is mined: of a topic's matches the most probable fifth are mentions."""
    matches = list(sample.mine(topics_file))
    append_judgments(
        path,
        [
            Judgment(
                match.topic,
                match.phrase,
                match.id,
                match.start,
                match.end,
                match.text,
                "yes" if match.probability >= find_bound(matches, match.topic) else "no",
                match.model,
                "2026-01-02T03:04:05+00:00",
            )
            for match in matches
        ],
    )
    return len(matches)


def find_bound(matches: list[Match], topic: str) -> float:
    """Return the least probability of the most probable fifth of a topic's matches."""
    probabilities = [match.probability for match in matches if match.topic == topic]
    return float(np.quantile(probabilities, 0.8))


def test_mining_uses_what_was_tuned_and_the_scores_are_those_of_mining(
    sample: Client, topics_file: Path, tmp_path: Path
) -> None:
    path = tmp_path / "judgments.jsonl"
    count = judge(sample, topics_file, path)
    before = {(match.id, match.start, match.topic): match for match in sample.mine(topics_file)}
    tuning = sample.tune(topics_file, path)
    assert tuning.others is not None
    assert tuning.others.judgments == count
    tuned_map = tuning.topics["refund"]
    # the odds of the measured map give the score, and the tuned map gives the new probability
    calibration = tuned_map.calibration
    after = [match for match in sample.mine(topics_file) if match.topic == "refund"]
    assert after
    for match in after:
        old = before.get((match.id, match.start, match.topic))
        if old is None:  # below the threshold before
            continue
        score = load_map(MENTIONS).inverse_span(old.probability)
        expected = calibration.span(np.array([score]))[0]
        assert match.probability == pytest.approx(expected, abs=1e-4)


def test_the_command_says_how_sure_it_is(
    sample_url: str, sample: Client, topics_file: Path, tmp_path: Path
) -> None:
    path = tmp_path / "judgments.jsonl"
    count = judge(sample, topics_file, path)
    arguments = ("--topics", str(topics_file), "--judgments", str(path), "--url", sample_url)
    shown = invoke_cli("tune", *arguments)
    assert f"all other topics: {count} judgments" in shown.stdout
    assert f"{3 * count} more judgments would halve that" in shown.stdout
    as_json = invoke_cli("tune", *arguments, "--json").json
    assert as_json == json.loads((tmp_path / "topics.tuned.json").read_text())
    rows = as_json["others"]["reliability"]
    assert sum(row[0] for row in rows) == count
    mentions = sum(row[0] * row[2] for row in rows)
    assert mentions == pytest.approx(as_json["others"]["mentions"])
    for number, probability, share in rows:
        assert f"{number:>6,}  {probability:>11.2f}  {share:.2f}" in shown.stdout
    low, high = as_json["others"]["midpoint_interval"]
    assert low <= as_json["others"]["midpoint"] <= high


def test_answers_that_do_not_go_with_the_score_are_told(
    sample_url: str, sample: Client, topics_file: Path, tmp_path: Path
) -> None:
    path = tmp_path / "judgments.jsonl"
    judge(sample, topics_file, path)
    arguments = ("--topics", str(topics_file), "--judgments", str(path), "--url", sample_url)
    message = "the answers hardly go with the score"
    assert message not in invoke_cli("tune", *arguments).stdout
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        row["answer"] = {"yes": "no", "no": "yes"}[row["answer"]]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert message in invoke_cli("tune", *arguments).stdout


def test_three_answers_about_one_topic_change_no_probability(
    sample_url: str, sample: Client, topics_file: Path, tmp_path: Path
) -> None:
    path = tmp_path / "judgments.jsonl"
    judge(sample, topics_file, path)
    lines = path.read_text().splitlines(keepends=True)
    refunds = [line for line in lines if json.loads(line)["topic"] == "refund"]
    chosen = [next(line for line in refunds if json.loads(line)["answer"] == "yes")]
    chosen += [line for line in refunds if json.loads(line)["answer"] == "no"][:2]
    path.write_text("".join(chosen))
    expected = list(sample.mine(topics_file))
    arguments = ("--topics", str(topics_file), "--judgments", str(path), "--url", sample_url)
    shown = invoke_cli("tune", *arguments).stdout
    assert "nothing was tuned: 3 judgments are too few. A topic needs 20 of both kinds" in shown
    assert list(sample.mine(topics_file)) == expected
    arguments = ("--topics", str(topics_file), "--url", sample_url, "--out", "matches.jsonl")
    mined = invoke_cli("mine", *arguments)
    assert mined.json["probabilities"]["source"] == "measured"
    assert "probabilities: as measured for the model" in mined.stderr


def test_many_answers_about_one_topic_change_no_other(
    sample_url: str, sample: Client, topics_file: Path, tmp_path: Path
) -> None:
    path = tmp_path / "judgments.jsonl"
    judge(sample, topics_file, path)
    lines = path.read_text().splitlines(keepends=True)
    refunds = [line for line in lines if json.loads(line)["topic"] == "refund"]
    path.write_text("".join(refunds))
    before = [match for match in sample.mine(topics_file) if match.topic != "refund"]
    arguments = ("--topics", str(topics_file), "--judgments", str(path), "--url", sample_url)
    shown = invoke_cli("tune", *arguments).stdout
    assert f"refund: {len(refunds)} judgments" in shown
    (line,) = [line for line in shown.splitlines() if "all other topics" in line]
    assert line == (
        f"{len(refunds)} judgments are about too few topics (1) for all other topics, which keep "
        "the model's map: they need 20 of both kinds, and at least 5 of each of 3 topics"
    )
    after = list(sample.mine(topics_file))
    assert [match for match in after if match.topic != "refund"] == before
    assert [match for match in after if match.topic == "refund"]


def test_mine_says_that_a_tuned_file_is_used(
    sample_url: str, sample: Client, topics_file: Path, tmp_path: Path
) -> None:
    path = tmp_path / "judgments.jsonl"
    count = judge(sample, topics_file, path)
    arguments = ("--topics", str(topics_file), "--url", sample_url, "--out", "matches.jsonl")
    before = invoke_cli("mine", *arguments)
    assert before.json["probabilities"] == {
        "source": "measured",
        "file": None,
        "judgments": 0,
        "topics": {"refund": "measured", "hold": "measured", "card": "measured"},
    }
    assert "probabilities: as measured for the model" in before.stderr
    own_maps = sample.tune(topics_file, path).topics
    after = invoke_cli("mine", *arguments, "--report", "report.html")
    tuned_file = str(topics_file.with_suffix(".tuned.json"))
    assert after.json["probabilities"]["file"] == tuned_file
    assert after.json["probabilities"]["judgments"] == count
    for name, source in after.json["probabilities"]["topics"].items():
        assert source == ("tuned" if name in own_maps else "tuned with others")
    line = f"tuned by {count:,} judgments, {tuned_file} (by its own judgments: refund"
    assert line in after.stderr.replace("\n", "")
    assert line in Path("report.html").read_text()


def test_judgments_of_nothing_that_is_there_are_an_error(
    sample: Client, topics_file: Path, tmp_path: Path
) -> None:
    path = tmp_path / "judgments.jsonl"
    judgment = Judgment("refund", "x", "no such call", 0, 3, "abc", "yes", "m", "2026-01-02")
    append_judgments(path, [judgment, replace(judgment, topic="no such topic")])
    with pytest.raises(UsageError, match="none of 2 judgments belongs to index 'calls'"):
        sample.tune(topics_file, path)


# The fit

(REFUND,) = Topics.load([{"name": "refund", "phrases": ["money back"], "precision": 0.75}])
SCORES = np.linspace(0.1, 1.3, 40)
LABELS = (np.arange(40) % 4 != 0) & (SCORES > 0.6)


HOLD, CARD = Topics.load([{"name": "hold", "phrases": ["x"]}, {"name": "card", "phrases": ["y"]}])


def tune_three(counts: tuple[int, int, int]) -> Tuning:
    """Tune three topics by their last so many scores and labels."""
    topics = [REFUND, HOLD, CARD]
    named = [(topic.name, count) for topic, count in zip(topics, counts, strict=True)]
    scores = {name: SCORES[len(SCORES) - count :] for name, count in named}
    labels = {name: LABELS[len(LABELS) - count :] for name, count in named}
    return tune(topics, scores, labels, "model")


@pytest.mark.parametrize(
    ("counts", "judged_topics", "expected"),
    [
        ((10, 5, 5), 3, True),
        ((9, 5, 5), 3, False),  # 19 judgments
        ((27, 0, 0), 1, False),
        ((27, 27, 0), 2, False),
        ((27, 4, 5), 2, False),
        ((27, 5, 5), 3, True),
    ],
)
def test_all_other_topics_need_judgments_of_three(
    counts: tuple[int, int, int], judged_topics: int, *, expected: bool
) -> None:
    tuning = tune_three(counts)
    assert tuning.judged_topics == judged_topics
    assert (tuning.others is not None) == expected
    assert set(tuning.topics) == {
        topic.name for topic, count in zip((REFUND, HOLD, CARD), counts, strict=True) if count >= 20
    }


def test_all_other_topics_have_a_map_from_as_many_judgments_on() -> None:
    few = tune([REFUND], {"refund": SCORES[-19:]}, {"refund": LABELS[-19:]}, "model")
    assert (few.others, few.topics, few.find_map(REFUND)) == (None, {}, None)
    assert few.find_phrases_map(REFUND.phrases) is None
    with pytest.raises(UsageError, match="19 spans are judged to be mentions and 0 not to be"):
        tune([REFUND], {"refund": SCORES[:19]}, {"refund": np.ones(19, dtype=bool)}, "model")


def test_a_topic_has_a_map_of_its_own_from_twenty_judgments_on() -> None:
    tuning = tune_three((40, 19, 5))
    assert set(tuning.topics) == {"refund"}
    assert tuning.find_map(HOLD) == tuning.others
    assert tuning.find_map(REFUND) == tuning.topics["refund"]
    changed = replace(REFUND, phrases=("other words",))
    assert tuning.find_map(changed) == tuning.others
    assert tuning.others is not None
    assert tuning.others.judgments == 64


def test_the_threshold_is_the_least_one_with_the_wanted_precision() -> None:
    """Right from above: 1/1, 2/2, 2/3, 3/4, 3/5. The last share of at least .75 is at .6."""
    probabilities = np.array([0.9, 0.8, 0.7, 0.6, 0.5])
    labels = np.array([True, True, False, True, False])
    assert find_threshold(probabilities, labels, 0.75) == pytest.approx(0.6)
    assert find_threshold(probabilities, ~labels, 0.75) == 0.75  # never reached


def test_more_judgments_make_the_interval_shorter() -> None:
    few, many = (fit_map(np.tile(SCORES, n), np.tile(LABELS, n)) for n in (4, 36))
    few_width, many_width = (
        tuned.midpoint_interval[1] - tuned.midpoint_interval[0] for tuned in (few, many)
    )
    assert many_width == pytest.approx(few_width / 3, rel=0.35)


@pytest.mark.parametrize("count", [3, 20, 60])
def test_the_interval_holds_the_midpoint_19_times_of_20(count: int) -> None:
    """Of 100 samples 95 are expected, with a standard error of 2.2: 90 at least."""
    generator, held, drawn = np.random.default_rng(7), 0, 0
    while drawn < 100:
        scores = generator.uniform(0.8, 1.3, count)
        labels = generator.random(count) < 1 / (1 + np.exp(-16.9 * (scores - 1.09)))
        if 0 < labels.sum() < count:
            low, high = fit_map(scores, labels).midpoint_interval
            held, drawn = held + (low <= 1.09 <= high), drawn + 1
    assert held >= 90


def test_the_best_topic_has_no_warning_and_the_worst_has_one() -> None:
    """Each yes above each no, with the midpoint at 1.2; and answers that alternate."""
    scores = np.linspace(1.0, 1.33, 30)
    best, worst = fit_map(scores, scores > 1.2), fit_map(scores, np.arange(30) % 2 == 0)
    assert (best.concordance, best.is_chance) == (1.0, False)
    assert best.midpoint > 1
    assert worst.concordance == pytest.approx(0.5, abs=0.05)
    assert worst.is_chance


def test_a_map_of_answers_that_do_not_go_with_the_score_is_not_used() -> None:
    scores, kinds = np.linspace(1.0, 1.33, 30), np.arange(30)
    tuning = tune(
        [REFUND, HOLD], {"refund": scores, "hold": scores},
        {"refund": kinds % 2 == 0, "hold": scores > 1.2}, "model",
    )  # fmt: skip
    assert tuning.topics["refund"].is_chance
    assert (tuning.find_map(REFUND), tuning.find_phrases_map(REFUND.phrases)) == (None, None)
    assert tuning.find_map(HOLD) == tuning.topics["hold"]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "topics.tuned.json"
    assert read_tuning(path) is None
    tuning = tune([REFUND], {"refund": SCORES}, {"refund": LABELS}, "model")
    write_tuning(path, tuning)
    assert read_tuning(path) == tuning


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"model": "m", "topics": {}, "others": {"slope": 1}}']
)
def test_a_file_that_is_no_tuning_is_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "topics.tuned.json"
    path.write_text(text)
    message = "is not a file of tuned probabilities: remove it, or make it again"
    with pytest.raises(UsageError, match=message):
        read_tuning(path)


def test_a_tuning_of_another_model_is_not_used_and_said_so(
    sample: Client, topics_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    expected = list(sample.mine(topics_file))
    tuning = tune([REFUND], {"refund": SCORES}, {"refund": LABELS}, "another model")
    write_tuning(topics_file.with_suffix(".tuned.json"), tuning)
    assert list(sample.mine(topics_file)) == expected
    assert "was tuned with model another model" in caplog.text

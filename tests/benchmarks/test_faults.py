"""A few faults of each kind, of which `make break` tries thousands; and what the campaign sees."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.faults import __main__, access, answers, campaign, damage, parameters, pool, report
from benchmarks.faults.commands import CommandReport
from benchmarks.faults.damage import REGIONS, TIMES, Damage, damage_file, draw_fault
from benchmarks.faults.examination import Judge
from benchmarks.faults.families import FAMILIES, open_families
from benchmarks.faults.remedies import apply_remedy, find_remedies
from benchmarks.faults.scene import Scene, Store
from benchmarks.faults.trial import HANG, SIGNAL, SILENT, TRACEBACK, Outcome, Trial
from tests.helpers import bad_answers, misbehaving_trials
from tests.helpers.fake_cluster import FakeCluster
from tests.helpers.fake_server import HttpRequest, Reply

pytestmark = pytest.mark.faults

SOUND = {"hits": [{"id": "a", "passage": 0, "score": 0.5}], "total": 1}
TRIAL = Trial("damage", "tiny/calls.index/head.json", "flip@5.1:kept")


def test_an_unknown_family_is_an_error_that_names_those_there_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["benchmarks.faults", "--family", "nothing"])
    with pytest.raises(SystemExit, match="2"):
        __main__.main()
    message = capsys.readouterr().err
    assert all(name in message for name in ("nothing", *FAMILIES))


def make_report(answer: object, errors: str = "", status: int = 0) -> CommandReport:
    return CommandReport(("query",), status, json.dumps(answer), errors, "")


# the product


@pytest.fixture(scope="module")
def scene() -> Iterator[Path]:
    """The sound index, in memory: on a disk each trial would wait for it."""
    with tempfile.TemporaryDirectory(dir=campaign.choose_memory()) as folder:
        yield campaign.prepare(Path(folder), with_model=False)


def test_a_few_faults_of_each_kind_break_no_rule(scene: Path) -> None:
    trials = campaign.list_trials(scene, campaign.SEED, False, [*FAMILIES])
    outcomes = list(pool.run_trials(trials, open_families, scene, workers=2))
    counts = report.count_outcomes(outcomes)
    assert counts["tried"] + counts["skipped"] == len(trials) > 120
    assert counts["told"] > 40
    broken = {outcome.trial.id: outcome.note for outcome in outcomes if outcome.violations}
    assert not broken, json.dumps(broken, indent=1)


# the campaign


def test_a_process_that_dies_hangs_or_raises_is_told_and_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "SECONDS", 0.5)
    monkeypatch.setattr(pool, "START_SECONDS", 20.0)
    faults = ["ends", "dies", "raises", "sleeps", "ends well"]
    trials = [Trial("x", "y", fault) for fault in faults]
    outcomes = pool.run_trials(
        trials, misbehaving_trials.open_families, tmp_path / "scene", workers=1
    )
    violations = {outcome.trial.fault: outcome.violations for outcome in outcomes}
    assert violations == {
        "ends": (),
        "dies": (SIGNAL,),
        "raises": (TRACEBACK,),
        "sleeps": (HANG,),
        "ends well": (),
    }


@pytest.mark.parametrize(
    ("query", "excuse", "is_silent"),
    [
        (make_report(SOUND), "", False),
        (make_report(SOUND | {"total": 2}), "", True),
        (make_report(SOUND | {"total": 2}), "error: the ingest before it failed", False),
        (make_report(SOUND | {"total": 2}, "WARNING: a file is damaged\n"), "", False),
        (make_report(SOUND | {"total": 2, "plan": {"warnings": ["one left out"]}}), "", False),
        (make_report(None, "error: it is damaged\n", status=2), "", False),
        (make_report(SOUND | {"total": float("nan")}), "", True),
    ],
)
def test_another_answer_breaks_a_rule_unless_something_tells_of_it(
    query: CommandReport, excuse: str, is_silent: bool
) -> None:
    judge = Judge(TRIAL)
    judge.compare([query], [SOUND], [excuse])
    assert (SILENT in judge.violations) is is_silent


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("it is damaged: restore it from a backup, or delete it and ingest again", "restore"),
        ("x.index is damaged: delete it and ingest again", "delete it and ingest"),
        ("the index has none: hybrid-search delete --index calls -- 'a-1'", "a-1"),
        ("no file: hybrid-search verify --index calls --repair", "--repair"),
        ("no space left on device. Free space and run the same command again", "Free space"),
        ("calls.index.lock is damaged: delete it", "delete it"),
    ],
)
def test_a_remedy_is_found_by_the_words_of_the_message(message: str, expected: str) -> None:
    _, match = find_remedies([message])[0]
    assert expected in match[0]


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        (["after hybrid-search delete --index calls -- a-1 'b 2'"], ["a-1", "b 2"]),
        (["after hybrid-search delete --index calls -- 'a-1' (unchanged, it would be)"], ["a-1"]),
        (
            [
                "ingest it again, after hybrid-search delete --index calls -- a-1",
                "ingest it again, after hybrid-search delete --index calls -- a-2",
            ],
            ["a-1", "a-2"],
        ),
    ],
)
def test_all_documents_that_messages_name_are_deleted_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, messages: list[str], expected: list[str]
) -> None:
    deleted: list[tuple[str, ...]] = []

    def note_ids(_: Store, *arguments: str) -> CommandReport:
        deleted.append(arguments)
        return make_report(SOUND)

    monkeypatch.setattr(Store, "delete", note_ids)
    store = Store(tmp_path, tmp_path, [], [])
    assert apply_remedy(store, messages, lambda: None, []) == []
    assert deleted == [("--", *expected)]


def test_a_message_without_a_remedy_has_none() -> None:
    assert not find_remedies(["something is wrong"])


def make_scene(folder: Path) -> Scene:
    """Make files of the names that are damaged, with nothing in them that matters."""
    for target in damage.TARGETS:
        path = folder / target.source / target.name.replace("*", "any")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(3000 if "lock" not in target.name else 0))
    return Scene(folder)


def test_the_full_campaign_has_as_many_faults_as_it_promises(tmp_path: Path) -> None:
    trials = Damage(make_scene(tmp_path), tmp_path).list_trials(1, True)
    bytes_changed = [trial for trial in trials if not trial.fault.startswith("cut")]
    assert len(bytes_changed) >= 2000
    assert {trial.fault.rpartition(":")[2] for trial in trials} == set(TIMES)
    assert len({trial.id for trial in trials}) > 0.95 * len(trials)
    assert parameters.COUNT >= 10_000
    kinds = {kind for stages in answers.STAGES.values() for stage in stages
             for kind in bad_answers.list_kinds(stage)}  # fmt: skip
    assert len(bad_answers.ANYWHERE) >= 60
    assert len(kinds) > 200
    assert len(access.Access(Scene(tmp_path), tmp_path).list_trials(1, True)) > 200


def test_the_faults_follow_from_the_seed_and_an_id_says_all_of_one(tmp_path: Path) -> None:
    family = Damage(make_scene(tmp_path), tmp_path)
    trials = family.list_trials(1, True)
    assert trials == family.list_trials(1, True) != family.list_trials(2, True)
    assert [Trial.parse(trial.id) for trial in trials] == trials
    with pytest.raises(ValueError, match="is not FAMILY:TARGET:FAULT"):
        Trial.parse("damage")


@pytest.mark.parametrize("region", range(len(REGIONS)))
@pytest.mark.parametrize("kind", ["flip", "flips", "noise"])
def test_bytes_change_in_the_region_alone(tmp_path: Path, kind: str, region: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(3000))
    os.utime(path, ns=(5, 5))
    fault = draw_fault(damage.Chance(1), kind, 1000 * region, 1000 * (region + 1))
    damage_file(path, fault, keep_time=True)
    data = path.read_bytes()
    places = [place for place, byte in enumerate(data) if byte]
    assert places
    assert len(places) <= 3
    assert all(1000 * region <= place < 1000 * (region + 1) for place in places)
    assert len(data) == 3000
    assert path.stat().st_mtime_ns == 5
    damage_file(path, fault, keep_time=False)
    assert path.stat().st_mtime_ns > 5


def test_a_field_of_an_answer_is_replaced_in_its_place_alone() -> None:
    request = HttpRequest("GET", "/calls/_mapping", {}, b"")
    right = FakeCluster("opensearch").prepare(request)
    wrong = bad_answers.find_kind("mapping", "dimension: a text")(right)
    assert isinstance(wrong, Reply)
    wrong_answer = json.loads(wrong.body)
    spec = right.answer["calls-000001"]["mappings"]["_meta"]["hybrid_search"]
    wrong_spec = wrong_answer["calls-000001"]["mappings"]["_meta"]["hybrid_search"]
    assert (spec["dimension"], wrong_spec["dimension"]) == (8, "x")
    assert wrong_spec | {"dimension": 8} == spec


def test_the_summary_counts_each_trial_once_and_lists_what_broke() -> None:
    outcomes = [
        Outcome(TRIAL, is_mended=True),
        Outcome(TRIAL, (SILENT,), is_reported=True, note="other score"),
        Outcome(TRIAL, (SIGNAL,), note="a signal"),
        Outcome(TRIAL, skipped="no right to mount"),
    ]
    summary = report.summarize(outcomes, seed=1, seconds=2.4)
    total = summary["total"]
    assert (total["tried"], total["told"], total["mended"], total["skipped"]) == (3, 1, 1, 1)
    assert (total[SILENT], total[SIGNAL]) == (1, 1)
    assert [row["rules"] for row in summary["violations"]] == [[SILENT], [SIGNAL]]
    assert "| damaged bytes: calls.index/head.json | 3 | 1 | 1 |" in report.render(summary)

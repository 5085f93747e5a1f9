"""What people read of a training: how far, how long still, how good."""

import io
from dataclasses import replace

import pytest

from orchestrator.collect import CollectProgress
from orchestrator.show_training import TrainingScreen, accuracy_table
from workers.catalog import ZOO
from workers.training.fitting import FitProgress
from workers.training.order_card import Share, read_card
from workers.training.order_log import Evaluation


@pytest.fixture
def clock():
    return iter(range(0, 10_000, 10)).__next__  # ten seconds a look


def collected(done, note=""):
    return CollectProgress(total=100, kept=40, done=done, failed=0, note=note)


def test_time_left_is_told_by_the_pace_of_this_process(clock, capsys):
    screen = TrainingScreen(clock)
    screen.collect(collected(0))
    screen.collect(collected(20))  # 20 in 20 s; 40 are left
    screen.collect(collected(60))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "trajectories 40/100 (40 from before), failed 0"
    assert lines[1] == "trajectories 60/100 (40 from before), failed 0, 40 s left"
    assert lines[2] == "trajectories 100/100 (40 from before), failed 0"


def test_a_training_gone_on_with_is_not_judged_by_the_steps_of_before(clock, capsys):
    screen = TrainingScreen(clock)
    for step in (201, 202, 203):
        screen.model(FitProgress(step=step, steps=243, loss=1.0, seconds=9.0))
    assert capsys.readouterr().err.splitlines()[-1] == "step 203/243, loss 1.000, 9 s, 13 min left"  # 40 steps of 20 s


def test_evaluations_are_told_at_once_and_by_role(capsys):
    screen = TrainingScreen(lambda: 0.0)
    row = Evaluation(
        step=1,
        loss=1.0,
        rate=0.1,
        seconds=1.0,
        time=0.0,
        losses={"trained on": 0.5, "out of domain": None},
        accuracy={"trained on": (Share.of(3, 4), Share.of(0, 0)), "out of domain": ()},
    )
    for evaluation in (None, row, None):
        screen.model(FitProgress(step=1, steps=9, loss=1.0, seconds=1.0, evaluation=evaluation))
    lines = capsys.readouterr().err.splitlines()
    assert lines[1:] == [
        "step 1/9, loss 1.000, 1 s; held out, on a sample: loss 0.500, right at depths 1 to 4 75.0 - %"
    ]


def test_the_table_has_a_row_a_group_and_both_numbers():
    from rich.console import Console

    card = read_card(ZOO / "drafters" / "spot-tiny-sdar")
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(accuracy_table(card))
    first = card.totals()[1]
    both = f"{100 * first.order_model.value:.1f} ({100 * first.stale_confidence.value:.1f})"
    lines = console.export_text().splitlines()
    (total,) = [line for line in lines if line.split()[:4] == ["trained", "on", "all", "all"]]
    assert both in total
    assert len([line for line in lines if line.startswith("trained on")]) == len({row.group for row in card.accuracy})


def test_a_depth_that_is_warned_of_is_a_column():
    from rich.console import Console

    card = read_card(ZOO / "drafters" / "spot-tiny-sdar")
    rows = tuple(
        replace(row, stale_confidence=Share.of(row.depth == 5, 1), order_model=Share.of(row.depth != 5, 1))
        for row in card.accuracy
    )
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(accuracy_table(replace(card, accuracy=rows)))
    (head,) = [line.split() for line in console.export_text().splitlines() if line.lstrip().startswith("task")]
    assert head == ["task", "T", "1", "2", "3", "4", "5", "6", "10"]

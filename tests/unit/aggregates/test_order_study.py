"""Shares of the order study: sums over prompts, intervals that take the prompt as unit, what failed or is missing."""

from dataclasses import replace

import numpy as np
import pytest

from sweeps.cell import NO_DRAFTER, Cell
from sweeps.merge import merge_all
from sweeps.order_study import order_study
from sweeps.records import Failure, ItemResult
from sweeps.spec import DecodeSpec, DrafterSpec, TargetSpec, TaskSpec
from sweeps.statistics import clustered_share, ratio_of_sums
from sweeps.study import LOOK_AHEADS, TOPS, StudyRecord, study_cell
from sweeps.todo import Job, item_of

BASE = Cell(
    target=TargetSpec(name="t", digest="t"),
    task=TaskSpec(name="a", kind="a", digest="a"),
    decode=DecodeSpec(block_length=4),
    drafter=NO_DRAFTER,
)
STUDY = study_cell(replace(BASE, drafter=DrafterSpec(name="spot", kind="spot", digest="m")))


def grid(*first: int) -> tuple[tuple[int, ...], ...]:
    """Counts at look-ahead 1, by index; nothing further ahead."""
    return (first, *[(0,) * len(first)] * (LOOK_AHEADS - 1))


def a_record(index: int, asked: tuple[int, ...], right: tuple[int, ...], model: tuple[int, ...]) -> StudyRecord:
    """Tokens are always right among the top 2; positions as given."""
    tops = (grid(*right), *[grid(*asked)] * (len(TOPS) - 1))
    return StudyRecord(
        prompt_id=f"p{index}",
        prompt_index=index,
        commits=12,
        asked=grid(*asked),
        in_top=tops,
        drawn=grid(*right),
        by_confidence=grid(*right),
        by_model=grid(*model),
    )


RECORDS = (a_record(0, (0, 2, 2, 0), (0, 1, 1, 0), (0, 2, 1, 0)), a_record(2, (0, 3, 1, 0), (0, 0, 1, 0), (0, 3, 0, 0)))


def a_result(*records: StudyRecord, failed: tuple[int, ...] = (), last: int = 3) -> ItemResult:
    failures = tuple(Failure(kind="deterministic", type="E", message="m", prompt_index=index) for index in failed)
    item = item_of(Job(cell=STUDY, prompts=0, studied_prompts=last), "study", 0, last)
    return ItemResult(
        item_id=item.item_id,
        cell_id=STUDY.cell_id,
        kind="study",
        first=0,
        last=last,
        studies=records,
        failures=failures,
    )


def test_shares_are_sums_over_prompts() -> None:
    rows = merge_all([a_result(*RECORDS, failed=(1,))])[STUDY.cell_id]
    study = order_study(Job(cell=STUDY, prompts=0, studied_prompts=5), rows)
    assert (study.n_expected, study.n, study.n_failed, study.n_missing, study.commits) == (5, 2, 1, 2, 24)
    whole, one, two = study.at(1), study.at(1, 1), study.at(1, 2)
    assert whole is not None
    assert one is not None
    assert two is not None
    assert (whole.asked, one.asked, two.asked) == (8, 5, 3)
    assert whole.by_confidence.value == whole.argmax.value == whole.drawn.value == 3 / 8
    assert (one.by_model.value, two.by_model.value, whole.by_model.value) == (1.0, 1 / 3, 6 / 8)
    assert [estimate.value for estimate in whole.in_top] == [3 / 8] + [1.0] * 5
    assert whole.error_ratio is not None
    assert whole.error_ratio.value == pytest.approx((8 - 6) / (8 - 3))
    assert whole.how == "measured on draft-free trajectories"
    assert study.ahead() == (whole,)  # nothing was asked further ahead
    assert study.by_index(1) == (one, two)
    assert study.at(2) is None


def test_only_the_prompts_asked_for_count() -> None:
    rows = merge_all([a_result(*RECORDS, failed=(1,))])[STUDY.cell_id]
    study = order_study(Job(cell=STUDY, prompts=0, studied_prompts=1), rows)
    assert (study.n, study.n_failed, study.n_missing) == (1, 0, 0)
    first = study.at(1)
    assert first is not None
    assert (first.asked, first.by_model.value) == (4, 3 / 4)
    assert (first.by_model.low, first.by_model.high) == (None, None)  # one prompt gives no interval


def test_a_prompt_studied_twice_with_other_counts_raises_an_alarm() -> None:
    other = replace(RECORDS[0], by_model=grid(0, 0, 0, 0))
    again = replace(a_result(other, last=1), item_id="again")
    study = order_study(
        Job(cell=STUDY, prompts=0, studied_prompts=3),
        merge_all([a_result(*RECORDS, failed=(1,)), again])[STUDY.cell_id],
    )
    assert [alarm.kind for alarm in study.alarms] == ["study differs between repeats"]
    same = merge_all([a_result(*RECORDS, failed=(1,)), replace(a_result(RECORDS[0], last=1), item_id="again")])
    assert same[STUDY.cell_id].alarms == ()


def test_counts_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="by_model counts more than was asked"):
        replace(RECORDS[0], by_model=grid(0, 3, 0, 0))
    with pytest.raises(ValueError, match="drawn has rows of"):
        replace(RECORDS[0], drawn=grid(0, 0))
    with pytest.raises(ValueError, match="tops by look-aheads are 1 by 8: allowed is 6 by 8"):
        replace(RECORDS[0], in_top=RECORDS[0].in_top[:1])


def test_equal_prompts_count_as_one_observation_each() -> None:
    """Where every prompt has the same share, commits say nothing of how prompts differ: all right is no certainty."""
    sure = clustered_share([50] * 4, [50] * 4)
    assert (sure.value, sure.high, sure.n) == (1.0, 1.0, 4)
    assert sure.low is not None
    assert 0.2 < sure.low < 0.4  # four prompts, all right, with Student's t: nowhere near 1
    assert clustered_share([0, 0], [0, 0]).value is None
    assert clustered_share([1, 0], [2, 0]).n == 1
    assert clustered_share([3], [4]).low is None


def test_prompts_that_agree_widen_the_interval() -> None:
    """The same 300 of 400: spread evenly over 40 prompts, or with prompts that are all right or all wrong."""
    even = clustered_share([7, 8] * 20, [10] * 40)
    split = clustered_share([10] * 30 + [0] * 10, [10] * 40)
    assert even.value == split.value == 0.75
    assert even.low is not None
    assert split.low is not None
    assert split.low < 0.62 < 0.70 < even.low  # as 39 independent trials against 400
    boot = ratio_of_sums([10.0] * 30 + [0.0] * 10, [10.0] * 40)
    assert boot.low is not None
    assert abs(boot.low - split.low) < 0.04  # another way to the same interval


@pytest.mark.parametrize(("prompts", "share", "spread"), [(4, 0.8, 6), (12, 0.75, 4), (40, 0.97, 20), (40, 0.3, 2)])
def test_intervals_cover_the_truth(prompts: int, share: float, spread: float) -> None:
    """Prompts with shares of their own (beta) and 30 or 60 commits each: 95 % intervals hold the truth 91 to 99 %."""
    rng = np.random.default_rng(7)
    held = 0
    for _ in range(600):
        trials = rng.choice([30, 60], prompts)
        hits = rng.binomial(trials, rng.beta(share * spread, (1 - share) * spread, prompts))
        estimate = clustered_share(hits, trials)
        assert estimate.low is not None
        assert estimate.high is not None
        assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1  # type: ignore[operator]
        held += estimate.low <= share <= estimate.high
    assert 0.91 <= held / 600 <= 0.995

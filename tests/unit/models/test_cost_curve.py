"""The cost curve: what it says between the measured points, and what files are refused."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.costs import curve_of, exactly
from workers.models.cost_curve import (
    CostCurve,
    ForwardCost,
    Timing,
    between,
    find_cost_curve,
    read_cost_curve,
    write_cost_curve,
)

PLANE = curve_of(lambda states, prefix: 1.0 + 0.5 * states + prefix / 64, drafter={4: 0.3, 20: 0.7})


def test_between_the_measured_points_it_is_linear_in_both() -> None:
    """The plane 1 + N / 2 + M / 64 is its own interpolation, at any N and M within the grid."""
    for prefix in (0, 8, 64, 200, 256):
        row = PLANE.forward_seconds(prefix)
        assert row == pytest.approx([1.0 + 0.5 * states + prefix / 64 for states in range(1, 22)])
    assert PLANE.forward_seconds(5000) == PLANE.forward_seconds(256), "beyond the longest prefix: what that takes"
    assert PLANE.budget_max == 20


def test_the_drafter_s_time_is_linear_between_budgets_and_flat_outside() -> None:
    taken = [PLANE.drafter_seconds(budget) for budget in (1, 4, 12, 20, 99)]
    assert taken == pytest.approx([0.3, 0.3, 0.5, 0.7, 0.7])
    assert curve_of(lambda states, prefix: 1.0).drafter_seconds(8) == 0.0


def test_noise_that_says_more_work_costs_less_is_levelled() -> None:
    measured = {(1, 0): 2.0, (2, 0): 1.5, (3, 0): 4.0, (1, 64): 1.0, (2, 64): 3.0, (3, 64): 2.5}
    curve = curve_of(lambda states, prefix: measured[states, prefix], states=(1, 2, 3), prefixes=(0, 64))
    assert curve.forward_seconds(0) == (2.0, 2.0, 4.0)
    assert curve.forward_seconds(64) == (2.0, 3.0, 4.0)
    assert curve.forward_seconds(32) == (2.0, 2.5, 4.0)


def test_one_measured_prefix_stands_for_all() -> None:
    curve = curve_of(lambda states, prefix: float(states), prefixes=(128,))
    assert curve.forward_seconds(0) == curve.forward_seconds(512) == tuple(float(states) for states in range(1, 22))
    assert between([3], [7.0], 3) == 7.0


def test_written_and_read_back_it_is_the_same_and_equal_curves_give_equal_bytes(tmp_path: Path) -> None:
    digest = write_cost_curve(tmp_path / "a.json", PLANE)
    write_cost_curve(tmp_path / "b.json", PLANE)
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert read_cost_curve(tmp_path / "a.json") == replace(PLANE, digest=digest)
    write_cost_curve(tmp_path / "a.json", replace(PLANE, digest=digest))
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes(), "the digest is not part of itself"
    assert digest != write_cost_curve(tmp_path / "c.json", replace(PLANE, dtype="float32"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "format is 'other': allowed is 'spot-cost-curve'"),
        ({"version": 9}, r"version is 9: allowed is 1 \(measure it again\)"),
        ({"threads": 2}, "its curve.json says .*: altered"),
    ],
)
def test_foreign_and_altered_files_are_refused_by_name(tmp_path: Path, change: dict[str, object], message: str) -> None:
    file = tmp_path / "curve.json"
    write_cost_curve(file, PLANE)
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    with pytest.raises(ValueError, match=message) as refused:
        read_cost_curve(file)
    assert str(file) in str(refused.value)


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff\xfe", b'{"format": "spot-cost-curve", "version": 1}'])
def test_what_is_no_curve_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "curve.json"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=r"cost curve .*curve\.json: ") as refused:
        read_cost_curve(file)
    assert "\n" not in str(refused.value)


def test_a_name_that_is_nothing_is_refused_with_the_zoo_s_names() -> None:
    with pytest.raises(ValueError, match=r"cost 'tiny' is neither a file nor one of .*tiny-sdar-cpu"):
        find_cost_curve("tiny")


def test_the_shipped_curve_is_of_the_shipped_target() -> None:
    from workers import catalog
    from workers.targets.inspect import inspect_checkpoint

    curve = read_cost_curve(find_cost_curve("tiny-sdar-cpu"))
    facts = inspect_checkpoint(Path(catalog.TARGETS["tiny-sdar"].path))
    assert (curve.target, curve.target_digest) == ("tiny-sdar", facts.weight_digest)
    assert (curve.dtype, curve.block_length, curve.device, curve.threads) == ("float32", 32, "cpu", 1)
    assert curve.budget_max >= 20
    alone, *_, most = curve.forward_seconds(64)
    assert most > 2 * alone, "on a CPU every state is paid for"


def grid_but(**change: object) -> CostCurve:
    return replace(PLANE, **change)  # type: ignore[arg-type]


def test_parts_that_do_not_fit_one_another_are_refused() -> None:
    one = ForwardCost(states=1, prefix=0, time=exactly(1.0))
    two = ForwardCost(states=2, prefix=64, time=exactly(1.0))
    for forwards, message in (
        ((), "not every pair"),
        ((one, two), "not every pair"),
        ((one, one), "not every pair"),
        ((two,), "the fewest states are 2"),
    ):
        with pytest.raises(ValueError, match=message):
            grid_but(forwards=forwards)
    with pytest.raises(ValueError, match="budgets are"):
        grid_but(drafters=(PLANE.drafters[1], PLANE.drafters[0]))
    for seconds, low, high in ((0.0, 0.0, 0.0), (1.0, 2.0, 3.0), (float("inf"), 1.0, float("inf"))):
        with pytest.raises(ValueError, match="no median between quartiles"):
            Timing(seconds=seconds, low=low, high=high)

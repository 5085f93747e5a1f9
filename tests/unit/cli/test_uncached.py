"""Approximate caches end to end: what they change is measured once, shown everywhere, and changes no other number."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.events import read_events
from orchestrator.tables import built_in_tables
from reports.frames import Frames, load
from reports.sections import approximate
from sweeps.results import load_results
from sweeps.store import RunDir
from tests.tiny_checkpoints import write_checkpoint
from workers.catalog import FAMILIES, TARGETS
from workers.entries import FamilyEntry, TargetEntry

Spot = Callable[..., Any]

SWEEP = """\
name: kept
grid: {target: GRID, task: tiny-arith, drafter: [ssd, oracle_joint], budget: 3, max_new_tokens: 16, block_length: 8}
targets:
  a: {path: WHOLE, cache: dual}
  b: {path: WHOLE, cache: prefix}
  c: {path: WHOLE, cache: none}
ignore_eos: true
measure: {prompts: 2, timed_prompts: 1, repeats: 1}
"""
POSITIONS = {"llada": "max_sequence_length", "dream": "max_position_embeddings"}


@pytest.fixture(scope="module", params=POSITIONS)
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of each family with random weights."""
    folder = tmp_path_factory.mktemp(request.param)
    return write_checkpoint(folder, family=request.param, config={POSITIONS[request.param]: 2048}, tied=False)


def write(whole: Path, grid: str) -> None:
    Path("kept.yaml").write_text(SWEEP.replace("WHOLE", str(whole)).replace("GRID", grid))


def run(spot: Spot, *more: str) -> Frames:
    ended = spot("run", "kept.yaml", "--pool", "inline", "--out", "out", *more)
    assert ended.code == 0, ended.err
    return load(Path("out"))


@pytest.mark.slow
def test_two_caches_beside_one_reference(
    spot: Spot, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(whole, "[a, b]")
    planned = spot("plan", "kept.yaml", "--out", "out")
    assert "6 cells (2 draft-free added), 1 uncached reference, 7 with something to do" in planned.out
    assert "note: 1 uncached reference: 2 prompts a cell, draft-free without a cache, only to see" in planned.out
    assert (
        "(measure.uncached_prompts); each forward is over the prompt and all new tokens (2 blocks of them)"
        in " ".join(planned.out.split())
    )
    cells = json.loads(spot("plan", "kept.yaml", "--out", "out", "--json").out)["cells"]
    reference = cells[-1]
    assert [cell["reference"] for cell in cells] == [False] * 6 + [True]
    assert (reference["cache"], reference["decode"], reference["timing"], reference["study"]) == ("none", 2, 0, 0)
    assert (reference["added_baseline"], reference["forwards"]) == (False, 2 * 16)

    frames = run(spot)
    assert [(r.cell.target.name, r.cell.target.cache, r.n) for r in frames.references] == [("a", "none", 2)]
    rows = {r.cell_id: frames.rows[r.cell_id] for r in (*frames.results, *frames.references)}
    plain = rows[frames.references[0].cell_id]
    assert not plain.timings
    for result in frames.results:
        own, agreement = rows[result.cell_id], result.agreement
        assert agreement is not None
        assert agreement.n == 2
        assert agreement.n_identical == sum(
            own.generations[i].output_ids == plain.generations[i].output_ids for i in range(2)
        )
        if not result.cell.is_baseline:  # oracles, drafts and timings have the partner with the same cache
            assert result.claim_holds is True
            assert result.identity.n_identical == 2
            assert all(timing.identical for timing in own.timings.values())
            free = rows[result.cell.baseline().cell_id].generations
            assert own.timings[0].baseline_nfe == free[0].counters.nfe
        else:
            assert agreement.nfe.value == agreement.nfe_uncached.value == 16
            assert (agreement.positions_ratio.value or 0) > 2
    per_cache = {r.cell.target.cache: r.agreement for r in frames.results if r.cell.is_baseline}
    assert per_cache["dual"].positions.value < per_cache["prefix"].positions.value  # type: ignore[union-attr]
    kinds = {
        result.kind for result in load_results(RunDir(Path("out"))).results if result.cell_id in (reference["cell_id"],)
    }
    assert kinds == {"decode"}

    info = approximate.info(frames)
    assert info is not None
    said, changes, saves = info.groups[0].parts
    assert [row[0].text.rpartition(" ")[2] for _, rows in changes.groups for row in rows] == ["dual", "prefix"]
    assert [row[3].text for _, rows in changes.groups for row in rows] == ["4/4 ✓", "4/4 ✓"]
    assert len(said.lines) == len(saves.groups[0][1]) == 2
    page = Path("out/report.html").read_text()
    for cache in ("dual", "prefix"):
        equal = per_cache[cache].n_identical  # type: ignore[union-attr]
        assert f"exact given the cache ({cache}; {equal}/2 equal uncached)" in page

    write(whole, "[a, b, c]")  # asked for by name, it is that very cell
    cells = json.loads(spot("plan", "kept.yaml", "--out", "out", "--json").out)["cells"]
    assert not any(cell["reference"] for cell in cells)
    assert {cell["target"]: cell["decode"] for cell in cells if cell["drafter"] == "none"} == {"a": 0, "b": 0, "c": 0}
    assert next(cell for cell in cells if cell["target"] == "c")["cell_id"] == reference["cell_id"]


def test_it_may_be_left_out_and_taken_up_later(
    spot: Spot, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(whole, "a")
    planned = spot("plan", "kept.yaml", "measure.uncached_prompts=0", "grid.drafter=none")
    assert "measure.uncached_prompts is 0: what approximate caches change is not measured" in planned.out
    frames = run(spot, "measure.uncached_prompts=0", "grid.drafter=none", "measure.timed_prompts=0")
    assert frames.references == ()
    assert "exact given the cache (dual; uncached: not measured)" in Path("out/report.html").read_text()
    more = run(spot, "measure.uncached_prompts=1", "grid.drafter=none", "measure.timed_prompts=0")
    assert [(r.n, r.n_expected) for r in more.references] == [(1, 1)]
    told = [event for event in read_events(Path("out/events.jsonl")) if event.work == "uncached"]
    assert {(event.rows, event.cell_id) for event in told} == {(1, more.references[0].cell_id)}
    assert told[-1].kind == "item_done"
    (result,) = more.results
    assert result.agreement is not None
    assert (result.n, result.agreement.n) == (2, 1)
    cells = more.cells.set_index("cell_id")
    assert cells["reference"].to_dict() == {result.cell_id: False, more.references[0].cell_id: True}
    assert more.prompts.groupby("cell_id")["identical_uncached"].count().to_dict() == {
        result.cell_id: 1,
        more.references[0].cell_id: 0,
    }


def test_independent_noise_is_not_compared(
    spot: Spot, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(whole, "a")
    noisy = ("grid.temperature=1", "grid.noise=independent", "grid.drafter=ssd", "measure.timed_prompts=0")
    planned = spot("plan", "kept.yaml", *noisy)
    assert "noise independent: outputs differ by chance, so approximate caches are not measured there" in planned.out
    frames = run(spot, *noisy)
    assert frames.references == ()
    assert "distribution-exact (given the dual cache)" in Path("out/report.html").read_text()
    info = approximate.info(frames)
    assert info is not None
    assert [row[4].text for _, rows in info.groups[0].parts[1].groups for row in rows] == ["independent noise"]


def test_decode_says_cache_and_claim(spot: Spot, whole: Path, models: Path) -> None:
    short = ("--drafter", "ssd", "--block-length", 8, "--max-new-tokens", 4, "--ignore-eos", "the word")
    shown = spot("decode", "--target", whole, *short)
    assert "cache dual, approximate (--cache none decodes without); claim: exact given the cache\n" in shown.out
    assert "cache none; claim: lossless\n" in spot("decode", "--target", whole, "--cache", "none", *short).out
    assert "cache exact; claim: lossless\n" in spot("decode", "--target", models / "target", *short).out
    row = json.loads(spot("decode", "--target", whole, "--json", *short).out)
    assert (row["cache"], row["exact_cache"], row["claim"]) == ("dual", False, "exact given the cache")
    assert row["claim_in_words"] == row["claim"]


def test_decode_says_what_a_claim_of_the_distribution_is_given(spot: Spot, whole: Path) -> None:
    short = ("--drafter", "ssd", "--block-length", 8, "--max-new-tokens", 4, "--ignore-eos", "the word")
    drawn = ("--temperature", 1, "--noise", "independent")
    words = "distribution-exact (given the dual cache)"
    shown = spot("decode", "--target", whole, *drawn, *short)
    assert f"cache dual, approximate (--cache none decodes without); claim: {words}\n" in shown.out
    row = json.loads(spot("decode", "--target", whole, "--json", *drawn, *short).out)
    assert (row["cache"], row["claim"], row["claim_in_words"]) == ("dual", "distribution-exact", words)
    own = json.loads(spot("decode", "--target", whole, "--cache", "none", "--json", *drawn, *short).out)
    assert own["claim"] == own["claim_in_words"] == "distribution-exact"


def test_a_built_in_target_may_stand_twice_with_two_caches(
    spot: Spot, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(TARGETS, "shipped", TargetEntry(path=str(whole), block_length=8))
    assert "shipped" in built_in_tables().targets
    text = "name: x\ngrid: {target: [shipped, other], task: tiny-arith, drafter: none, max_new_tokens: 8}\n"
    Path("x.yaml").write_text(text + "targets: {other: {path: shipped, cache: prefix}}\n")
    ended = spot("plan", "x.yaml", "--json")
    assert ended.code == 0, ended.err
    cells = json.loads(ended.out)["cells"]
    assert [(cell["target"], cell["cache"], cell["reference"]) for cell in cells] == [
        ("shipped", "dual", False),
        ("other", "prefix", False),
        ("shipped", "none", True),
    ]


def test_every_family_with_an_approximate_cache_can_do_without() -> None:
    assert all(entry.exact_cache or "none" in entry.caches for entry in FAMILIES.values())
    with pytest.raises(ValueError, match="caches are dual: an approximate one needs none beside it"):
        FamilyEntry(loader="m:load", exact_cache=False, caches=("dual",))

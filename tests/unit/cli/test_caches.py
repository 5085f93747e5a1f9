"""Kinds of cache: part of a cell, of its claim, and of what a drafted output is compared with."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.resolve import as_published, resolve_target
from reports.frames import load
from reports.uncached import all_labels
from sweeps.cell import NO_DRAFTER, Cell
from sweeps.claims import Claim, claim_of
from sweeps.source import SweepError
from sweeps.spec import DecodeSpec, DrafterSpec, TargetSpec, TaskSpec
from tests.tiny_checkpoints import write_checkpoint
from workers.catalog import TARGETS
from workers.models.draft_graph import read_draft_graph

Spot = Callable[..., Any]

SWEEP = """\
name: caches
grid: {target: [whole, kept, dual], task: tiny-arith, drafter: [ssd], budget: 4, max_new_tokens: 12, block_length: 8}
targets:
  whole: {path: LLADA, cache: none}
  kept: {path: LLADA, cache: prefix}
  dual: {path: LLADA}
ignore_eos: true
measure: {prompts: 2, timed_prompts: 0}
"""


@pytest.fixture(scope="module")
def llada(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("llada")
    return write_checkpoint(folder, family="llada", config={"max_sequence_length": 2048}, tied=False)


def _cell(target: TargetSpec, **decode: Any) -> Cell:
    drafter = DrafterSpec(name="ssd", kind="ssd")
    return Cell(target=target, task=TaskSpec(name="t", kind="t"), decode=DecodeSpec(**decode), drafter=drafter)


def test_the_claim_follows_from_family_and_cache(llada: Path, models: Path) -> None:
    def resolved(path: Path, cache: str) -> TargetSpec:
        return resolve_target(TargetSpec(name="x", path=str(path), cache=cache))[0]

    assert resolved(llada, "").cache == "dual"
    assert resolved(models / "target", "").cache == "exact"
    assert claim_of(_cell(resolved(models / "target", ""))) == Claim.LOSSLESS
    assert claim_of(_cell(resolved(llada, "none"))) == Claim.LOSSLESS
    for cache in ("", "dual", "prefix"):
        assert claim_of(_cell(resolved(llada, cache))) == Claim.EXACT_GIVEN_CACHE
        independent = _cell(resolved(llada, cache), temperature=1.0, noise="independent")
        assert claim_of(independent) == Claim.DISTRIBUTION_EXACT
    cells = [_cell(resolved(llada, cache)) for cache in ("none", "prefix", "dual")]
    assert len({cell.cell_id for cell in cells}) == 3
    for cell in cells:
        assert cell.baseline().target.cache == cell.target.cache
        assert cell.baseline().drafter == NO_DRAFTER
    assert _cell(resolved(llada, "")).cell_id == cells[2].cell_id


def test_what_a_family_cannot_keep_is_refused_while_planning(models: Path, llada: Path) -> None:
    with pytest.raises(SweepError, match=r"^target x: cache is 'dual': allowed for this architecture is exact$"):
        resolve_target(TargetSpec(name="x", path=str(models / "target"), cache="dual"))
    with pytest.raises(SweepError, match=r"^target x: cache is 'paged': allowed .* is dual \| prefix \| none$"):
        resolve_target(TargetSpec(name="x", path=str(llada), cache="paged"))


def test_a_target_that_is_not_here_has_its_familys_cache() -> None:
    published = next(entry for entry in TARGETS.values() if entry.family == "SDARForCausalLM")
    target = as_published(TargetSpec(name="mine", path=published.path))
    assert (target.family, target.cache, target.exact_cache) == ("SDARForCausalLM", "exact", True)
    with pytest.raises(SweepError, match="target mine: cache is 'dual'"):
        as_published(TargetSpec(name="mine", path=published.path, cache="dual"))


def test_an_entry_may_name_a_built_in_target(spot: Spot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under another name it is the same checkpoint with the same artifacts: the same cells."""
    monkeypatch.chdir(tmp_path)
    text = "name: x\ngrid: {target: TARGET, task: tiny-arith, drafter: [ssd, spot]}\n"
    plans = []
    for target, more in (("tiny-sdar", ""), ("mine", "targets: {mine: {path: tiny-sdar, cache: exact}}\n")):
        Path("x.yaml").write_text(text.replace("TARGET", target) + more)
        ended = spot("plan", "x.yaml", "--json")
        assert ended.code == 0, ended.err
        plans.append([cell["cell_id"] for cell in json.loads(ended.out)["cells"]])
    assert plans[0] == plans[1]
    assert len(plans[0]) == 3


@pytest.mark.parametrize(
    ("targets", "shown"),
    [
        ("tiny-sdar", "exact"),
        ("tiny-llada,tiny-dream", "dual, approximate"),
        ("tiny-sdar,tiny-llada,tiny-llada2", "exact (tiny-sdar, tiny-llada2); dual, approximate (tiny-llada)"),
        ("tiny-sdar,nobody/nothing", "exact (tiny-sdar); not known yet (nobody/nothing)"),
    ],
)
def test_a_plan_says_which_cache_its_targets_keep(
    spot: Spot, monkeypatch: pytest.MonkeyPatch, targets: str, shown: str
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    axes = ("grid.task=tiny-arith", "grid.block_length=32", "grid.budget=4")
    plan = spot("plan", "quick", f"grid.target={targets}", "grid.drafter=[none,ssd]", *axes).out.splitlines()
    (line,) = [line for line in plan if line.split()[:1] == ["cache"]]
    assert line.split(maxsplit=1)[1].strip() == shown


def test_every_cache_is_compared_with_its_own_draft_free_decoder(
    spot: Spot, llada: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("caches.yaml").write_text(SWEEP.replace("LLADA", str(llada)))
    ended = spot("run", "caches.yaml", "--pool", "inline", "--out", "out")
    assert ended.code == 0, ended.err
    planned = json.loads(spot("plan", "caches.yaml", "--out", "out", "--json").out)["cells"]
    assert [cell["decode"] for cell in planned] == [0] * 6  # nothing is left to do
    claims = {(cell["target"], cell["drafter"]): cell["claim"] for cell in planned}
    assert claims["whole", "ssd"] == "lossless"
    assert claims["kept", "ssd"] == claims["dual", "ssd"] == "exact given the cache"


def test_decode_takes_a_kind_of_cache(spot: Spot, llada: Path) -> None:
    texts = {}
    for cache in ("none", "dual"):
        command = ("decode", "--target", llada, "--drafter", "ssd", "--cache", cache, "--block-length", 8)
        ended = spot(*command, "--max-new-tokens", 24, "--ignore-eos", "--json", "the word")
        assert ended.code == 0, ended.err
        texts[cache] = json.loads(ended.out)["text"]
    assert texts["none"] != texts["dual"]
    refused = spot("decode", "--target", llada, "--cache", "exact", "--block-length", 8, "the word")
    assert refused.code == 2
    assert "cache is 'exact': allowed for this architecture is dual | prefix | none" in refused.err


def test_trajectories_are_recorded_with_the_cache_that_is_asked_for(spot: Spot, llada: Path, tmp_path: Path) -> None:
    def calibrate(out: str, *more: object) -> Any:
        asked = ("--target", llada, "--task", "tiny-arith", "--block-length", 8, "--max-new-tokens", 8, "--prompts", 2)
        return spot("train", "spiffy", *asked, "--temperature", 0, "--pool", "inline", "--out", tmp_path / out, *more)

    assert calibrate("own").code == calibrate("prefix", "--cache", "prefix").code == 0
    assert {path.name for path in (tmp_path / "own" / "traces").iterdir()}.isdisjoint(
        path.name for path in (tmp_path / "prefix" / "traces").iterdir()
    )
    ended = calibrate("own", "--cache", "none")
    assert ended.code == 2
    assert "it was made with no --cache (here --cache none)" in ended.err
    ended = calibrate("other", "--cache", "dul")
    assert ended.code == 2
    assert "cache is 'dul': allowed for this architecture is dual | prefix | none" in ended.err
    assert not (tmp_path / "other").exists()


def test_the_commit_rule_is_the_uncached_reference_s_too(
    spot: Spot, llada: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule, cache and block length together, from a graph to the report's tables."""
    monkeypatch.chdir(tmp_path)
    asked = (
        "--target",
        llada,
        "--cache",
        "prefix",
        "--block-length",
        8,
        "--max-new-tokens",
        8,
        "--gpus",
        0,
        "--pool",
        "inline",
    )
    ended = spot("train", "spiffy", *asked, "--task", "tiny-arith", "--prompts", 2, "--temperature", 0, "--tau", 0.9)
    assert ended.code == 0, ended.err
    graph = Path("runs") / f"spiffy-{llada.name}-tau0.9" / "graph"
    assert (read_draft_graph(graph).tau, read_draft_graph(graph).block_length) == (0.9, 8)

    rules = "block_length: 8, commit: threshold, tau: [0.005, 0.9]"
    text = SWEEP.replace("[whole, kept, dual]", "[kept]").replace("block_length: 8", rules)
    text = text.replace("[ssd]", "[freedave, mine]").replace("prompts: 2", "prompts: 1")
    Path("caches.yaml").write_text(
        text.replace("LLADA", str(llada)) + f"drafters: {{mine: {{kind: spiffy, checkpoint: {graph}}}}}\n"
    )
    ended = spot("run", "caches.yaml", "--pool", "inline", "--out", "out")
    assert ended.code == 0, ended.err
    frames = load(Path("out"))
    taus = [0.005, 0.9]
    assert [own.cell.decode.threshold for own in frames.references] == taus
    assert [own.cell.target.cache for own in frames.references] == ["none"] * 2
    assert [(own.cell.drafter.name, own.cell.decode.threshold) for own in frames.results] == [
        (name, tau) for tau in taus for name in ("none", "freedave", "mine")
    ]
    assert all(own.agreement is not None and own.agreement.n == 1 for own in frames.results)
    assert all(own.claim_holds for own in frames.results if not own.cell.is_baseline)
    nfe = {own.cell.decode.threshold: own.nfe.value for own in frames.results if own.cell.is_baseline}
    assert nfe[0.005] < nfe[0.9] <= 12  # a random model is rarely sure, and of some tokens surer than chance
    names = {*all_labels(frames).setting.values()}
    assert names == {f"kept, T = 0, approximate cache prefix, commit rule threshold {tau}" for tau in taus}

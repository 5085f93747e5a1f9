"""Drafters made elsewhere, from sweep file to report: what a plan says, what a run stores, what a page shows."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.absent import artifact_to_make
from orchestrator.transfers import maker_of
from sweeps.belongs import read_jobs
from sweeps.effort import ResourceSpec
from sweeps.spec import CommitRule, GridSpec, SweepSpec, TargetSpec
from sweeps.store import RunDir
from tests.pages import Page
from tests.tiny_checkpoints import write_checkpoint
from workers.models.facts import inspect_order_model
from workers.targets.inspect import inspect_checkpoint

Spot = Callable[..., Any]
SWEEP = """\
name: two
grid: {target: [one, other], task: tiny-arith, drafter: [ssd, home, mine], budget: 2, max_new_tokens: 8}
targets:
  one: {path: ONE, block_length: 32}
  other: {path: OTHER, block_length: 32}
drafters:
  home: {kind: spot, checkpoint: COPY}
  mine: {kind: spot, checkpoint: ORDER}
measure: {prompts: 2, timed_prompts: 0, uncached_prompts: 0}
"""


def write_card(order: Path, target: Path, *, digest: str = "") -> None:
    """A card that says on which target an order model was made."""
    card = {
        "digest": digest or inspect_order_model(order).digest,
        "target": target.name,
        "target_digest": inspect_checkpoint(target).weight_digest,
        "sources": [],
    }
    (order / "card.json").write_text(json.dumps(card))


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A sweep over two targets of two families, and an order model made on each."""
    import torch

    from workers.models.facts import OrderConfig
    from workers.models.order_model import OrderModel, save_order_model

    monkeypatch.chdir(tmp_path)
    for place, (name, family) in enumerate((("one", "sdar"), ("other", "dream"))):
        write_checkpoint(tmp_path / name, family=family, config={"max_position_embeddings": 2048})
        torch.manual_seed(place)
        config = OrderConfig(block_length=32, layers=1, width=16, heads=2, feedforward=16)
        save_order_model(OrderModel(config), tmp_path / f"order-{name}")
        write_card(tmp_path / f"order-{name}", tmp_path / name)
    text = SWEEP.replace("ONE", "./one").replace("OTHER", "./other")
    path = tmp_path / "two.yaml"
    path.write_text(text.replace("COPY", "./order-other").replace("ORDER", "./order-one"))
    return path


def origins(run: Path) -> dict[tuple[str, str], tuple[list[str], bool | None]]:
    """By target and drafter: on what the stored cell says its artifact was made, and whether that is its target."""
    return {
        (cell.target.name, cell.drafter.name): ([made.target for made in cell.drafter.origins], cell.is_native)
        for cell in (job.cell for job in read_jobs(RunDir(run)))
        if not cell.is_baseline
    }


@pytest.mark.slow
def test_an_own_sweep_over_two_targets_has_the_section(spot: Spot, two: Path) -> None:
    plan = spot("plan", two)
    assert "drafter mine on other: its order model was made on one" in plan.out
    assert "drafter home on one: its order model was made on other" in plan.out
    ended = spot("run", two, "--pool", "inline", "--out", "run")
    assert ended.code == 0, ended.err
    assert origins(two.parent / "run") == {
        ("one", "ssd"): ([], None),
        ("one", "home"): (["other"], False),
        ("one", "mine"): (["one"], True),
        ("other", "ssd"): ([], None),
        ("other", "home"): (["other"], True),
        ("other", "mine"): (["one"], False),
    }
    page = Page((two.parent / "run" / "report.html").read_text(encoding="utf-8"))
    assert "Transfer: drafters made on another target" in page.text
    equal = "equal draft-free decoding (of approximate caches: with the same cache)."
    assert f"All 4 generations of 2 transferred cells that promise identity {equal}" in page.text
    with (two.parent / "run/report-data/cells.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["drafter"] != "none"]
    assert {(row["target"], row["drafter"]): (row["made_on"], row["native"]) for row in rows} == {
        ("one", "ssd"): ("", ""),
        ("one", "home"): ("other", "False"),
        ("one", "mine"): ("one", "True"),
        ("other", "ssd"): ("", ""),
        ("other", "home"): ("other", "True"),
        ("other", "mine"): ("one", "False"),
    }


def test_one_artifact_under_two_names_is_one_cell_on_its_own_target(spot: Spot, two: Path) -> None:
    two.write_text(two.read_text().replace("./order-other", "./order-one"))
    plan = json.loads(spot("plan", two, "--json").out)
    assert {(cell["target"], cell["drafter"]) for cell in plan["cells"]} == {
        (target, drafter) for target in ("one", "other") for drafter in ("none", "ssd", "home")
    }
    assert "mine: the same work as home (listed once, under that name)" in plan["notes"]


def test_a_card_of_another_model_says_nothing(spot: Spot, two: Path) -> None:
    write_card(two.parent / "order-one", two.parent / "one", digest="f" * 64)
    assert inspect_order_model(two.parent / "order-one").made_on == ()
    assert "order model was made on one" not in spot("plan", two).out


def test_where_a_drafter_was_made_is_not_to_be_stated(spot: Spot, two: Path) -> None:
    ended = spot("plan", two, "drafters.mine.origins=[]")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert "drafters.mine.origins" in ended.err


def test_what_is_absent_is_made_on_the_target_that_its_directory_names() -> None:
    first, second = TargetSpec(name="a", path="x/a"), TargetSpec(name="b", path="x/b")
    spec = SweepSpec(name="s", grid=GridSpec(target=("a", "b"), task=("t",)), targets=(first, second))
    kind = "order_model"
    assert maker_of(spec, second, kind, "") is second
    assert maker_of(spec, first, kind, "runs/order-b/model") is second
    assert maker_of(spec, second, kind, "somewhere/else") is first
    shipped = maker_of(spec, second, kind, "runs/order-sdar-8b-b32/model")
    assert (shipped.name, shipped.dtype) == ("sdar-8b-b32", "bfloat16")
    assert maker_of(spec, first, "draft_graph", "runs/spiffy-b/graph") is second
    assert maker_of(spec, first, "draft_graph", "runs/spiffy-b-tau0.9/graph") is second
    assert maker_of(spec, first, "draft_graph", "runs/spiffy-b-tau0.7/graph") is first  # of no tau of the sweep


@pytest.mark.parametrize(
    ("commit", "named", "tau"),
    [
        (("standard",), "runs/spiffy-a-tau0.9/graph", None),
        (("standard", "threshold"), "runs/spiffy-a/graph", None),
        (("standard", "threshold"), "runs/spiffy-a-tau0.9/graph", "0.9"),
        (("threshold",), "runs/spiffy-a-tau0.9/graph", "0.9"),
        (("threshold",), "elsewhere/graph", "0.7"),
        (("threshold",), "", "0.7"),
    ],
)
def test_a_graph_is_made_for_the_rule_that_its_directory_names(
    commit: tuple[CommitRule, ...], named: str, tau: str | None
) -> None:
    target = TargetSpec(name="a", path="x/a", block_length=32)
    grid = GridSpec(target=("a",), task=("t",), commit=commit, tau=(0.7, 0.9))
    spec = SweepSpec(name="s", grid=grid, targets=(target,), resources=ResourceSpec(gpus=1))
    words = artifact_to_make(spec, target, "spiffy", "draft_graph", named=named).command
    assert (words[words.index("--tau") + 1] if "--tau" in words else None) == tau
    assert words[words.index("--gpus") + 1] == "1"
    assert "--tau" not in artifact_to_make(spec, target, "spot", "order_model").command


def test_the_paper_s_transfer_lists_what_is_absent_once_with_the_commands_that_make_it(
    spot: Spot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    plan = json.loads(spot("plan", "transfer", "--with", "transfer-8b", "--json").out)
    made = [line for line in plan["missing"] if "order model is still to be made" in line]
    assert [line.split(" is still")[0] for line in made] == [
        "drafter from-sdar-8b for sdar-8b-b32: the order model",
        "drafter from-llada2-mini for llada2-mini: the order model",
    ]
    for line, target in zip(made, ("sdar-8b-b32", "llada2-mini"), strict=True):
        assert f"spot train order --target {target} --dtype bfloat16 --max-new-tokens 256 --block-length 32" in line
        assert f"--out runs/order-{target} " in line
        assert ", then add" not in line  # the settings name it
    assert {cell["task"] for cell in plan["cells"]} == {"gsm8k", "math500", "humaneval"}
    assert {cell["max_new_tokens"] for cell in plan["cells"]} == {256}
    assert sum("not in the local hub cache: fetch it first (hf download " in line for line in plan["missing"]) == 4
    pairs = {(cell["target"], cell["drafter"]) for cell in plan["cells"]}
    assert {target for target, drafter in pairs if drafter == "from-sdar-8b"} == {
        "sdar-8b-b32",
        "llada2-mini",
        "llada-8b",
        "dream-7b",
    }
    assert {target for target, drafter in pairs if drafter == "from-llada2-mini"} == {"llada2-mini"}


def test_the_packaged_sweep_has_every_pair_once_and_nothing_is_timed(spot: Spot) -> None:
    plan = json.loads(spot("plan", "transfer", "--json").out)
    targets = plan["spec"]["grid"]["target"]
    assert len(targets) == len(set(targets)) >= 4
    asked = {(target, f"from-{source}") for target in targets for source in targets}
    drafting = {(c["target"], c["drafter"]) for c in plan["cells"]}
    assert {pair for pair in drafting if pair[1].startswith("from-")} == asked
    assert {drafter for _, drafter in drafting - asked} == {"none", "ssd", "blockspec", "spiffy"}
    (note,) = [note for note in plan["notes"] if "was made on" in note]  # one, however many drafters are transferred
    assert sorted(note.split("; ")) == sorted(
        f"drafter from-{source} on {len(targets) - 1} targets: its order model was made on {source}"
        for source in targets
    )
    with_drafts = [cell for cell in plan["cells"] if cell["drafter"] != "none"]
    assert len(with_drafts) == len(targets) * 2 * 2 * (3 + len(targets))  # tasks, temperatures; ssd, blockspec, spiffy
    assert plan["spec"]["measure"]["timed_prompts"] == 0


def test_an_order_model_that_an_entry_names_has_that_name_on_its_own_target_too(spot: Spot) -> None:
    sources = ("tiny-sdar", "tiny-dream")
    axes = ("grid.task=tiny-arith", "grid.temperature=0", f"grid.target=[{','.join(sources)}]")
    drafters = ",".join(["none", "spot", *(f"from-{source}" for source in sources)])
    plan = json.loads(spot("plan", "transfer", "--json", f"grid.drafter=[{drafters}]", *axes).out)
    assert {(cell["target"], cell["drafter"]) for cell in plan["cells"]} == {
        (target, drafter) for target in sources for drafter in ("none", *(f"from-{source}" for source in sources))
    }
    said = [note for note in plan["notes"] if "the same work" in note]
    assert said == ["spot: the same work as from-tiny-sdar, from-tiny-dream (listed once, under those names)"]

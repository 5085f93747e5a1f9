"""What a person names that is absent, foreign, misspelt or made for something else: listed, refused, or noted."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.prepare import in_words
from tests.tiny_checkpoints import edit_json
from workers.catalog import ZOO
from workers.models.cost_curve import read_cost_curve, write_cost_curve
from workers.models.draft_graph import read_draft_graph, write_draft_graph

Spot = Callable[..., Any]


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A sweep of the shipped target; artifacts by name."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "tiny.yaml"
    path.write_text(
        "name: tiny\ngrid: {target: tiny-sdar, task: tiny-arith, drafter: [mine], budget: 4, max_new_tokens: 32}\n"
        "drafters: {mine: {kind: spot}}\nmeasure: {prompts: 1, timed_prompts: 0}\n"
    )
    return path


def planned(spot: Spot, sweep: Path, *overrides: str) -> dict[str, Any]:
    ended = spot("plan", sweep, "--json", *overrides)
    assert ended.code == 0, ended.err
    plan: dict[str, Any] = json.loads(ended.out)
    return plan


def refused(spot: Spot, *arguments: object) -> str:
    ended = spot(*arguments)
    assert (ended.code, ended.out) == (2, ""), ended.err
    assert ended.err.count("\n") == 1
    assert len(ended.err) < 700
    return str(ended.err)


REFUSED = {
    "drafters.mine.checkpoint=tinysdar": "did you mean spot-tiny-sdar?",
    "drafters.mine.checkpoint=nowhere": "is neither a directory nor one of spot-tiny-dream, spot-tiny-llada",
    "drafters.mine.checkpoint=/dev/null": "checkpoint '/dev/null' is not a directory",
    "drafters.mine.checkpoint=~nobody99/x": "checkpoint is '~nobody99/x': no home directory is known for ~nobody99",
    "drafters.mine.checkpoint=" + "x" * 300: "(300 characters)': allowed are 255 bytes a name",
    "drafters.mine.cost=tinysdar-cpu": "did you mean tiny-sdar-cpu?",
    "drafters.mine.cost=tiny-sdar-cpu.json": "did you mean tiny-sdar-cpu?",
    "drafters.mine.cost=nowhere": "is neither a file nor one of tiny-sdar-cpu",
    "drafters.mine.cost=/": "cost '/' is not a file",
    "drafters.mine.cost=.": "cost '.' is not a file",
    "drafters.mine.cost=/dev/zero": "cost '/dev/zero' is not a file",
    "drafters.mine.cost=pipe": "cost 'pipe' is not a file",
    "drafters.mine.cost=~nobody99/x": "cost is '~nobody99/x': no home directory",
    "grid.target=tiny-sdar/": "did you mean tiny-sdar?",
    "grid.target=~nobody99/x": "path is '~nobody99/x': no home directory",
    "grid.task=jsonl:~nobody99/x": "path is '~nobody99/x': no home directory",
    "grid.task=jsonl:" + "y" * 300: "(300 characters)': allowed are 255 bytes a name",
    "name=" + "z" * 300: "(302 characters): allowed is 1 to 80 letters",
}


@pytest.mark.parametrize("command", ["plan", "run"])
@pytest.mark.parametrize("override", REFUSED)
def test_refused_by_plan_and_run(spot: Spot, tiny: Path, command: str, override: str) -> None:
    os.mkfifo(tiny.parent / "pipe")
    assert REFUSED[override] in refused(spot, command, tiny, override)
    assert not (tiny.parent / "runs").exists()


@pytest.mark.parametrize("option", ["checkpoint", "cost"])
def test_a_path_at_which_there_is_nothing_yet_is_listed_and_not_run(spot: Spot, tiny: Path, option: str) -> None:
    override = f"drafters.mine.{option}=runs/later/model"
    (missing,) = planned(spot, tiny, override)["missing"]
    assert f"{option} 'runs/later/model' is not there" in missing
    assert "is not there" in refused(spot, "run", tiny, "--pool", "inline", override)


def test_an_absent_order_model_is_made_where_the_sweep_looks_for_it(spot: Spot, tiny: Path) -> None:
    (missing,) = planned(spot, tiny, "drafters.mine.checkpoint=runs/later/model")["missing"]
    assert "spot train order --target tiny-sdar" in missing
    assert missing.endswith(" --out runs/later")  # where drafters.mine.checkpoint looks: there is nothing to add
    (missing,) = planned(spot, tiny, "drafters.mine.checkpoint=runs/later")["missing"]
    assert " --out runs/" in missing
    assert ", then add drafters.mine.checkpoint=runs/" in missing


GRAPH = ("drafters.mine={kind: spiffy, checkpoint: graph}", "grid.drafter=[mine]")


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"target": "other", "target_digest": "ab" * 32}, "made on other in float32"),
        ({"dtype": "bfloat16"}, "made on tiny-sdar in bfloat16"),
    ],
)
def test_a_graph_of_another_target_is_used_and_noted(
    spot: Spot, tiny: Path, changes: dict[str, str], note: str
) -> None:
    graph = read_draft_graph(ZOO / "drafters" / "spiffy-tiny-sdar")
    write_draft_graph(tiny.parent / "graph", graph)
    assert planned(spot, tiny, *GRAPH)["notes"] == []
    write_draft_graph(tiny.parent / "graph", replace(graph, **changes))  # type: ignore[arg-type]
    plan = planned(spot, tiny, *GRAPH)
    assert plan["notes"] == [f"drafter mine on tiny-sdar: its draft graph was {note}"]
    assert {cell["drafter"] for cell in plan["cells"]} == {"none", "mine"}


def test_a_curve_measured_with_another_drafter_is_used_and_noted(spot: Spot, tiny: Path) -> None:
    curve = read_cost_curve(ZOO / "costs" / "tiny-sdar-cpu.json")
    assert planned(spot, tiny, "drafters.mine.cost=tiny-sdar-cpu")["notes"] == []
    write_cost_curve(tiny.parent / "c.json", replace(curve, drafter_digest="f" * 64))
    (note,) = planned(spot, tiny, "drafters.mine.cost=c.json")["notes"]
    known = curve.drafter_digest[:12]
    assert note == (
        f"drafter mine on tiny-sdar: its cost curve was measured with another order model (ffffffffffff, here {known})"
    )
    write_cost_curve(tiny.parent / "c.json", replace(curve, drafter="ssd"))
    (note,) = planned(spot, tiny, "drafters.mine.cost=c.json")["notes"]
    assert note == "drafter mine on tiny-sdar: its cost curve was measured with drafter ssd"


def test_an_order_model_of_another_target_is_noted_where_its_card_says_so(spot: Spot, tiny: Path) -> None:
    folder = Path(shutil.copytree(ZOO / "drafters" / "spot-tiny-sdar", tiny.parent / "order"))
    override = f"drafters.mine.checkpoint={folder}"
    assert planned(spot, tiny, override)["notes"] == []
    sources = [
        {"role": "trained on", "target": "other", "target_digest": "ab" * 32},
        {"role": "trained on", "target": "third", "target_digest": "cd" * 32},
        {"role": "out of domain", "target": "tiny-sdar", "target_digest": "ef" * 32},
    ]
    own = json.loads((folder / "card.json").read_text())["digest"]
    (folder / "card.json").write_text(json.dumps({"digest": own, "sources": sources}))
    note = "drafter mine on tiny-sdar: its order model was made on other, third"
    assert planned(spot, tiny, override)["notes"] == [note]
    for foreign in (
        "{",
        "[]",
        "{}",
        '{"digest": "DIGEST", "sources": 5}',
        '{"digest": "DIGEST", "sources": [{"role": "trained on"}]}',
        json.dumps({"digest": "f" * 64, "sources": sources}),
    ):
        (folder / "card.json").write_text(foreign.replace("DIGEST", own))
        assert planned(spot, tiny, override)["notes"] == []
    (folder / "card.json").unlink()
    assert planned(spot, tiny, override)["notes"] == []


def test_weights_of_another_shape_are_refused_before_any_work(spot: Spot, sweep: Path, models: Path) -> None:
    from safetensors.torch import load_file, save_file

    from workers.models.facts import read_config
    from workers.models.stored import digest_of

    folder = Path(shutil.copytree(models / "order", sweep.parent / "odd"))
    tensors = load_file(folder / "model.safetensors")
    tensors["head.weight"] = tensors["head.weight"].repeat(2, 1)
    save_file(tensors, folder / "model.safetensors")
    config = read_config(folder)
    edit_json(folder / "config.json", digest=digest_of(config, (folder / "model.safetensors").read_bytes()))
    line = refused(spot, "plan", sweep, "drafters.spot.checkpoint=odd")
    assert "weights do not fit config.json: tensor head.weight in model.safetensors has shape [2, 16]" in line


def test_excluding_everything_is_said_in_words(spot: Spot, tiny: Path) -> None:
    line = refused(spot, "plan", tiny, "exclude=[{drafter: [mine, none], temperature: 0}]")
    assert "no cell is left to run (drafter mine or none, temperature 0.0: exclude[0])" in line
    assert in_words({"budget": 4, "target": ("a", "b")}) == "budget 4, target a or b"


TRAIN = ("--task", "tiny-arith", "--pool", "inline", "--out", "made")


@pytest.mark.parametrize("command", [("train", "spiffy"), ("measure", "cost")])
def test_a_second_target_is_refused_where_there_can_be_one(spot: Spot, tiny: Path, command: tuple[str, str]) -> None:
    rest = TRAIN if command[0] == "train" else ("--out", "c.json")
    line = refused(spot, *command, "--target", "tiny-sdar", "--target", "other", *rest)
    assert "--target is given 2 times (tiny-sdar, other): allowed is once" in line
    assert "--target" in refused(spot, *command, *rest)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            ("train", "order", *TRAIN, "--prompts", 10**7),
            "prompts is 10000000: allowed is a whole number from 2 to 100000",
        ),
        (("train", "order", *TRAIN, "--test-prompts", 10**7), "from 1 to 100000"),
        (("train", "order", *TRAIN, "--steps", 10**20), "allowed is a whole number up to 10000000"),
        (("train", "order", *TRAIN, "--block-length", 10**7), "from 3 to 1024"),
        (
            ("train", "spiffy", *TRAIN, "--prompts", 10**7),
            "prompts is 10000000: allowed is a whole number from 2 to 100000",
        ),
        (("train", "spiffy", *TRAIN, "--max-new-tokens", 10**12), "from 3 to 1000000"),
        (("measure", "cost", "--out", "c.json", "--states", "1,5000"), "up to 4097, the root and 4096 drafts"),
        (("measure", "cost", "--out", "c.json", "--threads", 10**5), "threads is 100000: allowed is a whole number"),
        (("measure", "cost", "--out", "c.json", "--repeats", 10**6), "a whole number from 3 to 10000"),
    ],
)
def test_more_than_can_be_meant(spot: Spot, tiny: Path, options: tuple[object, ...], says: str) -> None:
    assert says in refused(spot, *options, "--target", "tiny-sdar")
    assert not (tiny.parent / "made").exists()
    assert not (tiny.parent / "c.json").exists()


LONG = "x" * 300


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("plan", "tiny.yaml", "--out", LONG), "--out"),
        (("run", "tiny.yaml", "--pool", "inline", "--out", f"a/{LONG}/b"), "--out"),
        (("report", LONG), "RUN"),
        (("export", LONG), "RUN"),
        (("sync", LONG), "RUN"),
        (("decode", "--target", "tiny-sdar", "--ids-file", LONG), "--ids-file"),
        (("measure", "cost", "--target", "tiny-sdar", "--out", LONG), "--out"),
        (("train", "order", "--target", "tiny-sdar", "--task", "tiny-arith", "--out", LONG), "--out"),
        (("train", "spiffy", "--target", "tiny-sdar", "--task", "tiny-arith", "--out", LONG), "--out"),
        (("train", "target", "tiny-sdar", "--out", LONG), "--out"),
        (("plan", "tiny.yaml", "--out", "~nobody99/x"), "--out"),
    ],
)
def test_a_path_that_no_file_can_have_is_named_by_its_option(
    spot: Spot, tiny: Path, arguments: tuple[str, ...], field: str
) -> None:
    line = refused(spot, *arguments)
    assert f"{field} is '" in line
    assert "allowed are 255 bytes a name" in line or "no home directory" in line
    assert sorted(path.name for path in tiny.parent.iterdir()) == ["tiny.yaml"]


def test_the_home_directory_is_meant_even_where_no_shell_expands_it(
    spot: Spot, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tiny.parent))
    (tiny.parent / "mine.yaml").write_text("grid: {budget: 2}\n")
    for sweep in (tiny, "~/tiny.yaml"):
        plan = planned(spot, sweep, "--with", "~/mine.yaml", "--out", "~/there")  # type: ignore[arg-type]
        assert {cell["budget"] for cell in plan["cells"]} == {0, 2}

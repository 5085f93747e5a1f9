"""The block length and the dtype of a target are its own: known by the table, stated by a sweep, or asked for."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.train import OrderRequest, settled
from orchestrator.train_spiffy import SpiffyRequest
from orchestrator.train_spiffy import settled as settled_spiffy
from tests.tiny_checkpoints import edit_json, write_checkpoint
from workers.catalog import TARGETS

Spot = Callable[..., Any]
NAMED = "name: named\ngrid: {target: TARGET, task: tiny-arith, drafter: [ssd], max_new_tokens: 16}\n"
OWN = NAMED.replace("TARGET", "mine") + "targets: {mine: {path: DIR}}\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint in no table."""
    return write_checkpoint(tmp_path_factory.mktemp("mine") / "mine", config={"max_position_embeddings": 512})


def planned(spot: Spot, text: str, *overrides: str) -> dict[str, Any]:
    Path("x.yaml").write_text(text)
    ended = spot("plan", "x.yaml", "--json", *overrides)
    assert (ended.code, ended.err) == (0, "")
    plan: dict[str, Any] = json.loads(ended.out)
    return plan


def test_a_named_target_brings_its_own_and_a_path_of_the_table_is_the_same_target(spot: Spot) -> None:
    names = ("sdar-8b-b16", "JetLM/SDAR-8B-Chat-b32", "llada-8b", "tiny-sdar")
    plan = planned(spot, NAMED, f"grid.target={','.join(names)}")
    lengths = {cell["target"]: cell["block_length"] for cell in plan["cells"]}
    assert lengths == dict(zip(names, (16, 32, 32, 32), strict=True))
    dtypes = {target["name"]: target["dtype"] for target in plan["spec"]["targets"]}
    assert dtypes == dict(zip(names, ("bfloat16", "bfloat16", "bfloat16", "float32"), strict=True))
    assert not any("blocks of" in note for note in plan["notes"])


def test_what_a_sweep_states_wins_and_another_length_is_noted(spot: Spot) -> None:
    text = NAMED.replace("TARGET", "[half, tiny-sdar]")
    text += "targets: {half: {path: tiny-sdar, dtype: bfloat16, block_length: 16}}\n"
    plan = planned(spot, text)
    assert {cell["target"]: cell["block_length"] for cell in plan["cells"]} == {"half": 16, "tiny-sdar": 32}
    note = "target half: decoded in blocks of 16, and it was made for 32: out of its training"
    assert [line for line in plan["notes"] if "blocks of" in line] == [note]
    plan = planned(spot, text, "grid.block_length=8")
    assert {cell["block_length"] for cell in plan["cells"]} == {8}
    assert sum("decoded in blocks of 8" in line for line in plan["notes"]) == 2


def test_stating_what_is_so_anyway_changes_no_identity(spot: Spot) -> None:
    text = NAMED.replace("TARGET", "tiny-sdar")
    ids = [
        [cell["cell_id"] for cell in planned(spot, text, *more)["cells"]]
        for more in ((), ("grid.block_length=32",), ("targets.tiny-sdar.block_length=32",))
    ]
    assert len(ids[0]) == 2
    assert ids[0] == ids[1] == ids[2]


@pytest.mark.parametrize(
    ("block_size", "says"), [(..., "block_size is absent"), (4, "block_size of its config.json (4)")]
)
def test_nobody_knows_it_is_one_line_before_any_work_with_both_ways(
    spot: Spot, folder: Path, block_size: object, says: str
) -> None:
    edit_json(folder / "config.json", block_size=block_size)
    Path("x.yaml").write_text(OWN.replace("DIR", str(folder)))
    for command in ("plan", "run"):
        ended = spot(command, "x.yaml")
        assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
        assert ended.err.startswith("spot: target mine: its block length is not known: it is in no table, and ")
        assert says in ended.err
        assert ended.err.endswith("targets.mine.block_length=N or grid.block_length=N (for all targets)\n")
    assert not Path("runs").exists()
    for way in ("targets.mine.block_length=16", "grid.block_length=16"):
        cells = planned(spot, OWN.replace("DIR", str(folder)), way)["cells"]
        assert {cell["block_length"] for cell in cells} == {16}


def test_a_path_on_the_axis_and_a_hub_id_that_is_not_here(spot: Spot, folder: Path) -> None:
    for target in (str(folder), "nobody/nothing"):
        Path("x.yaml").write_text(NAMED.replace("TARGET", target))
        ended = spot("plan", "x.yaml")
        assert (ended.code, ended.err.count("\n")) == (2, 1)
        entry = f"targets: {{NAME: {{path: {target}, block_length: N}}}} or grid.block_length=N"
        assert f"target {target}: its block length is not known" in ended.err
        assert entry in ended.err


def test_a_directory_in_the_current_folder_is_found_by_its_name_alone_and_a_name_of_the_table_wins(
    spot: Spot, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    ended = spot("decode", "--target", "mine", "--drafter", "none", "--block-length", 16, "--max-new-tokens", 2, "x")
    assert ended.code == 0, ended.err
    Path("tiny-sdar").mkdir()
    plan = planned(spot, NAMED.replace("TARGET", "[mine, tiny-sdar]"), "grid.block_length=32")
    assert [(target["name"], target["path"]) for target in plan["spec"]["targets"]] == [
        ("mine", str(folder)),
        ("tiny-sdar", str(TARGETS["tiny-sdar"].path)),
    ]
    ended = spot("decode", "--target", "mina", "--drafter", "none", "x")
    assert ended.err.endswith("(or a directory, or a hub id owner/name)\n")


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("decode", ("--drafter", "none", "hello")),
        ("train order", ("--task", "tiny-arith", "--out", "out")),
        ("train spiffy", ("--task", "tiny-arith", "--out", "out")),
        ("measure cost", ("--out", "out.json")),
    ],
)
def test_commands_ask_for_it_too(spot: Spot, folder: Path, command: str, options: tuple[str, ...]) -> None:
    ended = spot(*command.split(), "--target", folder, *options)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert f"target {folder}: its block length is not known" in ended.err
    assert ended.err.endswith("say what it was trained for, --block-length N\n")
    assert not Path("out").exists()


@pytest.mark.parametrize(("stated", "told"), [(16, True), (32, False)])
def test_another_length_than_the_config_states_is_noted_for_a_target_in_no_table(
    spot: Spot, folder: Path, stated: int, told: bool
) -> None:
    own = "block_size of its config.json is 32: out of its training, if that is right (it often is not)"

    def note(name: object) -> list[str]:
        return [f"target {name}: decoded in blocks of {stated}, and {own}"] if told else []

    edit_json(folder / "config.json", block_size=32)
    for way in ("targets.mine.block_length", "grid.block_length"):
        plan = planned(spot, OWN.replace("DIR", str(folder)), f"{way}={stated}")
        assert plan["notes"] == note("mine")
    commands = (  # each is refused behind the note, so that nothing is trained or measured here
        ("decode", "--drafter", "none", "--max-new-tokens", 8, "--device", "meta", "hello"),
        ("train", "order", "--task", "tiny-arith", "--out", "out", "--max-new-tokens", 512),
        ("train", "spiffy", "--task", "tiny-arith", "--out", "out", "--max-new-tokens", 512),
        ("measure", "cost", "--out", "out.json", "--prefixes", 512),
    )
    for command in commands:
        ended = spot(*command, "--target", folder, "--block-length", stated)
        *notes, refusal = ended.err.splitlines()
        assert notes == [f"note: {text}" for text in note(folder)]
        assert (ended.code, refusal[:6]) == (2, "spot: ")


def test_the_table_is_right_where_a_published_config_is_not(spot: Spot) -> None:
    plan = planned(spot, NAMED.replace("TARGET", "tiny-sdar"), "grid.block_length=16", "grid.drafter=none")
    assert plan["notes"] == ["target tiny-sdar: decoded in blocks of 16, and it was made for 32: out of its training"]
    ended = spot("decode", "--target", "tiny-sdar", "--drafter", "none", "--block-length", 16, "--device", "meta", "x")
    assert ended.err.startswith("note: target tiny-sdar: decoded in blocks of 16, and it was made for 32")


def test_training_takes_what_all_its_targets_have() -> None:
    made = settled(OrderRequest(targets=("sdar-8b-b16",), tasks=("tiny-arith",), test_targets=("sdar-1.7b-b16",)))
    assert (made.block_length, made.dtype) == (16, "bfloat16")
    assert settled(made) == made
    mixed = OrderRequest(targets=("sdar-8b-b16", "llada-8b"), tasks=("tiny-arith",))
    with pytest.raises(ValueError, match="block_length: llada-8b has 32, sdar-8b-b16 16: state one for all"):
        settled(mixed)
    with pytest.raises(ValueError, match=r"dtype: .*float32.*: state one for all, --dtype D"):
        settled(OrderRequest(targets=("sdar-8b-b32", "tiny-sdar"), tasks=("tiny-arith",)))
    graph = settled_spiffy(SpiffyRequest(target="sdar-8b-b16", tasks=("tiny-arith",), dtype="float32"))
    assert (graph.block_length, graph.dtype) == (16, "float32")


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("targets.tiny-sdar.block_length=0", "targets.tiny-sdar.block_length is 0: allowed is a whole number from 1"),
        ("targets.tiny-sdar.block_length=-1", "block_length is -1: allowed is a whole number from 1 to 1024"),
        ("grid.block_length=0", "grid.block_length is 0: allowed is a whole number from 1 to 1024"),
        ("grid.block_length=[]", "grid.block_length is an empty list"),
        ("targets.tiny-sdar.cache=duel", "cache is 'duel': allowed for this architecture is exact"),
        ("grid.target=llada-8", "did you mean llada-8b?"),
    ],
)
def test_bad_values_are_one_line(spot: Spot, override: str, says: str) -> None:
    Path("x.yaml").write_text(NAMED.replace("TARGET", "tiny-sdar"))
    ended = spot("plan", "x.yaml", override)
    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert says in ended.err

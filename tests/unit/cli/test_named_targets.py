"""`spot list targets`, `spot doctor` and `spot plan` on named targets: what is here, what it takes, where it fits."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.checkpoints import present
from orchestrator.machine import Gpu, Machine, gpu_of, gpus
from orchestrator.memory_notes import memory_notes
from orchestrator.named_targets import artifacts_of, differences, named_target, room_for, target_findings
from orchestrator.tables import target_of
from sweeps.cell import Cell
from sweeps.effort import ResourceSpec
from sweeps.spec import DecodeSpec, DrafterSpec, TaskSpec
from tests.tiny_checkpoints import cut_in_shards, write_checkpoint
from workers import catalog
from workers.targets.inspect import checked_config

Spot = Callable[..., Any]
ROOT = Path(__file__).parents[3]
GB = 10**9


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A hub cache of the test's own, and no network."""
    cache = tmp_path / "hub"
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache))
    monkeypatch.setattr("huggingface_hub._snapshot_download.constants.HF_HUB_CACHE", str(cache))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)
    return cache


def cached(cache: Path, hub_id: str) -> Path:
    """The snapshot folder of a hub id in the cache, made with its reference."""
    home, commit = cache / f"models--{hub_id.replace('/', '--')}", "0123456789abcdef0123456789abcdef01234567"
    (home / "refs").mkdir(parents=True)
    (home / "refs" / "main").write_text(commit)
    return home / "snapshots" / commit


def test_a_row_says_what_a_target_is(spot: Spot) -> None:
    ended = spot("list", "targets")
    assert ended.code == 0
    header, *lines = (line.split() for line in ended.out.splitlines())
    first = ["target", "family", "checkpoint", "parameters", "weights", "dtype", "block", "caches", "exact"]
    assert header == [*first, "stop", "ids", "here"]
    rows = {line[0]: line for line in lines}
    assert list(rows) == list(catalog.TARGETS)
    assert rows["sdar-8b-b16"] == [
        *("sdar-8b-b16", "SDARForCausalLM", "JetLM/SDAR-8B-Chat-b16", "8,190,735,360", "16.4", "GB", "bfloat16"),
        *("16", "exact", "yes", "151643,", "151645", "no"),
    ]
    assert rows["dream-7b"][-8:] == ["dual,", "prefix,", "none", "only", "none", "151643,", "151645", "no"]
    assert rows["llada2-mini"][-2:] == ["156892", "no"]
    assert rows["tiny-sdar"][2] == "zoo"
    assert rows["tiny-sdar"][-3:] == ["yes", "1", "yes"]  # its stop id is read from its own files


def test_nothing_of_it_imports_torch() -> None:
    code = (
        "import sys\nfrom orchestrator.machine import this_machine\n"
        "from orchestrator.named_targets import named_targets, target_findings\n"
        "assert list(named_targets()) and list(target_findings(this_machine()))\n"
        "assert not {'torch', 'transformers', 'safetensors', 'ray'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=120)


def test_a_checkpoint_is_here_partly_or_not(empty_cache: Path) -> None:
    name = "sdar-1.7b-b32"
    spec = target_of(name, catalog.TARGETS[name])
    assert present(spec).here == "no"
    folder = cached(empty_cache, spec.path)
    write_checkpoint(folder)
    assert present(spec).here == "yes"
    shard, _ = cut_in_shards(folder)
    assert present(spec).here == "yes"
    shard.rename(folder / "apart")
    found = present(spec)
    assert (found.here, shard.name in found.lacks) == ("partly", True)
    target = named_target(name, catalog.TARGETS[name])
    assert (target.here, target.shape) == ("partly", catalog.TARGETS[name].published.shape)  # type: ignore[union-attr]
    (folder / "apart").rename(shard)
    (folder / "tokenizer.json").unlink()
    assert present(spec).lacks.endswith("no tokenizer.json and no vocab.json")


def test_a_checkpoint_that_is_here_is_described_by_its_own_config(empty_cache: Path) -> None:
    entry = catalog.TARGETS["llada-8b"]
    folder = write_checkpoint(cached(empty_cache, entry.path), family="llada")
    target = named_target("llada-8b", entry)
    assert target.shape is not None
    assert (target.here, target.shape.layers, target.fault) == ("yes", 2, "")
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[:-8])
    assert "truncated" in named_target("llada-8b", entry).fault


def test_doctor_says_where_a_checkpoint_is_not_as_published(empty_cache: Path) -> None:
    entry = catalog.TARGETS["dream-7b"]
    assert entry.published is not None
    folder = cached(empty_cache, entry.path)
    write_checkpoint(folder, family="dream")
    target, config = named_target("dream-7b", entry), checked_config(folder)
    assert "layers is 2 (published: 28)" in target.unlike
    assert f"mask id is {config.tokens.mask_id} (published: 151666)" in target.unlike
    assert f"positions is {config.max_positions} (published: 131072)" in target.unlike
    assert "qkv_bias" not in target.unlike  # alike in both
    finding = next(one for one in target_findings(machine()) if one.subject == "target dream-7b")
    assert (finding.level, finding.text.endswith(target.unlike)) == ("note", True)
    known = entry.published
    tokens = replace(config.tokens, mask_id=known.mask_id, stop_ids=known.stop_ids[::-1])
    alike = replace(config, shape=known.shape, max_positions=known.max_positions, tokens=tokens)
    assert differences(alike, known) == ""
    assert differences(replace(alike, tokens=replace(tokens, stop_ids=(151643,))), known) == (
        "stop ids is [151643] (published: [151643, 151645])"
    )


def machine(ram: int = 0, *gpus: Gpu) -> Machine:
    return Machine(cores=2, memory=ram, gpus=gpus)


def test_doctor_says_where_a_target_fits_and_what_is_missing_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    target = named_target("sdar-8b-b32", catalog.TARGETS["sdar-8b-b32"])
    assert target.shape is not None
    monkeypatch.setattr("orchestrator.named_targets.memory_available", lambda: 10 * GB)
    small, large = Gpu(name="S", memory=16 * GB, free=15 * GB), Gpu(name="L", memory=80 * GB, free=79 * GB)
    nowhere = room_for(target, target.shape, machine(12 * GB, small))
    assert (nowhere.level, nowhere.subject) == ("note", "room for sdar-8b-b32")
    assert nowhere.text.startswith("does not fit; GPU 0 S: 15.0 GB free, ")
    assert "; RAM: 10.0 GB free, " in nowhere.text
    assert "(weights 16.4, cache 0.11, " in nowhere.text
    there = room_for(target, target.shape, machine(12 * GB, small, large))
    assert (there.level, there.text.split(";")[0]) == ("ok", "fits GPU 1 L")


def test_doctor_names_artifacts_or_the_command_that_makes_them(spot: Spot, tmp_path: Path) -> None:
    zoo = target_of("tiny-sdar", catalog.TARGETS["tiny-sdar"])
    nouns = ("order model", "set model", "draft graph")
    assert artifacts_of(zoo) == (", ".join(f"{noun} for blocks of 32" for noun in nouns), "")
    spec = target_of("dream-7b", catalog.TARGETS["dream-7b"])
    order, sets, graph = artifacts_of(spec)[0].split(", ")
    assert order == "no order model (spot train order --target dream-7b --task jsonl:TRAIN.jsonl)"
    assert sets == "no set model (spot train sets --target dream-7b --task jsonl:TRAIN.jsonl)"
    assert graph == "no draft graph (spot train spiffy --target dream-7b --task jsonl:TRAIN.jsonl)"
    made = tmp_path / "runs" / "order-dream-7b" / "model"  # where that command puts it
    shutil.copytree(catalog.TARGETS["tiny-sdar"].artifacts["order_model"], made)
    assert artifacts_of(spec)[0].startswith("order model for blocks of 32 in runs/order-dream-7b/model, no set model")
    (made / "config.json").write_text("{}")
    assert "its order model" in artifacts_of(spec)[1]


def test_lines_of_nvidia_smi() -> None:
    assert gpu_of("NVIDIA H200, 143771, 143000") == Gpu(name="NVIDIA H200", memory=143771 * 2**20, free=143000 * 2**20)
    assert gpu_of("Odd, name, [N/A], [N/A]") == Gpu(name="Odd, name", memory=0, free=0)


def test_a_tool_that_does_not_answer_in_utf8_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "nvidia-smi"
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    for answer, found in ((r"GPU, 10, 5\n", 1), (r"\377\376, 10, 5\n", 0)):
        tool.write_text(f"#!/bin/sh\nprintf '{answer}'\n")
        tool.chmod(0o755)
        assert len(gpus()) == found


def cell(name: str, budget: int) -> Cell:
    from orchestrator.resolve import as_published

    return Cell(
        target=as_published(target_of(name, catalog.TARGETS[name])),
        task=TaskSpec(name="t", kind="t"),
        decode=DecodeSpec(max_new_tokens=256),
        drafter=DrafterSpec(name="ssd", kind="ssd", budget=budget),
    )


def test_a_plan_says_what_this_machine_can_never_hold() -> None:
    cells = [cell("sdar-8b-b32", 4), cell("sdar-8b-b32", 20), cell("sdar-1.7b-b32", 20)]
    assert list(memory_notes(cells, ResourceSpec(), 1, machine(64 * GB))) == []
    (line,) = memory_notes(cells, ResourceSpec(), 1, machine(16 * GB))
    assert line.startswith("not on this machine: target sdar-8b-b32: needs 1")
    assert "16.0 GB are there (all RAM)" in line
    (line,) = memory_notes(cells, ResourceSpec(), 4, machine(64 * GB))
    assert line.startswith(
        "target sdar-8b-b32: the weights that 4 workers hold are 65.5 GB together, 64.0 GB are there"
    )
    assert line.endswith("give resources.workers=3")
    gpu = Gpu(name="S", memory=16 * GB, free=0)
    (line,) = memory_notes(cells, ResourceSpec(gpus=1), 4, machine(900 * GB, gpu))
    assert "16.0 GB are there (the largest GPU)" in line
    assert list(memory_notes(cells, ResourceSpec(gpus=1), 4, machine())) == []  # nobody knows


def test_the_plan_has_that_note(spot: Spot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.forecast.this_machine", lambda: machine(20 * 10**6))
    Path("x.yaml").write_text("grid: {target: tiny-sdar, task: tiny-arith, drafter: ssd}\n")
    notes = json.loads(spot("plan", "x.yaml", "--json").out)["notes"]
    assert any(note.startswith("not on this machine: target tiny-sdar: needs ") for note in notes)


def test_a_plan_knows_the_positions_of_a_target_that_is_not_here(spot: Spot) -> None:
    Path("x.yaml").write_text("grid: {target: [llada-8b, sdar-8b-b32], task: tiny-arith, drafter: [none]}\n")
    plan = json.loads(spot("plan", "x.yaml", "grid.max_new_tokens=4096", "--json").out)
    assert {cell["target"] for cell in plan["cells"]} == {"sdar-8b-b32"}
    (dropped,) = plan["dropped"]
    assert dropped["reason"] == "can never fit: llada-8b has 4096 positions, and a prompt takes some of them"

"""Whether a target fits: what the system says there is, and a refusal before a single weight is read."""

import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from sweeps.spec import DecodeSpec, DrafterSpec, TargetSpec
from tests.tiny_checkpoints import write_checkpoint
from workers.guard import failure_of
from workers.loading import Loaded
from workers.room import memory_available, memory_limit, shortage, size_of
from workers.targets.memory import MemoryNeed

SIZE = size_of(DecodeSpec(max_new_tokens=24, block_length=4), DrafterSpec(name="ssd", kind="ssd", budget=4))
NEED = MemoryNeed(weights=16_400_000_000, cache=100_000_000, activations=0, logits=0)


def system(folder: Path, groups: dict[str, dict[str, object]], own: str = "0::/a/b\n") -> dict[str, Path]:
    """A `/proc` with 8 GB, 6 of them available, and control groups by folder."""
    (folder / "proc" / "self").mkdir(parents=True)
    (folder / "proc" / "meminfo").write_text("MemTotal: 8000000 kB\nMemAvailable: 6000000 kB\nHugePages_Total: 0\n")
    (folder / "proc" / "self" / "cgroup").write_text(own)
    for group, files in groups.items():
        (folder / "cgroup" / group).mkdir(parents=True, exist_ok=True)
        for name, value in files.items():
            (folder / "cgroup" / group / name).write_text(f"{value}\n")
    return {"cgroups": folder / "cgroup", "proc": folder / "proc"}


def test_without_limits_it_is_the_machines_memory(tmp_path: Path) -> None:
    where = system(tmp_path, {"a/b": {"memory.max": "max", "memory.current": 5, "memory.stat": "inactive_file 1"}})
    assert (memory_limit(**where), memory_available(**where)) == (8_192_000_000, 6_144_000_000)


@pytest.mark.parametrize("group", ["a/b", "a", "."])
def test_the_least_limit_of_the_own_group_and_those_above_counts(tmp_path: Path, group: str) -> None:
    own = {
        "memory.max": 3_000_000_000,
        "memory.current": 2_500_000_000,
        "memory.stat": "anon 1\ninactive_file 500000000",
    }
    wide = {"memory.max": 7_000_000_000, "memory.current": 0, "memory.stat": "inactive_file 0"}
    where = system(tmp_path, {**dict.fromkeys(("a/b", "a", "."), wide), group: own})
    assert memory_limit(**where) == 3_000_000_000
    assert memory_available(**where) == 1_000_000_000  # cached files are dropped for who asks


def test_the_older_control_groups_are_read_too(tmp_path: Path) -> None:
    files = {
        "memory.limit_in_bytes": 2_000_000_000,
        "memory.usage_in_bytes": 1_900_000_000,
        "memory.stat": "total_inactive_file 100000000",
    }
    where = system(tmp_path, {"memory/x": files}, own="4:cpu,memory:/x\n0::/\n")
    assert (memory_limit(**where), memory_available(**where)) == (2_000_000_000, 200_000_000)


def test_a_full_group_leaves_nothing_and_an_unknown_system_says_zero(tmp_path: Path) -> None:
    full = {"memory.max": 1_000, "memory.current": 2_000, "memory.stat": "inactive_file 0"}
    assert memory_available(**system(tmp_path, {".": full})) == 1  # 0 would mean that nobody knows
    nowhere = {"cgroups": tmp_path / "no", "proc": tmp_path / "no"}
    assert (memory_limit(**nowhere), memory_available(**nowhere)) == (0, 0)


def test_a_limit_on_addresses_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = system(tmp_path, {})
    (where["proc"] / "self" / "statm").write_text("1000 20 10 1 0 30 0\n")
    limits = {resource.RLIMIT_AS: (3_000_000_000, resource.RLIM_INFINITY)}
    monkeypatch.setattr("resource.getrlimit", limits.__getitem__)
    assert memory_limit(**where) == 3_000_000_000
    assert memory_available(**where) == 3_000_000_000 - 1000 * resource.getpagesize()


def test_ulimit_is_seen_by_a_process_that_has_it() -> None:
    code = "from workers.room import memory_limit, memory_available as free; print(memory_limit(), free())"
    shell = ["bash", "-c", f"ulimit -v 2000000; exec {sys.executable} -c '{code}'"]
    limit, free = map(int, subprocess.run(shell, capture_output=True, text=True, check=True).stdout.split())
    assert limit <= 2_000_000 * 1024
    assert 0 < free < limit


def test_a_shortage_names_target_parts_and_what_is_missing() -> None:
    assert shortage("t", NEED, 10_000_000_000, "available RAM") == (
        "target t: needs 16.5 GB (weights 16.4, cache 0.1, activations 0, logits 0): "
        "10.0 GB are there (available RAM), 6.5 GB are missing"
    )
    assert shortage("t", NEED, NEED.total, "x") == shortage("t", NEED, 0, "x") == ""


@pytest.mark.parametrize("family", ["sdar", "llada2", "llada", "dream"])
def test_nothing_is_read_of_a_target_that_does_not_fit(
    family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_checkpoint(tmp_path, family=family)
    names = {"sdar": "SDARForCausalLM", "llada2": "LLaDA2MoeModelLM", "llada": "LLaDAModelLM", "dream": "DreamModel"}
    spec = TargetSpec(name="large", path=str(folder), family=names[family])
    (folder / "model.safetensors").rename(folder / "elsewhere")  # whoever looks at the weights fails otherwise
    monkeypatch.setattr("workers.room.memory_available", lambda: 50_000)
    with pytest.raises(
        ValueError, match=r"^target large: needs .*weights .*\(available RAM\), .* are missing$"
    ) as raised:
        Loaded("cpu").get_target(spec, SIZE)
    assert failure_of(raised.value).kind == "deterministic"
    (folder / "elsewhere").rename(folder / "model.safetensors")
    monkeypatch.setattr("workers.room.memory_available", lambda: 500_000_000)
    loaded = Loaded("cpu")
    target = loaded.get_target(spec, SIZE)
    monkeypatch.setattr("workers.room.memory_available", lambda: 50_000)
    assert loaded.get_target(spec, SIZE) is target  # it is there already, and was asked for this size
    larger = replace(SIZE, max_new_tokens=SIZE.max_new_tokens * 100)
    lines = []
    for size in (larger, replace(SIZE, states=64)):
        with pytest.raises(ValueError, match=r"needs .*\(weights 0, .* are missing$") as raised:
            loaded.get_target(spec, size)
        lines.append(str(raised.value))
    assert lines[0] != lines[1]
    monkeypatch.setattr("workers.room.memory_available", lambda: 500_000_000)
    assert loaded.get_target(spec, larger) is target

"""Whether a target fits the memory there is, asked before a single weight is read.

Running out of memory half-way through loading ends a worker without a word (the kernel kills it), and takes its
neighbours along. A refusal here says what is needed, for what, and what there is. RAM is read without torch.
"""

import resource
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from sweeps.spec import DecodeSpec, DrafterSpec
from workers.catalog import DRAFTERS
from workers.models import facts, set_facts
from workers.models.memory import ModelSize
from workers.models.named import find_artifact
from workers.models.stored import CONFIG_FILE, Kind, read_settings
from workers.targets.memory import MemoryNeed, SequenceSize, gigabytes, memory_need
from workers.targets.shape import BodyShape

MODELS: Mapping[str, Kind[Any]] = {"order_model": facts.KIND, "set_model": set_facts.KIND}  # by artifact
CGROUPS, PROC = Path("/sys/fs/cgroup"), Path("/proc")
V2 = ("memory.max", "memory.current", "inactive_file")
V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


def memory_limit(*, cgroups: Path = CGROUPS, proc: Path = PROC) -> int:
    """RAM in bytes, or the least limit that a container or `ulimit -v` sets on it; 0 where the system does not say."""
    own = _meminfo(proc).get("MemTotal", 0)
    return min([own, *(limit for limit, _ in _limits(cgroups, proc))]) if own else 0


def memory_available(*, cgroups: Path = CGROUPS, proc: Path = PROC) -> int:
    """RAM in bytes that can be had now without swapping, within these limits; 0 where the system does not say.

    Cached file pages count as free: the kernel drops them for a program that asks.
    """
    own = _meminfo(proc).get("MemAvailable", 0)
    return max(1, min([own, *(limit - used for limit, used in _limits(cgroups, proc))])) if own else 0


def size_of(decode: DecodeSpec, drafter: DrafterSpec, *, cache: str = "") -> SequenceSize:
    """What a cell decodes at once, with a prompt of usual length and the target's kind of `cache`."""
    return SequenceSize(
        block_length=decode.block_length,
        max_new_tokens=decode.max_new_tokens,
        states=1 + drafter.budget,
        cache=cache,
        sampled=decode.temperature > 0,
        crosses=drafter.cross_block,
        judges_all=drafter.max_commit,
        model=_model_of(drafter),
    )


def shortage(name: str, need: MemoryNeed, available: int, where: str) -> str:
    """One line on what is lacking for a target; "" when it fits, or when nobody knows (`available` is 0)."""
    if not available or need.total <= available:
        return ""
    lacks = f"{gigabytes(available)} GB are there ({where}), {gigabytes(need.total - available)} GB are missing"
    return f"target {name}: needs {need}: {lacks}"


def check_room(
    name: str, shape: BodyShape, dtype: str, size: SequenceSize, device: str, *, loaded: bool = False
) -> None:
    """Raise ValueError, naming target, need by its parts and what there is, when a target does not fit a device now.

    The weights of one that is `loaded` take no more.
    """
    gpu = not device.startswith("cpu")
    available, where = (_free_on(device), f"free on {device}") if gpu else (memory_available(), "available RAM")
    need = memory_need(shape, dtype, size, gpu=gpu)
    line = shortage(name, replace(need, weights=0) if loaded else need, available, where)
    if line:
        raise ValueError(line)


def _model_of(drafter: DrafterSpec) -> ModelSize | None:
    """Sizes of the model that a drafter asks; None where it asks none, or none that is there: loading says so."""
    kind = MODELS.get(DRAFTERS[drafter.kind].artifact if drafter.kind in DRAFTERS else "")
    if kind is None:
        return None
    try:
        return _stored_size(kind, drafter.checkpoint, drafter.digest)
    except (ValueError, OSError):
        return None


@lru_cache(maxsize=64)
def _stored_size(kind: Kind[Any], checkpoint: str, digest: str) -> ModelSize:
    """Sizes by the configuration of a checkpoint; a plan asks for those of one digest once a cell."""
    config = read_settings(find_artifact(checkpoint, noun=kind.noun, file=CONFIG_FILE), kind)
    return ModelSize.of(config, config.weight_shapes)


def _free_on(device: str) -> int:
    """Free bytes of a CUDA device, what torch holds unused included; 0 for another kind of device."""
    import torch

    if not device.startswith("cuda"):
        return 0
    free, _ = torch.cuda.mem_get_info(device)
    return int(free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device))


def _meminfo(proc: Path) -> dict[str, int]:
    """`/proc/meminfo` in bytes; empty where there is none."""
    try:
        lines = (proc / "meminfo").read_text().splitlines()
    except OSError:
        return {}
    pairs = (line.replace(":", " ").split() for line in lines)
    return {words[0]: int(words[1]) * 1024 for words in pairs if len(words) == 3 and words[1].isdecimal()}


def _limits(cgroups: Path, proc: Path) -> Iterator[tuple[int, int]]:
    """Limit and use of this process's address space (`ulimit -v`), and (less cached files) of every control group that
    it is in, its own and those above.
    """
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    if most != resource.RLIM_INFINITY:
        yield most, _address_space(proc)
    for folder, names in _groups(cgroups, proc):
        limit, used, cached = names
        try:
            most, current = int((folder / limit).read_text()), int((folder / used).read_text())
            stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        except (OSError, ValueError):  # no such file, or "max"
            continue
        yield most, max(0, current - int(stat.get(cached, 0)))


def _address_space(proc: Path) -> int:
    """Bytes of addresses that this process has taken; 0 where the system does not say."""
    try:
        return int((proc / "self" / "statm").read_text().split()[0]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return 0


def _groups(cgroups: Path, proc: Path) -> Iterator[tuple[Path, tuple[str, str, str]]]:
    """The folders of those groups, in either version of the file system."""
    for root, names, path in _roots(cgroups, proc):
        for parts in range(len(Path(path).parts), 0, -1):
            yield root.joinpath(*Path(path).parts[1:parts]), names


def _roots(cgroups: Path, proc: Path) -> Iterator[tuple[Path, tuple[str, str, str], str]]:
    """Root folder, names of files and own path of each hierarchy that limits memory."""
    paths: Mapping[str, str] = {}
    try:
        lines = (proc / "self" / "cgroup").read_text().splitlines()
        paths = {kinds: path for _, kinds, path in (line.split(":", 2) for line in lines)}
    except (OSError, ValueError):
        pass
    yield cgroups, V2, paths.get("", "/")
    memory = next((path for kinds, path in paths.items() if "memory" in kinds.split(",")), "/")
    yield cgroups / "memory", V1, memory

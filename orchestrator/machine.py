"""What this machine has, read without torch and without Ray."""

import os
import shutil
import subprocess
from dataclasses import dataclass

from workers.room import memory_limit

NVIDIA_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """An NVIDIA GPU: its memory, and how much of that nobody uses now, in bytes (0: unknown)."""

    name: str
    memory: int
    free: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Usable cores, memory in bytes (0: unknown), NVIDIA GPUs."""

    cores: int
    memory: int
    gpus: tuple[Gpu, ...]

    @property
    def resources(self) -> dict[str, float]:
        """In Ray's resource names."""
        return {"CPU": float(self.cores), "GPU": float(len(self.gpus))}


def this_machine() -> Machine:
    """The machine that this process runs on."""
    return Machine(cores=usable_cores(), memory=memory_limit(), gpus=gpus())


def usable_cores() -> int:
    """The cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def gpus() -> tuple[Gpu, ...]:
    """NVIDIA GPUs as `nvidia-smi` lists them; none where it is absent or gives no answer in UTF-8."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return ()
    query = [program, "--query-gpu=name,memory.total,memory.free", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(query, capture_output=True, encoding="utf-8", timeout=NVIDIA_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return ()
    return tuple(gpu_of(line) for line in answer.stdout.splitlines() if line.strip())


def gpu_of(line: str) -> Gpu:
    """A GPU from its line `name, MiB in all, MiB free` (a GPU that shares the memory of its host says `[N/A]`)."""
    name, *sizes = (part.strip() for part in line.rsplit(",", 2))
    memory, free = (int(size) * 1024**2 if size.isdecimal() else 0 for size in (*sizes, "", "")[:2])
    return Gpu(name=name, memory=memory, free=free)

"""What this machine has, read without torch and without Ray."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

NVIDIA_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Usable cores, memory in bytes (0: unknown), names of NVIDIA GPUs with their memory."""

    cores: int
    memory: int
    gpus: tuple[str, ...]

    @property
    def resources(self) -> dict[str, float]:
        """In Ray's resource names."""
        return {"CPU": float(self.cores), "GPU": float(len(self.gpus))}


def this_machine() -> Machine:
    """The machine that this process runs on."""
    return Machine(cores=usable_cores(), memory=memory_bytes(), gpus=gpu_names())


def usable_cores() -> int:
    """The cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory_bytes() -> int:
    """Memory, or the limit that a container sets on it; 0 where the system does not say."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")] if hasattr(os, "sysconf") else []
    for limit in (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes")):
        try:
            found.append(int(limit.read_text()))
        except (OSError, ValueError):  # no such file, or "max"
            continue
    return min(found, default=0)


def gpu_names() -> tuple[str, ...]:
    """NVIDIA GPUs as `nvidia-smi` lists them; none where it is absent or does not answer."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return ()
    query = [program, "--query-gpu=name,memory.total", "--format=csv,noheader"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=NVIDIA_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(line.strip() for line in answer.stdout.splitlines() if line.strip())

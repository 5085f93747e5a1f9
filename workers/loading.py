"""From specs to loaded things: the one place where names of the tables become targets, drafters and tasks.

A worker keeps one target at a time (two may not fit beside each other) and every drafter and task it has made.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from sweeps.checks import check
from sweeps.spec import CommitRule, DecodeSpec, DrafterSpec, TargetSpec, TaskSpec
from workers.catalog import ARTIFACTS, DRAFTERS, FAMILIES, TASKS, resolve
from workers.drafters.base import Drafter, Oracle, TargetReader
from workers.models.facts import find_order_model
from workers.models.order_model import OrderModel, load_order_model
from workers.room import check_room
from workers.targets.base import Target
from workers.targets.files import resolve_folder
from workers.targets.inspect import config_of
from workers.targets.memory import SequenceSize
from workers.targets.settings import settings_digest
from workers.tasks.base import Task

Entry = TypeVar("Entry")
DrafterKey = tuple[DrafterSpec, int, CommitRule]


def named(table: Mapping[str, Entry], name: str, where: str) -> Entry:
    """The entry of a table. Raises ValueError naming the field, its value and what is allowed."""
    check(name in table, where, name, " | ".join(table))
    return table[name]


def check_artifact(kind: str, spec: DrafterSpec, commit: CommitRule) -> None:
    """Raise ValueError when a drafter's artifact is broken, is for another commit rule (an order model is for the
    standard one), or is not the one of a digest that `spec` names.
    """
    noun, facts = ARTIFACTS[kind].noun, resolve(ARTIFACTS[kind].inspect)(spec.checkpoint)
    if spec.digest and facts.digest != spec.digest:
        raise ValueError(f"drafter {spec.name}: its {noun} has digest {facts.digest}, the cell says {spec.digest}")
    made_for = getattr(facts, "commit", "standard")
    if made_for != commit:
        raise ValueError(f"drafter {spec.name}: its {noun} is for the commit rule {made_for}: asked is {commit}")


@dataclass(slots=True)
class Loaded:
    """What has been loaded on one device, by spec. `bound` are the drafters that read the loaded target."""

    device: str
    target_key: tuple[str, ...] = ()
    target: Target | None = None
    sizes_checked: set[SequenceSize] = field(default_factory=set)
    drafters: dict[DrafterKey, Drafter | Oracle | TargetReader] = field(default_factory=dict)
    bound: dict[DrafterKey, Drafter] = field(default_factory=dict)
    tasks: dict[TaskSpec, Task] = field(default_factory=dict)
    order_models: dict[tuple[str, str, int], OrderModel] = field(default_factory=dict)

    def get_target(self, spec: TargetSpec, size: SequenceSize | None = None) -> Target:
        """The target of `spec`, to decode sequences of that size with.

        Raises ValueError when the loaded weights are not those of a digest that it names and, before any is read, when
        they and what such a sequence takes do not fit the memory there is. A target that is loaded already is asked
        again for sequences of another size.
        """
        key = spec.family, spec.digest, spec.settings_digest, spec.dtype, spec.path, spec.revision, spec.cache
        there = self.target is not None and key == self.target_key
        if not there:
            self.target, self.target_key, self.sizes_checked = None, (), set()  # before the next: two may not fit
            self.bound.clear()
        entry = named(FAMILIES, spec.family, f"target {spec.name}: family")
        if size is not None and size not in self.sizes_checked and entry.read:  # another loader may know no config
            shape = config_of(resolve_folder(spec.path or spec.name, spec.revision or None)).shape
            size_with_cache = replace(size, cache=entry.cache(spec.cache))
            check_room(spec.name, shape, spec.dtype, size_with_cache, self.device, loaded=there)
            self.sizes_checked.add(size)
        if self.target is not None:
            return self.target
        try:
            target: Target = resolve(entry.loader)(spec, device=self.device)
        except ValueError as error:
            raise ValueError(f"target {spec.name}: {error}") from error
        found = target.traits.weight_digest
        if spec.digest and found != spec.digest:
            raise ValueError(f"target {spec.name}: weights have digest {found}, the cell says {spec.digest}")
        if spec.settings_digest:
            found = settings_digest(resolve_folder(spec.path, spec.revision or None))
            if found != spec.settings_digest:
                files = "config, tokenizer and template"
                raise ValueError(
                    f"target {spec.name}: {files} have digest {found}, the cell says {spec.settings_digest}"
                )
        self.target, self.target_key = target, key
        return target

    def get_drafter(self, spec: DrafterSpec, decode: DecodeSpec) -> Drafter | Oracle:
        """The drafter of `spec` for a decoding rule; an oracle still has to be told each prompt's future.

        One that reads the target is for the target which `get_target` gave last. Raises ValueError when it does not
        draft for that commit rule, or when its checkpoint does not fit, or is not the one of a digest that `spec`
        names.
        """
        key = spec, decode.block_length, decode.commit
        if key not in self.drafters:
            entry = named(DRAFTERS, spec.kind, f"drafter {spec.name}: kind")
            check(
                decode.commit in entry.commits, f"drafter {spec.name}: commit", decode.commit, " | ".join(entry.commits)
            )
            if entry.artifact:
                check_artifact(entry.artifact, spec, decode.commit)
            self.drafters[key] = resolve(entry.factory)(spec, block_length=decode.block_length, device=self.device)
        drafter = self.drafters[key]
        if not isinstance(drafter, TargetReader):
            return drafter
        if key not in self.bound:
            assert self.target is not None, f"drafter {spec.name} reads a target: load that first"
            self.bound[key] = drafter.reading(self.target)
        return self.bound[key]

    def get_order_model(self, spec: DrafterSpec, block_length: int) -> OrderModel:
        """The order model of `spec.checkpoint`, by itself: a study asks it without drafting.

        Raises ValueError when it is missing, for another block length, or not the one of a digest that `spec` names.
        """
        key = spec.checkpoint, spec.digest, block_length
        if key not in self.order_models:
            check_artifact("order_model", spec, "standard")
            path = find_order_model(spec.checkpoint)
            self.order_models[key] = load_order_model(path, block_length=block_length, device=self.device)
        return self.order_models[key]

    def get_task(self, spec: TaskSpec) -> Task:
        """The task of `spec`. Raises ValueError when its data are not those of a digest that it names."""
        if spec not in self.tasks:
            entry = named(TASKS, spec.kind, f"task {spec.name}: kind")
            task: Task = resolve(entry.factory)(spec)
            if spec.digest and task.data_digest != spec.digest:
                raise ValueError(f"task {spec.name}: data have digest {task.data_digest}, the cell says {spec.digest}")
            self.tasks[spec] = task
        return self.tasks[spec]

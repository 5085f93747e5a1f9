"""The targets of the table as people ask for them: what they are, whether they are here, what they take and where.

Read from the checkpoint's own config where it is here, else from what the table knows of it as published. No network is
asked, torch is not imported, and no weight is read.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

from orchestrator.absent import argument_of, made_in, own_tasks, tasks_to_learn
from orchestrator.checkpoints import Presence, fetching, present
from orchestrator.finding import Finding
from orchestrator.machine import Machine
from orchestrator.tables import target_of
from orchestrator.ways import plain_command
from sweeps.spec import DecodeSpec, DrafterSpec, TargetSpec
from workers import catalog
from workers.entries import TargetEntry
from workers.models.named import AbsentError
from workers.room import memory_available, shortage, size_of
from workers.targets.config import CheckpointConfig
from workers.targets.inspect import architecture_of, checked_config
from workers.targets.memory import BYTES, gigabytes, memory_need
from workers.targets.published import Published
from workers.targets.shape import BodyShape

ASKED_TOKENS, ASKED_BUDGET = 256, 20  # the paper's unit and its largest budget: what `spot doctor` reckons with


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTarget:
    """A target of the table. `spec` is what a sweep that states nothing has; `shape` None where nobody knows it.

    `lacks` says what is missing of a checkpoint that is not (wholly) here, `fault` what is wrong with one that is, and
    `unlike` where one that is whole is not as published.
    """

    spec: TargetSpec
    family: str
    shape: BodyShape | None
    stop_ids: tuple[int, ...]
    here: Presence
    lacks: str = ""
    fault: str = ""
    unlike: str = ""

    @property
    def source(self) -> str:
        """Its hub id (and revision), or that it is shipped."""
        revision = f"@{self.spec.revision}" if self.spec.revision else ""
        return "zoo" if self.spec.path.startswith(str(catalog.ZOO)) else self.spec.path + revision

    @property
    def weights(self) -> int:
        """Bytes of its weights in its dtype; 0 where nobody knows."""
        return self.shape.parameters * BYTES[self.spec.dtype] if self.shape else 0

    @property
    def caches(self) -> tuple[str, ...]:
        """Its kinds of cache, the default first."""
        family = catalog.FAMILIES.get(self.family)
        return family.caches if family else ()

    @property
    def exact(self) -> str:
        """Whether these change nothing: `yes`, or the kinds that do not."""
        kinds = [kind for kind in self.caches if catalog.FAMILIES[self.family].exact(kind)]
        return "yes" if len(kinds) == len(self.caches) else f"only {', '.join(kinds)}"


def named_targets() -> Iterator[NamedTarget]:
    """Every target of the table."""
    for name, entry in catalog.TARGETS.items():
        yield named_target(name, entry)


def named_target(name: str, entry: TargetEntry) -> NamedTarget:
    """One of them, as far as it is here."""
    spec, known = target_of(name, entry), entry.published
    found = present(spec)
    target = NamedTarget(
        spec=spec,
        family=entry.family,
        shape=known.shape if known else None,
        stop_ids=known.stop_ids if known else (),
        here=found.here,
        lacks=found.lacks,
    )
    if found.here != "yes" or found.folder is None:
        return target
    try:
        family, config = architecture_of(found.folder), checked_config(found.folder)
    except ValueError as error:
        return replace(target, fault=" ".join(str(error).split()))
    unlike = differences(config, known) if known else ""
    return replace(target, family=family, shape=config.shape, stop_ids=config.tokens.stop_ids, unlike=unlike)


def differences(config: CheckpointConfig, known: Published) -> str:
    """Where a checkpoint's own config is not as published: `layers is 2 (published: 32), ...`."""
    pairs = {
        "mask id": (config.tokens.mask_id, known.mask_id),
        "stop ids": (sorted(config.tokens.stop_ids), sorted(known.stop_ids)),
        "positions": (config.max_positions, known.max_positions),
        **{
            part.name: (getattr(config.shape, part.name), getattr(known.shape, part.name)) for part in fields(BodyShape)
        },
    }
    return ", ".join(f"{name} is {own} (published: {there})" for name, (own, there) in pairs.items() if own != there)


def target_findings(machine: Machine) -> Iterator[Finding]:
    """For each target: whether it is here and what was made for it, then whether this machine could run it."""
    for target in named_targets():
        yield _here(target)
        if target.shape is not None:
            yield room_for(target, target.shape, machine)


def _here(target: NamedTarget) -> Finding:
    """Whether a target's checkpoint and its artifacts are here and whole."""
    subject, spec = f"target {target.spec.name}", target.spec
    made, broken = artifacts_of(spec)
    if target.fault or broken:
        return Finding(level="problem", subject=subject, text=target.fault or broken)
    if target.here == "no":
        return Finding(level="note", subject=subject, text=f"{target.lacks.removeprefix(subject + ': ')}; {made}")
    if target.here == "partly":
        whole = f"only partly in the local hub cache ({target.lacks}): {fetching(spec)}"
        return Finding(level="note", subject=subject, text=f"{whole}; {made}")
    count = f"{target.shape.parameters:,} parameters" if target.shape else "here"
    text = f"{count}, blocks of {spec.block_length}; {made}"
    if target.unlike:
        return Finding(level="note", subject=subject, text=f"{text}; its config is used, and {target.unlike}")
    return Finding(level="ok", subject=subject, text=text)


def artifacts_of(spec: TargetSpec) -> tuple[str, str]:
    """Which order model and draft graph there are for a target (of the table, or where commands put them), or how to
    make them; and what is wrong with the first broken one.
    """
    entry, words = catalog.target_at(spec.path), []
    for kind, artifact in catalog.ARTIFACTS.items():
        named = entry.artifacts.get(kind, "") if entry else ""
        path = named or str((made_in(kind, spec) / artifact.result).absolute())
        try:
            facts = catalog.resolve(artifact.inspect)(path)
        except AbsentError as error:
            if named:
                return "", f"its {artifact.noun}: {error}"
            words.append(
                f"no {artifact.noun} ({plain_command(kind, argument_of(spec), tasks_to_learn(own_tasks(spec)))})"
            )
        except (ValueError, OSError) as error:
            return "", f"its {artifact.noun} {path}: {' '.join(str(error).split())}"
        else:
            where = "" if named else f" in {made_in(kind, spec) / artifact.result}"
            words.append(f"{artifact.noun} for blocks of {facts.block_length}{where}")
    return ", ".join(words), ""


def room_for(target: NamedTarget, shape: BodyShape, machine: Machine) -> Finding:
    """Whether a machine could run a target now: on which GPU, or in RAM, and else what is missing."""
    family = catalog.FAMILIES.get(target.family)
    size = size_of(
        DecodeSpec(max_new_tokens=ASKED_TOKENS, block_length=target.spec.block_length or 32, temperature=1.0),
        DrafterSpec(name="largest", kind="ssd", budget=ASKED_BUDGET),
        cache=family.caches[0] if family else "exact",
    )
    name, dtype, ram = target.spec.name, target.spec.dtype, memory_available()
    needs = {gpu: memory_need(shape, dtype, size, gpu=gpu) for gpu in (True, False)}
    places = [(f"GPU {number} {gpu.name}", gpu.free, True) for number, gpu in enumerate(machine.gpus)]
    places.append(("RAM", ram, False))
    lacking = {place: shortage(name, needs[gpu], free, place) for place, free, gpu in places}
    fits = [place for place, line in lacking.items() if not line]
    fitting = f"fits {' and '.join(fits)}" if fits else "does not fit"
    missing = [
        f"{place}: {gigabytes(free)} GB free, {gigabytes(needs[gpu].total - free)} GB missing"
        for place, free, gpu in places
        if lacking[place]
    ]
    need = f"needs {needs[bool(machine.gpus)]} in {dtype}, {ASKED_TOKENS} tokens at budget {ASKED_BUDGET}"
    text = "; ".join((fitting, *missing, need))
    return Finding(level="ok" if fits else "note", subject=f"room for {name}", text=text)

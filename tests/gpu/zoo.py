"""Part `zoo`: every shipped target on the device, in every dtype.

Parity of its logits with the CPU's float64 ones (`parity.py`), and losslessness: the outputs of every drafter against
draft-free decoding on the same device, at T = 0 and with coupled noise at T = 1, without and with `verify_margin`. A
mismatch is judged by the project's own rule (`sweeps.identity`): where rounding explains it it is a near-tie, else a
BUG. With `verify_margin` there may be none.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from sweeps.identity import NEAR_TIE, compare
from sweeps.records import GenerationRecord
from sweeps.spec import CommitRule, DecodeSpec, DrafterSpec, TargetSpec, TaskSpec
from tests.gpu.guarded import guarded
from tests.gpu.parity import parity_rows
from tests.gpu.setting import BLOCK, Row, Rows, Setting
from workers.catalog import DRAFTERS, TARGETS
from workers.decoding.loop import decode
from workers.decoding.noise import sample_seed
from workers.decoding.tally import Generation
from workers.decoding.verification import Verification
from workers.drafters.base import Drafter, Oracle
from workers.drafters.none import NoDrafter
from workers.loading import Loaded
from workers.targets.base import Target
from workers.targets.inspect import architecture_of

TASKS = ("tiny-arith", "tiny-code")
TEMPERATURES = (0.0, 1.0)
BUDGET = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A target on the device in one dtype, the prompts it is asked and the rule it decodes by."""

    target: Target
    name: str
    spec: DecodeSpec
    prompts: Mapping[str, tuple[int, ...]]
    seed: int

    def decoded(self, drafter: Drafter, margin: float = 0.0) -> dict[int, GenerationRecord]:
        """What a drafter's decoding of every prompt gives."""
        return {
            index: record_of(
                decode(
                    self.target,
                    drafter,
                    ids,
                    spec=self.spec,
                    seed=sample_seed(self.seed, prompt_id),
                    verification=Verification(margin=margin),
                ),
                prompt_id,
                index,
            )
            for index, (prompt_id, ids) in enumerate(self.prompts.items())
        }


def zoo_rows(setting: Setting) -> Rows:
    """Parity of every target first; then losslessness, all targets at one temperature and dtype before the next."""
    loaded = Loaded(setting.device)
    for name in setting.zoo:
        spec, text = target_spec(name, "float64"), next(iter(texts(setting, loaded).values()))
        yield from guarded(f"{name} parity", partial(parity_rows, setting, spec, text, block_length(name)))
    for temperature in TEMPERATURES:
        for dtype in setting.dtypes:
            for name in setting.zoo:
                where = f"{name} {dtype} T={temperature:g}"
                yield from guarded(where, partial(identity_rows, setting, loaded, name, dtype, temperature))


def identity_rows(setting: Setting, loaded: Loaded, name: str, dtype: str, temperature: float) -> Rows:
    """Every drafter against draft-free decoding (which is repeated too), without and with a margin.

    By the standard rule; drafters of the threshold rule alone by that, with a draft-free decoding of its own.
    """
    target = loaded.get_target(target_spec(name, dtype))
    prompts = prompts_of(setting, loaded, target)
    drafters_of: dict[CommitRule, list[DrafterSpec]] = {"standard": []}
    for one in drafter_specs(setting, name):
        drafters_of.setdefault(DRAFTERS[one.kind].commits[0], []).append(one)
    for commit, drafters in drafters_of.items():
        spec = DecodeSpec(
            max_new_tokens=setting.new_tokens,
            block_length=block_length(name),
            temperature=temperature,
            ignore_eos=True,
            commit=commit,
        )
        case = Case(target=target, name=name, spec=spec, prompts=prompts, seed=setting.seed)
        baseline = case.decoded(NoDrafter())
        yield identity_row(case, "none", 0, 0.0, baseline, case.decoded(NoDrafter()))
        for drafter_spec in drafters:
            drafter = loaded.get_drafter(drafter_spec, spec)
            assert not isinstance(drafter, Oracle)
            for margin in (0.0, NEAR_TIE[dtype]):
                variant = case.decoded(drafter, margin)
                yield identity_row(case, drafter_spec.kind, drafter_spec.budget, margin, baseline, variant)


def identity_row(
    case: Case,
    drafter: str,
    budget: int,
    margin: float,
    baseline: Mapping[int, GenerationRecord],
    variant: Mapping[int, GenerationRecord],
) -> Row:
    """How many prompts of `variant` are equal to draft-free ones, every one that is not, and what it cost."""
    dtype, temperature = case.target.traits.dtype, case.spec.temperature
    found = compare(variant, baseline, dtype=dtype, temperature=temperature)
    where = f"{case.name} {dtype} T={temperature:g} {case.spec.rule} {drafter} verify_margin={margin:g}"
    problems = [f"{where}: {found.bugs} of {found.n_checked} outputs differ: BUG"] if found.bugs else []
    if found.n_identical < found.n_checked and (margin or drafter == "none"):
        problems.append(f"{where}: {found.n_identical} of {found.n_checked} outputs are equal to draft-free ones")
    return {
        "kind": "identity",
        "target": case.name,
        "dtype": dtype,
        "temperature": temperature,
        "rule": case.spec.rule,
        "drafter": drafter,
        "budget": budget,
        "verify_margin": margin,
        "n": found.n_checked,
        "identical": found.n_identical,
        "match_rate": found.share,
        "near_ties": found.near_ties,
        "bugs": found.bugs,
        "mismatches": [asdict(mismatch) for mismatch in found.mismatches],
        "nfe": sum(record.counters.nfe for record in variant.values()),
        "recomputes": sum(record.counters.recomputes for record in variant.values()),
        "draft_free_nfe": sum(record.counters.nfe for record in baseline.values()),
        "problems": problems,
    }


def target_spec(name: str, dtype: str) -> TargetSpec:
    """A shipped target."""
    path = TARGETS[name].path
    return TargetSpec(name=name, path=path, dtype=dtype, family=architecture_of(Path(path)))


def block_length(name: str) -> int:
    """The block length that a target was made for; where the table does not know it, the paper's."""
    return TARGETS[name].block_length or BLOCK


def drafter_specs(setting: Setting, target: str) -> Iterator[DrafterSpec]:
    """Every drafter, no oracle, that needs no artifact or whose artifact is shipped for the target."""
    artifacts = TARGETS[target].artifacts
    for kind, entry in DRAFTERS.items():
        wanted = not setting.drafters or kind in setting.drafters
        if kind != "none" and not entry.oracle and wanted and (not entry.artifact or entry.artifact in artifacts):
            yield DrafterSpec(name=kind, kind=kind, budget=BUDGET, checkpoint=artifacts.get(entry.artifact, ""))


def prompts_of(setting: Setting, loaded: Loaded, target: Target) -> dict[str, tuple[int, ...]]:
    """The prompts as the target's ids."""
    return {prompt_id: tuple(target.encode(text)) for prompt_id, text in texts(setting, loaded).items()}


def texts(setting: Setting, loaded: Loaded) -> dict[str, str]:
    """Held-out prompts of the tiny tasks, by prompt id."""
    tasks: Sequence[str] = TASKS[:1] if setting.small else TASKS
    return {
        f"{task} {prompt.id}": prompt.text
        for task in tasks
        for prompt in loaded.get_task(TaskSpec(name=task, kind=task)).prompts(
            split="test", limit=setting.prompts, seed=0
        )
    }


def record_of(generation: Generation, prompt_id: str, index: int) -> GenerationRecord:
    """A generation as the rule of identity reads it; nobody grades it."""
    return GenerationRecord(
        prompt_id=prompt_id,
        prompt_index=index,
        prompt_tokens=generation.prompt_tokens,
        output_ids=generation.output_ids,
        tokens_generated=len(generation.output_ids),
        tokens_kept=generation.tokens_kept,
        finish_reason=generation.finish_reason,
        text="",
        correct=None,
        score_reason="not graded",
        order=generation.order,
        rounds=generation.rounds,
        margins=tuple(None if margin == float("inf") else margin for margin in generation.margins),
        counters=generation.counters,
    )

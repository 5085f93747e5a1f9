"""From a checkpoint to a loaded target, by what its family's reader says of it."""

import warnings
from pathlib import Path

import torch

from sweeps.spec import TargetSpec
from workers.catalog import FAMILIES
from workers.targets.base import TargetTraits
from workers.targets.block_causal import BlockCausalTarget
from workers.targets.checkpoint import load_body
from workers.targets.config import DTYPES, CheckpointConfig
from workers.targets.files import resolve_folder
from workers.targets.inspect import facts_of
from workers.targets.text import ChatText
from workers.targets.whole import ShiftedTarget, WholeTarget

NativeTarget = BlockCausalTarget | WholeTarget


def load_target(
    path_or_hub_id: str | Path,
    *,
    revision: str | None = None,
    dtype: str = "float32",
    device: str = "cpu",
    cache: str = "",
) -> NativeTarget:
    """Load a published checkpoint from a directory or from the hub's cache.

    `dtype` is the dtype of weights and arithmetic, whatever the checkpoint stores. float16 on the CPU is refused.
    `cache` is one of the family's kinds of cache ("": its default). Raises ValueError naming the file or field, its
    value and what is allowed.
    """
    if dtype not in DTYPES:
        raise ValueError(f"dtype is {dtype!r}; allowed are {', '.join(DTYPES)}")
    where = torch.device(device)
    if dtype == "float16" and where.type == "cpu":
        raise ValueError("dtype is 'float16' on device 'cpu'; allowed there are float64, float32, bfloat16")
    folder = resolve_folder(str(path_or_hub_id), revision)
    facts, config = facts_of(folder)
    for note in facts.notes:
        warnings.warn(f"{folder}: {note}", stacklevel=2)
    family = FAMILIES[facts.architecture]
    cache = family.cache(cache)
    body, head_VH = load_body(folder, config, dtype=getattr(torch, dtype), device=where)
    is_folder = Path(path_or_hub_id).is_dir()
    traits = TargetTraits(
        name=folder.resolve().name if is_folder else str(path_or_hub_id),
        family=config.family,
        revision="" if is_folder else (revision or "main"),
        weight_digest=facts.weight_digest,
        parameters=facts.parameters,
        vocab_size=facts.vocab_size,
        mask_id=facts.mask_id,
        stop_ids=facts.stop_ids,
        max_positions=facts.max_positions,
        exact_cache=family.exact(cache),
        dtype=dtype,
        device=str(where),
        cache=cache,
    )
    text = ChatText(folder, (facts.mask_id, *facts.stop_ids), facts.vocab_size)
    return kind_of(config)(
        body=body, head_VH=head_VH, traits=traits, text=text, absent_ids=config.tokens.absent_ids, chat=facts.chat
    )


def kind_of(config: CheckpointConfig) -> type[NativeTarget]:
    """The class whose sessions work as the family's attention does."""
    if config.attention == "block-causal":
        return BlockCausalTarget
    return ShiftedTarget if config.shifted else WholeTarget


def load(spec: TargetSpec, *, device: str) -> NativeTarget:
    """The catalog's loader."""
    return load_target(
        spec.path or spec.name, revision=spec.revision or None, dtype=spec.dtype, device=device, cache=spec.cache
    )

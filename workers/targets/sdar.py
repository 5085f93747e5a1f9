"""SDAR (JetLM/SDAR-*-Chat-b*): a Qwen3 body with block-causal attention and an exact prefix cache, natively in torch.

Logits at position i predict position i. A forward over N copies of the active block reads the prefix once; a block that
was just filled rides along in the same forward. Checkpoints are read in their published layout; nothing of theirs is
executed.

Shapes: N copies, L block width, H hidden, V vocabulary, M prefix, T positions of one forward, X any leading shape.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812  (its usual name)
from torch import Tensor

from sweeps.spec import TargetSpec
from workers.targets.base import TargetTraits
from workers.targets.caches import PrefixCache, copies_attention, prefill_attention
from workers.targets.checkpoint import load_body
from workers.targets.files import resolve_folder
from workers.targets.inspect import facts_of
from workers.targets.layers import Body, block_causal, dense_attention
from workers.targets.text import ChatText

DTYPES = {"float64": torch.float64, "float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


class SdarSession:
    """One sequence: the prefix cache, and at most one filled block whose keys and values are still to be computed."""

    def __init__(self, body: Body, cache: PrefixCache, *, block_length: int) -> None:
        self._body = body
        self._cache = cache
        self._length = block_length
        self._pending_L: Tensor | None = None

    @property
    def prefix_length(self) -> int:
        """Number of committed positions, the pending filled block included."""
        return self._cache.length + (0 if self._pending_L is None else self._length)

    @torch.inference_mode()
    def forward(self, blocks_NL: Tensor) -> Tensor:
        """Hidden states `hidden_NLH` of N copies of the active block, each attending to the prefix and to itself
        only.
        """
        copies, width = blocks_NL.shape
        if width != self._length:
            raise ValueError(f"blocks have width {width}; this session's block length is {self._length}")
        device = self._body.embed_tokens.weight.device
        start, ids_T = self.prefix_length, blocks_NL.to(device).flatten()
        positions_T = torch.arange(start, start + width, device=device).repeat(copies)
        pending = 0
        if self._pending_L is not None:
            pending = width
            ids_T = torch.cat((self._pending_L.to(device), ids_T))
            positions_T = torch.cat((torch.arange(self._cache.length, start, device=device), positions_T))
        hidden_TH: Tensor = self._body(
            ids_T, positions_T, copies_attention(self._cache, pending=pending, copies=copies)
        )
        self._cache.length, self._pending_L = start, None
        hidden_NLH: Tensor = hidden_TH[pending:].view(copies, width, -1)
        return hidden_NLH

    def commit(self, block_L: Tensor) -> None:
        """Append a filled block to the prefix; its keys and values join the cache with the next `forward`."""
        if self._pending_L is not None:
            raise ValueError("a filled block is already waiting: forward between two commits")
        if tuple(block_L.shape) != (self._length,):
            raise ValueError(f"block has shape {tuple(block_L.shape)}; this session's block length is {self._length}")
        if self._cache.length + self._length > self._cache.capacity:
            raise ValueError(
                f"the sequence is full: {self._cache.length} of {self._cache.capacity} positions are committed"
            )
        self._pending_L = block_L.clone()


class SdarTarget:
    """A loaded SDAR checkpoint. Immutable; `chat` says whether prompts go through a template (`template`) or in
    `raw`.
    """

    def __init__(
        self, *, body: Body, head_VH: Tensor, traits: TargetTraits, text: ChatText, absent_ids: Sequence[int], chat: str
    ) -> None:
        self._body = body
        self._head_VH = head_VH
        self._traits = traits
        self._text = text
        self.chat = chat
        self._never = torch.tensor(sorted({traits.mask_id, *absent_ids}), device=head_VH.device)

    @property
    def traits(self) -> TargetTraits:
        """Facts about the loaded weights."""
        return self._traits

    def start(self, prompt_ids: Sequence[int], *, block_length: int, max_new_tokens: int) -> SdarSession:
        """Prefill the prompt's whole blocks under the block-causal mask; the rest opens the active block.

        Raises ValueError when prompt plus new tokens pass `traits.max_positions`, or an id is outside the vocabulary.
        """
        total = len(prompt_ids) + max_new_tokens
        if total > self._traits.max_positions:
            raise ValueError(
                f"prompt of {len(prompt_ids)} tokens plus {max_new_tokens} new tokens is {total} positions; "
                f"allowed are {self._traits.max_positions}"
            )
        wrong = [i for i in prompt_ids if not 0 <= i < self._traits.vocab_size]
        if wrong:
            raise ValueError(f"prompt id {wrong[0]} is outside the vocabulary of {self._traits.vocab_size}")
        whole = len(prompt_ids) // block_length * block_length
        blocks = [i // block_length for i in range(whole)]
        capacity = -(-total // block_length) * block_length
        return self.open(prompt_ids[:whole], blocks, block_length=block_length, capacity=capacity)

    @torch.inference_mode()
    def open(
        self, prefix_ids: Sequence[int], block_ids: Sequence[int], *, block_length: int, capacity: int
    ) -> SdarSession:
        """A session over a prefix with explicit block ids (non-decreasing), which need not be whole blocks.

        The active block begins right behind the prefix. `capacity` is the number of positions that can be committed.
        """
        shape, device = self._body.shape, self._head_VH.device
        cache = PrefixCache(
            layers=shape.layers,
            kv_heads=shape.kv_heads,
            head_dim=shape.head_dim,
            capacity=max(capacity, len(prefix_ids)),
            dtype=self._head_VH.dtype,
            device=device,
        )
        if prefix_ids:
            visible_11MM = block_causal(torch.tensor([block_ids], device=device))
            ids_M = torch.tensor(prefix_ids, device=device)
            self._body(ids_M, torch.arange(len(prefix_ids), device=device), prefill_attention(cache, visible_11MM))
            cache.length = len(prefix_ids)
        return SdarSession(self._body, cache, block_length=block_length)

    @torch.inference_mode()
    def dense(self, ids_BS: Tensor, visible_B1SS: Tensor) -> Tensor:
        """Hidden states `hidden_BSH` of whole sequences under any mask, without a cache (True where a query sees a
        key).
        """
        positions_S = torch.arange(ids_BS.shape[1], device=self._head_VH.device)
        hidden_BSH: Tensor = self._body(ids_BS, positions_S, dense_attention(visible_B1SS))
        return hidden_BSH

    @torch.inference_mode()
    def logits(self, hidden_XH: Tensor) -> Tensor:
        """Logits `logits_XV` in float32 or wider; the mask id and ids the tokenizer lacks are -inf.

        Products of half-precision weights are summed and kept in float32, since rounded logits tie.
        """
        dtype = self._head_VH.dtype
        if dtype in (torch.float32, torch.float64):
            logits_XV = F.linear(hidden_XH, self._head_VH)
        elif self._head_VH.is_cuda:
            flat_TV = torch.mm(hidden_XH.flatten(0, -2), self._head_VH.T, out_dtype=torch.float32)
            logits_XV = flat_TV.view(*hidden_XH.shape[:-1], -1)
        else:
            logits_XV = F.linear(hidden_XH.float(), self._head_VH.float())
        return logits_XV.index_fill(-1, self._never, -torch.inf)

    def encode(self, prompt: str) -> list[int]:
        """Token ids of a user prompt in the target's chat template (exactly one beginning-of-sequence id)."""
        return self._text.encode(prompt)

    def decode(self, ids: Sequence[int]) -> str:
        """Text of generated ids, without special tokens."""
        return self._text.decode(ids)


def load_target(
    path_or_hub_id: str | Path, *, revision: str | None = None, dtype: str = "float32", device: str = "cpu"
) -> SdarTarget:
    """Load a published checkpoint from a directory or from the hub's cache.

    `dtype` is the dtype of weights and arithmetic, whatever the checkpoint stores. float16 on the CPU is refused.
    Raises ValueError naming the file or field, its value and what is allowed.
    """
    if dtype not in DTYPES:
        raise ValueError(f"dtype is {dtype!r}; allowed are {', '.join(DTYPES)}")
    where = torch.device(device)
    if dtype == "float16" and where.type == "cpu":
        raise ValueError("dtype is 'float16' on device 'cpu'; allowed there are float64, float32, bfloat16")
    folder = resolve_folder(str(path_or_hub_id), revision)
    facts, config = facts_of(folder)
    body, head_VH = load_body(folder, config.shape, dtype=DTYPES[dtype], device=where)
    is_folder = Path(path_or_hub_id).is_dir()
    traits = TargetTraits(
        name=folder.resolve().name if is_folder else str(path_or_hub_id),
        family="sdar",
        revision="" if is_folder else (revision or "main"),
        weight_digest=facts.weight_digest,
        parameters=facts.parameters,
        vocab_size=facts.vocab_size,
        mask_id=facts.mask_id,
        stop_ids=facts.stop_ids,
        max_positions=facts.max_positions,
        exact_cache=True,
        dtype=dtype,
        device=str(where),
    )
    text = ChatText(folder, (facts.mask_id, *facts.stop_ids))
    return SdarTarget(
        body=body, head_VH=head_VH, traits=traits, text=text, absent_ids=config.absent_ids, chat=facts.chat
    )


def load(spec: TargetSpec, *, device: str) -> SdarTarget:
    """The catalog's loader."""
    return load_target(spec.path or spec.name, revision=spec.revision or None, dtype=spec.dtype, device=device)

"""The set model of SPOT-Sets: which positions does the target fill in its next step, and with which tokens?

For threshold decoding, where one step fills several positions (arXiv 2610.22543; decoding.md section 6). The encoder
of the order model, which here also reads tau, the target's last hidden state at each position, and the embeddings of
the stale distribution's best 16 tokens: their weighted mean enters, or where the known step or the draft filled the
position, the embedding of that token. Prefix-conditional: asked again for each virtual state. Two answers a position:
the log-odds that the next step fills it, and scores of the 16 candidates.

Only `hidden` and `embedding` read vectors of one target: they are fitted anew for another one.

Shapes: B virtual states, A positions looked at (those masked in the stale state), W model width, H the target's width,
E width of projected embeddings, C candidates, V vocabulary, X any leading shape.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn

from workers.models.encoder import BlockEncoder
from workers.models.memory import VOCABULARY_CHUNK
from workers.models.set_facts import KIND, SET_FEATURES, SetConfig
from workers.models.set_features import ABSENT, evened, shares
from workers.models.weights import load_model, save_model
from workers.targets.base import Target


class SetModel(BlockEncoder):
    """`embed_stale` and `mean` once a round, then `encode`, `membership` and `scores` for each batch of states."""

    def __init__(self, config: SetConfig, *, dropout: float = 0.0) -> None:
        super().__init__(config, stale_features=SET_FEATURES, dropout=dropout)
        self.config = config
        self.hidden = nn.Linear(config.hidden, config.width)
        self.embedding = nn.Linear(config.hidden, config.candidate_width, bias=False)
        self.mix = nn.Linear(config.candidate_width, config.width)
        self.include = nn.Linear(config.width, 1)
        self.query = nn.Linear(config.width, config.candidate_width)
        self.rank = nn.Parameter(torch.zeros(config.candidates))
        self.trust = nn.Parameter(torch.ones(1))

    def project(self, embedded_XH: Tensor) -> Tensor:
        """Token embeddings of the target as the model reads them, `projected_XE`."""
        return cast(Tensor, self.embedding(evened(embedded_XH)))

    def embed_stale(self, features_XAF: Tensor, hidden_XAH: Tensor) -> Tensor:
        """The part of the input that no draft changes, `stale_XAW`: features (with tau) and hidden states."""
        return cast(Tensor, self.stale(features_XAF) + self.hidden(evened(hidden_XAH)))

    def mean(self, ids_XAC: Tensor, logprobs_XAC: Tensor, candidates_XACE: Tensor) -> Tensor:
        """The candidates' projected embeddings, weighed by their probabilities, `mean_XAE`."""
        return torch.einsum("...c,...ce->...e", shares(ids_XAC, logprobs_XAC), candidates_XACE)

    def encode_states(
        self, stale_XAW: Tensor, content_BAE: Tensor, columns_BAC: Tensor, seen_BA: Tensor | None = None
    ) -> Tensor:
        """What the encoder makes of each position, `encoded_BAW`.

        `content_BAE` is the projected embedding of the token that fills a position, the candidates' mean where none
        does. `stale_XAW` has B or 1 leading rows; `seen_BA` is as for `encode`.
        """
        return self.encode(stale_XAW + self.mix(content_BAE), columns_BAC, seen_BA)

    def membership(self, encoded_BAW: Tensor) -> Tensor:
        """Log-odds `odds_BA` that the next step fills a position."""
        return cast(Tensor, self.include(encoded_BAW).squeeze(-1))

    def scores(self, encoded_BAW: Tensor, ids_XAC: Tensor, logprobs_XAC: Tensor, candidates_XACE: Tensor) -> Tensor:
        """Log probabilities `logp_BAC` of the candidates (untempered, among themselves), absent ones -inf."""
        query_BAE = self.query(encoded_BAW) / math.sqrt(self.config.candidate_width)
        if len(candidates_XACE) == 1:  # one stale distribution: its candidates are not copied for each state
            match_BAC = torch.einsum("bae,ace->bac", query_BAE, candidates_XACE[0])
        else:
            match_BAC = torch.einsum("bae,bace->bac", query_BAE, candidates_XACE)
        raw_BAC = match_BAC + self.rank + self.trust * logprobs_XAC
        return raw_BAC.masked_fill(ids_XAC == ABSENT, -math.inf).log_softmax(-1)


@dataclass(frozen=True, slots=True, kw_only=True, weakref_slot=True)
class BoundSetModel:
    """A set model and one target's vocabulary as it reads it: `table_VE`, on the model's device."""

    model: SetModel
    table_VE: Tensor


def bind(model: SetModel, target: Target) -> BoundSetModel:
    """A set model with the target's embeddings projected, once, and never more than a part of them held beside that.

    Raises ValueError when the target's width is not the one that the model reads.
    """
    device = model.offsets_C.device
    table_VE = torch.empty(target.traits.vocab_size, model.config.candidate_width, device=device)
    ids_V = torch.arange(len(table_VE), device=target.traits.device)
    with torch.inference_mode():
        parts = (torch.split(whole, VOCABULARY_CHUNK) for whole in (ids_V, table_VE))
        for ids_P, table_PE in zip(*parts, strict=True):
            embedded_PH = target.embed(ids_P)
            check_width(model, embedded_PH.shape[-1])
            table_PE.copy_(model.project(embedded_PH.to(device)))
    return BoundSetModel(model=model, table_VE=table_VE)


def check_width(model: SetModel, width: int) -> None:
    """Raise ValueError unless a model reads vectors of this width."""
    if width != model.config.hidden:
        raise ValueError(
            f"set model: it reads vectors of width {model.config.hidden}, the target's are {width} wide: "
            "spot train sets --calibrate-from fits its input layer anew"
        )


def embeddings_of(target: Target) -> Tensor:
    """The target's input embeddings of all tokens, `embedded_VH`: training asks for them again at every step."""
    ids_V = torch.arange(target.traits.vocab_size, device=target.traits.device)
    with torch.inference_mode():
        return target.embed(ids_V).detach()


def save_set_model(model: SetModel, path: Path) -> str:
    """Write weights (float16) and configuration into the directory `path`; returns the checkpoint's digest."""
    return save_model(model, model.config, path)


def load_set_model(path: str | Path, *, block_length: int, device: str = "cpu") -> SetModel:
    """The set model in the directory `path`, in float32 and evaluation mode.

    Raises ValueError when a file is missing, foreign or altered, or the model was trained for another block length.
    """
    return load_model(SetModel, path, KIND, block_length=block_length, device=device)

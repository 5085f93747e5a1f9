"""What one forward leaves behind for the drafter: the stale distribution of a state, on the CPU, cut to its top K.

Shapes: L block width, K kept candidates (32). Everything is float32 or wider and made once a round, from the logits of
the last node of the walk. Rows of positions that are not open in `state` hold no information (zeros).
"""

from dataclasses import dataclass

from torch import Tensor

from workers.decoding.state import BlockState

TOP_K = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Stale:
    """The stale distribution of `state` (the state that was forwarded, before its own next commit).

    `ids_LK`, `probs_LK`, `logprobs_LK`: the top K tokens of each open position by probability, best first, ties by
    lowest id, noise-free and untempered. `logodds_L`: top logit minus logsumexp of the other logits (the confidence
    that orders positions, -inf where not open). `entropy_L` in nats, over the whole vocabulary. `outside_L`: mass
    outside the top K.
    `drawn_ids_L2` and `drawn_scores_L2`: the best and second best token of each open position under the target's own
    token rule (T = 0: by log p; T > 0: by log p / T + G with the shared noise) with their scores.
    `fill_order`: the open positions of the block that have been filled so far, in commit order (given tokens of a
    prompt that opens the block are not part of it).
    """

    state: BlockState
    temperature: float
    ids_LK: Tensor
    probs_LK: Tensor
    logprobs_LK: Tensor
    logodds_L: Tensor
    entropy_L: Tensor
    outside_L: Tensor
    drawn_ids_L2: Tensor
    drawn_scores_L2: Tensor
    fill_order: tuple[int, ...]

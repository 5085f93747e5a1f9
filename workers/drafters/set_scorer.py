"""The set model on one round's stale distribution: what the target's next step fills from virtual states, and how.

What no draft changes (features, hidden states, candidates) is computed once a round; virtual states are asked about in
batches, each of which is one read of the device. Tokens: at T = 0 the likeliest candidate; at T > 0 with shared noise
the one that the predicted distribution draws with it, and as sure as a draw is that beats the second best by so much;
with independent noise the drafter's own stale draw.

Shapes: B virtual states, L block width, A positions masked in the stale state, C candidates, E projected embeddings.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from workers.decoding.stale import Stale
from workers.drafters.set_scores import SetNode, SetScores
from workers.drafters.stale_view import StaleView
from workers.models.features import KNOWN, OPEN
from workers.models.set_features import candidates_of, with_tau
from workers.models.set_model import SetModel


class ModelSetScorer:
    """A `SetScorer` of one stale distribution, by a set model and the projected vocabulary `table_VE` of its target."""

    def __init__(self, model: SetModel, table_VE: Tensor, stale: Stale) -> None:
        assert stale.hidden_LH is not None, "a set model reads hidden states, and this distribution is without any"
        self.model, self.table_VE, self.stale = model, table_VE, stale
        self.device = model.offsets_C.device
        self.view = StaleView(stale)
        self.open = self.view.open
        self.ids_AC, logprobs_AC = candidates_of(stale.ids_LK[self.open], stale.logprobs_LK[self.open])
        with torch.inference_mode():
            features_1AF = with_tau(self.view.features_AF[None], torch.tensor([stale.limit])).to(self.device)
            hidden_1AH = stale.hidden_LH[[*stale.state.open]][None].to(self.device)
            self.stale_1AW = model.embed_stale(features_1AF, hidden_1AH)
            self.ids_1AC, self.logprobs_1AC = self.ids_AC[None].to(self.device), logprobs_AC[None].to(self.device)
            self.candidates_1ACE = self.table_VE[self.ids_1AC.clamp(min=0)]
            self.mean_1AE = model.mean(self.ids_1AC, self.logprobs_1AC, self.candidates_1ACE)

    def __call__(self, nodes: Sequence[SetNode]) -> SetScores:
        """The next step from each state, one row a node."""
        depth_BL = torch.tensor([self._depths(node) for node in nodes])
        token_BL = torch.tensor([node.state.tokens for node in nodes])
        open_BA = depth_BL[:, self.open] == OPEN
        with torch.inference_mode():
            columns_BAC = self.view.columns(depth_BL).to(self.device)
            filled_BAE = self.table_VE[token_BL[:, self.open].to(self.device)]
            content_BAE = torch.where(open_BA[..., None].to(self.device), self.mean_1AE, filled_BAE)
            encoded_BAW = self.model.encode_states(self.stale_1AW, content_BAE, columns_BAC)
            include_BA1 = self.model.membership(encoded_BAW).sigmoid()[..., None]
            logp_BAC = self.model.scores(encoded_BAW, self.ids_1AC, self.logprobs_1AC, self.candidates_1ACE)
            read_BAX = torch.cat((include_BA1, logp_BAC), dim=-1).cpu().double()  # each read makes the host wait
            include_BA = read_BAX[..., 0]
            token_BA, sure_BA = self.tokens(read_BAX[..., 1:])
        token_BL[:, self.open] = torch.where(open_BA, token_BA, token_BL[:, self.open])
        return SetScores(
            include_BL=self.view.spread(torch.where(open_BA, include_BA, 0.0)),
            token_BL=token_BL,
            sure_BL=self.view.spread(torch.where(open_BA, sure_BA, 0.0)),
        )

    def tokens(self, logp_BAC: Tensor) -> tuple[Tensor, Tensor]:
        """The likeliest token of each position looked at, and how sure it is, of candidates' log probabilities."""
        stale = self.stale
        if stale.temperature > 0 and not stale.coupled:  # the target's draws are not to be foreseen
            token_A, score_A = stale.drawn_ids_L2[self.open, 0], stale.drawn_scores_L2[self.open, 0]
            return token_A.expand(logp_BAC.shape[:2]), score_A.exp().expand(logp_BAC.shape[:2])
        if stale.temperature > 0:
            assert stale.noise_LK is not None
            noise_AC = stale.noise_LK[self.open, : logp_BAC.shape[-1]]
            logp_BAC = logp_BAC[..., : noise_AC.shape[-1]] / stale.temperature + noise_AC
            best_BA2 = logp_BAC.topk(min(2, logp_BAC.shape[-1])).values
            sure_BA = best_BA2.softmax(-1)[..., 0]
        else:
            sure_BA = logp_BAC.amax(-1).exp()
        at_BA1 = logp_BAC.argmax(-1, keepdim=True)
        ids_BAC = self.ids_AC.expand(len(logp_BAC), -1, -1)
        return ids_BAC.gather(-1, at_BA1).squeeze(-1), sure_BA

    def _depths(self, node: SetNode) -> list[int]:
        """Fill depth of every position of a node's state: the number of the step that filled it."""
        depths: list[int] = self.view.depth_L.tolist()
        for position in node.known:
            depths[position] = KNOWN
        for depth, step in enumerate(node.path, start=1):
            for position, _ in step:
                depths[position] = depth
        return depths

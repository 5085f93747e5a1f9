import pytest
import torch

from tests.toys import commits_of, greedy_stale
from workers.decoding.state import Commit
from workers.drafters.ssd import SsdDrafter

P = torch.tensor([[0.7, 0.2, 0.1], [0.05, 0.9, 0.05], [0.1, 0.1, 0.8], [0.9, 0.05, 0.05]], dtype=torch.float64)


def test_chain_in_stale_confidence_order_with_stale_tokens() -> None:
    stale, root = greedy_stale(P)
    assert root.tokens == (9, 1, 9, 9)  # 0.9 twice: the lowest position is the known commit
    tree = SsdDrafter(8).propose(root, (1,), stale)
    assert commits_of(tree) == (Commit(3, 0), Commit(2, 2))  # the last position would fill the block
    assert tree.parents == (-1, 0, 1)
    assert [state.tokens for state in tree.states] == [(9, 1, 9, 9), (9, 1, 9, 0), (9, 1, 2, 0)]
    assert tree.masses == pytest.approx((1.0, 0.9, 0.9 * 0.8))


@pytest.mark.parametrize(("budget", "drafts"), [(1, 1), (2, 2), (3, 2)])
def test_budget_and_full_states_bound_the_chain(budget: int, drafts: int) -> None:
    stale, root = greedy_stale(P)
    assert SsdDrafter(budget).propose(root, (1,), stale).drafts == drafts

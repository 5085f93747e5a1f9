import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from workers.models.features import (
    BEYOND,
    COMMITTED,
    KNOWN,
    OPEN,
    confidence_rank,
    path_columns,
    stale_features,
)
from workers.models.order_shapes import DEPTH_CAP, STALE_FEATURES, column_sizes


def test_stale_features_of_one_position_by_hand():
    probs = torch.tensor([[0.5, 0.25, 0.125]], dtype=torch.float64)  # three candidates; an eighth lies outside
    features = stale_features(
        probs,
        probs.log(),
        torch.tensor([0.0], dtype=torch.float64),  # p1 = 1/2: log-odds 0
        torch.tensor([1.2], dtype=torch.float64),
        torch.tensor([0.125], dtype=torch.float64),
        torch.tensor([3]),
        block_length=8,
    )[0].tolist()
    assert len(features) == STALE_FEATURES == 70
    assert features[:4] == [0.5, 0.25, 0.125, 0.0]
    # log probabilities are shown as 1 + log p / 8, absent candidates as log p = -16
    assert features[32:35] == pytest.approx([1 - math.log(2) / 8, 1 - math.log(4) / 8, 1 - math.log(8) / 8])
    assert features[35:64] == [-1.0] * 29
    # entropy / 2, margin, log(1 - p1) / 8, log-odds / 8, outside, rank / L
    assert features[64:] == pytest.approx([0.6, 0.25, -math.log(2) / 8, 0.0, 0.125, 3 / 8])


def test_confidence_that_rounds_to_one_still_counts():
    one = torch.ones(2, 1, dtype=torch.float64)
    rest = (one[:, 0] * 0, one[:, 0] * 0)
    odds = torch.tensor([18.0, 28.0], dtype=torch.float64)
    features = stale_features(
        one.expand(2, 2) * 1.0, one.expand(2, 2) * 0, odds, *rest, odds.long() * 0, block_length=8
    )
    assert features[0, 66].item() == pytest.approx(-18 / 8)
    assert features[1, 66].item() == pytest.approx(-28 / 8)


def test_infinite_log_odds_stay_finite():
    one = torch.ones(1, 2, dtype=torch.float64)
    logs = torch.tensor([[0.0, -math.inf]], dtype=torch.float64)
    zero = torch.zeros(1, dtype=torch.float64)
    features = stale_features(one, logs, zero + math.inf, zero, zero, zero.long(), block_length=8)
    assert features.isfinite().all()


def test_path_columns_of_a_block_of_six_by_hand():
    # 0 given, 1 open, 2 filled by the draft second, 3 filled by the known commit, 4 open, 5 filled by the draft first
    depth = torch.tensor([[COMMITTED, OPEN, 2, KNOWN, OPEN, 1]])
    rank = torch.tensor([[6, 4, 0, 1, 3, 2]])  # of the stale state, where 1..5 were open
    columns = path_columns(depth, rank)[0].T.tolist()
    assert columns[0] == [2, 0, 4, 3, 0, 4]  # status
    assert columns[1] == [0, 0, 2, 0, 0, 1]  # draft depth
    assert columns[2] == [3, 4, 5, 6, 7, 8]  # distance to position 2 (the last filled) plus 5
    assert columns[3] == [0, 1, 0, 0, 1, 0]  # to the nearest filled on the left
    assert columns[4] == [0, 1, 0, 0, 1, 0]  # and on the right
    assert columns[5] == [4] * 6  # number filled
    assert columns[6] == [0, 1, 2, 3, 4, 5]
    assert columns[7] == [6, 1, 6, 6, 0, 6]  # 4 is now the most confident open position, 1 the next


def test_positions_behind_the_end_are_masked_yet_never_candidates():
    depth = torch.tensor([[OPEN, KNOWN, BEYOND, BEYOND]])
    columns = path_columns(depth, torch.tensor([[0, 1, 4, 4]]))[0].T.tolist()
    assert columns[0] == [0, 3, 1, 1]
    assert columns[3] == [1, 0, 1, 2]  # the block's left neighbour is filled
    assert columns[4] == [1, 0, 4, 4]  # nothing is filled on their right
    assert columns[5] == [1] * 4
    assert columns[7] == [0, 4, 4, 4]


blocks = st.integers(2, 40).flatmap(
    lambda length: st.tuples(
        st.permutations(range(length)),
        st.integers(0, length - 1),
        st.integers(0, length - 1),
        st.lists(st.floats(-9, 9), min_size=length, max_size=length),
    )
)


@given(blocks)
def test_columns_agree_with_a_plain_reading_and_fit_their_tables(block):
    order, before, drafted, confidences = block
    length = len(order)
    filled_at = {position: number for number, position in enumerate(order[: before + 1 + drafted])}
    depths = [filled_at[i] - before if i in filled_at else None for i in range(length)]  # 0: the known commit
    depth = torch.tensor([[OPEN if d is None else max(d, COMMITTED) for d in depths]])
    stale_open = torch.tensor([[d is None or d >= 0 for d in depths]])
    rank = confidence_rank(torch.tensor([confidences], dtype=torch.float64), stale_open)
    by_confidence = sorted((i for i in range(length) if stale_open[0, i]), key=lambda i: (-confidences[i], i))
    assert rank[0].tolist() == [by_confidence.index(i) if i in by_confidence else length for i in range(length)]

    columns = path_columns(depth, rank)
    assert (columns.amax((0, 1)) < torch.tensor(column_sizes(length))).all()
    assert (columns >= 0).all()
    filled = [i for i in range(length) if depths[i] is not None]
    last = max(filled, key=lambda i: depths[i])
    still = [i for i in by_confidence if depths[i] is None]
    for i, row in enumerate(columns[0].tolist()):
        assert row[1] == min(max(depths[i] or 0, 0), DEPTH_CAP)
        assert row[2] == i - last + length - 1
        assert row[3] == min([i + 1, *(i - f for f in filled if f <= i)])
        assert row[4] == min([length, *(f - i for f in filled if f >= i)])
        assert row[5] == len(filled)
        assert row[7] == (still.index(i) if i in still else length)

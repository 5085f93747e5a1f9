"""What a set model sees beside the order model's features, worked out by hand."""

import math

import pytest
import torch

from workers.models.set_facts import CANDIDATES
from workers.models.set_features import ABSENT, candidates_of, evened, shares, with_tau


def test_tau_is_one_more_column_the_same_everywhere() -> None:
    features = torch.arange(12.0).view(2, 3, 2)
    limits = torch.tensor([math.log(0.9 / 0.1), math.log(0.5 / 0.5)], dtype=torch.float64)
    found = with_tau(features, limits)
    assert found.shape == (2, 3, 3)
    assert found.dtype == torch.float32
    assert torch.equal(found[..., :2], features)
    assert found[0, :, 2].tolist() == pytest.approx([math.log(9) / 8] * 3)
    assert found[1, :, 2].tolist() == [0.0] * 3


def test_vectors_have_a_root_mean_square_of_one_whatever_their_scale() -> None:
    vector = torch.tensor([3.0, -4.0, 0.0, 0.0], dtype=torch.float64)
    wanted = [3 / 2.5, -4 / 2.5, 0.0, 0.0]  # sqrt((9 + 16) / 4) = 2.5
    assert evened(vector).tolist() == pytest.approx(wanted, abs=1e-5)
    assert evened(1000 * vector).tolist() == pytest.approx(wanted, abs=1e-5)
    assert evened(vector.bfloat16()).dtype == torch.float32
    assert evened(torch.zeros(4)).tolist() == [0.0] * 4
    assert evened(evened(vector)).tolist() == pytest.approx(evened(vector).tolist(), abs=1e-5)


def test_candidates_are_the_best_sixteen() -> None:
    ids, logprobs = candidates_of(torch.arange(32), -torch.arange(32.0))
    assert ids.tolist() == list(range(CANDIDATES))
    assert logprobs.tolist() == [-float(i) for i in range(16)]
    assert candidates_of(torch.arange(32), -torch.full((32,), 99.0))[1].tolist() == [-16.0] * 16  # the features' floor


def test_a_small_vocabulary_has_absent_candidates() -> None:
    ids, logprobs = candidates_of(torch.tensor([[4, 7]]), torch.tensor([[0.75, 0.25]]).log())
    assert ids.tolist() == [[4, 7, *[ABSENT] * 14]]
    assert shares(ids, logprobs).tolist()[0] == pytest.approx([0.75, 0.25, *[0.0] * 14])


def test_shares_are_of_the_candidates_among_themselves() -> None:
    ids, logprobs = candidates_of(torch.arange(20), torch.full((20,), math.log(1 / 20)))
    assert shares(ids, logprobs).tolist() == pytest.approx([1 / 16] * 16)

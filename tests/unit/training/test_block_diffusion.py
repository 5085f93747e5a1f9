"""The objective's batches: who sees whom, what is masked, and that a noisy block is predicted as in decoding."""

from pathlib import Path

import pytest
import torch

from tests.tiny_checkpoints import END, MASK, write_checkpoint
from workers.targets.layers import block_causal, dense_attention
from workers.targets.load import load_target
from workers.training.block_diffusion import Batch, Bucket, bfloat16_attention, bucket, causal_batch, draw, noisy_batch

L = 4


def _batch(rows: Bucket, *, copies: int = 2, full_mask: float = 0.0, seed: int = 0, block_length: int = L) -> Batch:
    rng = torch.Generator().manual_seed(seed)
    return noisy_batch(rows, block_length=block_length, copies=copies, full_mask=full_mask, mask_id=MASK, rng=rng)


def _rows() -> Bucket:
    """Two examples: prompts of 5 and 6 tokens, answers of 8 and 7, closed: 14 tokens in 4 blocks; every id is its
    own.
    """
    pairs = [(list(range(10, 15)), list(range(20, 28))), (list(range(30, 36)), list(range(40, 47)))]
    (rows,) = bucket([([1], [1]), *pairs], block_length=L, end_id=END)[1:]
    return rows


def test_buckets_close_answers_and_fill_the_last_block() -> None:
    rows = _rows()
    assert rows.start == 4
    assert rows.prompts_B.tolist() == [5, 6]
    assert rows.ids_BS.tolist() == [
        [*range(10, 15), *range(20, 28), END, END, END],
        [*range(30, 36), *range(40, 47), END, END, END],
    ]


def test_every_tenth_example_goes_on_for_a_block_of_end_tokens() -> None:
    buckets = bucket([([5], [6, 7])] * 20, block_length=L, end_id=END)
    assert [tuple(rows.ids_BS.shape) for rows in buckets] == [(18, 4), (2, 8)]
    assert buckets[1].ids_BS[0].tolist() == [5, 6, 7, END, END, END, END, END]


def test_draws_are_rows_of_one_bucket_without_repeats() -> None:
    buckets = [
        Bucket(start=0, ids_BS=torch.arange(b, b + n)[:, None], prompts_B=torch.ones(n)) for b, n in ((0, 5), (50, 20))
    ]
    seen = set()
    for seed in range(40):
        rows = draw(buckets, 8, torch.Generator().manual_seed(seed)).ids_BS.flatten().tolist()
        assert len(set(rows)) == len(rows)
        assert all(row < 5 for row in rows) or all(row >= 50 for row in rows)
        seen |= set(rows)
    assert seen == {*range(5), *range(50, 70)}


def test_only_answers_are_masked_and_labels_are_what_was_masked() -> None:
    rows = _rows()
    batch = _batch(rows)
    clean = 12
    assert batch.ids_BT[:, :clean].equal(rows.ids_BS[:, :clean])
    assert batch.labels_BT[:, :clean].eq(-100).all()
    assert batch.positions_T.tolist() == [*range(12), *range(4, 16), *range(4, 16)]
    for copy in range(2):
        part = slice(clean + 12 * copy, clean + 12 * (copy + 1))
        ids, labels, truth = batch.ids_BT[:, part], batch.labels_BT[:, part], rows.ids_BS[:, 4:]
        masked = ids == MASK
        assert masked.any()
        assert labels[masked].equal(truth[masked])
        assert ids[~masked].equal(truth[~masked])
        assert labels[~masked].eq(-100).all()
        prompt = torch.arange(4, 16) < rows.prompts_B[:, None]
        assert not (masked & prompt).any()


def test_mask_rates_cover_everything_from_one_position_to_whole_blocks() -> None:
    ids = torch.full((400, 8), 7)
    counts = torch.zeros(5)
    full = torch.zeros(5)
    for share, into in ((0.0, counts), (1.0, full)):
        rows = Bucket(start=4, ids_BS=ids, prompts_B=torch.full((400,), 4))
        masked = (_batch(rows, copies=1, full_mask=share).ids_BT[:, 4:] == MASK).sum(-1)
        into += torch.bincount(masked, minlength=5)
    # a rate drawn uniformly makes every number of masks equally likely: 80 of 400 each, standard deviation 8
    assert (counts - 80).abs().max() < 40
    assert full.tolist() == [0, 0, 0, 0, 400]


def test_who_sees_whom() -> None:
    """Against the sentence: own block of the own copy, and clean blocks before it."""
    batch = _batch(_rows())
    where = [("clean", p) for p in range(12)] + [(copy, p) for copy in ("a", "b") for p in range(4, 16)]
    for q, (q_copy, q_at) in enumerate(where):
        for k, (k_copy, k_at) in enumerate(where):
            own = q_copy == k_copy and q_at // L == k_at // L
            before = k_copy == "clean" and k_at // L < q_at // L
            assert bool(batch.visible_TT[q, k]) == (own or before)


@pytest.mark.parametrize("block_length", [1, L])
def test_a_noisy_block_sees_what_decoding_shows(tmp_path: Path, block_length: int) -> None:
    """Hidden states of the joined sequence equal those of a session over the same clean prefix."""
    target = load_target(write_checkpoint(tmp_path), dtype="float64")
    rows = _rows()
    batch = _batch(rows, copies=1, full_mask=0.5, block_length=block_length)
    clean = 16 - block_length
    with torch.inference_mode():
        hidden = target.body(batch.ids_BT, batch.positions_T, dense_attention(batch.visible_TT[None, None]))
    for row in range(2):
        whole = rows.ids_BS[row].tolist()
        for start in range(4, 16, block_length):
            at = clean + start - 4
            block = batch.ids_BT[row, at : at + block_length]
            session = target.start(whole[:start], block_length=block_length, max_new_tokens=16)
            ours = session.forward(block[None])[0]
            torch.testing.assert_close(hidden[row, at : at + block_length], ours, rtol=0, atol=1e-12)


def test_bfloat16_attention_is_the_dense_one_rounded() -> None:
    rng = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, 6, heads, 8, generator=rng) for heads in (4, 2, 2))
    visible = block_causal(torch.tensor([[0, 0, 1, 1, 1, 2]]))
    exact = dense_attention(visible)(0, q, k, v)
    rounded = bfloat16_attention(visible[0, 0])(0, q, k, v)
    torch.testing.assert_close(rounded.float(), exact, rtol=0, atol=0.03)


def test_a_shifted_block_begins_one_clean_position_earlier_and_predicts_one_ahead() -> None:
    rows = _rows()
    rng = torch.Generator().manual_seed(0)
    batch = noisy_batch(rows, block_length=L, copies=2, full_mask=0.0, mask_id=MASK, rng=rng, shift=1)
    straight = _batch(rows)
    where = [("clean", p, None) for p in range(12)]
    where += [(copy, p, start) for copy in "ab" for start in (4, 8, 12) for p in range(start - 1, start + L)]
    assert batch.positions_T.tolist() == [p for _, p, _ in where]
    for q, (q_copy, q_at, q_start) in enumerate(where):
        for k, (k_copy, k_at, k_start) in enumerate(where):
            own = q_copy == k_copy and (q_start == k_start if q_start else q_at // L == k_at // L)
            before = k_copy == "clean" and k_at < (q_start - 1 if q_start else q_at // L * L)
            assert bool(batch.visible_TT[q, k]) == (own or before)
    for row in range(2):
        truth = rows.ids_BS[row].tolist()
        asked = [(copy, p) for copy in "ab" for p in range(4, 16)]
        labels = dict(zip(asked, straight.labels_BT[row, 12:].tolist(), strict=True))
        for t, (copy, at, start) in enumerate(where):
            label, here = int(batch.labels_BT[row, t]), int(batch.ids_BT[row, t])
            if start is None or at == start + L - 1:
                assert label == -100
            else:
                assert label == labels[copy, at + 1]  # the same masks are drawn, asked for one position earlier
            masked = start is not None and at >= start and labels[copy, at] >= 0
            assert here == (MASK if masked else truth[at])


def test_the_causal_warm_start_predicts_answers_from_what_is_before() -> None:
    rows = _rows()
    batch = causal_batch(rows)
    assert batch.ids_BT.equal(rows.ids_BS[:, :-1])
    assert batch.labels_BT[0].tolist() == [-100] * 4 + rows.ids_BS[0, 5:].tolist()
    assert batch.labels_BT[1].tolist() == [-100] * 5 + rows.ids_BS[1, 6:].tolist()
    assert batch.visible_TT.equal(torch.ones(15, 15).tril().bool())

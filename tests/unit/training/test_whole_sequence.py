"""Canvases of the whole-sequence objective: what block-by-block decoding shows, and labels where it would read them."""

from pathlib import Path

import pytest
import torch

from tests.tiny_checkpoints import END, MASK, write_checkpoint
from workers.targets.load import load_target
from workers.training.block_diffusion import Batch, Bucket, bucket
from workers.training.whole_sequence import whole_batch

L, NEW = 4, 10


def _rows() -> Bucket:
    pairs = [(list(range(10 + p, 15 + p)), list(range(20 + p, 28 + p))) for p in range(9)]
    (rows,) = bucket([([1], [1]), *pairs], block_length=L, end_id=END)[1:]
    return rows


def _batch(seed: int = 0, *, full_mask: float = 0.3, behind: float = 0.0, shift: int = 0) -> Batch:
    return whole_batch(
        _rows(),
        block_length=L,
        new_tokens=NEW,
        full_mask=full_mask,
        behind=behind,
        mask_id=MASK,
        end_id=END,
        rng=torch.Generator().manual_seed(seed),
        shift=shift,
    )


def _open_block(ids_C: torch.Tensor, truth_C: torch.Tensor) -> int:
    """Where the open block begins: everything behind it is a mask, everything before it is clean.

    A block that drew no mask cannot be told from one that is committed, nor one that drew all from one behind; the last
    candidate is taken, whose block is masked only if it drew that.
    """
    return [
        start
        for start in range(4, len(ids_C), L)
        if ids_C[start + L :].eq(MASK).all() and ids_C[:start].equal(truth_C[:start])
    ][-1]


def test_a_canvas_is_clean_then_open_then_masked() -> None:
    truth_BC = torch.nn.functional.pad(_rows().ids_BS, (0, 0), value=END)
    seen = set()
    for seed in range(30):
        batch = _batch(seed)
        assert batch.ids_BT.shape == (9, 16)  # 5 + 10 positions in whole blocks, no longer than the ids
        for ids_C, labels_C, truth_C in zip(batch.ids_BT, batch.labels_BT, truth_BC, strict=True):
            start = _open_block(ids_C, truth_C)
            if labels_C.eq(-100).all():  # nothing was drawn: which block was open cannot be seen
                continue
            seen.add(start)
            assert ids_C[:5].ne(MASK).all()  # the prompt
            inside = slice(start, start + L)
            masked = ids_C[inside] == MASK
            assert labels_C[inside].equal(torch.where(masked, truth_C[inside], -100))
            assert ids_C[inside][~masked].equal(truth_C[inside][~masked])
            assert labels_C[:start].eq(-100).all()
            assert labels_C[start + L :].eq(-100).all()
    assert seen == {4, 8, 12}


def test_room_for_new_tokens_is_kept_and_ends_with_end_tokens() -> None:
    rows = _rows()
    batch = whole_batch(
        rows,
        block_length=L,
        new_tokens=30,
        full_mask=0.0,
        behind=1.0,
        mask_id=MASK,
        end_id=END,
        rng=torch.Generator().manual_seed(1),
    )
    assert batch.ids_BT.shape[1] == 36
    assert batch.labels_BT[:, 16:].eq(END).all()
    assert batch.visible_TT.all()


def test_a_share_of_the_masks_behind_is_learned() -> None:
    learned = torch.stack([(_batch(seed, full_mask=0.0, behind=0.25).labels_BT >= 0).sum() for seed in range(40)]).sum()
    asked = torch.stack([(_batch(seed, full_mask=0.0).labels_BT >= 0).sum() for seed in range(40)]).sum()
    # 40 x 9 canvases of 16: 8, 4 or 0 masks behind, 4 on average, a quarter of them learned
    assert 300 < learned - asked < 420


@pytest.mark.parametrize(("family", "shift"), [("llada", 0), ("dream", 1)])
def test_labels_stand_where_decoding_reads_the_same_states(tmp_path: Path, family: str, shift: int) -> None:
    target = load_target(write_checkpoint(tmp_path, family=family), dtype="float64", cache="none")
    batch, straight = _batch(3, shift=shift), _batch(3)
    hidden_BCH = target.dense(batch.ids_BT, batch.visible_TT[None, None])
    for row, truth_C in enumerate(_rows().ids_BS):
        start = _open_block(batch.ids_BT[row], truth_C)
        if straight.labels_BT[row].eq(-100).all():
            continue
        session = target.start(truth_C[:5].tolist(), block_length=L, max_new_tokens=NEW)
        for first in range(4, start, L):
            session.commit(truth_C[first : first + L])
        rows_LH = session.forward(batch.ids_BT[row, start : start + L][None])[0]
        for i in range(L):
            at = start + i - shift
            torch.testing.assert_close(hidden_BCH[row, at], rows_LH[i], rtol=0, atol=1e-12)
            assert batch.labels_BT[row, at] == straight.labels_BT[row, start + i]

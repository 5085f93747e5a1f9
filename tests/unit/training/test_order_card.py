"""Cards are read back, those of the first version too."""

import json
import shutil

import pytest

from workers.catalog import ZOO
from workers.training.order_card import read_card, write_card
from workers.training.order_readme import readme

SHIPPED = ZOO / "drafters" / "spot-tiny-sdar"


def test_the_shipped_card_is_read_with_its_target_and_numbers(tmp_path):
    raw = json.loads((SHIPPED / "card.json").read_text())
    card = read_card(SHIPPED)
    assert card.digest == raw["digest"]
    assert card.held_out_loss == raw["held_out_loss"]
    assert {source.role for source in card.sources} == {"trained on"}
    assert len(card.targets) == 1
    first = card.totals()[1]
    assert 0.5 < first.stale_confidence.value < first.order_model.value < 1
    assert f"Order model of SPOT for {next(iter(card.targets))}" in readme(card)
    write_card(tmp_path, card)
    assert read_card(tmp_path) == card


@pytest.mark.parametrize("damage", [b"", b"[]", b"{}", b'{"version": 2}', b'{"target": 1, "sources": 2}', b"\xff"])
def test_what_is_no_card_is_named(tmp_path, damage):
    (tmp_path / "card.json").write_bytes(damage)
    with pytest.raises(ValueError, match=r"card\.json is no card of an order model"):
        read_card(tmp_path)


def test_a_card_of_a_version_to_come_is_refused(tmp_path):
    shutil.copytree(SHIPPED, tmp_path / "model")
    raw = json.loads((tmp_path / "model" / "card.json").read_text())
    (tmp_path / "model" / "card.json").write_text(json.dumps({**raw, "version": 99}))
    with pytest.raises(ValueError, match=r"is no card of an order model \(version is 99: allowed is 1 to 3\)"):
        read_card(tmp_path / "model")

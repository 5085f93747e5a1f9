import pytest

from sweeps.spec import DecodeSpec, DrafterSpec, TargetSpec
from tests.toys import ToyTarget
from workers.decode_one import decode_prompts
from workers.loading import Loaded

TARGET = TargetSpec(name="toy", family="toy")
SSD = DrafterSpec(name="ssd", kind="ssd", budget=4)
SPEC = DecodeSpec(max_new_tokens=10, block_length=4)


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Loaded, "get_target", lambda self, spec, size: ToyTarget(seed=1, vocab_size=40, drift=0.1, stops=(3,))
    )


def test_text_and_ids_give_generations_with_a_grid() -> None:
    by_text, by_ids = decode_prompts(TARGET, SSD, SPEC, 0, ["hello", [1, 2, 3, 4, 5]])
    assert by_text.prompt_ids == tuple(ord(letter) % 38 for letter in "hello")
    assert by_ids.prompt_ids == (1, 2, 3, 4, 5)
    for decoded in (by_text, by_ids):
        generation = decoded.generation
        assert generation is not None
        assert [block.start for block in decoded.grid] == [4, 8, 12][: len(decoded.grid)]
        cells = [cell for block in decoded.grid for cell in block.cells]
        assert [cell.token for cell in cells] == [*decoded.prompt_ids[4:], *generation.output_ids]
        assert cells[0].commit is cells[0].round is None
        commits = {cell.commit: place for place, cell in enumerate(cells[1:])}
        assert tuple(commits[commit] for commit in range(len(generation.order))) == generation.order
        assert [cells[1 + place].round for place in generation.order] == list(generation.rounds)
        assert decoded.text == "".join(cell.text for cell in cells[1:] if cell.kept)


def test_a_prompt_that_cannot_be_decoded_is_a_failure_and_the_next_one_follows() -> None:
    refused, decoded = decode_prompts(TARGET, SSD, SPEC, 0, [[39], [1]])
    assert refused.failure is not None
    assert refused.generation is None
    assert "mask token" in refused.failure.message
    assert decoded.failure is None
    assert decoded.generation is not None


def test_a_seed_gives_each_prompt_its_own_noise() -> None:
    spec = DecodeSpec(max_new_tokens=10, block_length=4, temperature=1.0, ignore_eos=True)
    first, second = decode_prompts(TARGET, SSD, spec, 0, [[1], [1]])
    (again,) = decode_prompts(TARGET, SSD, spec, 0, [[1]])
    assert first.generation is not None
    assert second.generation is not None
    assert again.generation is not None
    assert first.generation.output_ids != second.generation.output_ids
    assert first.generation.output_ids == again.generation.output_ids


def test_an_empty_prompt_is_decoded() -> None:
    (decoded,) = decode_prompts(TARGET, SSD, SPEC, 0, [[]])
    assert decoded.generation is not None
    assert decoded.grid[0].start == 0

"""What generated tasks share: an endless seeded stream of problems, cut into splits by the content of each problem."""

import random
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from workers.tasks.base import SPLITS, Prompt, check_split, digest_of, split_of


class Keyed(Protocol):
    """A problem; `key` decides its split, whatever its wording."""

    @property
    def key(self) -> str:
        """The content."""


P = TypeVar("P", bound=Keyed)


class GeneratedTask(ABC, Generic[P]):
    """The prompts of a split are an endless seeded stream; a problem belongs to one split only."""

    name: str
    default_limit = 200

    @abstractmethod
    def draw(self, rng: random.Random) -> P:
        """A random problem."""

    @abstractmethod
    def worked(self, problem: P, rng: random.Random) -> tuple[str, str, str]:
        """The problem's text, its gold and a worked answer."""

    @property
    def data_digest(self) -> str:
        """Sha256 of the first worked examples of both splits, which depend on every table and rule of the task."""
        return digest_of(
            part
            for split in SPLITS
            for prompt, text in self.examples(split=split, limit=64, seed=0)
            for part in (prompt.text, prompt.gold, text)
        )

    def examples(self, *, split: str, limit: int, seed: int) -> Iterator[tuple[Prompt, str]]:
        """`limit` prompts with a worked answer each, no problem twice. Raises ValueError on an unknown split."""
        check_split(split)
        rng = random.Random(f"{self.name}/{split}/{seed}")
        seen: set[str] = set()
        while len(seen) < limit:
            problem = self.draw(rng)
            if split_of(problem.key) != split or problem.key in seen:
                continue
            text, gold, solution = self.worked(problem, rng)
            identity = f"{self.name}/{split}/{seed}/{len(seen)}"
            seen.add(problem.key)
            yield Prompt(id=identity, text=text, gold=gold), solution

    def prompts(self, *, split: str, limit: int | None, seed: int) -> tuple[Prompt, ...]:
        """The first `limit` prompts of the seeded stream (200 when None)."""
        count = self.default_limit if limit is None else limit
        return tuple(prompt for prompt, _ in self.examples(split=split, limit=count, seed=seed))

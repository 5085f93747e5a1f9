"""A target that passes every call on and keeps what its sessions were asked to forward."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from workers.targets.base import Session, Target


@dataclass(frozen=True)
class Asked:
    """One forward: copies of the active block, of the next one, and filled blocks that came along."""

    active: int
    crossing: int
    filled: int

    @property
    def blocks(self) -> int:
        """How many blocks' positions it takes: a crossing copy has its filled block in front."""
        return self.active + 2 * self.crossing + self.filled


@dataclass
class SpySession:
    session: Session
    asked: list[Asked]
    filled: int = 0

    def forward(self, blocks_NL: Tensor, behind_CL: Tensor | None = None) -> Tensor:
        crossing = 0 if behind_CL is None else len(behind_CL)
        assert crossing or behind_CL is None
        self.asked.append(Asked(len(blocks_NL) - crossing, crossing, self.filled))
        self.filled = 0
        return self.session.forward(blocks_NL, behind_CL)

    def commit(self, block_L: Tensor) -> None:
        self.filled += 1
        self.session.commit(block_L)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.session, name)


@dataclass
class SpyTarget:
    """`asked` are the forwards of all sessions, in order."""

    target: Target
    asked: list[Asked] = field(default_factory=list)

    def start(self, prompt_ids: Sequence[int], **options: int) -> SpySession:
        return SpySession(self.target.start(prompt_ids, **options), self.asked)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.target, name)

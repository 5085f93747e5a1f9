"""What a task is: named prompts, and a pure function that grades a text against the gold of its prompt.

A task owns its data and its grading rule and nothing else: no model, no decoding, no counters. Prompts are values, so
the same split, limit and seed give the same prompts on every machine, and `data_digest` names the data in a cell's
identity.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

SPLITS = ("train", "test")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One question: `text` is shown to the target, `gold` is what the grading rule needs (JSON text for code tests)."""

    id: str
    text: str
    gold: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """A verdict: `extracted` is what the rule read out of the text (None when it found nothing), `reason` says why."""

    correct: bool
    reason: str
    extracted: str | None


class Task(Protocol):
    """A set of prompts with a grading rule."""

    @property
    def name(self) -> str:
        """Name of the task in the catalog."""

    @property
    def data_digest(self) -> str:
        """Sha256 of what decides the prompts."""

    def prompts(self, *, split: str, limit: int | None, seed: int) -> tuple[Prompt, ...]:
        """The first `limit` prompts of a split (None: the task's own number). Raises ValueError on an unknown split."""

    def score(self, prompt: Prompt, text: str) -> Score:
        """Grade the generated text of one prompt. Never raises on any text."""


def check_split(split: str, *, allowed: tuple[str, ...] = SPLITS) -> str:
    """`split` itself when it is one of `allowed`; raises ValueError otherwise."""
    if split not in allowed:
        raise ValueError(f"split: {split!r} is not one of {', '.join(allowed)}")
    return split


def split_of(key: str) -> str:
    """The split that a generated problem belongs to: one problem in eight is held out, by the hash of its content."""
    return "test" if hashlib.sha256(key.encode()).digest()[0] < 32 else "train"


def digest_of(parts: Iterable[str]) -> str:
    """Sha256 (hex) of a sequence of texts; the boundaries between them count."""
    total = hashlib.sha256()
    for part in parts:
        total.update(hashlib.sha256(part.encode()).digest())
    return total.hexdigest()

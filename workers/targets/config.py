"""A checkpoint's config.json, read field by field without torch: what every family's reader shares.

A missing, mistyped or unsupported field is one ValueError with the field, its value and what is allowed. `block_size`
is not read: published values are unreliable, and the experiment sets the block length.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sweeps.paths import cut
from workers.targets.files import read_json
from workers.targets.shape import BodyShape, Weight
from workers.targets.tokens import TokenFacts

DTYPES = ("float64", "float32", "bfloat16", "float16")
MOST = 2**20  # of anything that a config counts: several times the widest published body and the largest vocabulary
MOST_LAYERS = 2**10  # several times the deepest
MOST_POSITIONS = 2**31  # they cost nothing until they are used
MOST_EXPERTS = 2**16  # in all layers together: each has tensors of its own, and lists of these must stay short
Attention = Literal["block-causal", "whole"]
ROTATION = ("rope_parameters", "rope_scaling")  # objects that state it, in newer configs and in older ones
ROTATION_SETTINGS = ("rope_type", "type", "rope_theta", "partial_rotary_factor")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointConfig:
    """What config and tokenizer files say of a checkpoint, and how its family works.

    `attention`: a position sees its own and earlier blocks, or the whole sequence. `shifted`: the hidden state of a
    position predicts the next one. `head` is the published name of the output head, which a tied checkpoint may store
    as well. `stored_dtype` is "" when the config is silent.
    """

    family: str
    attention: Attention
    shifted: bool
    shape: BodyShape
    weights: tuple[Weight, ...]
    max_positions: int
    tokens: TokenFacts
    stored_dtype: str
    head: str = "lm_head.weight"


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """The fields of a config.json, each checked where it is read."""

    path: Path
    values: Mapping[str, Any]

    @classmethod
    def of(cls, folder: Path) -> "ConfigFile":
        """The config of a checkpoint folder."""
        return cls(folder / "config.json", read_json(folder / "config.json"))

    def present(self, field: str) -> Any:
        """A field that must be there."""
        if field not in self.values:
            raise ValueError(f"{self.path}: {field} is missing")
        return self.values[field]

    def whole(self, field: str, *, least: int = 1, most: int = MOST) -> int:
        """A whole number from `least` to `most`: what no checkpoint has would only take memory for lists of it."""
        value = self.present(field)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            shown = cut(repr(value))
            raise ValueError(f"{self.path}: {field} is {shown}; allowed is a whole number from {least} to {most}")
        return value

    def positions(self, field: str) -> int:
        """The longest sequence that a checkpoint was made for."""
        return self.whole(field, most=MOST_POSITIONS)

    def number(self, field: str) -> float:
        """A positive finite number."""
        return self._number(self.present(field), field)

    def flag(self, field: str) -> bool:
        """True or false."""
        value = self.present(field)
        if not isinstance(value, bool):
            raise ValueError(f"{self.path}: {field} is {value!r}; allowed is true or false")
        return value

    def only(self, field: str, *allowed: object, absent: bool = True) -> None:
        """Refuse any value but the `allowed` ones; `absent` says whether the field may be missing."""
        if field not in self.values and absent:
            return
        value = self.present(field)
        if not any(value is one or (type(value) is type(one) and value == one) for one in allowed):
            raise ValueError(f"{self.path}: {field} is {value!r}; allowed is {allowed[0]!r}")

    def divisor(self, field: str, of: int) -> int:
        """A whole number that divides `of`."""
        value = self.whole(field)
        if of % value:
            raise ValueError(f"{self.path}: {field} is {value}; allowed are divisors of {of}")
        return value

    def even(self, value: int, field: str) -> int:
        """`value`, which is that of `field` or follows from it."""
        if value % 2 or value < 2:
            raise ValueError(f"{self.path}: {field} is {value}; allowed is an even number")
        return value

    def body_shape(self, *, heads: int, head_dim: int, **parts: Any) -> BodyShape:
        """The shape of a body whose config uses the usual names of transformers; `parts` are the family's own."""
        return BodyShape(
            vocab_size=self.whole("vocab_size"),
            hidden=self.whole("hidden_size"),
            layers=self.whole("num_hidden_layers", most=MOST_LAYERS),
            heads=heads,
            kv_heads=self.divisor("num_key_value_heads", heads),
            head_dim=head_dim,
            mlp=self.whole("intermediate_size"),
            norm_eps=self.number("rms_norm_eps"),
            rope_theta=self.rope_theta(),
            tied=self.flag("tie_word_embeddings"),
            **parts,
        )

    def stored_dtype(self) -> str:
        """The dtype of the weights by either name of the field, "" when both are absent."""
        named = {
            field: str(self.values[field]).removeprefix("torch.")
            for field in ("dtype", "torch_dtype")
            if self.values.get(field) is not None
        }
        for field, value in named.items():
            if value not in DTYPES:
                raise ValueError(f"{self.path}: {field} is {self.values[field]!r}; allowed are {', '.join(DTYPES)}")
        if len(set(named.values())) > 1:
            both = f"dtype is {self.values['dtype']!r} but torch_dtype is {self.values['torch_dtype']!r}"
            raise ValueError(f"{self.path}: {both}; they must agree")
        return next(iter(named.values()), "")

    def full_attention(self) -> None:
        """Refuse layers that see only a window of the sequence. The width of one that is not in use is no matter."""
        self.only("use_sliding_window", False, None)
        kinds = self.values.get("layer_types")
        if kinds is not None and (not isinstance(kinds, list) or any(kind != "full_attention" for kind in kinds)):
            raise ValueError(f"{self.path}: layer_types is {cut(repr(kinds))}; allowed is 'full_attention' in each")

    def rope_theta(self) -> float:
        """The base of the rotation, wherever it is stated. A rotation that is scaled is refused."""
        for place, setting, value in self._rotation():
            if setting not in ROTATION_SETTINGS:
                allowed = ", ".join(ROTATION_SETTINGS)
                raise ValueError(f"{self.path}: {place} is {cut(repr(value))}; allowed beside it are only {allowed}")
            if setting in ("rope_type", "type") and value != "default":
                raise ValueError(f"{self.path}: {place} is {cut(repr(value))}; allowed rope type is 'default'")
        stated = self._stated("rope_theta")
        return stated if stated is not None else self.number("rope_theta")

    def rotated_share(self, default: float | None = 1.0) -> float:
        """The share of a head's dimensions that turns, wherever it is stated; it must be where there is no `default`.

        Raises ValueError for another than `default`, or one that is no share.
        """
        field = "partial_rotary_factor"
        share = self._stated(field)
        if share is None:
            return self.number(field) if default is None else default
        if share > 1 or (default is not None and share != default):
            allowed = "a number above 0, up to 1" if default is None else f"{default}, as the family has it"
            raise ValueError(f"{self.path}: {field} is {share!r}; allowed is {allowed}")
        return share

    def _rotation(self) -> Iterator[tuple[str, str, object]]:
        """Where, what and which value: the entries of the objects that state the rotation, null ones left out."""
        for field in ROTATION:
            held = self.values.get(field)
            if not isinstance(held, Mapping | None):
                raise ValueError(f"{self.path}: {field} is {cut(repr(held))}; allowed is an object or null")
            for setting, value in (held or {}).items():
                if value is not None:
                    yield f"{field}.{cut(setting)}", setting, value

    def _stated(self, wanted: str) -> float | None:
        """A number of the rotation, None where nobody states it. Raises ValueError where two places disagree."""
        places = {wanted: self.values[wanted]} if self.values.get(wanted) is not None else {}
        places |= {place: value for place, setting, value in self._rotation() if setting == wanted}
        numbers = {place: self._number(value, place) for place, value in places.items()}
        if len(set(numbers.values())) > 1:
            both = " but ".join(f"{place} is {number!r}" for place, number in numbers.items())
            raise ValueError(f"{self.path}: {both}; they must agree")
        return next(iter(numbers.values()), None)

    def _number(self, value: object, field: str) -> float:
        try:
            number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
        except OverflowError:
            number = math.inf
        if not (math.isfinite(number) and number > 0):
            raise ValueError(f"{self.path}: {field} is {value!r}; allowed is a positive finite number")
        return number

"""The bodies of the published checkpoints that the table of targets names: widths, ids, limits, without their weights.

What planning, memory checks and measurements with random weights go by while a checkpoint is not here. A worker goes by
the checkpoint's own config; `spot doctor` says where the two differ. Source: the config.json of each public repository.
"""

from dataclasses import dataclass

from workers.targets.shape import BodyShape, ExpertShape


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What is known of a published checkpoint: its body, the ids with a meaning, the positions that it was made for."""

    shape: BodyShape
    mask_id: int
    stop_ids: tuple[int, ...]
    max_positions: int


def qwen3(*, hidden: int, layers: int, heads: int, mlp: int) -> Published:
    """An SDAR checkpoint, by the widths in which its sizes differ."""
    return Published(
        shape=BodyShape(
            vocab_size=151936,
            hidden=hidden,
            layers=layers,
            heads=heads,
            kv_heads=8,
            head_dim=128,
            mlp=mlp,
            norm_eps=1e-6,
            rope_theta=1e6,
            tied=False,
        ),
        mask_id=151669,
        stop_ids=(151643, 151645),
        max_positions=32768,
    )


SDAR_1_7B = qwen3(hidden=2048, layers=28, heads=16, mlp=6144)
SDAR_8B = qwen3(hidden=4096, layers=36, heads=32, mlp=12288)

LLADA2_MINI = Published(
    shape=BodyShape(
        vocab_size=157184,
        hidden=2048,
        layers=20,
        heads=16,
        kv_heads=4,
        head_dim=128,
        mlp=5120,
        norm_eps=1e-6,
        rope_theta=6e5,
        tied=False,
        fused_qkv=True,
        rotary_dim=64,
        experts=ExpertShape(count=256, chosen=8, groups=8, groups_kept=4, mlp=512, shared=1, scale=2.5, dense_layers=1),
    ),
    mask_id=156895,
    stop_ids=(156892,),
    max_positions=32768,
)

LLADA_8B = Published(
    shape=BodyShape(
        vocab_size=126464,
        hidden=4096,
        layers=32,
        heads=32,
        kv_heads=32,
        head_dim=128,
        mlp=12288,
        norm_eps=1e-5,
        rope_theta=5e5,
        tied=False,
        qk_norm=False,
        rotary_wide=True,
    ),
    mask_id=126336,
    stop_ids=(126081, 126348),
    max_positions=4096,
)

DREAM_7B = Published(
    shape=BodyShape(
        vocab_size=152064,
        hidden=3584,
        layers=28,
        heads=28,
        kv_heads=4,
        head_dim=128,
        mlp=18944,
        norm_eps=1e-6,
        rope_theta=1e6,
        tied=False,
        qk_norm=False,
        qkv_bias=True,
    ),
    mask_id=151666,
    stop_ids=(151643, 151645),
    max_positions=131072,
)

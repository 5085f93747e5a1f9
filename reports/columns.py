"""The columns of exported rows, in one table: name, type, unit, meaning, and where a result holds the value.

Frames, exports, the files beside a report and their documentation all come from these tables: a column that exists is
documented, and a documented column exists.
"""

from dataclasses import dataclass
from typing import Any, Literal

from sweeps.study import TOPS

Kind = Literal["text", "int", "float", "bool"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `path` is a chain of attributes (or places in a tuple) from a row; None anywhere on it gives None."""

    name: str
    kind: Kind
    unit: str
    meaning: str
    path: str

    def read(self, row: object) -> Any:
        """The value for `row`. Texts in a tuple become one (none: None), and a setting without a text has none."""
        value: Any = row
        for name in self.path.split("."):
            if value is None:
                return None
            value = value[int(name)] if name.isdigit() else getattr(value, name)
        if value == "" and self.path.startswith("cell."):
            return None
        return ("; ".join(value) or None) if isinstance(value, tuple) else value


def estimate(name: str, unit: str, meaning: str, path: str) -> tuple[Column, Column, Column]:
    """An estimate and the two ends of its 95 % interval."""
    return (
        Column(name, "float", unit, meaning, f"{path}.value"),
        Column(f"{name}_low", "float", unit, f"lower end of the 95 % interval of {name}", f"{path}.low"),
        Column(f"{name}_high", "float", unit, f"upper end of the 95 % interval of {name}", f"{path}.high"),
    )


AXES = (
    Column("cell_id", "text", "", "identity: digest of all that can change a generation", "cell_id"),
    Column("target", "text", "", "name of the target model", "cell.target.name"),
    Column("task", "text", "", "name of the task", "cell.task.name"),
    Column("drafter", "text", "", "name of the drafter; none is draft-free decoding", "cell.drafter.name"),
    Column("bound", "bool", "", "an oracle that knows the target's future: a bound, no method", "cell.drafter.oracle"),
    Column("budget", "int", "states", "D, draft states verified beside the root", "cell.drafter.budget"),
    Column("gamma", "float", "mass", "mass floor: lighter drafts are not verified", "cell.drafter.gamma"),
    Column("temperature", "float", "", "sampling temperature", "cell.decode.temperature"),
    Column("noise", "text", "", "coupled or independent", "cell.decode.noise"),
    Column("seed", "int", "", "seed of the noise", "cell.seed"),
    Column("max_new_tokens", "int", "tokens", "most tokens generated for a prompt", "cell.decode.max_new_tokens"),
    Column("block_length", "int", "tokens", "positions of a block", "cell.decode.block_length"),
    Column("commit", "text", "", "commit rule: standard or threshold", "cell.decode.commit"),
    Column("tau", "float", "", "confidence that threshold exceeds; empty: standard", "cell.decode.threshold"),
    Column("acceptance", "text", "", "which drafted steps are committed", "cell.drafter.acceptance"),
    Column("max_commit", "bool", "", "of the accepted paths the one with most commits", "cell.drafter.max_commit"),
    Column("cross_block", "bool", "", "drafts go on in the next block", "cell.drafter.cross_block"),
    Column("refresh", "bool", "", "a block's first round is drafted from those", "cell.drafter.refresh"),
)

CELL_COLUMNS = (
    *AXES,
    Column("drafter_kind", "text", "", "entry of the drafter table", "cell.drafter.kind"),
    Column("hedge", "float", "", "stale top-1 probability below which a second token is drafted", "cell.drafter.hedge"),
    Column("merge_states", "bool", "", "states reached by two orders are one", "cell.drafter.merge_states"),
    Column(
        "verify_margin", "float", "log-odds", "verdicts closer than this are made again", "cell.drafter.verify_margin"
    ),
    Column(
        "cost_digest", "text", "", "cost curve that chooses how many drafts are verified", "cell.drafter.cost_digest"
    ),
    Column(
        "made_on", "text", "", "targets that the drafter's order model or graph was made on", "cell.drafter.made_on"
    ),
    Column("native", "bool", "", "made on this cell's target; empty: nothing was made, or not known", "cell.is_native"),
    Column("confidence", "text", "", "what orders positions: top1 or sampled", "cell.decode.confidence"),
    Column("dtype", "text", "", "number type of the target", "cell.target.dtype"),
    Column("parameters", "int", "", "number of the target's weights; 0: not known", "cell.target.parameters"),
    Column("cache", "text", "", "kind of key/value cache of the target", "cell.target.cache"),
    Column("exact_cache", "bool", "", "that cache changes nothing; false: approximate", "cell.target.exact_cache"),
    Column("reference", "bool", "", "only there for approximate caches to be measured against; no method", "reference"),
    Column("n_expected", "int", "prompts", "prompts asked for", "n_expected"),
    Column("n", "int", "prompts", "prompts decoded; only these enter means", "n"),
    Column("n_failed", "int", "prompts", "prompts that failed", "n_failed"),
    Column("n_missing", "int", "prompts", "prompts not run yet", "n_missing"),
    *estimate("nfe", "forwards", "target forwards, mean over prompts", "nfe"),
    Column("n_paired", "int", "prompts", "prompts decoded on both sides of nfe_reduction", "nfe_reduction.n"),
    Column("nfe_draft_free", "float", "forwards", "draft-free nfe of the paired prompts", "nfe_draft_free.value"),
    *estimate("nfe_reduction", "ratio", "draft-free nfe over nfe, paired, ratio of means", "nfe_reduction"),
    *estimate("tokens_per_forward", "tokens", "generated tokens over forwards", "tokens_per_forward"),
    *estimate("accepted_per_round", "states", "draft states on the walk, mean over rounds", "accepted_per_round"),
    Column("drafted_per_round", "float", "states", "draft states verified, mean", "drafted_per_round.value"),
    Column("positions_per_token", "float", "positions", "positions forwarded a token", "positions_per_token.value"),
    Column("kv_passes", "int", "passes", "passes that only fill the cache, all prompts; not in nfe", "kv_passes"),
    Column("merged", "int", "states", "states reached by more than one order, all prompts", "merged"),
    Column("trimmed", "int", "states", "drafts found and not verified, all prompts (cost)", "trimmed"),
    Column("recomputes", "int", "forwards", "verdicts made again alone, all prompts; in nfe", "recomputes"),
    Column("tokens", "float", "tokens", "tokens before the first stop id, mean over prompts", "tokens.value"),
    Column("n_timed", "int", "prompts", "prompts timed on both sides", "throughput.ratio.n"),
    Column("repeats", "int", "", "smallest number of timing repeats of a prompt", "throughput.repeats"),
    *estimate("tokens_per_s", "tokens/s", "kept tokens over median seconds", "throughput.tokens_per_s"),
    *estimate(
        "tokens_per_s_draft_free", "tokens/s", "the same, draft-free, interleaved", "throughput.tokens_per_s_draft_free"
    ),
    *estimate("throughput_ratio", "ratio", "tokens_per_s over tokens_per_s_draft_free, paired", "throughput.ratio"),
    Column("n_timing_failed", "int", "prompts", "timings that failed", "n_timing_failed"),
    Column("n_timing_missing", "int", "prompts", "timings not run yet", "n_timing_missing"),
    Column("cv", "float", "", "pooled coefficient of variation of the repeats", "throughput.cv"),
    Column("cv_draft_free", "float", "", "the same, draft-free", "throughput.cv_draft_free"),
    Column("timing_doubts", "text", "", "why the timing failed its gates; empty: it passed", "throughput.doubts"),
    Column("drafter_share", "float", "share", "of the seconds spent in the drafter", "throughput.drafter_share"),
    Column("forward_share", "float", "share", "of the seconds spent in target forwards", "throughput.forward_share"),
    Column("walk_share", "float", "share", "of the seconds spent in the walk", "throughput.walk_share"),
    *estimate(
        "round_ms", "ms", "of a round: one forward, what drafts for it and what walks over it", "round_time.total"
    ),
    *estimate("round_drafter_ms", "ms", "of it in the drafter", "round_time.drafter"),
    *estimate("round_forward_ms", "ms", "of it in the verification forward", "round_time.forward"),
    *estimate("round_walk_ms", "ms", "of it in the walk, the output head included", "round_time.walk"),
    *estimate("round_positions", "positions", "token positions forwarded a round", "round_time.positions"),
    *estimate("draft_free_round_ms", "ms", "of a draft-free round, interleaved", "round_time.draft_free"),
    *estimate("draft_free_forward_ms", "ms", "of it in the forward", "round_time.draft_free_forward"),
    *estimate(
        "verification_cost", "ratio", "round_forward_ms over draft_free_forward_ms, paired", "round_time.cost_ratio"
    ),
    *estimate(
        "verification_break_even",
        "ratio",
        "predicted: verification_cost below which it is faster",
        "round_time.break_even",
    ),
    Column("n_scored", "int", "prompts", "prompts that the task could score", "correct.n"),
    *estimate("correct", "share", "right answers, Wilson interval", "correct"),
    *estimate("argmax_share", "share", "of draws that are the fresh distribution's best token", "draws.argmax"),
    Column("n_stale_commits", "int", "commits", "commits that had a stale distribution", "draws.commits"),
    *estimate("stale_distance", "", "total variation d of stale and fresh, mean over these commits", "draws.distance"),
    *estimate("stale_agreement", "share", "of these commits, token equals the drafter's stale draw", "draws.agreement"),
    *estimate("agreement_bound", "share", "(1-d)/(1+d), mean over these commits", "draws.bound"),
    Column("claim", "text", "", "what the output may claim to be", "claim"),
    Column("n_compared", "int", "prompts", "prompts compared with draft-free, token by token", "identity.n_checked"),
    Column("n_identical", "int", "prompts", "of these, identical", "identity.n_identical"),
    Column("identical", "float", "share", "n_identical over n_compared", "identity.share"),
    Column("n_near_ties", "int", "prompts", "broken promises that rounding explains; empty: no promise", "n_near_ties"),
    Column("n_bugs", "int", "prompts", "broken promises it cannot explain; empty: no promise", "n_bugs"),
    Column("claim_holds", "bool", "", "a promise of identity was kept; empty: none made or checked", "claim_holds"),
    Column("n_alarms", "int", "", "counts that contradict each other", "n_alarms"),
    Column("n_draft_free", "int", "prompts", "prompts compared with draft-free, kept tokens", "fidelity.n"),
    *estimate("identical_kept", "share", "of these, equal kept outputs, Wilson", "fidelity.identical"),
    *estimate("edit_distance", "share", "of the longer output, mean over these prompts", "fidelity.edit_distance"),
    Column(
        "divergence", "float", "tokens", "first kept token that differs, median if any", "fidelity.first_divergence"
    ),
    *estimate("correct_change", "share", "right less draft-free, paired, Tango", "fidelity.correct_difference"),
    Column("n_standard", "int", "prompts", "prompts also decoded by the standard rule", "against_standard.n"),
    *estimate("identical_standard", "share", "of these, equal kept outputs, Wilson", "against_standard.identical"),
    *estimate("edit_distance_standard", "share", "of the longer, from that", "against_standard.edit_distance"),
    *estimate(
        "correct_change_standard", "share", "right less that, paired, Tango", "against_standard.correct_difference"
    ),
    *estimate("pace", "ratio", "throughput over the standard rule's, draft-free", "pace.ratio"),
    Column("n_paced", "int", "prompts", "prompts behind it", "pace.ratio.n"),
    Column("pace_how", "text", "", "how it was got", "pace.ratio.how"),
    Column("pace_doubts", "text", "", "why a timing behind it failed its gates; empty: passed", "pace.doubts"),
    Column("n_uncached", "int", "prompts", "prompts also decoded draft-free without a cache", "agreement.n"),
    Column("n_identical_uncached", "int", "prompts", "of these, equal kept outputs", "agreement.n_identical"),
    *estimate("identical_uncached", "share", "n_identical_uncached over n_uncached, Wilson", "agreement.identical"),
    *estimate("equal_tokens_uncached", "share", "tokens equal at equal index, of the longer", "agreement.equal_tokens"),
    Column(
        "divergence_uncached",
        "float",
        "tokens",
        "first token that differs, median if any",
        "agreement.first_divergence",
    ),
    *estimate("edit_distance_uncached", "share", "of the longer output, from that", "agreement.edit_distance"),
    *estimate("nfe_uncached", "forwards", "draft-free nfe without a cache", "agreement.nfe_uncached"),
    *estimate("positions", "positions", "forwarded a prompt, of n_uncached", "agreement.positions"),
    *estimate(
        "positions_uncached", "positions", "the same, draft-free without a cache", "agreement.positions_uncached"
    ),
    *estimate("positions_ratio", "ratio", "positions_uncached over positions", "agreement.positions_ratio"),
    *estimate("correct_uncached", "share", "right answers without a cache", "agreement.correct_uncached"),
    *estimate(
        "correct_difference", "share", "right with the cache less without, paired", "agreement.correct_difference"
    ),
    Column("studied_commits", "int", "commits", "asked for in the study of its order model, one ahead", "study.asked"),
    *estimate("study_token_argmax", "share", "of these, the token is the stale argmax", "study.argmax"),
    *estimate("study_token_drawn", "share", "of these, the token is the stale draw", "study.drawn"),
    *estimate("study_position_confidence", "share", "of these, at the surest stale position", "study.by_confidence"),
    *estimate("study_position_model", "share", "of these, where the order model says", "study.by_model"),
    Column("finished_at", "float", "s", "end of the last item, seconds since 1970", "finished_at"),
    Column("resamples", "int", "", "bootstrap resamples behind the intervals", "resamples"),
    Column("bootstrap_seed", "int", "", "seed of the bootstrap", "bootstrap_seed"),
    Column("how", "text", "", "how the numbers were got", "nfe.how"),
)

PROMPT_COLUMNS = (
    *AXES,
    Column("reference", "bool", "", "of a cell that approximate caches are measured against", "reference"),
    Column("prompt_index", "int", "", "place in the task's split, from 0", "index"),
    Column("prompt_id", "text", "", "id given by the task", "prompt_id"),
    Column("status", "text", "", "done, failed or missing", "status"),
    Column("prompt_tokens", "int", "tokens", "length of the prompt", "generation.prompt_tokens"),
    Column("tokens_generated", "int", "tokens", "all tokens generated", "generation.tokens_generated"),
    Column("tokens_kept", "int", "tokens", "tokens before the first stop id", "generation.tokens_kept"),
    Column("finish_reason", "text", "", "stop or length", "generation.finish_reason"),
    Column("correct", "bool", "", "the answer is right; empty: not scored", "generation.correct"),
    Column("score_reason", "text", "", "why it was scored so", "generation.score_reason"),
    Column("nfe", "int", "forwards", "target forwards", "generation.counters.nfe"),
    Column("nfe_draft_free", "int", "forwards", "target forwards, draft-free", "draft_free.counters.nfe"),
    Column("accepted", "int", "states", "draft states on the walks", "accepted"),
    Column("drafted", "int", "states", "draft states verified", "drafted"),
    Column("positions", "int", "positions", "token positions forwarded", "generation.counters.positions"),
    Column("kv_passes", "int", "passes", "passes that only fill the cache", "generation.counters.kv_passes"),
    Column("identical", "bool", "", "all tokens equal the draft-free ones", "identical"),
    Column("divergence_step", "int", "commits", "first commit that differs", "mismatch.step"),
    Column("divergence_index", "int", "tokens", "first output token that differs", "mismatch.index"),
    Column("divergence_margin", "float", "log-odds", "margin at that commit", "mismatch.margin"),
    Column("verdict", "text", "", "near-tie or BUG, for a broken promise of identity", "mismatch.verdict"),
    Column("identical_uncached", "bool", "", "kept tokens equal those without a cache", "identical_uncached"),
    Column("divergence_uncached", "int", "tokens", "first kept token that differs from it", "divergence_uncached"),
    Column("repeats", "int", "", "timing repeats", "repeats"),
    Column("seconds", "float", "s", "median over repeats, without prefill", "seconds"),
    Column("seconds_draft_free", "float", "s", "the same, draft-free, interleaved", "seconds_draft_free"),
    Column("failure_type", "text", "", "type of the failure", "failure.type"),
    Column("failure", "text", "", "message of the failure", "failure.message"),
    Column("text", "text", "", "decoded output", "generation.text"),
)


STUDY_AXES = tuple(column for column in AXES if column.name not in ("drafter", "bound", "budget", "gamma"))
STUDY_COLUMNS = (
    *(Column(c.name, c.kind, c.unit, c.meaning, f"study.{c.path}") for c in STUDY_AXES),
    Column("order_model", "text", "", "digest of the order model", "study.cell.drafter.digest"),
    Column("look_ahead", "int", "commits", "k: how many commits behind the stale state", "shares.look_ahead"),
    Column("commit_index", "int", "commits", "place of the commit in its block, from 0; empty: all", "shares.index"),
    Column("n_studied", "int", "prompts", "prompts studied", "study.n"),
    Column("n", "int", "prompts", "of these, with such a commit", "shares.by_model.n"),
    Column("asked", "int", "commits", "commits with a choice of positions", "shares.asked"),
    *(
        column
        for place, top in enumerate(TOPS)
        for column in estimate(
            f"token_top_{top}", "share", f"token is in the stale top {top}", f"shares.in_top.{place}"
        )
    ),
    *estimate("token_drawn", "share", "token is the stale draw", "shares.drawn"),
    *estimate("position_confidence", "share", "position is the surest stale one", "shares.by_confidence"),
    *estimate("position_model", "share", "position is the order model's choice", "shares.by_model"),
    *estimate("error_ratio", "ratio", "wrong positions, model over confidence, paired", "shares.error_ratio"),
    Column("how", "text", "", "how the numbers were got", "shares.how"),
)


def documentation(columns: tuple[Column, ...]) -> str:
    """The columns as a Markdown table."""
    lines = [f"| `{column.name}` | {column.kind} | {column.unit} | {column.meaning} |" for column in columns]
    return "\n".join(["| column | type | unit | meaning |", "|---|---|---|---|", *lines])

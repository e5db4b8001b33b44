"""Beam search with a set of finished hypotheses and a length penalty."""

import dataclasses
import math
from collections.abc import Sequence

from keras import ops

from keras_attn.generation.constraints import Constraints
from keras_attn.generation.coverage import COVERAGE, check_coverage_penalty, covered
from keras_attn.generation.decoder_state import (
    DecoderState,
    Step,
    first_tokens,
    run_step,
    take_rows,
)
from keras_attn.generation.hypotheses import (
    Hypotheses,
    check_length_penalty,
    drop_impossible,
    length_normalizer,
)
from keras_attn.generation.token_rules import TokenRules
from keras_attn.ops.top_k import leftmost_top_k
from keras_attn.renamed import renamed_arguments
from keras_attn.tensors import Tensor, TensorLike
from keras_attn.validation import require, require_one_of, require_positive

STOPPING = ("exact", "early", "heuristic")


@renamed_arguments(free_end="forced_end_is_free")
def beam_search(
    step: Step,
    state: dict,
    beams: int,
    start_id: TensorLike,
    end_id: int,
    max_length: int,
    min_length: int = 0,
    length_penalty: float = 0.6,
    n_best: int = 1,
    forbidden_ids: Sequence[int] = (),
    length_penalty_form: str = "gnmt",
    stopping: str = "exact",
    constraints: Constraints | None = None,
    forced_end_is_free: bool = False,
    coverage_penalty: float = 0.0,
) -> Hypotheses:
    """Finds each source's best hypotheses among those that a beam of limited width reaches.

    At each position the `2 * beams` most probable extensions of the live hypotheses of a source
    are its candidates. Those that end join the finished hypotheses, of which the `n_best` of the
    best score (log-probability divided by the length penalty, less the coverage penalty if there is
    one) are kept; the `beams` best of the others live on. When a source is done `stopping` says:

    - "exact": once the most probable live hypothesis, were it to end for nothing at `max_length`,
      would not score above its worst kept finished one. So stopping never changes a result, and
      with a beam wide enough to hold every prefix the result is exact. The papers' rule
      ("terminate early when possible"), and Hugging Face's `early_stopping="never"`.
    - "early": once `beams` hypotheses have finished; Hugging Face's `early_stopping=True`.
    - "heuristic": once `beams` hypotheses have finished, and the most probable live one, were it
      to end for nothing where it is, would not score above the worst of them; Hugging Face's
      `early_stopping=False`.

    With the last two, as there, `beams` finished hypotheses are kept, and only those candidates
    join them that are among the best `beams`; with "exact" all that end do.

    Ties go to the hypothesis that finished earlier, then to the more probable parent, then to the
    lower token id.

    Args:
        step: `step(token_ids, state, index) -> (logits, state)`: token_ids int32 (rows,) with
            rows = batch * beams, source by source; index int32 scalar; logits float
            (rows, vocabulary).
        state: `{"source": tree, "hypothesis": tree}`, one row per source in both. Rows of
            hypothesis leaves are repeated `beams` times here and then follow their hypotheses;
            source leaves keep their rows and whatever `step` makes of them.
        beams: How many hypotheses live on.
        start_id: The token fed first, such as a prompt's last: one for all, or int32 (batch,).
        end_id: The token that ends a hypothesis.
        max_length: Most tokens of a hypothesis, the end token included: at the last position
            only the end token is offered. An int, or on TensorFlow without XLA a scalar int
            tensor.
        min_length: Fewest tokens of a hypothesis, the end token included.
        length_penalty: The exponent of the penalty; 0 for none. See `length_normalizer`.
        n_best: How many hypotheses to return for each source.
        forbidden_ids: Tokens that are never offered, such as padding and start.
        length_penalty_form: "gnmt" or "length". See `length_normalizer`.
        stopping: When a source is done: "exact", "early" or "heuristic".
        constraints: What a text may not hold, and what it must begin with.
        forced_end_is_free: Whether the end token that is forced at `max_length` gets probability
            1, as with Hugging Face's `forced_eos_token_id`, instead of the model's probability.
        coverage_penalty: What makes hypotheses worse that have not looked at the whole of their
            source: so many times Σᵢ log(min(Σⱼ pᵢⱼ, 1)) is added to the score, pᵢⱼ being how much
            token j attended to position i of the source. Needs `state["hypothesis"]["coverage"]`,
            float (rows, source), in which `step` adds up the attention, 1 at padding from the
            beginning.

    Returns:
        `Hypotheses`, float64 where the state holds float64 and float32 elsewhere.

    Raises:
        UserError: An argument is out of its range, or state or logits have another form.

    Reference:
        [Wu et al., 2016](https://arxiv.org/abs/1609.08144), section 7 and equation 14;
        [Vaswani et al., 2017](https://arxiv.org/abs/1706.03762), section 6.1.
    """
    require_positive(beams=beams, n_best=n_best)
    require(n_best <= beams, "`n_best` must not exceed `beams`.", n_best=n_best, beams=beams)
    check_length_penalty(length_penalty, length_penalty_form)
    require_one_of("stopping", stopping, STOPPING)
    rules = TokenRules(end_id, max_length, min_length, tuple(forbidden_ids), forced_end_is_free)
    form = DecoderState(state, max_length)
    check_coverage_penalty(coverage_penalty, state)
    constraints = constraints or Constraints()
    constraints.check_sources(form.batch)
    search = _BeamSearch(
        rules,
        constraints,
        beams,
        n_best if stopping == "exact" else beams,
        length_penalty,
        length_penalty_form,
        stopping,
        form.batch,
        form.dtype,
    )
    rows = form.batch * beams

    def is_unfinished(carry: dict) -> Tensor:
        some_live = ops.any(carry["live"]["log_probabilities"] > -math.inf)
        return ops.logical_and(carry["index"] < max_length, some_live)

    def extend(carry: dict) -> dict:
        index, live = carry["index"], carry["live"]
        logits, new_state = run_step(
            step, carry["previous"], form.unflatten(carry["state"]), index, rows
        )
        candidates = search.extend(live, logits, index)
        bonus = None
        if coverage_penalty:
            bonus = coverage_penalty * covered(new_state["hypothesis"][COVERAGE], form.dtype)
        finished = search.finish(carry["finished"], live, candidates, index, bonus)
        live, parents = search.keep(live, candidates, index)
        new_state = take_rows(new_state, parents)
        live["log_probabilities"] = search.stop(live["log_probabilities"], finished, index)
        return {
            "index": index + 1,
            "previous": live.pop("last"),
            "live": live,
            "finished": finished,
            "state": form.flatten(new_state),
        }

    carry = {
        "index": ops.convert_to_tensor(0, "int32"),
        "previous": ops.repeat(first_tokens(start_id, form.batch), beams, axis=0),
        "live": search.start(),
        "finished": search.nothing_finished(),
        "state": form.flatten(take_rows(form.initial, ops.arange(rows) // beams)),
    }
    finished = ops.while_loop(is_unfinished, extend, carry)["finished"]
    if search.kept > n_best:
        finished = Hypotheses(*(part[:, :n_best] for part in finished))
    return drop_impossible(finished)


@dataclasses.dataclass(frozen=True)
class _Candidates:
    """Extensions of live hypotheses, best first; each field (batch, candidates)."""

    log_probabilities: Tensor
    parents: Tensor
    token_ids: Tensor
    is_end: Tensor


@dataclasses.dataclass(frozen=True)
class _BeamSearch:
    """The parts of one position's work; nothing here knows the model.

    A live hypothesis of log-probability `-inf` is none: that is how the first position starts
    with one hypothesis, and how a source that is done ends with none.
    """

    rules: TokenRules
    constraints: Constraints
    beams: int
    kept: int
    length_penalty: float
    length_penalty_form: str
    stopping: str
    batch: Tensor
    dtype: str

    def start(self) -> dict:
        """One empty live hypothesis a source."""
        first = ops.where(ops.arange(self.beams) == 0, 0.0, -math.inf)
        first = ops.broadcast_to(ops.cast(first, self.dtype), (self.batch, self.beams))
        token_ids = ops.zeros((self.batch, self.beams, self.rules.max_length), dtype="int32")
        return {"token_ids": token_ids, "log_probabilities": first}

    def nothing_finished(self) -> Hypotheses:
        """`kept` places for finished hypotheses, all free."""
        shape = (self.batch, self.kept)
        return Hypotheses(
            token_ids=ops.zeros((*shape, self.rules.max_length), dtype="int32"),
            scores=ops.full(shape, -math.inf, dtype=self.dtype),
            log_probabilities=ops.full(shape, -math.inf, dtype=self.dtype),
            lengths=ops.zeros(shape, dtype="int32"),
        )

    def extend(self, live: dict, logits: Tensor, index: TensorLike) -> _Candidates:
        """The `2 * beams` best extensions of each source, of which at most `beams` end."""
        # The best of all are among the best of each row, so nothing but the logits has the size
        # of the vocabulary.
        is_banned = self._banned(live["token_ids"], logits, index)
        ranked, token_ids = self.rules.rank(logits, index, 2 * self.beams, self.dtype, is_banned)
        columns = ranked.shape[-1]
        ranked = ops.reshape(ranked, (self.batch, self.beams, columns))
        totals = ranked + live["log_probabilities"][..., None]
        log_probabilities, places = leftmost_top_k(
            ops.reshape(totals, (self.batch, self.beams * columns)),
            min(2 * self.beams, self.beams * columns),
        )
        places = ops.cast(places, "int32")
        token_ids = ops.reshape(token_ids, (self.batch, self.beams * columns))
        token_ids = self._pick(token_ids, places)
        return _Candidates(
            log_probabilities, places // columns, token_ids, token_ids == self.rules.end_id
        )

    def finish(
        self,
        finished: Hypotheses,
        live: dict,
        candidates: _Candidates,
        index: TensorLike,
        bonus: Tensor = None,
    ) -> Hypotheses:
        """The `kept` best of the finished hypotheses and of the candidates that end.

        What each live hypothesis gets beside its log-probability is its `bonus`, (rows,), at most
        0, so that `stop` need not know it.
        """
        length = index + 1
        ended = candidates.log_probabilities / self._penalty(length)
        if bonus is not None:
            bonus = ops.reshape(bonus, (self.batch, self.beams))
            ended = ended + self._pick(bonus, candidates.parents)
        ended = ops.where(self._may_finish(candidates), ended, -math.inf)
        # Those that finished earlier stand first and so win a tie.
        scores, picks = leftmost_top_k(ops.concatenate([finished.scores, ended], axis=1), self.kept)
        picks = ops.cast(picks, "int32")
        is_new = picks >= self.kept
        places = ops.broadcast_to(ops.arange(self.kept), (self.batch, self.kept))
        origins = ops.concatenate([places, candidates.parents + self.kept], axis=1)
        log_probabilities = ops.concatenate(
            [finished.log_probabilities, candidates.log_probabilities], axis=1
        )
        lengths = ops.concatenate(
            [finished.lengths, ops.full_like(candidates.parents, 0) + length], axis=1
        )
        token_ids = ops.concatenate([finished.token_ids, live["token_ids"]], axis=1)
        token_ids = self._pick(token_ids, self._pick(origins, picks))
        return Hypotheses(
            token_ids=self._write(token_ids, index, self.rules.end_id, is_new),
            scores=scores,
            log_probabilities=self._pick(log_probabilities, picks),
            lengths=self._pick(lengths, picks),
        )

    def keep(self, live: dict, candidates: _Candidates, index: TensorLike) -> tuple[dict, Tensor]:
        """The `beams` best candidates that do not end, and their parents' rows, int32 (rows,)."""
        going_on = ops.where(candidates.is_end, -math.inf, candidates.log_probabilities)
        log_probabilities, picks = leftmost_top_k(going_on, self.beams)
        picks = ops.cast(picks, "int32")
        last = self._pick(candidates.token_ids, picks)
        parents = self._pick(candidates.parents, picks)
        token_ids = self._pick(live["token_ids"], parents)
        live = {
            "token_ids": self._write(token_ids, index, last[..., None], True),
            "log_probabilities": log_probabilities,
            "last": ops.reshape(last, (-1,)),  # (batch, beams) -> (rows,)
        }
        return live, ops.reshape(self._row_numbers(parents, self.beams), (-1,))

    def stop(self, log_probabilities: Tensor, finished: Hypotheses, index: TensorLike) -> Tensor:
        """The live log-probabilities, with `-inf` for sources that are done."""
        worst = finished.scores[:, -1:]
        if self.stopping == "early":
            return ops.where(worst > -math.inf, -math.inf, log_probabilities)
        length = self.rules.max_length if self.stopping == "exact" else index + 1
        best = ops.max(log_probabilities, axis=1, keepdims=True)
        attainable = best / self._penalty(length)
        is_done = worst >= attainable
        return ops.where(is_done, -math.inf, log_probabilities)

    def _banned(self, token_ids: Tensor, logits: Tensor, index: TensorLike) -> Tensor:
        """Tokens that the constraints forbid, bool (rows, vocabulary), or None."""
        if self.constraints.is_empty:
            return None
        token_ids = ops.reshape(token_ids, (self.batch * self.beams, self.rules.max_length))
        return self.constraints.banned_tokens(token_ids, index, logits.shape[-1])

    def _may_finish(self, candidates: _Candidates) -> Tensor:
        if self.stopping == "exact":
            return candidates.is_end
        ranks = ops.arange(candidates.is_end.shape[1])
        return ops.logical_and(candidates.is_end, ranks < self.beams)

    def _penalty(self, length: Tensor) -> Tensor:
        return length_normalizer(length, self.length_penalty, self.dtype, self.length_penalty_form)

    def _write(self, token_ids: Tensor, index: TensorLike, token: Tensor, where: Tensor) -> Tensor:
        """`token` at position `index`; a comparison, since slice updates need XLA to serve."""
        here = ops.arange(self.rules.max_length) == index
        if where is not True:
            here = ops.logical_and(here, where[..., None])
        return ops.where(here, token, token_ids)

    def _row_numbers(self, columns: Tensor, width: int) -> Tensor:
        """Where (batch, `width`) flattened to rows holds `columns` (batch, n) of each source."""
        return columns + ops.arange(self.batch)[:, None] * width

    def _pick(self, values: Tensor, columns: Tensor) -> Tensor:
        """`values[b, columns[b, i]]` for values (batch, width, ...) and columns (batch, n)."""
        width, rest = values.shape[1], ops.shape(values)[2:]
        rows = ops.reshape(values, (self.batch * width, *rest))
        return ops.take(rows, self._row_numbers(columns, width), axis=0)

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
from keras_attn.generation.result import (
    GenerationResult,
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
) -> GenerationResult:
    """Finds each source's best hypotheses with a beam search.

    At each position, the candidates of a source are the `2 * beams` most probable extensions of its
    live hypotheses. Candidates that end become finished hypotheses; the `n_best` with the best
    score (log-probability divided by the length penalty, plus the coverage penalty if any) are
    kept. The `beams` best of the other candidates become the live hypotheses. `stopping`
    determines when a source is done:

    - "exact": when the most probable live hypothesis could not score above the worst kept finished
      one, even if it ended at `max_length` without loss of probability. Stopping then never changes
      the result, and a beam wide enough for every prefix gives the exact result. This is the rule
      of the papers ("terminate early when possible") and Hugging Face's `early_stopping="never"`.
    - "early": when `beams` hypotheses have finished; Hugging Face's `early_stopping=True`.
    - "heuristic": when `beams` hypotheses have finished, and the most probable live hypothesis
      would not score above the worst of them if it ended at once without loss of probability;
      Hugging Face's `early_stopping=False`.

    With the last two, `beams` finished hypotheses are kept, and only candidates among the best
    `beams` can finish, as in Hugging Face's search; with "exact" all candidates that end do.

    Of equal scores, the hypothesis that finished earlier wins, then the more probable parent, then
    the lower token id.

    Args:
        step: `step(token_ids, state, index) -> (logits, state)`: token_ids int32 (rows,) with
            rows = batch * beams, source by source; index int32 scalar; logits float
            (rows, vocabulary).
        state: `{"source": tree, "hypothesis": tree}`, one row per source in both. Rows of
            hypothesis leaves are repeated `beams` times and then reordered with their hypotheses;
            source leaves are not reordered.
        beams: Number of live hypotheses.
        start_id: The first input token, such as the last of a prompt: one for all sources, or int32
            (batch,).
        end_id: The token that ends a hypothesis.
        max_length: Most tokens of a hypothesis, the end token included: at the last position
            only the end token is allowed. An int, or on TensorFlow without XLA a scalar int
            tensor.
        min_length: Fewest tokens of a hypothesis, the end token included.
        length_penalty: The exponent of the penalty; 0 for none. See `length_normalizer`.
        n_best: Number of hypotheses to return for each source.
        forbidden_ids: Tokens that are never generated, such as padding and start.
        length_penalty_form: "gnmt" or "length". See `length_normalizer`.
        stopping: When a source is done: "exact", "early" or "heuristic".
        constraints: Banned tokens and required beginnings of texts.
        forced_end_is_free: Whether the end token that is forced at `max_length` gets probability
            1, as with Hugging Face's `forced_eos_token_id`, instead of the model's probability.
        coverage_penalty: Weight of a penalty for hypotheses that have not attended to the whole
            source: this number times Σᵢ log(min(Σⱼ pᵢⱼ, 1)) is added to the score, where pᵢⱼ is the
            attention of token j to position i of the source. Needs
            `state["hypothesis"]["coverage"]`, float (rows, source), in which `step` accumulates the
            attention, initialized with 1 at padding.

    Returns:
        `GenerationResult`, float64 if the state contains float64, otherwise float32.

    Raises:
        UserError: An argument is out of range, or state or logits have another structure.

    Examples:
        >>> model = CausalTransformer(11, num_layers=1, hidden_dim=8, num_heads=2)
        >>> prompts = np.array([[1, 5, 9], [1, 7, 0]])
        >>> start_ids, state = model.prefill(prompts, max_length=6, beams=4)
        >>> found = beam_search(
        ...     model.step, state, beams=4, start_id=start_ids, end_id=2, max_length=6, n_best=2
        ... )
        >>> found.token_ids.shape, found.scores.shape
        ((2, 2, 6), (2, 2))

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
        finished = GenerationResult(*(part[:, :n_best] for part in finished))
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
    """The steps of the search at one position, independent of the model.

    A live hypothesis with log-probability `-inf` does not exist: the first position starts with one
    hypothesis, and a source that is done has none.
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
        """One empty live hypothesis per source."""
        first = ops.where(ops.arange(self.beams) == 0, 0.0, -math.inf)
        first = ops.broadcast_to(ops.cast(first, self.dtype), (self.batch, self.beams))
        token_ids = ops.zeros((self.batch, self.beams, self.rules.max_length), dtype="int32")
        return {"token_ids": token_ids, "log_probabilities": first}

    def nothing_finished(self) -> GenerationResult:
        """`kept` empty places for finished hypotheses."""
        shape = (self.batch, self.kept)
        return GenerationResult(
            token_ids=ops.zeros((*shape, self.rules.max_length), dtype="int32"),
            scores=ops.full(shape, -math.inf, dtype=self.dtype),
            log_probabilities=ops.full(shape, -math.inf, dtype=self.dtype),
            lengths=ops.zeros(shape, dtype="int32"),
        )

    def extend(self, live: dict, logits: Tensor, index: TensorLike) -> _Candidates:
        """The `2 * beams` best extensions of each source; at most `beams` of them end."""
        # The best extensions are among the best of each row, so only the logits have the size of
        # the vocabulary.
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
        finished: GenerationResult,
        live: dict,
        candidates: _Candidates,
        index: TensorLike,
        bonus: Tensor = None,
    ) -> GenerationResult:
        """The `kept` best of the finished hypotheses and of the candidates that end.

        `bonus`, (rows,), is added to the scores of the live hypotheses. It is at most 0, so that
        `stop` can ignore it.
        """
        length = index + 1
        ended = candidates.log_probabilities / self._penalty(length)
        if bonus is not None:
            bonus = ops.reshape(bonus, (self.batch, self.beams))
            ended = ended + self._pick(bonus, candidates.parents)
        ended = ops.where(self._may_finish(candidates), ended, -math.inf)
        # Earlier finished hypotheses come first and so win a tie.
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
        return GenerationResult(
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

    def stop(
        self, log_probabilities: Tensor, finished: GenerationResult, index: TensorLike
    ) -> Tensor:
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
        """Indices of `columns` (batch, n) in (batch, `width`) flattened to rows."""
        return columns + ops.arange(self.batch)[:, None] * width

    def _pick(self, values: Tensor, columns: Tensor) -> Tensor:
        """`values[b, columns[b, i]]` for values (batch, width, ...) and columns (batch, n)."""
        width, rest = values.shape[1], ops.shape(values)[2:]
        rows = ops.reshape(values, (self.batch * width, *rest))
        return ops.take(rows, self._row_numbers(columns, width), axis=0)

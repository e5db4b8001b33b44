"""Several models whose predictions are averaged."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import keras
from keras import ops

from keras_attn.models.configured_model import ConfiguredModel
from keras_attn.tensors import Tensor
from keras_attn.validation import require, require_one_of


def _mean_of_log(values: list[Tensor]) -> Any:
    """The logarithm of the mean of numbers that are given by their logarithms."""
    return ops.logsumexp(ops.stack(values), axis=0) - math.log(len(values))


def _log_probabilities(logits: list[Tensor]) -> Any:
    return _mean_of_log([ops.log_softmax(one, axis=-1) for one in logits])


def _log_odds(logits: list[Tensor]) -> Any:
    yes = _mean_of_log([ops.log_sigmoid(one) for one in logits])
    no = _mean_of_log([ops.log_sigmoid(-one) for one in logits])
    return yes - no


def _mean(values: list[Tensor]) -> Any:
    return ops.mean(ops.stack(values), axis=0)


_AVERAGES: dict[str, Callable[[list[Tensor]], Any]] = {
    "softmax": _log_probabilities,
    "sigmoid": _log_odds,
    "linear": _mean,
}


@keras.saving.register_keras_serializable(package="keras_attn")
class Ensemble(ConfiguredModel):
    """Averages the predictions of models that read the same inputs.

    Generating models are averaged at each step: with `step` and the rest of the step protocol an
    ensemble is searched as one model is. Its state has the states of all members.

    Args:
        members: Models with the same inputs and as many outputs, each another object. They become
            parts of this model, and those with equal names get new ones.
        average: What makes of outputs the numbers that are averaged: "softmax" for logits of
            classes or tokens, "sigmoid" for logits of decisions, or "linear" for the outputs
            themselves. The ensemble returns logits of the averaged probabilities.
        dtype: Dtype policy, by default that of the first member. Averages are computed in float32
            or wider.
        **kwargs: Further arguments of `ConfiguredModel`.

    Call arguments:
        inputs: What each member takes.

    Returns:
        As a member returns, float32 (float64 for members in float64).

    Raises:
        UserError: There is no member, one is given twice, or inputs or outputs differ.

    Examples:
        >>> sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=16)
        >>> members = [Transformer(11, **sizes), Transformer(11, **sizes | {"num_layers": 2})]
        >>> model = Ensemble(members)
        >>> sources = np.array([[5, 7, 2], [4, 2, 0]])
        >>> state = model.initial_state(sources, max_length=6)
        >>> logits, state = model.step(np.array([1, 1]), state, 0)
        >>> logits.shape
        (2, 11)

    Reference:
        Sutskever et al., 2014, https://arxiv.org/abs/1409.3215, section 3.6.
    """

    def __init__(self, members: Sequence[keras.Model], average: str = "softmax", **kwargs):
        members = list(members)
        require_one_of("average", average, _AVERAGES)
        _check(members)
        if kwargs.get("dtype") is None:
            kwargs["dtype"] = members[0].dtype_policy
        _name_apart(members)

        # === Functional graph ===
        inputs = {
            name: keras.Input(tensor.shape[1:], dtype=tensor.dtype, name=name)
            for name, tensor in members[0].input.items()
        }
        outputs = _averaged([member(inputs) for member in members], average)
        super().__init__(inputs, outputs, **kwargs)

        # === Config ===
        self.members = members
        self.average = average

        # === Facts ===
        limits = [getattr(member, "max_length", None) for member in members]
        self.max_length = min((limit for limit in limits if limit is not None), default=None)
        self.optional_inputs = getattr(members[0], "optional_inputs", ())

    def _completed(self, inputs):
        complete = getattr(self.members[0], "_completed", None)
        return complete(inputs) if complete else inputs

    def initial_state(self, source_ids, max_length: int | None = None, beams: int = 1) -> dict:
        """Makes the state from which `step` generates.

        Args:
            source_ids: What the members take, such as int32 (batch, source).
            max_length: Number of target positions to make room for, as the members need it.
            beams: Number of hypotheses of each source, those of a beam search.

        Returns:
            `{"source": …, "hypothesis": …}`, with the states of the members by their numbers.
        """
        return _joined([one.initial_state(source_ids, max_length, beams) for one in self.members])

    def prefill(
        self, prompt_ids, max_length: int | None = None, beams: int = 1
    ) -> tuple[Any, dict]:
        """Makes the state from which `step` continues prompts.

        Args:
            prompt_ids: int32 (batch, length), 0 at padding.
            max_length: Number of positions to make room for, as the members need it.
            beams: Number of hypotheses of each prompt, those of a beam search.

        Returns:
            The last token of each prompt, int32 (batch,), and the state.
        """
        begun = [member.prefill(prompt_ids, max_length, beams) for member in self.members]
        return begun[0][0], _joined([state for _, state in begun])

    def step(self, token_ids, state: dict, index) -> tuple[Any, dict]:
        """Predicts the token after `token_ids`.

        Args:
            token_ids: int32 (rows,), the token at position `index` of each hypothesis.
            state: What `initial_state`, `prefill` or the step before returned.
            index: Position of the tokens, int32.

        Returns:
            Logits of the averaged probabilities (rows, vocabulary), and the state with this
            position added.
        """
        logits, states = [], []
        for number, member in enumerate(self.members):
            own = {part: state[part][str(number)] for part in ("source", "hypothesis")}
            found, own = member.step(token_ids, own, index)
            logits.append(found)
            states.append(own)
        return _averaged(logits, self.average), _joined(states)


def _check(members: list[keras.Model]) -> None:
    require(bool(members), "An ensemble needs at least one member.", members=len(members))
    require(
        len({id(member) for member in members}) == len(members),
        "Each member must be another model.",
        members=len(members),
    )
    first = members[0]
    for member in members:
        require(
            isinstance(getattr(member, "input", None), dict),
            "Members must be models with named inputs.",
            member=type(member).__name__,
        )
        require(
            set(member.input) == set(first.input),
            "Members must have the same inputs.",
            members=[sorted(member.input), sorted(first.input)],
        )
        require(
            member.output_shape[-1] == first.output_shape[-1],
            "Members must have as many outputs.",
            members=[member.output_shape[-1], first.output_shape[-1]],
        )


def _name_apart(members: list[keras.Model]) -> None:
    """Gives members with equal names other ones, as Keras wants it of layers."""
    taken: set[str] = set()
    for number, member in enumerate(members, 1):
        name = member.name if member.name not in taken else f"{member.name}_{number}"
        while name in taken:
            name += "_"
        member.name = name
        taken.add(name)


def _averaged(outputs: list[Tensor], average: str) -> Any:
    wide = any(keras.backend.standardize_dtype(one.dtype) == "float64" for one in outputs)
    dtype = "float64" if wide else "float32"
    return _AVERAGES[average]([ops.cast(one, dtype) for one in outputs])


def _joined(states: list[dict]) -> dict:
    """One state of those of all members."""
    joined = {
        part: {str(number): state[part] for number, state in enumerate(states)}
        for part in ("source", "hypothesis")
    }
    rooms = [
        state["source"]["room"]
        for state in states
        if isinstance(state["source"], dict) and state["source"].get("room") is not None
    ]
    if rooms:
        joined["source"]["room"] = min(rooms, key=lambda room: room.shape[0])
    return joined

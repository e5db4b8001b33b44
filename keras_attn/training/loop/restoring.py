"""The checkpoint from which a run is resumed, and what it requires of the settings and data."""

from keras_attn.training.loop.checkpoints import BEST_FOLDER, Checkpoint, Checkpoints
from keras_attn.training.reporting.recorder import validations
from keras_attn.training.reporting.run_folder import RunFolder
from keras_attn.training.settings import TrainingSettings
from keras_attn.training.state import TrainingState
from keras_attn.training.workers.workers import Workers
from keras_attn.validation import UserError, require

# What decides which rows are in which batch.
_OF_THE_PLAN = ("batch_tokens", "seed", "jit")


def newest_checkpoint(
    run: RunFolder, checkpoints: Checkpoints, workers: Workers
) -> Checkpoint | None:
    """Reads the newest sound checkpoint that all workers see.

    Args:
        run: The run folder.
        checkpoints: Its checkpoints.
        workers: The workers.

    Returns:
        The checkpoint, or `None` where training starts from the beginning.

    Raises:
        UserError: The workers see different folders, no checkpoint is sound, or the checkpoints of
            a trained model are gone.
    """
    found = checkpoints.latest()
    steps = workers.gather([_step(found)])[:, 0]
    common = int(steps.min())
    require(
        common >= 0 or steps.max() < 0,
        "The run folder must be on a disk that all workers share: "
        f"worker {int(steps.argmin())} sees no checkpoint in it.",
        folder=str(checkpoints.folder),
    )
    if _step(found) > common:
        found = checkpoints.latest(at_most=common)
    if not workers.all(_step(found) == common):
        raise UserError(f"The workers have no sound checkpoint of {checkpoints.folder} in common.")
    if found is None:
        _require_nothing_to_lose(run, workers)
    return found


def restored_state(checkpoint: Checkpoint, settings: TrainingSettings, data: int) -> TrainingState:
    """Reads the state of a checkpoint, if the run can continue from it.

    Args:
        checkpoint: The checkpoint.
        settings: The settings that the run is resumed with.
        data: Checksum of its training examples.

    Returns:
        The state.

    Raises:
        UserError: The data, or settings that a run keeps, are not those of the checkpoint.
    """
    state, now = TrainingState.from_dict(checkpoint.state), settings.to_dict()
    before = state.settings
    require(
        state.data in (0, data),
        f"The training data must be those of the run that is resumed, as {checkpoint.folder} has "
        "it.",
        checksum=data,
        of_the_run=state.data,
    )
    for name in _OF_THE_PLAN:
        require(
            before.get(name, now[name]) == now[name],
            f"A run that is resumed keeps its `{name}`, {before.get(name)}: its place in the data "
            "would be another.",
            **{name: now[name]},
        )
    require(
        state.best_value is None or before.get("metric") in (None, now["metric"]),
        "A run that is resumed keeps its `metric`, which has chosen the best model so far.",
        metric=now["metric"],
        of_the_run=before.get("metric"),
    )
    return state


def resuming_line(checkpoint: Checkpoint, state: TrainingState, settings: TrainingSettings) -> str:
    """Says where a run continues, and which settings are others now."""
    now = settings.to_dict()
    changed = [
        f"{name} {before!r} -> {now[name]!r}"
        for name, before in state.settings.items()
        if name in now and now[name] != before
    ]
    note = f" Settings changed: {', '.join(changed)}." if changed else ""
    return f"Resuming from {checkpoint.folder} (epoch {state.epoch + 1}, step {state.step}).{note}"


def _require_nothing_to_lose(run: RunFolder, workers: Workers) -> None:
    """Raises if a run whose checkpoints are gone has a model that training would replace."""
    # A run killed before its first checkpoint has validated once, and has its best weights.
    begun = (run.checkpoints / BEST_FOLDER).exists() and validations(run.metrics) < 2
    kept = run.task.exists() and (run.summary.exists() or not begun)
    require(
        workers.all(not kept),
        "The checkpoints of the run are gone, and training from the beginning would replace "
        "its model. Start a new run in another folder.",
        checkpoints=str(run.checkpoints),
        model=str(run.task),
    )


def _step(checkpoint: Checkpoint | None) -> int:
    return checkpoint.state["step"] if checkpoint else -1

"""Whole updates compiled by XLA, one program a shape: what a TPU runs, tested on a CPU."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_attn.data import plan_epoch
from keras_attn.models import Transformer
from keras_attn.training import Trainer, TrainingStep, make_optimizer, make_strategy
from keras_attn.training.workers.strategy import distributed_batches, resolve_jit
from tests.refusals import refused
from tests.training.stand_in import (
    VOCABULARY,
    StandInTask,
    backbone,
    examples,
    metrics_rows,
    settings,
    validation_set,
)

pytestmark = pytest.mark.tensorflow


def transformer():
    keras.utils.set_random_seed(7)
    sizes = {"num_layers": 1, "hidden_dim": 8, "num_heads": 2, "intermediate_dim": 16}
    return Transformer(VOCABULARY, **sizes, dropout=0.0)


def static_batches(rows, batch_tokens=64):
    plan = plan_epoch(rows, batch_tokens, seed=3, static_shapes=True)
    return list(distributed_batches(tf.distribute.get_strategy(), rows, plan)), plan


@pytest.mark.slow
@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_the_update_is_the_plain_one(accumulate, optimizer):
    keras.config.set_dtype_policy("float64")
    batches, _ = static_batches(examples())
    numbers = settings(clip_norm=0.5, optimizer=optimizer)
    weights = []
    for whole_updates in (False, True):
        model = transformer()
        step = TrainingStep(
            model,
            make_optimizer(numbers, 0.01, model.trainable_variables, False),
            tf.distribute.get_strategy(),
            label_smoothing=0.1,
            batch_tokens=64,
            accumulate=accumulate > 1,
            clip_norm=0.5,
            whole_updates=whole_updates,
        )
        for begin in range(0, 4 * accumulate, accumulate):
            values = step(batches[begin : begin + accumulate])
        weights.append([*model.get_weights(), values.numpy()])
    for plain, whole in zip(*weights, strict=True):
        # Muon's products are of bfloat16, which XLA may sum in another order.
        np.testing.assert_allclose(whole, plain, atol=1e-9 if optimizer == "adam" else 1e-3)


def test_training_as_on_a_tpu(tmp_path, monkeypatch):
    rows = {}
    for name in ("plain", "whole"):
        if name == "whole":
            monkeypatch.setattr(
                "keras_attn.training.loop.trainer.compiles_whole_updates", lambda strategy: True
            )
        numbers = settings(jit="on", steps=6, log_every=2)
        trainer = Trainer(StandInTask(dropout=0.2), numbers, tmp_path / name)
        trainer.fit(examples(), validation_set())
        rows[name] = metrics_rows(tmp_path / name)
    assert [row["step"] for row in rows["whole"]] == ["2", "4", "6"]
    for plain, whole in zip(rows["plain"], rows["whole"], strict=True):
        assert float(whole["loss"]) == pytest.approx(float(plain["loss"]), rel=0.05)
    last = rows["whole"][-1]["val_loss"], rows["plain"][-1]["val_loss"]
    assert float(last[0]) == pytest.approx(float(last[1]), rel=0.05)


@pytest.mark.slow
def test_there_is_a_program_for_each_shape():
    batches, plan = static_batches(examples(200))
    model = backbone(dropout=0.2)
    step = TrainingStep(
        model,
        make_optimizer(settings(), 0.01, model.trainable_variables, False),
        tf.distribute.get_strategy(),
        batch_tokens=64,
        whole_updates=True,
    )
    traces = []
    call = model.call
    model.call = lambda *arguments, **options: (traces.append(1), call(*arguments, **options))[1]
    for batch in batches:
        step([batch])
    shapes = {tuple(shape) for shape in plan.shapes.tolist()}
    assert 1 < len(shapes) < len(batches)
    assert len(traces) == len(shapes)


def test_without_a_tpu(monkeypatch):
    monkeypatch.delenv("TPU_NAME", raising=False)
    refused(r"^No TPU can be reached: .* Received: TPU_NAME=None \(", make_strategy, "tpu")


def test_a_tpu_always_compiles():
    assert resolve_jit("auto", "tpu") == resolve_jit("on", "tpu") == "on"
    refused(r"must not be off. Received: jit='off'", resolve_jit, "off", "tpu")

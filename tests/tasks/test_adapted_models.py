"""A task computes with the weights that its model has now: after LoRA and after quantization."""

import keras
import numpy as np
import pytest

from keras_attn.layers import enable_lora
from keras_attn.models import Bert, SequenceClassifier
from keras_attn.tasks import ClassificationTask, EmbeddingTask
from keras_attn.tokenizers import train_tokenizer
from tests.layers.judges import spread_weights
from tests.tasks.made import SIZES, TEXTS, make_task

pytestmark = pytest.mark.tensorflow

TOKENIZER = train_tokenizer("characters", TEXTS)


def bert():
    return Bert(TOKENIZER.vocabulary_size, max_length=16, **SIZES)


def classification():
    model = spread_weights(SequenceClassifier(bert(), 3, pooling="mean"), 1)
    return ClassificationTask(model, TOKENIZER, ["x", "y", "z"], 16)


TASKS = {
    "classification": (classification, lambda task: task.probabilities(TEXTS)),
    "embedding": (
        lambda: EmbeddingTask(spread_weights(bert(), 1), TOKENIZER, max_length=16),
        lambda task: task.predict(TEXTS),
    ),
    "seq2seq": (make_task, lambda task: np.array(task.score(["abc"], ["AA B"]))),
}


def adapted(model):
    enable_lora(model, rank=2, roles=("query", "value"))
    for seed, weight in enumerate(model.trainable_weights):
        weight.assign(np.random.default_rng(seed).normal(size=weight.shape))


CHANGES = {"LoRA": adapted, "int8": lambda model: model.quantize("int8")}


@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize")
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", TASKS)
def test_answers_follow_the_weights(name, change):
    make, answers = TASKS[name]
    keras.utils.set_random_seed(0)
    task = make()
    before = answers(task)
    CHANGES[change](task.backbone)
    after = answers(task)
    assert np.abs(after - before).max() > 1e-4


@pytest.mark.parametrize("name", TASKS)
def test_a_graph_is_traced_once(name):
    make, answers = TASKS[name]
    task = make()
    np.testing.assert_array_equal(answers(task), answers(task))
    graphs = [*vars(task).values(), *getattr(task, "_functions", {}).values()]
    counts = [
        graph._graph.experimental_get_tracing_count()
        for graph in graphs
        if getattr(graph, "_traced_with", None)
    ]
    assert set(counts) == {1}

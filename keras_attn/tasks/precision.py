"""A task whose model computes with fewer bits."""

import warnings

from keras_attn.export_precision import PRECISIONS
from keras_attn.tasks.base import Task
from keras_attn.validation import require, require_one_of


def in_precision(task: Task, precision: str) -> Task:
    """Makes a task with the weights of another, whose model computes in another precision.

    Args:
        task: The task, which is not changed.
        precision: "float32" for the task itself; "bfloat16" for a model of the policy
            "mixed_bfloat16"; "int8" for one that Keras quantizes: products of dense layers,
            attention's projections and tied output projections are of integers, the rest is
            computed in the task's precision.

    Returns:
        The task, which shares tokenizers.

    Raises:
        UserError: The precision is unknown, or the model is quantized already or no task's.
    """
    require_one_of("compute", precision, PRECISIONS)
    if precision == "float32":
        return task
    require(isinstance(task, Task), "What computes in fewer bits must be a Task.", task=task)
    policies = [layer.dtype_policy for layer in task.backbone._flatten_layers()]
    is_quantized = any(policy.quantization_mode is not None for policy in policies)
    require(not is_quantized, "The model is quantized already.", compute=precision)
    config = task.backbone.get_config()
    if precision == "bfloat16":
        config |= {"dtype": "mixed_bfloat16"}
    backbone = type(task.backbone).from_config(config)
    backbone.set_weights(task.backbone.get_weights())
    if precision == "int8":
        with warnings.catch_warnings():  # of layers that have nothing to quantize
            warnings.filterwarnings("ignore", "Layer .* does not have a `quantize")
            backbone.quantize("int8")
    return task._from_parts(backbone, task.tokenizers, task._settings())

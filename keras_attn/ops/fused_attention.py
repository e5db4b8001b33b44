"""Dot-product attention by one kernel: cuDNN's with JAX on an NVIDIA GPU, or PyTorch's."""

import functools
import importlib
from typing import Any

import keras
from keras import ops

from keras_attn.ops.masks import causal_mask, combine_masks, queries_apart
from keras_attn.tensors import Tensor

CUDNN_DTYPES = ("bfloat16", "float16")
MAX_HEAD_DIM = 128  # what every GPU with the kernel can do
HEAD_DIM_STEP = 8
# The kernel reads a mask from a matrix of two bytes a pair: up to 1 GiB of it.
MAX_MASK_PAIRS = 2**29


def can_be_fused(query: Tensor, key: Tensor, value: Tensor, masks: tuple, is_causal: bool) -> bool:
    """Whether `fused_attention` computes this here.

    It needs lengths that are known, at least two queries, and heads of one size; a causal mask
    needs as many queries as keys. PyTorch needs no more. JAX needs an NVIDIA GPU with cuDNN, half
    precision, and heads of a multiple of 8 up to 128. There a mask over keys, and without a causal
    mask an odd number of keys, needs bfloat16, in which what the kernel adds to a masked score
    exceeds any score, and at most 2²⁹ pairs of a query and a key.

    Args:
        query: Float tensor (batch, heads, target, key_dim).
        key: Float tensor (batch, kv_heads, source, key_dim).
        value: Float tensor (batch, kv_heads, source, value_dim).
        masks: Boolean tensors of rank 4, each broadcastable to (batch, heads, target, source).
        is_causal: Whether query i may attend only to keys j <= i + source - target.
    """
    dtypes = {keras.backend.standardize_dtype(tensor.dtype) for tensor in (query, key, value)}
    target, source, width = query.shape[2], key.shape[2], query.shape[3]
    if target is None or source is None or target < 2 or len(dtypes) > 1:
        return False
    if (is_causal and target != source) or value.shape[3] != width:
        return False
    if keras.backend.backend() == "torch":
        return not isinstance(query, keras.KerasTensor)
    if not dtypes <= set(CUDNN_DTYPES) or width % HEAD_DIM_STEP or width > MAX_HEAD_DIM:
        return False
    mask_shapes = [mask.shape for mask in masks if mask.shape[3] != 1]
    if mask_shapes or (source % 2 and not is_causal):
        rows = [max((shape[axis] or 1 for shape in mask_shapes), default=1) for axis in (0, 1)]
        pairs = rows[0] * rows[1] * target * source
        if "float16" in dtypes or pairs > MAX_MASK_PAIRS:
            return False
    return _cudnn_runs()


@functools.cache
def _cudnn_runs() -> bool:
    """Whether Keras can call cuDNN's kernel on this machine."""
    if keras.backend.backend() != "jax":
        return False
    if keras.distribution.list_devices()[0].split(":")[0] not in ("gpu", "cuda"):
        return False
    one = ops.zeros((1, 2, 1, HEAD_DIM_STEP), "bfloat16")
    try:
        ops.dot_product_attention(one, one, one, flash_attention=True)
    except (ImportError, AttributeError, TypeError, ValueError, RuntimeError):
        return False
    return True


def fused_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    masks: tuple = (),
    scale: float = 1.0,
    is_causal: bool = False,
    every_query_attends: bool = False,
) -> Tensor:
    """Computes what `keras_attn.ops.dot_product_attention` says, where `can_be_fused`.

    Neither scores nor probabilities are ever held; a mask over keys is, once for all heads that
    share it.

    Args:
        query: Float tensor (batch, heads, target, key_dim).
        key: Float tensor (batch, kv_heads, source, key_dim).
        value: Float tensor (batch, kv_heads, source, key_dim).
        masks: Boolean tensors of rank 4, each broadcastable to (batch, heads, target, source).
        scale: Factor of the scores.
        is_causal: Whether query i may attend only to keys j <= i.
        every_query_attends: Whether the caller knows that no query is masked from all keys.

    Returns:
        The context (batch, heads, target, key_dim) in the dtype of `query`, 0 where a query has
        nothing to attend to.

    Reference:
        Dao et al., "FlashAttention".
    """
    target, source = query.shape[2], key.shape[2]
    row_mask, key_mask = queries_apart(masks)
    attends = None
    if key_mask is not None and not every_query_attends:
        earlier = ops.expand_dims(causal_mask(target, source), (0, 1)) if is_causal else None
        attends = ops.any(combine_masks(key_mask, earlier), axis=-1, keepdims=True)
        # The kernel has no gradient, and no context, where everything is masked.
        key_mask = ops.logical_or(key_mask, ops.logical_not(attends))
    by_kernel = _by_torch if keras.backend.backend() == "torch" else _by_cudnn
    context = by_kernel(query, key, value, key_mask, scale, is_causal)
    attends = combine_masks(attends, row_mask)
    if attends is None:
        return context
    return ops.where(attends, context, ops.zeros((), context.dtype))


def _by_torch(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor, scale: float, is_causal: bool
) -> Any:
    """The context of PyTorch's function, to which Keras gives copies: it takes any strides."""
    if mask is not None and is_causal:
        earlier = causal_mask(query.shape[2], key.shape[2])
        mask, is_causal = combine_masks(mask, ops.expand_dims(earlier, (0, 1))), False
    group = query.shape[1] // key.shape[1]
    if group > 1:
        key, value = (ops.repeat(tensor, group, axis=1) for tensor in (key, value))
    attend = importlib.import_module("torch").nn.functional.scaled_dot_product_attention
    return attend(query, key, value, attn_mask=mask, is_causal=is_causal, scale=scale)


def _by_cudnn(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor, scale: float, is_causal: bool
) -> Any:
    """The context of cuDNN's kernel, which takes no odd lengths."""
    target, source = query.shape[2], key.shape[2]
    if source % 2 and mask is None and not is_causal:
        mask = ops.ones((1, 1, 1, source), "bool")
    context = ops.dot_product_attention(
        *(_even(ops.swapaxes(tensor, 1, 2), (1,)) for tensor in (query, key, value)),
        mask=None if mask is None else _even(_of_pairs(mask, target), (2, 3)),
        scale=scale,
        is_causal=is_causal,
        flash_attention=True,
    )
    return ops.swapaxes(context[:, :target], 1, 2)


def _of_pairs(mask: Tensor, target: int) -> Tensor:
    """(batch or 1, heads or 1, target or 1, source) to (batch or 1, heads or 1, target, source)."""
    batch, heads, _, source = ops.shape(mask)
    return ops.broadcast_to(mask, (batch, heads, target, source))


def _even(tensor: Tensor, axes: tuple[int, ...]) -> Tensor:
    """Adds zeros, or False, at the end of axes with odd lengths, which the kernel does not take."""
    padding = [(0, size % 2 if axis in axes else 0) for axis, size in enumerate(ops.shape(tensor))]
    return ops.pad(tensor, padding) if any(after for _, after in padding) else tensor

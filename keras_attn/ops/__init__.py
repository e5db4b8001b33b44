"""Pure functions on tensors: masks, dot-product attention, positions."""

from keras_attn.ops.attention import dot_product_attention as dot_product_attention
from keras_attn.ops.masks import attention_mask as attention_mask
from keras_attn.ops.masks import causal_mask as causal_mask
from keras_attn.ops.masks import combine_masks as combine_masks
from keras_attn.ops.masks import padding_mask as padding_mask
from keras_attn.ops.masks import separate_masks as separate_masks
from keras_attn.ops.positions import sinusoidal_positions as sinusoidal_positions

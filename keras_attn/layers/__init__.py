"""Attention layers and Transformer blocks for Keras 3, on TensorFlow, JAX and torch."""

from keras_attn.layers.additive_attention import AdditiveAttention
from keras_attn.layers.alibi_bias import AlibiBias
from keras_attn.layers.class_token import ClassToken
from keras_attn.layers.compressive_memory_attention import CompressiveMemoryAttention
from keras_attn.layers.convolutional_subsampling import ConvolutionalSubsampling
from keras_attn.layers.dense_synthesizer import DenseSynthesizer
from keras_attn.layers.factorized_dense_synthesizer import FactorizedDenseSynthesizer
from keras_attn.layers.factorized_random_synthesizer import FactorizedRandomSynthesizer
from keras_attn.layers.feed_forward import FeedForward
from keras_attn.layers.global_local_attention import GlobalLocalAttention
from keras_attn.layers.global_local_encoder_block import GlobalLocalEncoderBlock
from keras_attn.layers.global_local_streams import GlobalLocalPieces
from keras_attn.layers.intra_attention_cell import IntraAttentionCell
from keras_attn.layers.learned_position_embedding import LearnedPositionEmbedding
from keras_attn.layers.linear_attention import LinearAttention
from keras_attn.layers.local_attention import LocalAttention
from keras_attn.layers.lora import enable_lora
from keras_attn.layers.lsh_attention import LSHAttention
from keras_attn.layers.luong_attention import LuongAttention
from keras_attn.layers.multi_head_attention import MultiHeadAttention
from keras_attn.layers.patch_embedding import PatchEmbedding
from keras_attn.layers.random_shift import RandomShift
from keras_attn.layers.random_synthesizer import RandomSynthesizer
from keras_attn.layers.recurrent_memory_attention import RecurrentMemoryAttention
from keras_attn.layers.relative_position_bias import RelativePositionBias
from keras_attn.layers.reversible_block import ReversibleBlock
from keras_attn.layers.reversible_stack import ReversibleStack
from keras_attn.layers.rms_normalization import RMSNormalization
from keras_attn.layers.rotary_embedding import RotaryEmbedding
from keras_attn.layers.segment_embedding import SegmentEmbedding
from keras_attn.layers.segmented_attention import SegmentedAttention
from keras_attn.layers.sequence_pooling import SequencePooling
from keras_attn.layers.simple_self_attention import SimpleSelfAttention
from keras_attn.layers.sinusoidal_position_encoding import SinusoidalPositionEncoding
from keras_attn.layers.synthesizer_mixture import SynthesizerMixture
from keras_attn.layers.token_embedding import TokenEmbedding
from keras_attn.layers.transformer_decoder_block import TransformerDecoderBlock
from keras_attn.layers.transformer_encoder_block import TransformerEncoderBlock
from keras_attn.layers.transformer_xl_positions import TransformerXLPositions
from keras_attn.layers.vocabulary_bias import VocabularyBias

__all__ = [
    "AdditiveAttention",
    "AlibiBias",
    "ClassToken",
    "CompressiveMemoryAttention",
    "ConvolutionalSubsampling",
    "DenseSynthesizer",
    "FactorizedDenseSynthesizer",
    "FactorizedRandomSynthesizer",
    "FeedForward",
    "GlobalLocalAttention",
    "GlobalLocalEncoderBlock",
    "GlobalLocalPieces",
    "IntraAttentionCell",
    "LSHAttention",
    "LearnedPositionEmbedding",
    "LinearAttention",
    "LocalAttention",
    "LuongAttention",
    "MultiHeadAttention",
    "PatchEmbedding",
    "RMSNormalization",
    "RandomShift",
    "RandomSynthesizer",
    "RecurrentMemoryAttention",
    "RelativePositionBias",
    "ReversibleBlock",
    "ReversibleStack",
    "RotaryEmbedding",
    "SegmentEmbedding",
    "SegmentedAttention",
    "SequencePooling",
    "SimpleSelfAttention",
    "SinusoidalPositionEncoding",
    "SynthesizerMixture",
    "TokenEmbedding",
    "TransformerDecoderBlock",
    "TransformerEncoderBlock",
    "TransformerXLPositions",
    "VocabularyBias",
    "enable_lora",
]

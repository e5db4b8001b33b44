"""Attention layers and Transformer blocks for Keras 3, on TensorFlow, JAX and torch."""

from keras_attn.layers.attention.additive_attention import AdditiveAttention
from keras_attn.layers.attention.big_bird_attention import BigBirdAttention
from keras_attn.layers.attention.compressive_memory_attention import CompressiveMemoryAttention
from keras_attn.layers.attention.convolved_attention import ConvolvedAttention
from keras_attn.layers.attention.delta_rule_attention import DeltaRuleAttention
from keras_attn.layers.attention.disentangled_attention import DisentangledAttention
from keras_attn.layers.attention.gated_linear_attention import GatedLinearAttention
from keras_attn.layers.attention.global_local_attention import GlobalLocalAttention
from keras_attn.layers.attention.global_local_streams import GlobalLocalPieces
from keras_attn.layers.attention.head_projection import enable_lora
from keras_attn.layers.attention.intra_attention_cell import IntraAttentionCell
from keras_attn.layers.attention.linear_attention import LinearAttention
from keras_attn.layers.attention.linformer_attention import LinformerAttention
from keras_attn.layers.attention.local_attention import LocalAttention
from keras_attn.layers.attention.longformer_attention import LongformerAttention
from keras_attn.layers.attention.lsh_attention import LSHAttention
from keras_attn.layers.attention.luong_attention import LuongAttention
from keras_attn.layers.attention.multi_head_attention import MultiHeadAttention
from keras_attn.layers.attention.nystrom_attention import NystromAttention
from keras_attn.layers.attention.performer_attention import PerformerAttention
from keras_attn.layers.attention.recurrent_memory_attention import RecurrentMemoryAttention
from keras_attn.layers.attention.segment_recurrence import SegmentRecurrence
from keras_attn.layers.attention.simple_self_attention import SimpleSelfAttention
from keras_attn.layers.attention.sinkhorn_attention import SinkhornAttention
from keras_attn.layers.attention.sparse_attention import SparseAttention
from keras_attn.layers.attention.synthesizers import (
    DenseSynthesizer,
    FactorizedDenseSynthesizer,
    FactorizedRandomSynthesizer,
    RandomSynthesizer,
    SynthesizerMixture,
)
from keras_attn.layers.blocks.decoder_block import TransformerDecoderBlock
from keras_attn.layers.blocks.encoder_block import TransformerEncoderBlock
from keras_attn.layers.blocks.feed_forward import FeedForward
from keras_attn.layers.blocks.global_local_encoder_block import GlobalLocalEncoderBlock
from keras_attn.layers.blocks.reversible_block import ReversibleBlock
from keras_attn.layers.blocks.reversible_stack import ReversibleStack
from keras_attn.layers.convolutional.subsampling import ConvolutionalSubsampling
from keras_attn.layers.embedding.class_token import ClassToken
from keras_attn.layers.embedding.patch import PatchEmbedding
from keras_attn.layers.embedding.segment import SegmentEmbedding
from keras_attn.layers.embedding.token import TokenEmbedding
from keras_attn.layers.embedding.vocabulary_bias import VocabularyBias
from keras_attn.layers.head_transform import HeadTransform
from keras_attn.layers.positions.distance_biases import AlibiBias, RelativePositionBias
from keras_attn.layers.positions.learned import LearnedPositionEmbedding
from keras_attn.layers.positions.rotary import RotaryEmbedding
from keras_attn.layers.positions.sinusoidal import SinusoidalPositionEncoding
from keras_attn.layers.positions.transformer_xl import TransformerXLPositions
from keras_attn.layers.random_shift import RandomShift
from keras_attn.layers.rms_normalization import RMSNormalization
from keras_attn.layers.sequence_pooling import SequencePooling
from keras_attn.renamed import load_old_names, old_names

__all__ = [
    "AdditiveAttention",
    "AlibiBias",
    "BigBirdAttention",
    "ClassToken",
    "CompressiveMemoryAttention",
    "ConvolutionalSubsampling",
    "ConvolvedAttention",
    "DeltaRuleAttention",
    "DenseSynthesizer",
    "DisentangledAttention",
    "FactorizedDenseSynthesizer",
    "FactorizedRandomSynthesizer",
    "FeedForward",
    "GatedLinearAttention",
    "GlobalLocalAttention",
    "GlobalLocalEncoderBlock",
    "GlobalLocalPieces",
    "HeadTransform",
    "IntraAttentionCell",
    "LSHAttention",
    "LearnedPositionEmbedding",
    "LinearAttention",
    "LinformerAttention",
    "LocalAttention",
    "LongformerAttention",
    "LuongAttention",
    "MultiHeadAttention",
    "NystromAttention",
    "PatchEmbedding",
    "PerformerAttention",
    "RMSNormalization",
    "RandomShift",
    "RandomSynthesizer",
    "RecurrentMemoryAttention",
    "RelativePositionBias",
    "ReversibleBlock",
    "ReversibleStack",
    "RotaryEmbedding",
    "SegmentEmbedding",
    "SegmentRecurrence",
    "SequencePooling",
    "SimpleSelfAttention",
    "SinkhornAttention",
    "SinusoidalPositionEncoding",
    "SparseAttention",
    "SynthesizerMixture",
    "TokenEmbedding",
    "TransformerDecoderBlock",
    "TransformerEncoderBlock",
    "TransformerXLPositions",
    "VocabularyBias",
    "enable_lora",
]

__getattr__ = old_names(__name__, {"SegmentedAttention": "SegmentRecurrence"}, globals())
load_old_names({"SegmentedAttention": SegmentRecurrence})

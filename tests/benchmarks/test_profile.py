"""Kinds of ops, the time that is an op's own, and operations counted by hand."""

import pytest
import tensorflow as tf

from keras_attn.benchmarks.profile import kind_of, matrix_operations, own_seconds, shares_of_time
from keras_attn.models import Transformer

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize(
    ("name", "type_", "kind"),
    [
        ("transformer/block/feed_forward/dense/MatMul", "_FusedMatMul", "matrix products"),
        ("transformer/block/attention/query/einsum/Einsum", "Einsum", "matrix products"),
        ("transformer/dropout/MatMul", "MatMul", "matrix products"),
        ("attention/matmul", "BatchMatMulV2", "products of attention"),
        ("gradient_tape/transformer/dropout_3/Mul", "Mul", "dropout"),
        ("transformer/layer_normalization/Rsqrt", "Rsqrt", "layer norm"),
        ("attention/Softmax", "Softmax", "softmax"),
        ("adam/ResourceApplyAdam_7", "ResourceApplyAdam", "optimiser"),
        ("transformer/dense/Cast", "Cast", "casts"),
        ("attention/transpose", "Transpose", "copies and transposes"),
        ("gradient_tape/dense/BiasAddGrad", "BiasAddGrad", "sums"),
        ("transformer/dense/Relu", "Relu", "element-wise and others"),
    ],
)
def test_kinds(name, type_, kind):
    assert kind_of(name, type_) == kind


def test_time_of_an_op_is_without_the_ops_inside_it():
    second = 10**12
    events = [
        ("call", 0, 10 * second),
        ("first", 1 * second, 3 * second),
        ("within", 2 * second, 1 * second),
        ("second", 4 * second, 2 * second),
        ("after", 12 * second, 5 * second),
    ]
    own = dict(own_seconds(events[::-1]))
    assert own == {"call": 5.0, "first": 2.0, "within": 1.0, "second": 2.0, "after": 5.0}


def test_operations_of_matrix_products():
    model = Transformer(
        13, 17, num_layers=1, hidden_dim=4, num_heads=2, intermediate_dim=5, dropout=0.0
    )
    # A source of 2 tokens: q, k, v, o and two for the decoder, 6·16; feed-forward 2·20; scores and
    # their sums 2·2·4. A target of 3: six projections 6·16, 2·20, own 2·3·4, of the source 2·2·4,
    # logits 4·17. Two operations each, forward and twice backward.
    source, target = 6 * 16 + 40 + 16, 6 * 16 + 40 + 24 + 16 + 68
    assert matrix_operations(model, 7, 2, 3) == 6 * 7 * (2 * source + 3 * target)


def test_shares_of_a_graph_are_those_of_its_ops():
    matrix = tf.random.normal((600, 600))
    products = tf.function(lambda: tf.reduce_max(matrix @ matrix @ matrix))
    products()
    shares = shares_of_time(lambda: products().numpy())
    assert max(shares, key=shares.get) == "matrix products"
    assert sum(shares.values()) == pytest.approx(1, abs=0.01)
    # The call of the graph is no op: it would count the time of all of them again.
    assert shares.get("element-wise and others", 0) < 0.3

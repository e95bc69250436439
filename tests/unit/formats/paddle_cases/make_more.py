# SPDX-License-Identifier: Apache-2.0
"""Records more families of operators, as make.py does, and a network as scripts export them.

Usage: make_more.py OUT [FAMILY...]"""
import os
import sys

import numpy as np
import paddle
import paddle.nn.functional as F
from make import PIR, RNG, M, P, X, boxes, floats, ints, ops, param, positive, record, strip

RNG.seed(23)
FAMILIES = {}


def weights(*shape):
    """The same, whatever was built before."""
    return param(np.random.RandomState(5).uniform(-1, 1, shape).astype("float32"))


def steps_of(x, y):
    x = paddle.static.setitem(x * 1.0, (slice(None), slice(0, 5, 2)), y)
    return paddle.static.setitem(x, (slice(None, None, -1), slice(1, 2)), 7.0)


def place_of(x, i):
    return paddle.static.setitem(x * 1.0, (slice(None), i), 0.5)


def unpooled(x):
    y, mask = F.max_pool2d(x, 2, return_mask=True)
    return y, mask, F.max_unpool2d(y, mask, 2)


U = positive(3, 5) * 0.45
V = positive(1, 3, 4, 6, 6)
FAMILIES["function"] = [(lambda x, n=n: getattr(paddle, n)(x), [U]) for n in (
    "acos", "asin", "asinh", "atanh", "cosh", "sinh", "log1p", "log2", "log10", "expm1",
    "logit")] + [
    (lambda x: paddle.acosh(x + 1.5), [U]),
    (lambda x: paddle.trunc(x * 3), [M]),
    (lambda x: paddle.trunc(x), [ints(9, 4) - 4]),
    (lambda x: F.celu(x, 0.7), [M]),
    (lambda x: F.selu(x), [M]),
    (lambda x: F.hardshrink(x), [M]),
    (lambda x: F.softshrink(x, 0.3), [M]),
    (lambda x: F.tanhshrink(x), [M]),
    (lambda x: F.thresholded_relu(x, 0.6), [M]),
    (lambda x: F.log_sigmoid(x * 60), [M]),
    (lambda x: paddle.stanh(x), [M]),
    (lambda x: F.rrelu(x, training=False), [M]),
    (lambda x: F.maxout(x, 2), [X]),
    (lambda x: F.maxout(x, 3, -1), [X]),
    (lambda x: paddle.nanmean(x, 1), [np.array([[1, np.nan, 3], [4, 5, 6]], "float32")]),
    (lambda x: paddle.norm(x, 3, 1), [M]),
    (lambda x: paddle.norm(x, 0, 1), [M]),
    (lambda x: paddle.norm(x, float("inf"), 1, keepdim=True), [M]),
    (lambda x: paddle.norm(x, -float("inf"), 0), [M]),
    (lambda x: paddle.norm(x), [M]),
    (lambda x: paddle.kthvalue(x, 2, 1), [M]),
    (lambda x: paddle.kthvalue(x, 3, 0), [M]),
]
FAMILIES["pair"] = [
    (lambda x, y: paddle.fmax(x, y), [np.array([1, np.nan, 3, np.nan], "float32"),
                                      np.array([2, 5, np.nan, np.nan], "float32")]),
    (lambda x, y: paddle.fmin(x, y), [ints(9, 5), ints(9, 5)]),
    (lambda x, y: paddle.heaviside(x, y), [np.array([-1, 0, 2], "float32"), floats(3)]),
    (lambda y, x: paddle.atan2(y, x), [np.array([1, -1, 1, -1, 0, 2, -2, 0], "float32"),
                                       np.array([1, 1, -1, -1, -1, 0, 0, 0], "float32")]),
    (lambda x, y: paddle.bitwise_and(x, y), [ints(64, 6), ints(64, 6)]),
    (lambda x, y: paddle.bitwise_or(x, y), [ints(64, 6), ints(64, 6)]),
    (lambda x, y: paddle.bitwise_xor(x > 0, y > 1), [M, P]),
    (lambda x, y: paddle.lerp(x, y, 0.3), [M, P]),
    (lambda x, y: paddle.isclose(x, y, atol=0.4), [M, M + floats(3, 5) / 3]),
    (lambda x, y: paddle.allclose(x, y, rtol=0.1), [M, M * 1.05]),
    (lambda x, y: paddle.equal_all(x, y), [M, P]),
    (lambda i, x, y: paddle.addmm(i, x, y, 0.5, 2.0), [floats(3, 4), floats(3, 5), floats(5, 4)]),
    (lambda x, y: paddle.mv(x, y), [M, floats(5)]),
    (lambda x, y: paddle.dot(x, y), [floats(5), floats(5)]),
    (lambda x, y: paddle.dot(x, y), [M, P]),
]
FAMILIES["window"] = [
    (lambda x: F.unfold(x, 3, 2, 1), [X]),
    (lambda x: F.unfold(x, [2, 3], 1, [1, 0, 2, 1], [2, 1]), [X]),
    (lambda x: F.pixel_unshuffle(x, 2), [X]),
    (lambda x: F.temporal_shift(x, 3, 0.25), [floats(6, 4, 2, 2)]),
    (lambda t: F.affine_grid(t, [2, 3, 4, 5]), [floats(2, 2, 3)]),
    (lambda t: F.affine_grid(t, [2, 3, 4, 5], align_corners=False), [floats(2, 2, 3)]),
    (lambda x: F.max_pool2d(x, 3, 2, 1, return_mask=True), [X]),
    (lambda x: F.conv3d(x, weights(4, 3, 3, 3, 3), padding=1, stride=[1, 2, 2]), [V]),
    (lambda x: F.conv3d(x, weights(3, 1, 1, 3, 3), padding=[0, 1, 1], groups=3), [V]),
    (lambda x: F.conv3d_transpose(x, weights(3, 2, 2, 2, 2), stride=2), [V]),
    (lambda x: F.max_pool3d(x, 2, 2), [V]),
    (lambda x: F.avg_pool3d(x, 3, 2, 1), [V]),
    (lambda x: F.adaptive_avg_pool3d(x, 2), [V]),
    (lambda x: F.adaptive_max_pool3d(x, 2), [V]),
]
FAMILIES["unpool"] = [(unpooled, [X])]
FAMILIES["place"] = [
    (lambda x, v: paddle.masked_fill(x, x > 0.5, v), [M, np.array([0.25], "float32")]),
    (lambda x: paddle.masked_select(x, x > 0.5), [M]),
    (lambda x, i: paddle.index_sample(x, i), [M, ints(5, 3, 2)]),
    (lambda x, i, v: paddle.put_along_axis(x, i, v, 1), [M, ints(5, 3, 1), floats(3, 1)]),
    (lambda x, i, v: paddle.put_along_axis(x, i, v, 1, "add"), [M, ints(5, 3, 1), floats(3, 1)]),
    (lambda x, i, v: paddle.index_add(x, i, 1, v), [M, np.array([4, 0, 4]), floats(3, 3)]),
    (lambda x, i, v: paddle.index_put(x, (i,), v), [M, np.array([2, 0]), floats(2, 5)]),
    (lambda x, i, j, v: paddle.index_put(x, (i, j), v, True),
     [M, np.array([2, 0, 2]), np.array([1, 4, 1]), floats(3)]),
    (lambda x: paddle.repeat_interleave(x, 2, 1), [M]),
    (lambda x: paddle.repeat_interleave(x, 3), [M]),
    (lambda x: paddle.repeat_interleave(x, paddle.assign(np.array([1, 0, 2])), 0), [M]),
    (lambda x, y: paddle.broadcast_tensors([x, y]), [floats(1, 5), floats(2, 3, 1)]),
    (lambda x: paddle.crop(x, [1, 2, 3, -1], [0, 1, 2, 1]), [X]),
    (steps_of, [M, floats(3, 3)]),
    (place_of, [M, np.array(3)]),
    (lambda x: x[:, ::-1, ::2], [X]),
    (lambda x: paddle.tile(x, paddle.shape(x)[:1]), [M]),
]
FAMILIES["diagonal"] = [
    (lambda x: x + paddle.eye(3, 5), [M]),
    (lambda x: x + paddle.tril_indices(3, 3, 0).astype("float32"), [floats(1)]),
    (lambda x: x + paddle.triu_indices(3, 4, 1).astype("float32"), [floats(1)]),
    (lambda x: paddle.diag(x), [floats(3)]),
    (lambda x: paddle.diag(x, -1, 0.5), [floats(3)]),
    (lambda x: paddle.diag(x, 1), [M]),
    (lambda x: paddle.diag_embed(x, 1), [M]),
    (lambda x: paddle.diagonal(x, 1, 2, 3), [X]),
    (lambda x: paddle.trace(x), [M]),
    (lambda x: paddle.trace(x, 0, -2, -1), [X]),
    (lambda n: F.sequence_mask(n, 6, "float32"), [np.array([2, 5, 3])]),
    (lambda b, s: ops.nms(b, 0.3, s), [boxes(9), RNG.rand(9).astype("float32")]),
]


class Turns(paddle.nn.Layer):
    """As scripts are exported: a recurrent layer, and a loop over what it gives."""

    def __init__(self):
        super().__init__()
        self.gru = paddle.nn.GRU(4, 3)
        self.last = paddle.nn.Linear(3, 3)

    def forward(self, x):
        y, _ = self.gru(x)
        total = paddle.zeros([3])
        for i in range(paddle.shape(y)[0]):
            total = total + self.last(y[i, -1])
        return total, y


def record_exported(out):
    paddle.disable_static()
    paddle.seed(3)
    net = Turns()
    net.eval()
    x = np.random.RandomState(3).uniform(-1, 1, (2, 5, 4)).astype("float32")
    results = [each.numpy() for each in net(paddle.to_tensor(x))]
    spec = [paddle.static.InputSpec([None, 5, 4], "float32", "in0_0")]
    path = os.path.join(out, "exported")
    paddle.jit.save(paddle.jit.to_static(net, input_spec=spec, full_graph=True), path)
    if PIR:
        open(path + ".json", "a").write("\n")
    else:
        strip(path + ".pdmodel")
    np.savez_compressed(path + ".npz", in0_0=x, out000=results[0], out001=results[1])


if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    wanted = sys.argv[2:] or [*FAMILIES, "exported"]
    for family, cases in FAMILIES.items():
        if family in wanted:
            record(family, cases, sys.argv[1])
    if "exported" in wanted:
        record_exported(sys.argv[1])

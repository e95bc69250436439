# SPDX-License-Identifier: Apache-2.0
"""Records small programs of Paddle's own making, with the outputs that Paddle computes.

Usage: make.py OUT. With Paddle 2.6 it writes .pdmodel files, with Paddle 3 PIR's .json. One file
holds the operators of a family; inputs and outputs stand beside it as .npz."""
import os
import sys

import numpy as np
import paddle
import paddle.nn.functional as F

paddle.enable_static()
PIR = int(paddle.__version__.split(".")[0]) >= 3
RNG = np.random.RandomState(7)


def floats(*shape):
    return RNG.uniform(-2, 2, shape).astype("float32")


def positive(*shape):
    return RNG.uniform(0.1, 2, shape).astype("float32")


def ints(high, *shape, dtype="int64"):
    return RNG.randint(0, high, shape).astype(dtype)


X = floats(1, 4, 6, 6)
M = floats(3, 5)
P = positive(3, 5)


def param(value):
    initializer = paddle.nn.initializer.Assign(value)
    return paddle.static.create_parameter(value.shape, str(value.dtype),
                                          attr=paddle.ParamAttr(initializer=initializer)) \
        if not PIR else paddle.create_parameter(value.shape, str(value.dtype),
                                                attr=paddle.ParamAttr(initializer=initializer))


UNARY = ["relu", "sigmoid", "tanh", "exp", "abs", "floor", "ceil", "erf", "sin", "cos",
         "square", "round", "sign", "reciprocal"]
FAMILIES = {
    "activation": [(lambda x, n=n: getattr(paddle, n, getattr(F, n, None))(x), [M])
                   for n in UNARY] + [
        (lambda x: paddle.log(x), [P]),
        (lambda x: paddle.sqrt(x), [P]),
        (lambda x: paddle.rsqrt(x), [P]),
        (lambda x: F.relu6(x * 5), [M]),
        (lambda x: F.silu(x), [M]),
        (lambda x: F.swish(x), [M]),
        (lambda x: F.mish(x), [M]),
        (lambda x: F.leaky_relu(x, 0.1), [M]),
        (lambda x: F.elu(x, 0.7), [M]),
        (lambda x: F.prelu(x, param(np.array([.1, .2, .3, .4], "float32"))), [X]),
        (lambda x: F.hardsigmoid(x), [M]),
        (lambda x: F.hardswish(x * 3), [M]),
        (lambda x: F.hardtanh(x, -1.5, 0.5), [M]),
        (lambda x: F.gelu(x), [M]),
        (lambda x: F.gelu(x, approximate=True), [M]),
        (lambda x: F.softplus(x, 2.0), [M]),
        (lambda x: F.softsign(x), [M]),
        (lambda x: F.softmax(x, 0), [M]),
        (lambda x: F.log_softmax(x), [M]),
        (lambda x: F.dropout(x, 0.25, training=False), [M]),
        (lambda x: F.dropout(x, 0.25, training=False, mode="downscale_in_infer"), [M]),
    ],
    "arithmetic": [
        (lambda x, y: x + y, [M, floats(5)]),
        (lambda x, y: x - y, [M, floats(3, 1)]),
        (lambda x, y: x * y, [M, floats(3, 5)]),
        (lambda x, y: x / y, [M, P]),
        (lambda x, y: paddle.maximum(x, y), [M, P]),
        (lambda x, y: paddle.minimum(x, y), [M, P]),
        (lambda x, y: paddle.pow(x, y), [P, floats(3, 5)]),
        (lambda x, y: paddle.mod(x, y), [M * 5, P]),
        (lambda x, y: paddle.mod(x, y), [ints(20, 6) - 10, np.array([3, 4, 5, -3, -4, 7])]),
        (lambda x, y: paddle.floor_divide(x, y), [ints(20, 6) - 10, ints(4, 6) + 1]),
        (lambda x: paddle.scale(x, 2.0, 0.5), [M]),
        (lambda x: paddle.scale(x, 2.0, 0.5, bias_after_scale=False), [M]),
        (lambda x: paddle.scale(x, 2.0, 1.0), [ints(9, 4)]),
        (lambda x: paddle.pow(x, 2.5), [P]),
        (lambda x, y: paddle.matmul(x, y), [M, floats(5, 2)]),
        (lambda x, y: paddle.matmul(x, y, transpose_y=True), [floats(2, 3, 5), floats(2, 4, 5)]),
        (lambda x, y: paddle.matmul(x, y, transpose_x=True), [floats(5, 3), floats(5, 4)]),
        (lambda x, y: paddle.bmm(x, y), [floats(2, 3, 5), floats(2, 5, 4)]),
        (lambda x, y: paddle.add_n([x, y, x]), [M, P]),
        (lambda x, y: paddle.einsum("ij,kj->ik", x, y), [M, floats(2, 5)]),
        (lambda x, y: paddle.equal(x, y), [ints(3, 8), ints(3, 8)]),
        (lambda x, y: paddle.not_equal(x, y), [ints(3, 8), ints(3, 8)]),
        (lambda x, y: paddle.greater_than(x, y), [M, P]),
        (lambda x, y: paddle.greater_equal(x, y), [ints(3, 8), ints(3, 8)]),
        (lambda x, y: paddle.less_than(x, y), [M, P]),
        (lambda x, y: paddle.less_equal(x, y), [ints(3, 8), ints(3, 8)]),
        (lambda x, y: paddle.logical_and(x > 0, y > 1), [M, P]),
        (lambda x, y: paddle.logical_or(x > 0, y > 1), [M, P]),
        (lambda x, y: paddle.logical_xor(x > 0, y > 1), [M, P]),
        (lambda x: paddle.logical_not(x > 0), [M]),
        (lambda x: paddle.clip(x, -0.5, 1.0), [M]),
        (lambda x, y: paddle.where(x > y, x, y), [M, P]),
        (lambda x: paddle.isnan(x), [np.array([1, np.nan, np.inf], "float32")]),
    ],
    "layer": [
        (lambda x: F.conv2d(x, param(floats(6, 4, 3, 3)), param(floats(6)), 2, 1), [X]),
        (lambda x: F.conv2d(x, param(floats(4, 1, 3, 3)), None, 1, [1, 0], 2, 4), [X]),
        (lambda x: F.conv2d(x, param(floats(6, 4, 3, 3)), padding="SAME", stride=2), [X]),
        (lambda x: F.conv2d(x, param(floats(6, 4, 3, 3)), padding=[1, 2, 0, 1]), [X]),
        (lambda x: F.conv2d(x, param(floats(3, 6, 3, 3)), padding=1, data_format="NHWC"), [X]),
        (lambda x: F.conv2d_transpose(x, param(floats(4, 3, 2, 2)), stride=2), [X]),
        (lambda x: F.conv2d_transpose(x, param(floats(4, 1, 3, 3)), stride=2, padding=1,
                                      output_padding=1, groups=2), [X]),
        (lambda x: F.conv2d_transpose(x, param(floats(4, 3, 3, 3)), stride=2, padding=1,
                                      output_size=[12, 12]), [X]),
        (lambda x: F.max_pool2d(x, 3, 2, 1), [X]),
        (lambda x: F.avg_pool2d(x, 3, 2, 1), [X]),
        (lambda x: F.avg_pool2d(x, 3, 2, 1, exclusive=False), [X]),
        (lambda x: F.avg_pool2d(x, 3, 2, 0, ceil_mode=True), [X]),
        (lambda x: F.adaptive_avg_pool2d(x, 1), [X]),
        (lambda x: F.adaptive_avg_pool2d(x, 3), [X]),
        (lambda x: F.adaptive_avg_pool2d(x, [4, 5]), [X]),
        (lambda x: F.adaptive_max_pool2d(x, 1), [X]),
        (lambda x: F.layer_norm(x, [6], param(positive(6)), param(floats(6))), [X]),
        (lambda x: F.layer_norm(x, [6, 6], param(positive(36)), param(floats(36))), [X]),
        (lambda x: F.batch_norm(
            x, param(floats(4)), param(positive(4)), param(positive(4)), param(floats(4)),
            training=False), [X]),
        (lambda x: F.instance_norm(x), [X]),
        (lambda x: paddle.static.nn.group_norm(x, 2) if not PIR else paddle.nn.GroupNorm(2, 4)(x),
         [X]),
        (lambda x: paddle.norm(x, 2, 1), [M]),
        (lambda x: paddle.norm(x, 1, 1, keepdim=True), [M]),
        (lambda x: F.normalize(x), [M]),
    ],
    "reduce": [
        (lambda x: paddle.mean(x, 1), [X]),
        (lambda x: paddle.mean(x), [X]),
        (lambda x: paddle.sum(x, [2, 3], keepdim=True), [X]),
        (lambda x: paddle.sum(x), [X]),
        (lambda x: paddle.max(x, -1), [X]),
        (lambda x: paddle.min(x, 1), [X]),
        (lambda x: paddle.prod(x, 1), [M]),
        (lambda x: paddle.any(x > 1, 1), [M]),
        (lambda x: paddle.all(x > -1, 1), [M]),
        (lambda x: paddle.logsumexp(x, 1), [M]),
        (lambda x: paddle.argmax(x, 1), [M]),
        (lambda x: paddle.argmax(x), [M]),
        (lambda x: paddle.argmin(x, 1, keepdim=True, dtype="int32"), [M]),
        (lambda x: paddle.topk(x, 2), [M]),
        (lambda x: paddle.argsort(x, 1, descending=True), [M]),
        (lambda x: paddle.sort(x, 0), [M]),
        (lambda x: paddle.cumsum(x, 1), [M]),
        (lambda x: paddle.cumsum(x), [M]),
    ],
    "shape": [
        (lambda x: paddle.reshape(x, [0, -1, 6]), [X]),
        (lambda x: paddle.reshape(x, [paddle.shape(x)[0], -1]), [X]),
        (lambda x: paddle.transpose(x, [0, 2, 3, 1]), [X]),
        (lambda x: paddle.squeeze(x, [1]), [floats(3, 1, 4)]),
        (lambda x: paddle.unsqueeze(x, [0, 2]), [M]),
        (lambda x: paddle.flatten(x, 1), [X]),
        (lambda x: paddle.flatten(x, 1, 2), [X]),
        (lambda x: paddle.flatten(x, 0, 1), [X]),
        (lambda x: paddle.expand(x, [2, 3, -1]), [floats(3, 5)]),
        (lambda x, y: paddle.expand_as(x, y), [floats(1, 5), M]),
        (lambda x: paddle.tile(x, [2, 1, 3]), [M]),
        (lambda x: paddle.cast(x, "int32"), [M * 9]),
        (lambda x, y: paddle.concat([x, y], 1), [M, P]),
        (lambda x, y: paddle.stack([x, y], 1), [M, P]),
        (lambda x: paddle.split(x, 2, 1), [X]),
        (lambda x: paddle.split(x, [1, -1], 1), [X]),
        (lambda x: paddle.unstack(x, 1), [M]),
        (lambda x: paddle.unbind(x, 0), [M]),
        (lambda x: paddle.flip(x, [1]), [M]),
        (lambda x: paddle.roll(x, 2, 1), [M]),
        (lambda x: paddle.roll(x, 2), [M]),
        (lambda x: paddle.tril(x, -1), [M]),
        (lambda x: paddle.triu(x, 1), [M]),
        (lambda x, y: paddle.meshgrid(x, y), [floats(3), floats(2)]),
        (lambda x: x[:, 1:3, ::2], [X]),
        (lambda x: x[0, -1], [X]),
        (lambda x: x[:, :, 5:1:-2], [X]),
        (lambda x: paddle.slice(x, [1, 2], [1, -3], [3, 100]), [X]),
        (lambda x: paddle.cast(paddle.shape(x), "int32"), [X]),
        (lambda x: paddle.numel(x), [X]),
    ],
    "pick": [
        (lambda x, i: paddle.gather(x, i, 1), [M, ints(5, 4)]),
        (lambda x, i: paddle.gather_nd(x, i), [M, ints(3, 4, 2)]),
        (lambda x, i: paddle.index_select(x, i, 1), [M, ints(5, 4)]),
        (lambda x, i: paddle.take_along_axis(x, i, 1), [M, ints(5, 3, 2)]),
        (lambda x, i, u: paddle.scatter(x, i, u), [floats(5, 3), np.array([3, 1]), floats(2, 3)]),
        (lambda x, i, u: paddle.scatter(x, i, u, overwrite=False),
         [floats(5, 3), np.array([3, 1, 3]), floats(3, 3)]),
        (lambda x, i, u: paddle.scatter_nd_add(x, i, u),
         [floats(5, 3), np.array([[3], [1], [3]]), floats(3, 3)]),
        (lambda i: F.embedding(i, param(floats(7, 3))), [ints(7, 2, 4)]),
        (lambda i: F.embedding(i, param(floats(7, 3)), padding_idx=2), [np.array([[1, 2, 6]])]),
        (lambda i: F.one_hot(i, 6), [ints(6, 2, 3)]),
        (lambda x: paddle.nonzero(x > 0), [M]),
        (lambda x: paddle.arange(0, 7, 2) + paddle.shape(x)[0].astype("int64"), [M]),
        (lambda x: paddle.linspace(0.0, 3.0, 7) + x, [floats(7)]),
        (lambda x: paddle.full([2, 3], 1.5) + x, [floats(2, 3)]),
        (lambda x: paddle.full_like(x, 2.5), [M]),
        (lambda x: paddle.zeros_like(x), [M]),
        (lambda x: paddle.assign(x), [M]),
        (lambda x: paddle.assign(np.arange(6, dtype="float32").reshape(2, 3)) + x,
         [floats(2, 3)]),
        (lambda x: paddle.full(paddle.shape(x), 3.0), [M]),
    ],
    "image": [
        (lambda x: F.interpolate(x, scale_factor=2, mode="nearest"), [X]),
        (lambda x: F.interpolate(x, size=[9, 4], mode="nearest"), [X]),
        (lambda x: F.interpolate(x, size=[9, 4], mode="bilinear"), [X]),
        (lambda x: F.interpolate(x, size=[9, 4], mode="bilinear", align_corners=True), [X]),
        (lambda x: F.interpolate(x, scale_factor=[2.0, 1.5], mode="bilinear", align_mode=1), [X]),
        (lambda x: F.interpolate(x, size=[9, 4], mode="bicubic"), [X]),
        (lambda x: F.interpolate(x, size=paddle.shape(x)[1:3] * 2, mode="bilinear"), [X]),
        (lambda x: F.pad(x, [1, 2, 0, 1]), [X]),
        (lambda x: F.pad(x, [1, 2, 0, 1], mode="reflect"), [X]),
        (lambda x: F.pad(x, [0, 0, 1, 0, 2, 1, 0, 1], value=0.5), [X]),
        (lambda x: F.pixel_shuffle(x, 2), [X]),
        (lambda x: F.channel_shuffle(x, 2), [X]),
        (lambda x, g: F.grid_sample(x, g), [X, floats(1, 3, 5, 2) / 2]),
        (lambda x, g: F.grid_sample(x, g, "nearest", "border", False),
         [X, floats(1, 3, 5, 2) / 2]),
    ],
}


def nms(boxes, scores, **changes):
    values = {"score_threshold": 0.2, "nms_top_k": 5, "keep_top_k": 6, "nms_threshold": 0.4,
              "normalized": True, "nms_eta": 1.0, "background_label": -1, **changes}
    if PIR:
        return list(paddle._C_ops.multiclass_nms3(boxes, scores, None, *values.values()))
    helper = paddle.common_ops_import.LayerHelper("multiclass_nms3")
    outputs = [helper.create_variable_for_type_inference(dtype)
               for dtype in ("float32", "int32", "int32")]
    helper.append_op(type="multiclass_nms3", inputs={"BBoxes": boxes, "Scores": scores},
                     outputs=dict(zip(("Out", "Index", "NmsRoisNum"), outputs)), attrs=values)
    return outputs


def cond_case(x):
    return paddle.static.nn.cond(paddle.sum(x) > 0, lambda: (x * 2, x + 1),
                                 lambda: (x - 1, x * 3))


def while_case(x):
    i = paddle.full([1], 0, "int64")
    n = paddle.full([1], 4, "int64")
    i, _, x = paddle.static.nn.while_loop(lambda i, n, x: i < n,
                                          lambda i, n, x: (i + 1, n, x * 1.5 + 1), [i, n, x])
    return i, x


def boxes(*shape):
    corner = RNG.uniform(0, 8, (*shape, 2))
    return np.concatenate([corner, corner + RNG.uniform(1, 6, (*shape, 2))], -1).astype("float32")


ops = paddle.vision.ops
FAMILIES["detection"] = [
    (lambda x, s: ops.yolo_box(x, s, [10, 13, 16, 30], 3, 0.3, 8, True, scale_x_y=1.05),
     [floats(2, 16, 3, 4), np.array([[40, 50], [24, 31]], "int32")]),
    (lambda x, s: ops.yolo_box(x, s, [10, 13, 16, 30], 3, 0.3, 8, False, iou_aware=True,
                               iou_aware_factor=0.4),
     [floats(1, 18, 3, 4), np.array([[40, 50]], "int32")]),
    (lambda x, i: ops.prior_box(x, i, [4.0, 8.0], [6.0, 12.0], [1.0, 2.0], flip=True, clip=True),
     [floats(1, 2, 3, 4)[0:1], floats(1, 3, 24, 32)]),
    (lambda x, i: ops.prior_box(x, i, [4.0], [6.0], [2.0, 3.0], steps=[8.0, 8.0],
                                min_max_aspect_ratios_order=True),
     [floats(1, 2, 3, 4), floats(1, 3, 24, 32)]),
    (lambda p, t: ops.box_coder(p, [0.1, 0.1, 0.2, 0.2], t, "decode_center_size"),
     [boxes(5), floats(2, 5, 4)]),
    (lambda p, v, t: ops.box_coder(p, v, t, "decode_center_size", box_normalized=False),
     [boxes(5), positive(5, 4), floats(2, 5, 4)]),
    (lambda p, v, t: ops.box_coder(p, v, t, "encode_center_size"),
     [boxes(5), positive(5, 4), boxes(3)]),
    (lambda b, s: nms(b, s), [boxes(2, 9), RNG.rand(2, 3, 9).astype("float32")]),
    (lambda b, s: nms(b, s, normalized=False, background_label=0, keep_top_k=100, nms_top_k=-1),
     [boxes(1, 12), RNG.rand(1, 4, 12).astype("float32")]),
    (lambda x, b, n: ops.roi_align(x, b, n, 2, 0.5, 2), [floats(2, 3, 6, 6), boxes(3),
                                                         np.array([1, 2], "int32")]),
    (lambda x, b, n: ops.roi_align(x, b, n, 2, 0.5, -1, aligned=False),
     [floats(2, 3, 6, 6), boxes(3), np.array([2, 1], "int32")]),
]
FAMILIES["control"] = [
    (cond_case, [positive(3)]),
    (cond_case, [-positive(3)]),
    (while_case, [floats(3)]),
]
FAMILIES["rnn"] = [
    (lambda x: paddle.nn.LSTM(4, 3)(x)[0], [floats(2, 5, 4)]),
    (lambda x: (lambda y, s: [y, *s])(*paddle.nn.LSTM(4, 3, 2, "bidirect")(x)),
     [floats(2, 5, 4)]),
    (lambda x: paddle.nn.GRU(4, 3, 1, "bidirect")(x), [floats(2, 5, 4)]),
    (lambda x: paddle.nn.SimpleRNN(4, 3, time_major=True)(x), [floats(5, 2, 4)]),
]


def old(kind, inputs, outputs, **attrs):
    """An operator by its name, for those that no call of today's makes."""
    helper = paddle.common_ops_import.LayerHelper(kind)
    made = {name: helper.create_variable_for_type_inference(dtype)
            for name, dtype in outputs.items()}
    helper.append_op(type=kind, inputs=inputs, outputs=made, attrs=attrs)
    return [made[name] for name in outputs if name not in ("XShape", "Mask")]


def one(kind, x, **attrs):
    return old(kind, {"X": x}, {"Out": "float32"}, **attrs)


if not PIR:
    FAMILIES["old"] = [
        (lambda x, y: old("matmul", {"X": x, "Y": y}, {"Out": "float32"}, transpose_Y=True,
                          alpha=0.5), [M, floats(2, 5)]),
        (lambda x, y: old("mul", {"X": x, "Y": y}, {"Out": "float32"}, x_num_col_dims=2,
                          y_num_col_dims=1), [floats(2, 3, 5), floats(5, 4)]),
        (lambda x, y: old("mul", {"X": x, "Y": y}, {"Out": "float32"}, x_num_col_dims=1,
                          y_num_col_dims=2), [floats(2, 3, 4), floats(4, 3, 5)]),
        (lambda x: one("reshape", x, shape=[-1, 3]), [floats(2, 3, 4)]),
        (lambda x: one("transpose", x, axis=[1, 0]), [M]),
        (lambda x: old("flatten2", {"X": x}, {"Out": "float32", "XShape": "float32"}, axis=1),
         [X]),
        (lambda x: old("top_k", {"X": x}, {"Out": "float32", "Indices": "int64"}, k=2), [M]),
        (lambda i, w: old("lookup_table", {"Ids": i, "W": w}, {"Out": "float32"}, padding_idx=-1),
         [ints(7, 4, 1), floats(7, 3)]),
        (lambda x: one("nearest_interp", x, out_h=9, out_w=12, scale=0.0, interp_method="nearest",
                       align_corners=False), [X]),
        (lambda x: one("bilinear_interp", x, out_h=9, out_w=12, scale=0.0,
                       interp_method="bilinear", align_corners=False, align_mode=0), [X]),
        (lambda x: one("expand", x, expand_times=[2, 3]), [M]),
        (lambda x, y: old("elementwise_add", {"X": x, "Y": y}, {"Out": "float32"}, axis=1),
         [X, floats(4)]),
        (lambda x, y: old("elementwise_mul", {"X": x, "Y": y}, {"Out": "float32"}, axis=0),
         [floats(3, 4, 5), floats(3, 4)]),
        (lambda x: old("norm", {"X": x}, {"Out": "float32", "Norm": "float32"}, axis=1,
                       epsilon=1e-10)[:1], [M]),
        (lambda x: one("mean", x), [M]),
        (lambda x: old("fill_constant_batch_size_like", {"Input": x}, {"Out": "float32"},
                       shape=[-1, 7], value=1.5, dtype=5), [M]),
        (lambda x: one("fill_zeros_like", x), [M]),
        (lambda x: one("shuffle_channel", x, group=2), [X]),
        (lambda x: one("hard_sigmoid", x), [M * 2]),
        (lambda x: one("brelu", x, t_min=-1.0, t_max=1.5), [M]),
        (lambda x: one("reduce_mean", x, dim=[-1], keep_dim=True), [M]),
    ]

RNG.seed(11)  # what is added here leaves the families above as they were recorded
N = np.array([1, np.nan, np.inf, -np.inf], "float32")


def assigned(x, y):
    return paddle.assign(x, y * 1.0) + y


def filled(x, y):
    return paddle.static.setitem(x * 1.0, (slice(0, 2), slice(1, 4)), y) + 1.0


def back_and_forth(x):
    """Through the integers of the new form."""
    scale = {"Scale": param(np.array([1.7], "float32")), "ZeroPoint": param(np.zeros(1, "float32"))}
    how = {"bit_length": 8, "quant_axis": -1, "round_type": 0, "is_test": True}
    integers = old("quantize_linear", {"X": x, **scale}, {"Y": "float32"}, **how)[0]
    return old("dequantize_linear", {"X": integers, **scale}, {"Y": "float32"}, **how)[0]


FAMILIES["more"] = [
    (lambda x: paddle.atan(x), [M]),
    (lambda x: paddle.tan(x), [M]),
    (lambda x: paddle.bitwise_not(x), [ints(9, 6) - 4]),
    (lambda x: paddle.bitwise_not(x > 0), [M]),
    (lambda x: paddle.isfinite(x), [N]),
    (lambda x: paddle.isinf(x), [N]),
    (lambda x: paddle.amax(x, 1), [M]),
    (lambda x: paddle.amin(x, [0, 1], keepdim=True), [M]),
    (lambda x: F.interpolate(x, size=[9], mode="linear", data_format="NCW"), [floats(2, 3, 5)]),
    (lambda x: F.interpolate(x, size=[3], mode="linear", data_format="NCW", align_corners=True),
     [floats(2, 3, 5)]),
    (lambda x: F.interpolate(x, size=[4, 5, 3], mode="trilinear", data_format="NCDHW"),
     [floats(1, 2, 3, 4, 5)]),
    (lambda x, o, m: paddle.vision.ops.deform_conv2d(
        x, o, param(floats(6, 2, 3, 3)), stride=2, padding=1, deformable_groups=2, groups=2,
        mask=m), [floats(1, 4, 5, 5), floats(1, 36, 3, 3), positive(1, 18, 3, 3)]),
    (assigned, [M, P]),
    (filled, [M, floats(2, 3)]),
]
if not PIR:
    FAMILIES["more_old"] = [
        (lambda x: one("linear_interp", x, out_w=9, scale=0.0, interp_method="linear",
                       align_corners=False, align_mode=0), [floats(2, 3, 5)]),
        (lambda x: one("trilinear_interp", x, out_d=4, out_h=5, out_w=3, scale=0.0,
                       interp_method="trilinear", align_corners=False, align_mode=0),
         [floats(1, 2, 3, 4, 5)]),
        (lambda x: x + old("fake_quantize_dequantize_abs_max", {"X": param(M)},
                           {"Out": "float32", "OutScale": "float32"}, bit_length=4)[0], [P]),
        (lambda x: x + old("fake_channel_wise_quantize_dequantize_abs_max", {"X": param(M)},
                           {"Out": "float32", "OutScale": "float32"}, bit_length=4,
                           quant_axis=1)[0], [P]),
        (lambda x: back_and_forth(x), [M]),
        (lambda x: paddle.increment(x + 1.0, 2.5), [floats(1)]),
        # Its boxes say which sample each is of, which an array cannot: their sum does not.
        (lambda b, s: paddle.sum(old(
            "multiclass_nms", {"BBoxes": b, "Scores": s}, {"Out": "float32"}, score_threshold=0.2,
            nms_top_k=5, keep_top_k=6, nms_threshold=0.4, normalized=True, nms_eta=1.0,
            background_label=-1)[0], 0),
         [boxes(1, 9), RNG.rand(1, 3, 9).astype("float32")]),
    ]


def build(cases):
    feeds, outputs = {}, []
    for number, (function, arrays) in enumerate(cases):
        inputs = []
        for k, array in enumerate(arrays):
            name = f"in{number}_{k}"
            feeds[name] = array
            open_batch = array.ndim == 4 and array.shape[1] != 3
            inputs.append(paddle.static.data(name, [-1, *array.shape[1:]] if open_batch
                                             else array.shape, str(array.dtype)))
        result = function(*inputs)
        for each in result if isinstance(result, (list, tuple)) else [result]:
            outputs.append(each)
    return feeds, outputs


def strip(path):
    """Programs name the source lines that made them; those of this machine are nobody's concern."""
    sys.path.insert(0, os.environ.get("FRAMEWORK_PB2", "."))
    import framework_pb2
    program = framework_pb2.ProgramDesc()
    program.ParseFromString(open(path, "rb").read())
    for block in program.blocks:
        for op in block.ops:
            kept = [a for a in op.attrs if a.name != "op_callstack"]
            del op.attrs[:]
            op.attrs.extend(kept)
    open(path, "wb").write(program.SerializeToString())


def record(family, cases, out):
    main, startup = paddle.static.Program(), paddle.static.Program()
    scope = paddle.static.scope_guard(paddle.static.Scope())
    with scope, paddle.static.program_guard(main, startup):
        feeds, outputs = build(cases)
        executor = paddle.static.Executor(paddle.CPUPlace())
        executor.run(startup)
        results = [np.array(each) for each in executor.run(main, feed=feeds, fetch_list=outputs,
                                                           return_numpy=False)]
        path = os.path.join(out, family)
        inputs = [v for v in main.list_vars() if getattr(v, "name", "") in feeds] if not PIR \
            else [op.result(0) for op in main.global_block().ops if op.name() == "pd_op.data"]
        paddle.static.save_inference_model(path, inputs, outputs, executor, program=main)
    if PIR:
        open(path + ".json", "a").write("\n")
    else:
        strip(path + ".pdmodel")
    np.savez_compressed(path + ".npz", **feeds,
                        **{f"out{i:03}": r for i, r in enumerate(results)})
    print(family, len(outputs), os.path.getsize(path + (".json" if PIR else ".pdmodel")))


if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    for family, cases in FAMILIES.items():
        if len(sys.argv) > 2 and family not in sys.argv[2:]:
            continue
        record(family, cases, sys.argv[1])

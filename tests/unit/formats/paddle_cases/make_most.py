# SPDX-License-Identifier: Apache-2.0
"""Records operators of detectors, orders, scans and arrays of tensors, as make.py does.

Usage: make_most.py OUT [FAMILY...]"""
import os
import sys

import numpy as np
import paddle
import paddle.nn.functional as F
from make import PIR, RNG, M, P, X, boxes, floats, ints, ops, positive, record

RNG.seed(31)
FAMILIES = {}


def regions(count, size):
    corner = RNG.uniform(0, size * 0.7, (count, 2))
    return np.concatenate([corner, corner + RNG.uniform(2, size * 0.6, (count, 2))],
                          1).astype("float32")


def matrix_nms(boxes, scores, **how):
    return ops.matrix_nms(boxes, scores, 0.2, 0.1, 6, 7, return_index=True, **how)


def dealt(rois, counts):
    levels, restore, numbers = ops.distribute_fpn_proposals(rois, 2, 5, 4, 224, rois_num=counts)
    return [*levels, restore, *numbers]


def proposed(scores, deltas, shape, anchors, variances, **how):
    return ops.generate_proposals(scores, deltas, shape, anchors, variances, pre_nms_top_n=30,
                                  post_nms_top_n=8, nms_thresh=0.5, min_size=4.0,
                                  return_rois_num=True, **how)


def collected(rois_a, rois_b, scores_a, scores_b, counts_a, counts_b):
    """By its name, for no call of today's makes it."""
    inputs = {"MultiLevelRois": [rois_a, rois_b], "MultiLevelScores": [scores_a, scores_b],
              "MultiLevelRoIsNum": [counts_a, counts_b]}
    helper = paddle.common_ops_import.LayerHelper("collect_fpn_proposals")
    made = {name: helper.create_variable_for_type_inference(dtype)
            for name, dtype in (("FpnRois", "float32"), ("RoisNum", "int32"))}
    helper.append_op(type="collect_fpn_proposals", inputs=inputs, outputs=made,
                     attrs={"post_nms_topN": 6})
    return list(made.values())


accuracy = paddle.metric.accuracy if PIR else paddle.static.accuracy
COUNTS = np.array([3, 5], "int32")
SHAPES = np.array([[64, 64], [60, 62]], "float32")
MAPS = [positive(2, 3, 4, 4), floats(2, 12, 4, 4) / 4, SHAPES, regions(48, 60.0).reshape(4, 4, 3, 4),
        positive(4, 4, 3, 4)]
TIES = np.array([[2, 1, 2, 3, 3, 1], [0, 0, -1, -1, 5, 5]], "float32")
NANS = np.array([[1, np.nan, 3, 2], [4, 5, 6, 1], [np.nan] * 4], "float32")

FAMILIES["regions"] = [
    (lambda b, s: matrix_nms(b, s), [boxes(2, 9), RNG.rand(2, 3, 9).astype("float32")]),
    (lambda b, s: matrix_nms(b, s, use_gaussian=True, normalized=False, background_label=-1),
     [boxes(1, 12), RNG.rand(1, 2, 12).astype("float32")]),
    (dealt, [regions(8, 900.0), COUNTS]),
    (proposed, MAPS),
    (lambda *maps: proposed(*maps, pixel_offset=True), MAPS),
    (lambda x, b, n: ops.roi_pool(x, b, n, 2, 0.5),
     [floats(2, 3, 6, 6), boxes(3), np.array([1, 2], "int32")]),
    (lambda x, b, n: ops.roi_pool(x, b, n, (3, 4), 1.0),
     [floats(1, 2, 9, 9), boxes(2), np.array([2], "int32")]),
]
if not PIR:
    FAMILIES["collect"] = [
        (collected, [regions(4, 90.0), regions(6, 90.0), positive(4, 1), positive(6, 1),
                     np.array([1, 3], "int32"), np.array([4, 2], "int32")]),
    ]
FAMILIES["scan"] = [
    (lambda x: paddle.cumprod(x, 1), [M]),
    (lambda x: paddle.cumprod(x, -2), [floats(2, 7, 3)]),
    (lambda x: paddle.cummax(x, 1), [TIES]),
    (lambda x: paddle.cummin(x, 0), [M]),
    (lambda x: paddle.cummax(x, -1), [ints(9, 3, 5) - 4]),
    (lambda x: paddle.logcumsumexp(x, 1), [M * 20]),
    (lambda x: paddle.logcumsumexp(x), [M]),
    (lambda x: paddle.signal.frame(x, 8, 3), [floats(2, 33)]),
    (lambda x: F.fold(x, [6, 6], [2, 2], [2, 2]), [floats(1, 12, 9)]),
    (lambda x: F.fold(x, [7, 5], [3, 2], [2, 1], 1, [1, 2]), [floats(2, 24, 20)]),
    (lambda x, n: paddle.repeat_interleave(x, n, 1), [M, np.array([1, 2, 0, 3, 1])]),
]
FAMILIES["order"] = [
    (lambda x, y: paddle.searchsorted(x, y), [np.sort(floats(5)), floats(2, 3)]),
    (lambda x, y: paddle.searchsorted(x, y, out_int32=True, right=True),
     [np.sort(ints(4, 3, 5), -1), ints(4, 3, 2)]),
    (lambda x: paddle.unique(x, True, True, True), [ints(4, 9)]),
    (lambda x: paddle.unique(x, axis=1), [ints(2, 2, 9)]),
    (lambda x: paddle.unique_consecutive(x, True, True), [ints(2, 9)]),
    (lambda x: paddle.median(x, 1), [M]),
    (lambda x: paddle.median(x, 0, keepdim=True), [floats(4, 5)]),
    (lambda x: paddle.median(x), [floats(3, 4)]),
    (lambda x: paddle.median(x, 1), [NANS]),
    (lambda x: paddle.nanmedian(x, 1), [NANS]),
    (lambda x: paddle.nanmedian(x, [0, 2], keepdim=True), [floats(3, 4, 2)]),
    (lambda x, y: accuracy(F.softmax(x), y, 2), [M, ints(5, 3, 1)]),
    (lambda x, y: paddle.kron(x, y), [M, floats(2, 3)]),
    (lambda x, y: paddle.kron(x, y), [floats(2), floats(3, 2, 2)]),
    (lambda x, y: paddle.cross(x, y, 1), [floats(4, 3), floats(4, 3)]),
    (lambda x, y: paddle.cross(x, y), [floats(3, 4), floats(3, 4)]),
    (lambda x, y, i: paddle.multiplex([x, y], i), [M, P, np.array([[0], [1], [0]], "int32")]),
]
if PIR:
    FAMILIES["lp_pool"] = [
        (lambda x: F.lp_pool2d(x, 2, 2), [X]),
        (lambda x: F.lp_pool2d(x, 4, 3, 2, 1), [X]),
    ]


def recurrent(cell, size=4):
    return lambda x: paddle.nn.RNN(cell(size, 3))(x)[0]


def filled(x):
    """An array that a loop appends to, whose length and elements are read."""
    i = paddle.full([1], 0, "int64")
    found = paddle.tensor.array_write(x, i)
    found = paddle.tensor.array_write(x * 2, i + 1, found)
    found = paddle.tensor.array_write(x * 3, i, found)
    return [paddle.tensor.array_read(found, i), paddle.tensor.array_read(found, i + 1),
            paddle.tensor.array_length(found) + 0]


FAMILIES["array"] = [
    (recurrent(paddle.nn.SimpleRNNCell), [floats(2, 5, 4)]),
    (recurrent(paddle.nn.LSTMCell), [floats(2, 5, 4)]),
    (lambda x: paddle.nn.BiRNN(paddle.nn.GRUCell(4, 3), paddle.nn.GRUCell(4, 3))(x)[0],
     [floats(2, 5, 4)]),
]
FAMILIES["filled"] = [(filled, [M])]

if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    for family, cases in FAMILIES.items():
        if len(sys.argv) < 3 or family in sys.argv[2:]:
            record(family, cases, sys.argv[1])

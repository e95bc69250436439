#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Layers whose products are so small that their biases, counted in steps of the products, leave 32
bits: what `quench quantize` writes gives in ONNX Runtime what the float model gives."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

PROGRAM = str(Path(os.environ["QUENCH_BINARY"]) / "quench")
RANDOM = np.random.default_rng(11)
LARGEST = 2**31 - 1
# Samples are this small, and so are the steps of the input.
SMALL = 1e-3
# Of the range of an output: the roundings of three layers.
MOST_OFF = 0.02
WAYS = {"by channel": [], "one grid a weight": ["--per-layer"],
        "corrected": ["--bias-correction", "full"], "qoperator": ["--format", "qoperator"]}


def weights(shape, sizes):
    """Random weights, with a size for each output channel."""
    array = RANDOM.standard_normal(shape).astype(np.float32)
    return array * np.reshape(np.float32(sizes), (-1,) + (1,) * (len(shape) - 1))


def network():
    """A convolution with two channels of nothing but bias, one and a matrix product behind it."""
    constants = {"w1": weights((4, 3, 3, 3), [1e-9, 200, 1e-8, 300]),
                 "b1": np.float32([2.5, 0.1, -1.5, 0.7]),
                 "w2": weights((6, 4, 1, 1), [0.5, 1e-12, 0.5, 0.25, 1e-10, 1]),
                 "b2": np.float32([0.1, 4, -0.2, 0.3, 2, -1]),
                 "w3": weights((5, 6), [0.5, 0.5, 1e-11, 0.5, 0.5]),
                 "b3": np.float32([0.1, -0.2, 6, 0.3, 0.4])}
    nodes = [helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], "first", pads=[1, 1, 1, 1]),
             helper.make_node("Relu", ["c1"], ["r1"], "relu"),
             helper.make_node("Conv", ["r1", "w2", "b2"], ["c2"], "second"),
             helper.make_node("GlobalAveragePool", ["c2"], ["p"], "pool"),
             helper.make_node("Flatten", ["p"], ["f"], "flatten"),
             helper.make_node("Gemm", ["f", "w3", "b3"], ["y"], "third", transB=1)]
    shapes = [("x", ["N", 3, 8, 8]), ("y", ["N", 5])]
    inputs, outputs = ([helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)]
                       for name, shape in shapes)
    graph = helper.make_graph(nodes, "tiny_products", inputs, outputs,
                              [numpy_helper.from_array(a, name) for name, a in constants.items()])
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    # Without help, some biases of each layer would not fit.
    for weight, bias, step in (("w1", "b1", SMALL / 127), ("w2", "b2", 1 / 127),
                               ("w3", "b3", 1 / 127)):
        top = np.abs(constants[weight]).reshape(len(constants[bias]), -1).max(1)
        assert (np.abs(constants[bias]) / (step * top / 127) > LARGEST).any(), weight
    return model


def outputs_of(path, x):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    run = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return run.run(None, {"x": x})[0]


def check(path, expected, x):
    """What is wrong with a quantised file."""
    biases = [numpy_helper.to_array(each) for each in onnx.load(str(path)).graph.initializer
              if each.data_type == onnx.TensorProto.INT32 and len(each.dims) == 1]
    found = [array for array in biases if np.any(array)]
    if len(found) < 3:
        yield f"{len(found)} layers have an int32 bias"
    if any(np.abs(array.astype(np.int64)).max() >= LARGEST for array in found):
        yield "a bias is at the end of int32"
    far = np.abs(outputs_of(path, x) - expected).max(0) / np.ptp(expected)
    print(f"  farthest from float: {100 * far.max():.3f} % of the range")
    if not far.max() <= MOST_OFF:
        yield f"results are {100 * far.max():.1f} % of the range from float"


def main():
    problems = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        onnx.save(network(), str(folder / "float.onnx"))
        x = (SMALL * RANDOM.standard_normal((64, 3, 8, 8))).astype(np.float32)
        np.save(folder / "x.npy", x[:48])
        expected = outputs_of(folder / "float.onnx", x[48:])
        for way, flags in WAYS.items():
            print(way)
            subprocess.run([PROGRAM, "quantize", folder / "float.onnx", "-o", folder / "int8.onnx",
                            "--data", folder / "x.npy", "--quiet", *flags], check=True,
                           stdout=subprocess.DEVNULL)
            problems += [f"{way}: {problem}"
                         for problem in check(folder / "int8.onnx", expected, x[48:])]
    print("\n".join(problems) or "no bias overflows")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

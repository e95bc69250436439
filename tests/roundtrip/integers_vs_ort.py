#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files with integer operators, and 8-bit and 16-bit files in general, give in `quench run` what they
give in ONNX Runtime: sums exactly, bytes but for one step, which rounding decides."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

PROGRAM = str(Path(os.environ["QUENCH_BINARY"]) / "quench")
MAKE = onnx.helper
TYPES = {np.dtype(np.uint8): onnx.TensorProto.UINT8, np.dtype(np.int8): onnx.TensorProto.INT8,
         np.dtype(np.float32): onnx.TensorProto.FLOAT, np.dtype(np.int32): onnx.TensorProto.INT32,
         np.dtype(np.float16): onnx.TensorProto.FLOAT16}
# Of the bytes of a file; both sides round the same sums with floats of their own.
MOST_OFF_BY_ONE = 0.01
RANDOM = np.random.default_rng(5)


def byte_array(shape, dtype=np.uint8):
    info = np.iinfo(dtype)
    return RANDOM.integers(info.min, info.max + 1, shape).astype(dtype)


class Graph:
    """A model under construction; inputs and constants carry their arrays."""

    def __init__(self, name, opset=17):
        self.name, self.opset = name, opset
        self.nodes, self.feeds, self.constants, self.outputs = [], {}, {}, {}

    def feed(self, name, array):
        self.feeds[name] = array
        return name

    def keep(self, name, array):
        self.constants[name] = np.asarray(array)
        return name

    def grid(self, name, scale, zero, dtype=np.uint8):
        return [self.keep(f"{name}_scale", np.float32(scale)),
                self.keep(f"{name}_zero", dtype(zero))]

    def node(self, op, inputs, outputs, domain="", **attributes):
        self.nodes.append(MAKE.make_node(op, inputs, outputs, domain=domain, **attributes))
        return outputs[0]

    def give(self, name, dtype):
        self.outputs[name] = np.dtype(dtype)

    def save(self, path):
        def value(name, array):
            return MAKE.make_tensor_value_info(name, TYPES[array.dtype], array.shape)
        graph = MAKE.make_graph(
            self.nodes, self.name, [value(*item) for item in self.feeds.items()],
            [MAKE.make_tensor_value_info(name, TYPES[dtype], None)
             for name, dtype in self.outputs.items()],
            [onnx.numpy_helper.from_array(array, name) for name, array in self.constants.items()])
        onnx.save(MAKE.make_model(graph, ir_version=8, opset_imports=[
            MAKE.make_opsetid("", self.opset), MAKE.make_opsetid("com.microsoft", 1)]), str(path))


def qlinear_network(dtype):
    """Convolutions with a residual sum, pools and a product, all QLinear operators."""
    g = Graph(f"qlinear_{np.dtype(dtype).name}")
    low = np.iinfo(dtype).min
    x = g.feed("x", byte_array((2, 8, 12, 12), dtype))
    gx, ga = g.grid("x", 0.02, low + 117, dtype), g.grid("a", 0.05, low + 9, dtype)
    gb, gs = g.grid("b", 0.06, low + 130, dtype), g.grid("s", 0.08, low + 100, dtype)

    def weights(name, shape):
        w = g.keep(name, RANDOM.integers(-127, 128, shape).astype(np.int8))
        scales = g.keep(name + "_scale", RANDOM.uniform(0.002, 0.006, shape[0]).astype(np.float32))
        return [w, scales, g.keep(name + "_zero", np.zeros(shape[0], np.int8))]

    bias = g.keep("bias", RANDOM.integers(-2000, 2000, 16).astype(np.int32))
    g.node("QLinearConv", [x, *gx, *weights("w1", (16, 8, 3, 3)), *ga, bias], ["a"],
           pads=[1, 1, 1, 1])
    g.node("QLinearConv", ["a", *ga, *weights("w2", (16, 1, 3, 3)), *gb], ["b"], group=16,
           pads=[1, 1, 1, 1])
    g.node("QLinearAdd", ["a", *ga, "b", *gb, *gs], ["s"], "com.microsoft")
    g.node("QLinearLeakyRelu", ["s", *gs, *gs], ["l"], "com.microsoft", alpha=0.1)
    g.node("QLinearSigmoid", ["l", *gs, *g.grid("h", 1 / 256, low, dtype)], ["h"], "com.microsoft")
    g.node("QLinearMul", ["l", *gs, "h", "h_scale", "h_zero", *gs], ["m"], "com.microsoft")
    g.node("QLinearConcat", [*gs, "m", *gs, "b", *gb], ["c"], "com.microsoft", axis=1)
    g.node("MaxPool", ["c"], ["p"], kernel_shape=[2, 2], strides=[2, 2])
    # Scales that leave no average half-way between two steps.
    gv, gq = g.grid("v", 0.0777, low + 90, dtype), g.grid("q", 0.0713, low + 95, dtype)
    g.node("QLinearAveragePool", ["p", *gs, *gv], ["v"], "com.microsoft", kernel_shape=[2, 2],
           strides=[2, 2])
    g.node("QLinearGlobalAveragePool", ["v", *gv, *gq], ["q"], "com.microsoft", channels_last=0)
    g.node("Flatten", ["q"], ["f"])
    matrix = g.keep("m1", RANDOM.integers(-127, 128, (32, 10)).astype(np.int8))
    g.node("QLinearMatMul", ["f", *gq, matrix, g.keep("m1_scale", np.float32(0.004)),
                             g.keep("m1_zero", np.int8(0)), *g.grid("y", 0.01, low + 128, dtype)],
           ["y"])
    for name in ("c", "v", "y"):
        g.give(name, dtype)
    return g


def sums():
    """Sums of products as 32-bit integers, with zero points on both sides."""
    g = Graph("sums")
    a, x = g.feed("a", byte_array((3, 7, 24))), g.feed("x", byte_array((2, 6, 9, 8)))
    zero = g.keep("zero", np.uint8(77))
    g.node("MatMulInteger", [a, g.keep("b", byte_array((24, 11), np.int8)), zero,
                             g.keep("b_zero", np.int8(3))], ["product"])
    g.node("ConvInteger", [x, g.keep("w", byte_array((10, 6, 3, 3), np.int8)), zero], ["conv"],
           pads=[1, 1, 1, 1], strides=[2, 1])
    g.node("ConvInteger", [x, g.keep("wz", byte_array((10, 6, 3, 3))), zero,
                           g.keep("w_zero", np.uint8(130))], ["moved"])
    g.node("ConvInteger", [x, g.keep("wd", byte_array((6, 1, 3, 3), np.int8)), zero], ["deep"],
           group=6, dilations=[2, 2])
    for name in ("product", "conv", "moved", "deep"):
        g.give(name, np.int32)
    return g


def dynamic():
    """A product and a convolution of what is quantised as it comes."""
    g = Graph("dynamic")
    x = g.feed("x", RANDOM.standard_normal((2, 5, 16)).astype(np.float32))
    g.node("DynamicQuantizeLinear", [x], ["q", "q_scale", "q_zero"])
    g.node("MatMulInteger", ["q", g.keep("w", byte_array((16, 12), np.int8)), "q_zero"], ["sums"])
    g.node("Cast", ["sums"], ["real"], to=onnx.TensorProto.FLOAT)
    g.node("Mul", ["q_scale", g.keep("w_scale", np.float32(0.01))], ["scales"])
    g.node("Mul", ["real", "scales"], ["scaled"])
    g.node("Add", ["scaled", g.keep("bias", RANDOM.standard_normal(12).astype(np.float32))], ["y"])
    image = g.feed("image", RANDOM.standard_normal((1, 3, 8, 8)).astype(np.float32))
    g.node("DynamicQuantizeLinear", [image], ["i", "i_scale", "i_zero"])
    g.node("ConvInteger", ["i", g.keep("k", byte_array((4, 3, 3, 3), np.int8)), "i_zero"], ["c"],
           pads=[1, 1, 1, 1])
    g.give("y", np.float32)
    g.give("c", np.int32)
    return g


def asymmetric():
    """Q/DQ with weights that have zero points of their own, bytes in and out."""
    g = Graph("asymmetric")
    gx = g.grid("x", 0.02, 120)
    g.node("DequantizeLinear", [g.feed("x", byte_array((1, 6, 9, 9))), *gx], ["xr"])
    g.node("DequantizeLinear", [g.keep("w", byte_array((5, 6, 3, 3))), *g.grid("w", 0.003, 101)],
           ["wr"])
    g.node("Conv", ["xr", "wr"], ["c"], pads=[1, 1, 1, 1])
    g.node("QuantizeLinear", ["c", *g.grid("y", 0.06, 110)], ["y"])
    g.give("y", np.uint8)
    return g


def ties():
    """Sums of all pairs of bytes, alone and inside a convolution, on grids where some lie a hair from
    the middle of two steps: rounded to the same side, always."""
    g = Graph("exact_ties")
    pairs = np.arange(65536).reshape(1, 256, 16, 16)
    a = g.feed("a", (pairs // 256).astype(np.uint8))
    b = g.feed("b", (pairs % 256).astype(np.uint8))
    ga, gb = g.grid("a", 0.028786098584532738, 128), g.grid("b", 0.030158568173646927, 127)
    gs = g.grid("s", 0.041122086346149445, 128)
    g.node("QLinearAdd", [a, *ga, b, *gb, *gs], ["plain"], "com.microsoft")
    # Convolutions that change nothing, each the operand that the engine adds the other to.
    one = [g.keep("one", np.eye(256, dtype=np.int8).reshape(256, 256, 1, 1)),
           g.keep("one_scale", np.ones(256, np.float32)),
           g.keep("one_zero", np.zeros(256, np.int8))]
    g.node("QLinearConv", [a, *ga, *one, *ga], ["ac"])
    g.node("QLinearConv", [b, *gb, *one, *gb], ["bc"])
    g.node("QLinearAdd", ["ac", *ga, b, *gb, *gs], ["first"], "com.microsoft")
    g.node("QLinearAdd", [a, *ga, "bc", *gb, *gs], ["second"], "com.microsoft")
    for name in ("plain", "first", "second"):
        g.give(name, np.uint8)
    return g


def half():
    """A network of 16-bit floats."""
    g = Graph("half")
    x = g.feed("x", RANDOM.standard_normal((2, 3, 10, 10)).astype(np.float16))
    w = g.keep("w", (RANDOM.standard_normal((8, 3, 3, 3)) / 5).astype(np.float16))
    g.node("Conv", [x, w], ["c"], pads=[1, 1, 1, 1])
    g.node("Relu", ["c"], ["r"])
    g.node("GlobalAveragePool", ["r"], ["p"])
    g.node("Flatten", ["p"], ["f"])
    g.node("Gemm", ["f", g.keep("m", (RANDOM.standard_normal((8, 6)) / 3).astype(np.float16))],
           ["y"])
    g.give("y", np.float16)
    return g


def run_ours(path, feeds, folder):
    words = []
    for name, array in feeds.items():
        np.save(folder / f"{name}.npy", array)
        words += ["--input", f"{name}={folder / name}.npy"]
    out = folder / "out"
    subprocess.run([PROGRAM, "run", str(path), *words, "-o", str(out), "--quiet"], check=True,
                   stdout=subprocess.DEVNULL)
    return out


def compare(name, ours, theirs):
    """What is wrong, or nothing."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return f"{name}: {ours.dtype} {ours.shape}, not {theirs.dtype} {theirs.shape}"
    apart = np.abs(ours.astype(np.float64) - theirs.astype(np.float64))
    if ours.dtype == np.int32:
        return f"{name}: sums differ by {apart.max()}" if apart.max() > 0 else None
    if ours.dtype in (np.uint8, np.int8):
        share = float((apart > 0).mean())
        print(f"  {name}: {100 * share:.3f} % of {apart.size} bytes differ by one")
        most = 0 if name.startswith("exact") else MOST_OFF_BY_ONE
        wrong = apart.max() > 1 or share > most
        return f"{name}: {100 * share:.2f} % differ, by up to {apart.max()}" if wrong else None
    least = 2e-3 if ours.dtype == np.float16 else 1e-5
    far = apart.max() / max(np.abs(theirs).max(), 1e-6)
    return f"{name}: differs by {far:.2g} of the largest" if far > least else None


def check(graph, folder):
    path = folder / f"{graph.name}.onnx"
    graph.save(path)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    theirs = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = list(graph.outputs)
    results = theirs.run(names, graph.feeds)
    out = run_ours(path, graph.feeds, folder)
    return [problem for name, result in zip(names, results)
            if (problem := compare(f"{graph.name} {name}", np.load(out / f"{name}.npy"), result))]


def main():
    problems = []
    for graph in [qlinear_network(np.uint8), qlinear_network(np.int8), sums(), dynamic(),
                  asymmetric(), ties(), half()]:
        with tempfile.TemporaryDirectory() as folder:
            problems += check(graph, Path(folder))
    print("\n".join(problems) or "every output agrees")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

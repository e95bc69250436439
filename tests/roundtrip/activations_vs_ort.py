#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every activation behind every kind of layer, quantised for every target: `quench run` computes
from the file what ONNX Runtime computes from it."""
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
RANDOM = np.random.default_rng(3)
TARGETS = ["onnxruntime", "openvino", "tensorrt", "generic", "dsp"]
# Both sides round the same numbers with floats of their own: a few may lie one step apart.
LEAST_SQNR = 40
PLAIN = {"Relu": {}, "Sigmoid": {}, "Tanh": {}, "HardSwish": {}, "Elu": {}, "Selu": {}, "Mish": {},
         "Softplus": {}, "Softsign": {}, "LeakyRelu": {"alpha": 0.1}, "Gelu": {},
         "HardSigmoid": {"alpha": 1 / 6, "beta": 0.5}}
# Operator, attributes, shape of the weights.
LAYERS = {
    "conv": ("Conv", {"pads": [1, 1, 1, 1]}, (16, 16, 3, 3)),
    "grouped": ("Conv", {"group": 2}, (32, 8, 1, 1)),
    "wide_groups": ("Conv", {"group": 2, "strides": [2, 2]}, (32, 8, 3, 3)),
    "depthwise": ("Conv", {"group": 16, "pads": [1, 1, 1, 1]}, (16, 1, 3, 3)),
    "transposed": ("ConvTranspose", {"strides": [2, 2]}, (16, 16, 2, 2)),
    "transposed_groups": ("ConvTranspose", {"group": 4}, (16, 3, 3, 3)),
    "gemm": ("Gemm", {"transB": 1}, (16, 16)),
    "matmul": ("MatMul", {}, (16, 16)),
}


class Network:
    """One branch for each activation, each ended by a layer that reads it on integers."""

    def __init__(self, layer):
        self.op, self.attributes, self.shape = LAYERS[layer]
        self.rows = len(self.shape) == 2
        self.nodes, self.constants, self.outputs = [], {}, []
        channels = self.shape[1 if self.op == "MatMul" else 0]
        if self.op == "ConvTranspose":
            channels = self.shape[1] * self.attributes.get("group", 1)
        for name in ["", "SiLU", "PRelu", "Clip", *PLAIN]:
            self.branch(name, channels)

    def keep(self, name, array):
        self.constants[name] = np.asarray(array, np.float32)
        return name

    def node(self, op, inputs, output, **attributes):
        self.nodes.append(MAKE.make_node(op, inputs, [output], **attributes))
        return output

    def branch(self, name, channels):
        fan = np.prod(self.shape) / channels
        weight = self.keep(f"w{name}", RANDOM.standard_normal(self.shape) * 2 / np.sqrt(fan))
        bias = [] if self.op == "MatMul" else [
            self.keep(f"b{name}", RANDOM.standard_normal(channels) / 3)]
        value = self.node(self.op, ["x", weight, *bias], f"layer{name}", **self.attributes)
        value = self.activation(name, value, channels)
        if self.rows:
            last = self.node("MatMul", [value, self.keep(
                f"v{name}", RANDOM.standard_normal((channels, 16)))], f"out{name}")
        else:
            last = self.node("Conv", [value, self.keep(
                f"v{name}", RANDOM.standard_normal((16, channels, 1, 1)))], f"out{name}")
        self.outputs.append(last)

    def activation(self, name, value, channels):
        out = f"activation{name}"
        if name == "SiLU":
            return self.node("Mul", [value, self.node("Sigmoid", [value], "gate")], out)
        if name == "PRelu":
            shape = (channels,) if self.rows else (channels, 1, 1)
            return self.node(name, [value, self.keep("slopes", RANDOM.random(shape))], out)
        if name == "Clip":
            return self.node(name, [value, self.keep("low", -0.5), self.keep("high", 0.7)], out)
        return self.node(name, [value], out, **PLAIN[name]) if name else value

    def save(self, path):
        shape = ["N", 16] if self.rows else ["N", 16, 9, 8]
        graph = MAKE.make_graph(
            self.nodes, "branches",
            [MAKE.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
            [MAKE.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)
             for name in self.outputs],
            [onnx.numpy_helper.from_array(array, name) for name, array in self.constants.items()])
        onnx.save(MAKE.make_model(graph, ir_version=8,
                                  opset_imports=[MAKE.make_opsetid("", 20)]), str(path))

    def sample(self, count):
        return RANDOM.standard_normal((count, 16) if self.rows else (count, 16, 9, 8)).astype(
            np.float32)


def call(*words):
    done = subprocess.run([PROGRAM, *map(str, words), "--quiet"], capture_output=True, text=True,
                          check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.stderr.strip()}")


def sqnr(wanted, got):
    noise = np.square(wanted.astype(np.float64) - got).sum()
    return 10 * np.log10(np.square(wanted.astype(np.float64)).sum() / max(noise, 1e-30))


def check(layer, folder):
    """What is wrong with one kind of layer."""
    network = Network(layer)
    network.save(folder / "float.onnx")
    np.save(folder / "data.npy", network.sample(16))
    x = network.sample(4)
    np.save(folder / "x.npy", x)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    for target in TARGETS:
        path = folder / f"{target}.onnx"
        call("quantize", folder / "float.onnx", "-o", path, "--data", folder / "data.npy",
             "--target", target)
        call("run", path, "--input", f"x={folder / 'x.npy'}", "-o", folder / target)
        theirs = onnxruntime.InferenceSession(str(path), options,
                                              providers=["CPUExecutionProvider"])
        for name, wanted in zip(network.outputs, theirs.run(network.outputs, {"x": x})):
            near = sqnr(wanted, np.load(folder / target / f"{name}.npy"))
            if near < LEAST_SQNR:
                yield f"{layer} {name} for {target}: {near:.1f} dB from ONNX Runtime"


def main():
    faults = []
    for layer in LAYERS:
        with tempfile.TemporaryDirectory() as folder:
            faults += list(check(layer, Path(folder)))
    print("\n".join(faults) or f"{len(LAYERS)} kinds of layers agree for {len(TARGETS)} targets")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files of `quench quantize --type weight|dynamic` load in ONNX Runtime and give what `quench run`
gives; dynamic ones become its fused operators."""
import collections
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

SOURCE = Path(os.environ["QUENCH_SOURCE"])
SHARED = Path(os.environ["QUENCH_SHARED"])
PROGRAM = str(Path(os.environ["QUENCH_BINARY"]) / "quench")
FORMS = [
    ["--type", "weight", "--bits", "8"],
    ["--type", "weight", "--bits", "8", "--group-size", "32"],
    ["--type", "weight", "--bits", "4", "--group-size", "64"],
    ["--type", "weight", "--bits", "3", "--per-layer"],
    ["--type", "weight", "--bits", "6", "--symmetric"],
    ["--type", "weight", "--bits", "12"],
    ["--type", "weight", "--bits", "1"],
    ["--type", "weight", "--bits", "0"],
    ["--type", "dynamic"],
    ["--type", "dynamic", "--strategy", "ACWL"],
]
# The other widths, on small models alone.
WIDTHS = [["--type", "weight", "--bits", str(bits)] for bits in range(2, 17) if bits not in (8, 12)]
LEAST_COSINE = 0.9999


def weights_of(shape, seed):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32) / 4


def recurrent(op, gates):
    """A model with an embedding, a recurrent layer of two directions, and a product."""
    hidden, size = 12, 8
    make = onnx.helper
    constants = {"table": weights_of((20, size), 1), "W": weights_of((2, gates * hidden, size), 2),
                 "R": weights_of((2, gates * hidden, hidden), 3),
                 "P": weights_of((hidden, 5), 4)}
    nodes = [make.make_node("Gather", ["table", "i"], ["e"]),
             make.make_node(op, ["e", "W", "R"], ["h"], hidden_size=hidden,
                            direction="bidirectional"),
             make.make_node("MatMul", ["h", "P"], ["y"])]
    graph = make.make_graph(
        nodes, op, [make.make_tensor_value_info("i", onnx.TensorProto.INT64, ["T", "N"])],
        [make.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
        [onnx.numpy_helper.from_array(value, name) for name, value in constants.items()])
    return make.make_model(graph, opset_imports=[make.make_opsetid("", 13)], ir_version=8)


def transposed():
    """A ConvTranspose with groups, and one without."""
    make = onnx.helper
    nodes = [make.make_node("ConvTranspose", ["x", "A"], ["a"], strides=[2, 2]),
             make.make_node("ConvTranspose", ["a", "B"], ["y"], group=6)]
    graph = make.make_graph(
        nodes, "transposed", [make.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 4, 5, 5])],
        [make.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
        [onnx.numpy_helper.from_array(weights_of((4, 6, 3, 3), 5), "A"),
         onnx.numpy_helper.from_array(weights_of((6, 1, 3, 3), 6), "B")])
    return make.make_model(graph, opset_imports=[make.make_opsetid("", 11)], ir_version=7)


def session(path, optimised=None):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    # ONNX Runtime multiplies dequantised weights with 8-bit activations unless it is told not to.
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
    if optimised:
        options.optimized_model_filepath = str(optimised)
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def feeds_of(run):
    random = np.random.default_rng(3)
    feeds = {}
    for value in run.get_inputs():
        shape = [size if isinstance(size, int) else (2 if at == 0 else 16)
                 for at, size in enumerate(value.shape)]
        if value.type == "tensor(int64)":
            feeds[value.name] = random.integers(0, 2 if "mask" in value.name else 20, shape)
        else:
            feeds[value.name] = random.standard_normal(shape).astype(np.float32)
    return feeds


def run_ours(path, feeds, outputs, folder):
    words = []
    for at, (name, value) in enumerate(feeds.items()):
        np.save(folder / f"{at}.npy", value)
        words += ["--input", f"{name}={folder / str(at)}.npy"]
    subprocess.run([PROGRAM, "run", str(path), *words, "-o", str(folder / "out"), "--quiet"],
                   check=True, stdout=subprocess.DEVNULL)
    return [np.load(folder / "out" / f"{name.replace('/', '_')}.npy") for name in outputs]


def cosine(a, b):
    a, b = a.ravel().astype(np.float64), b.ravel().astype(np.float64)
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b) + 1e-30))


def check_fused(path):
    counts = collections.Counter(node.op_type for node in onnx.load(str(path)).graph.node)
    if counts["MatMulInteger"] or not counts["DynamicQuantizeMatMul"]:
        yield f"not all products are fused: {dict(counts)}"


def check(model, words, folder):
    out = folder / "made.onnx"
    done = subprocess.run([PROGRAM, "quantize", str(model), "-o", str(out), *words, "--quiet"],
                          capture_output=True, text=True, check=False)
    if done.returncode == 4 and "dynamic" in words:
        return  # no matrix product
    if done.returncode:
        yield done.stderr.strip()
        return
    optimised = folder / "optimised.onnx"
    run = session(out, optimised)
    feeds = feeds_of(run)
    theirs = run.run(None, feeds)
    ours = run_ours(out, feeds, [value.name for value in run.get_outputs()], folder)
    least = min(cosine(a, b) for a, b in zip(ours, theirs))
    print(f"{model.name} {' '.join(words)}: cosine {least:.6f}", flush=True)
    if not least > LEAST_COSINE:
        yield f"cosine {least:.6f}"
    if words == ["--type", "dynamic"]:
        yield from check_fused(optimised)


def main():
    faults = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        models = [SOURCE / "examples/data/fashion.onnx", SHARED / "models/use_lite.onnx",
                  SHARED / "models/dscnn_kws_bn.onnx", SHARED / "models/ppocr_v2_cls.onnx"]
        for op, gates in (("LSTM", 4), ("GRU", 3)):
            onnx.save(recurrent(op, gates), str(folder / f"{op}.onnx"))
            models.append(folder / f"{op}.onnx")
        onnx.save(transposed(), str(folder / "transposed.onnx"))
        models.append(folder / "transposed.onnx")
        subprocess.run([str(Path(os.environ["QUENCH_BINARY"]) / "tests/make_cli_models"), name],
                       check=True)
        models.append(folder / "branch.onnx")
        for model in models:
            if not model.exists():
                print(f"{model} is absent: passed over")
                continue
            small = model.stat().st_size < 500_000
            for words in FORMS + (WIDTHS if small else []):
                faults += [f"{model.name} {' '.join(words)}: {fault}"
                           for fault in check(model, words, folder)]
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

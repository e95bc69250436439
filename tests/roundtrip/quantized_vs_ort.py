#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Quantises networks with `quench quantize`, runs the files in ONNX Runtime and in `quench run`, and
compares. Nearly all layers must become integer operators in the graph ONNX Runtime makes of them.

A value that rounds the other way in one early layer moves many later ones: over the 50 layers of
MobileNetV2 even ONNX Runtime's float form of a file and its integer form of it drift apart (cosine
0.992 on photographs). Ours may be as far from its integer form as its own float form is."""
import collections
import gzip
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
FASHION = SOURCE / "examples/data/fashion-test-images-idx3-ubyte.gz"
PHOTOS = ["--resize-shorter", "256", "--center-crop", "224,224", "--mean", "123.675,116.28,103.53",
          "--std", "58.395,57.12,57.375"]
# Model, calibration data with flags, samples to calibrate with, samples to compare.
CASES = [
    (SOURCE / "examples/data/fashion.onnx", [FASHION, "--mean", "72.9", "--std", "90"], 200, 200),
    (SHARED / "models/resnet8_cifar10_bn.onnx", [SHARED / "data/cifar10/data_batch_1.bin"], 100,
     200),
    (SHARED / "models/dscnn_kws_bn.onnx", [SHARED / "data/kws/calib_x.npy"], 100, 100),
    (SHARED / "models/mobilenet_v2.onnx", [SHARED / "data/imagenet-mini/calib", *PHOTOS], 24, 16),
    (SHARED / "models/squeezenet1.1.onnx", [SHARED / "data/imagenet-mini/calib", *PHOTOS], 24, 16),
]
LAYERS = {"Conv", "FusedConv", "MatMul", "Gemm", "FusedGemm", "FusedMatMul"}
INTEGERS = {"QLinearConv", "QLinearMatMul", "MatMulIntegerToFloat", "QGemm"}
LEAST_SHARE = 0.95
LEAST_COSINE = 0.999
LEAST_AGREEMENT = 0.99
MARGIN = 0.002  # between our distance from ONNX Runtime and its own, for deep networks


def call(*words):
    done = subprocess.run([PROGRAM, *map(str, words), "--quiet"], capture_output=True, text=True,
                          check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.stderr.strip()}")


def session(model, optimised=None):
    """With a path for the optimised graph: on integers; without one: as the file says, in float."""
    options = onnxruntime.SessionOptions()
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_DISABLE_ALL
    options.log_severity_level = 4
    if optimised:
        options.graph_optimization_level = levels.ORT_ENABLE_ALL
        options.optimized_model_filepath = str(optimised)
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def share_on_integers(path):
    counts = collections.Counter(node.op_type for node in onnx.load(str(path)).graph.node)
    integers = sum(counts[op] for op in INTEGERS)
    return integers / max(1, integers + sum(counts[op] for op in LAYERS))


def cosine(a, b):
    a, b = a.ravel().astype(np.float64), b.ravel().astype(np.float64)
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b) + 1e-30))


def same_class(a, b):
    return float((a.argmax(-1) == b.argmax(-1)).mean())


def inputs_for(words, count):
    """The samples `quench` reads, as arrays: each kind of file is read the way its README says."""
    path = Path(words[0])
    if path == FASHION:
        raw = np.frombuffer(gzip.decompress(path.read_bytes())[16:], np.uint8)
        return (raw.reshape(-1, 1, 28, 28)[-count:].astype(np.float32) - 72.9) / 90
    if path.suffix == ".bin":
        raw = np.frombuffer(path.read_bytes(), np.uint8).reshape(-1, 3073)[-count:, 1:]
        return raw.reshape(-1, 3, 32, 32).astype(np.float32)
    if path.suffix == ".npy":
        return np.load(path)[-count:]
    # What photographs look like to a network: smooth noise in the range of real pixels.
    generator = np.random.default_rng(5)
    coarse = generator.standard_normal((count, 3, 14, 14)).astype(np.float32)
    return np.repeat(np.repeat(coarse, 16, axis=2), 16, axis=3)


def check(model, words, calibrate, count, folder):
    """What is wrong with one network."""
    out, optimised = folder / "int8.onnx", folder / "optimised.onnx"
    call("quantize", model, "-o", out, "--limit", calibrate, "--data", *words)
    run = session(out, optimised)
    name = run.get_inputs()[0].name
    x = np.ascontiguousarray(inputs_for(words, count), dtype=np.float32)
    theirs = run.run(None, {name: x})[0]
    in_float = session(out).run(None, {name: x})[0]
    np.save(folder / "x.npy", x)
    call("run", out, "--input", f"{name}={folder / 'x.npy'}", "-o", folder / "out")
    ours = np.load(folder / "out" / f"{run.get_outputs()[0].name.replace('/', '_')}.npy")
    near = cosine(ours, theirs)
    same = same_class(ours, theirs)
    own = cosine(in_float, theirs)
    share = share_on_integers(optimised)
    print(f"{model.name}: {len(x)} samples, cosine {near:.5f}, same class {same:.1%} "
          f"(its float form: {own:.5f}, {same_class(in_float, theirs):.1%}), {share:.0%} of the layers on integers")
    if near < min(LEAST_COSINE, own - MARGIN):
        yield f"cosine {near:.5f}"
    # One sample in a handful is more than a hundredth.
    least = min(LEAST_AGREEMENT, same_class(in_float, theirs))
    if same < least and round((least - same) * len(x)) > 1:
        yield f"same class for {same:.1%}"
    if share < LEAST_SHARE:
        yield f"{share:.0%} of the layers run on integers"


def main():
    faults = []
    for model, words, calibrate, count in CASES:
        if not model.exists():
            print(f"{model} is absent: passed over")
            continue
        with tempfile.TemporaryDirectory() as folder:
            faults += [f"{model.name}: {fault}"
                       for fault in check(model, words, calibrate, count, Path(folder))]
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Has ONNX Runtime's own tool quantise trained networks in ways that its runtime then runs in
float, retargets the files without data, and runs them there: every layer must have become an
integer operator, and answers must be as near to the float model's as they were."""

import collections
import os
import pathlib
import subprocess
import sys
import tempfile

SKIP = 77


def skip(reason):
    """Skipping is for laptops; the machine that guards main must have everything."""
    print(f"skipped: {reason}")
    sys.exit(1 if os.environ.get("CI") == "true" else SKIP)


try:
    import numpy as np
    import onnx
    import onnxruntime as ort
    from onnxruntime.quantization import (CalibrationDataReader, QuantFormat, QuantType,
                                          quantize_static)
except ImportError as missing:
    skip(f"{missing}; configure with -DQUENCH_PYTHON=<python that has onnxruntime and onnx>")

QUENCH = pathlib.Path(os.environ["QUENCH_BINARY"]) / "quench"
SHARED = pathlib.Path(os.environ["QUENCH_SHARED"])
LAYERS = {"Conv", "FusedConv", "MatMul", "Gemm", "FusedGemm", "FusedMatMul"}
INTEGERS = {"QLinearConv", "QLinearMatMul", "QGemm", "MatMulIntegerToFloat"}
SYMMETRIC = {"ActivationSymmetric": True, "WeightSymmetric": True}
# How the tool is asked.
WAYS = {
    "symmetric": {"activation_type": QuantType.QInt8, "extra_options": SYMMETRIC},
    "operators": {"quant_format": QuantFormat.QOperator},
    "layers": {"op_types_to_quantize": ["Conv", "Gemm"], "per_channel": True},
}
# Squared error over that of the file as the tool made it. Steps only become finer and roundings
# fewer, but which way each falls is chance.
WORSE = 1.25


class Reader(CalibrationDataReader):
    def __init__(self, name, x):
        self.rows = iter([{name: x[i:i + 1]} for i in range(len(x))])

    def get_next(self):
        return next(self.rows, None)


def session(path, optimised=None):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    if optimised:
        options.optimized_model_filepath = str(optimised)
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def answers(path, x, optimised=None):
    run = session(path, optimised)
    name = run.get_inputs()[0].name
    return np.concatenate([run.run(None, {name: x[i:i + 1]})[0] for i in range(len(x))])


def floats_left(optimised):
    counts = collections.Counter(node.op_type for node in onnx.load(str(optimised)).graph.node)
    return sum(counts[op] for op in LAYERS), sum(counts[op] for op in INTEGERS)


def check(way, model, x, folder):
    name = session(model).get_inputs()[0].name
    made, moved = folder / "made.onnx", folder / "moved.onnx"
    quantize_static(str(model), str(made), Reader(name, x), **WAYS[way])
    said = subprocess.run([QUENCH, "retarget", made, "--target", "onnxruntime", "-o", moved,
                           "--samples", "1"], capture_output=True, text=True, check=False)
    if said.returncode != 0:
        return [f"{model.stem} {way}: {said.stderr}"]
    optimised = folder / "optimised.onnx"
    want = answers(model, x)
    errors = [float(np.mean((answers(path, x, optimised) - want) ** 2)) for path in (made, moved)]
    left, integers = floats_left(optimised)
    print(f"{model.stem} {way}: {integers} layers on integers, {left} in float, squared error "
          f"{errors[0]:.4g} -> {errors[1]:.4g}")
    problems = []
    if left > 0 or integers == 0:
        problems.append(f"{model.stem} {way}: {left} layers stay in float")
    if errors[1] > WORSE * errors[0]:
        problems.append(f"{model.stem} {way}: squared error {errors[0]} became {errors[1]}")
    return problems


def main():
    cifar = SHARED / "data/cifar10/data_batch_1.bin"
    if not cifar.exists():
        skip("there is no ../shared")
    images = np.fromfile(cifar, np.uint8, 3073 * 24).reshape(-1, 3073)[:, 1:]
    sets = {"resnet8_cifar10_bn": images.reshape(-1, 3, 32, 32).astype(np.float32),
            "dscnn_kws_bn": np.load(SHARED / "data/kws/calib_x.npy")[:24].astype(np.float32)}
    problems = []
    for stem, x in sets.items():
        model = SHARED / "models" / f"{stem}.onnx"
        shape = session(model).get_inputs()[0].shape
        x = x.reshape(-1, *shape[1:])
        for way in WAYS:
            with tempfile.TemporaryDirectory() as folder:
                problems += check(way, model, x, pathlib.Path(folder))
    for problem in problems:
        print("FAILED:", problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

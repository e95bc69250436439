#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs TFLite models in `quench run` and in LiteRT on the same inputs: random ones, and real ones
for the integer models that have some. Integer convolutions that round once are held against LiteRT's
default kernels, and those that round twice against its reference kernels."""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

SKIPPED = 77
try:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType
except ImportError:
    print("skipped: there is no ai_edge_litert (pip install ai-edge-litert)")
    sys.exit(SKIPPED)

RELATIVE = 1e-4  # of the largest element of a float output
# LiteRT rounds the activations of dynamic-range models while it runs, which we do not. The second
# has an operator that only LiteRT's default kernels know, and these approximate its activations:
# against the reference kernels, without that operator, we differ by 4e-5.
OTHERS = {"dscnn_kws_hybrid.tflite": 0.2, "selfie_segmentation.tflite": 5e-4}
SAMPLES = 4
REAL = 100
NEAR = 0.999  # of the elements of integer models, within one
# The default kernels multiply sums by a float32, which is off by more than one in a few of a thousand.
NEAR_FLOAT = 0.99


def cifar(shared):
    rows = np.fromfile(shared / "data/cifar10/test_batch.bin", np.uint8).reshape(-1, 3073)[:REAL, 1:]
    return rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1).astype(np.float32)


def words(shared):
    return np.load(shared / "data/kws/eval_x.npy")[:REAL].reshape(-1, 49, 10, 1)


SETS = {"resnet8_cifar10_int8.tflite": cifar, "dscnn_kws_int8.tflite": words}


def real_input(path, shared, detail):
    scale, zero = detail["quantization"]
    limits = np.iinfo(detail["dtype"])
    steps = np.rint(SETS[path.name](shared) / scale) + zero
    return np.clip(steps, limits.min, limits.max).astype(detail["dtype"])


def make_input(generator, detail):
    shape = [SAMPLES, *detail["shape"][1:]]
    if detail["dtype"] == np.float32:
        return generator.uniform(0, 1, shape).astype(np.float32)
    limits = np.iinfo(detail["dtype"])
    return generator.integers(limits.min, limits.max + 1, shape).astype(detail["dtype"])


def run_theirs(path, feeds, kernels=OpResolverType.AUTO):
    """Outputs by name, one sample at a time."""
    interpreter = Interpreter(str(path), experimental_op_resolver_type=kernels)
    interpreter.allocate_tensors()
    results = {}
    for index in range(len(next(iter(feeds.values())))):
        for detail in interpreter.get_input_details():
            interpreter.set_tensor(detail["index"], feeds[detail["name"]][index:index + 1])
        interpreter.invoke()
        for detail in interpreter.get_output_details():
            results.setdefault(detail["name"], []).append(interpreter.get_tensor(detail["index"]))
    return {name: np.concatenate(parts) for name, parts in results.items()}


def run_ours(program, path, feeds, folder, *flags):
    """Outputs by name, one sample at a time, or all at once where the batch is open."""
    results = {}
    count = len(next(iter(feeds.values())))
    size = count if count == REAL else 1
    for index in range(0, count, size):
        arguments = []
        for number, (name, array) in enumerate(feeds.items()):
            file = folder / f"in{number}.npy"
            np.save(file, array[index:index + size])
            arguments += ["--input", f"{name}={file}"]
        out = folder / "out"
        done = subprocess.run([program, "run", str(path), *arguments, "-o", str(out), "--quiet",
                               "--json", *flags], check=True, stdout=subprocess.PIPE)
        for value in json.loads(done.stdout)["values"]:
            results.setdefault(value["name"], []).append(np.load(out / value["file"]))
    return {name: np.concatenate(parts) for name, parts in results.items()}


def compare_real(path, program, folder, shared):
    """What is wrong with an integer model on real samples, or nothing."""
    interpreter = Interpreter(str(path))
    detail = interpreter.get_input_details()[0]
    feeds = {detail["name"]: real_input(path, shared, detail)}
    for kernels, rounding in ((OpResolverType.AUTO, "once"), (OpResolverType.BUILTIN_REF, "twice")):
        theirs = run_theirs(path, feeds, kernels)
        ours = run_ours(program, path, feeds, folder, "--rounding", rounding)
        for name, wanted in theirs.items():
            apart = np.abs(ours[name].astype(int) - wanted.astype(int))
            print(f"{path.name} {name}, real samples, rounding {rounding}: "
                  f"{100 * np.mean(apart == 0):.2f} % equal")
            if np.mean(apart <= 1) < (NEAR if rounding == "twice" else NEAR_FLOAT):
                return f"{name}, rounding {rounding}: {100 * np.mean(apart <= 1):.2f} % within one"
    return None


def compare(path, program, folder):
    """What is wrong with a model, or nothing."""
    interpreter = Interpreter(str(path))
    interpreter.allocate_tensors()
    generator = np.random.default_rng(0)
    feeds = {d["name"]: make_input(generator, d) for d in interpreter.get_input_details()}
    theirs = run_theirs(path, feeds)
    ours = run_ours(program, path, feeds, folder)
    for name, wanted in theirs.items():
        found = ours[name]
        if found.shape != wanted.shape:
            return f"{name} is {found.shape}, expected {wanted.shape}"
        apart = np.abs(found.astype(np.float64) - wanted.astype(np.float64))
        if wanted.dtype == np.float32:
            worst = apart.max() / max(np.abs(wanted).max(), 1e-6)
            print(f"{path.name} {name}: {worst:.1e} of the largest")
            if worst > OTHERS.get(path.name, RELATIVE):
                return f"{name} differs by {worst}"
        else:
            near = np.mean(apart <= 1)
            print(f"{path.name} {name}: {100 * np.mean(apart == 0):.2f} % equal")
            if near < NEAR:
                return f"{name}: {100 * near:.2f} % within one integer"
    return None


def main():
    shared = Path(os.environ["QUENCH_SHARED"])
    program = Path(os.environ["QUENCH_BINARY"]) / "quench"
    models = sorted(shared.glob("models/tflite/*.tflite")) + sorted(
        shared.glob("models/rfb320/*.tflite"))
    if not models:
        print(f"skipped: no models below {shared}")
        return SKIPPED
    problems = 0
    with tempfile.TemporaryDirectory() as folder:
        for model in models:
            problem = compare(model, program, Path(folder))
            if not problem and model.name in SETS:
                problem = compare_real(model, program, Path(folder), shared)
            if problem:
                problems += 1
                print(f"{model.name}: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

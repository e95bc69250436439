#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs TFLite models in `quench run` and in LiteRT on the same inputs, and ours there."""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

SKIPPED = 77
try:
    from ai_edge_litert.interpreter import Interpreter
except ImportError:
    print("skipped: there is no ai_edge_litert (pip install ai-edge-litert)")
    sys.exit(SKIPPED)

RELATIVE = 1e-4  # of the largest element of a float output
# LiteRT rounds the activations of dynamic-range models while it runs, which we do not. The second
# has an operator that only LiteRT's default kernels know, and these approximate its activations:
# against the reference kernels, without that operator, we differ by 4e-5.
OTHERS = {"dscnn_kws_hybrid.tflite": 0.2, "selfie_segmentation.tflite": 5e-4}
SAMPLES = 4


def make_input(generator, detail):
    shape = [SAMPLES, *detail["shape"][1:]]
    if detail["dtype"] == np.float32:
        return generator.uniform(0, 1, shape).astype(np.float32)
    limits = np.iinfo(detail["dtype"])
    return generator.integers(limits.min, limits.max + 1, shape).astype(detail["dtype"])


def run_theirs(path, feeds):
    """Outputs by name, of the default kernels, one sample at a time."""
    interpreter = Interpreter(str(path))
    interpreter.allocate_tensors()
    results = {}
    for index in range(SAMPLES):
        for detail in interpreter.get_input_details():
            interpreter.set_tensor(detail["index"], feeds[detail["name"]][index:index + 1])
        interpreter.invoke()
        for detail in interpreter.get_output_details():
            results.setdefault(detail["name"], []).append(interpreter.get_tensor(detail["index"]))
    return {name: np.concatenate(parts) for name, parts in results.items()}


def run_ours(program, path, feeds, folder):
    results = {}
    for index in range(SAMPLES):
        arguments = []
        for number, (name, array) in enumerate(feeds.items()):
            file = folder / f"in{number}.npy"
            np.save(file, array[index:index + 1])
            arguments += ["--input", f"{name}={file}"]
        out = folder / "out"
        done = subprocess.run([program, "run", str(path), *arguments, "-o", str(out), "--quiet",
                               "--json"], check=True, stdout=subprocess.PIPE)
        for value in json.loads(done.stdout)["values"]:
            results.setdefault(value["name"], []).append(np.load(out / value["file"]))
    return {name: np.concatenate(parts) for name, parts in results.items()}


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
            if near < 0.999:
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
            if problem:
                problems += 1
                print(f"{model.name}: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every model at hand in `quench run` and in ONNX Runtime on the same inputs."""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as errors

# Float sums in another order differ by a few units in the last place, amplified over the layers.
RELATIVE = 1e-4  # of the largest element of an output
ABSOLUTE = 1e-6  # for outputs that are all next to zero, such as an empty detection map
OPEN_SHAPES = {
    "ppocr_v2_cls.onnx": [2, 3, 48, 192],
    "ppocrv3_det.onnx": [1, 3, 96, 160],
    "ppocrv4_det.onnx": [1, 3, 96, 160],
}


def shape_of(model, value):
    if model.name in OPEN_SHAPES:
        return OPEN_SHAPES[model.name]
    return [d if isinstance(d, int) else (2 if i == 0 else 16) for i, d in enumerate(value.shape)]


def make_input(generator, model, value):
    shape = shape_of(model, value)
    if value.type == "tensor(int64)":
        high = 2 if "mask" in value.name else 100
        return generator.integers(1 if high > 2 else 0, high, shape).astype(np.int64)
    return generator.standard_normal(shape).astype(np.float32)


def run_ours(program, model, feeds, folder):
    arguments = []
    for index, (name, array) in enumerate(feeds.items()):
        path = folder / f"in{index}.npy"
        np.save(path, array)
        arguments += ["--input", f"{name}={path}"]
    out = folder / "out"
    done = subprocess.run([program, "run", str(model), *arguments, "-o", str(out), "--quiet", "--json"],
                          check=True, stdout=subprocess.PIPE)
    return {value["name"]: out / value["file"] for value in json.loads(done.stdout)["values"]}


def worst_difference(program, model):
    """The largest difference as a share of what is allowed."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    generator = np.random.default_rng(0)
    feeds = {v.name: make_input(generator, model, v) for v in session.get_inputs()}
    try:
        expected = session.run(None, feeds)
    except (errors.Fail, errors.InvalidArgument):
        return None  # noise of any shape is nothing that this network takes
    with tempfile.TemporaryDirectory() as temporary:
        files = run_ours(program, model, feeds, Path(temporary))
        worst = 0.0
        for value, want in zip(session.get_outputs(), expected):
            got = np.load(files[value.name])
            assert got.shape == want.shape, f"{value.name}: {got.shape} instead of {want.shape}"
            allowed = RELATIVE * np.abs(want).max() + ABSOLUTE
            worst = max(worst, float(np.abs(got - want).max() / allowed))
    return worst


def main():
    program = str(Path(os.environ["QUENCH_BINARY"]) / "quench")
    models = [Path(os.environ["QUENCH_SOURCE"]) / "examples/data/fashion.onnx"]
    shared = Path(os.environ["QUENCH_SHARED"]) / "models"
    if shared.is_dir():
        models += sorted(shared.rglob("*.onnx"))
    else:
        print(f"{shared} is absent: only the example model is compared")
    wrong = 0
    for model in models:
        worst = worst_difference(program, model)
        if worst is None:
            print(f"{model.name}: passed over, ONNX Runtime does not run it on noise")
            continue
        wrong += worst > 1
        print(f"{'WRONG' if worst > 1 else 'ok   '} {model.name}: {worst:.4f} of what is allowed")
    print(f"{len(models) - wrong} passed, {wrong} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

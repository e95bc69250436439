#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads and writes every model there is, and compares both files in ONNX Runtime, bit for bit."""

import os
import pathlib
import subprocess
import sys
import tempfile

SKIP = 77
CONFORMANCE = pathlib.Path("/usr/share/libonnx-testdata/data")
# Operators that draw random numbers, or read a clock, differ from run to run by design.
RANDOM = {"Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike",
          "RandomUniform", "RandomUniformLike"}


def skip(reason):
    """Skipping is for laptops; the machine that guards main must have everything."""
    print(f"skipped: {reason}")
    sys.exit(1 if os.environ.get("CI") == "true" else SKIP)


try:
    import numpy as np
    import onnx
    import onnxruntime as ort
except ImportError as missing:
    skip(f"{missing}; configure with -DQUENCH_PYTHON=<python that has onnxruntime and onnx>")


def models():
    shared = pathlib.Path(os.environ.get("QUENCH_SHARED", "../shared")) / "models"
    found = sorted(shared.glob("**/*.onnx")) if shared.is_dir() else []
    return found + sorted(CONFORMANCE.glob("*/*/model.onnx"))


def write_all(tool, pairs):
    text = "".join(f"{src}\n{dst}\n" for src, dst in pairs)
    done = subprocess.run([tool], input=text, capture_output=True, text=True, check=False)
    if len(done.stdout.splitlines()) != len(pairs):
        sys.exit(f"quench_roundtrip died with {done.returncode}: {done.stdout[-300:]}{done.stderr[-300:]}")
    return [line for line in done.stdout.splitlines() if not line.startswith("ok\t")]


def stored_inputs(folder, session):
    """The inputs of a conformance case, or nothing when they are not plain tensors."""
    feeds = {}
    for index, spec in enumerate(session.get_inputs()):
        path = folder / "test_data_set_0" / f"input_{index}.pb"
        if not path.exists() or not spec.type.startswith("tensor("):
            return None
        feeds[spec.name] = onnx.numpy_helper.to_array(onnx.load_tensor(str(path)))
    return feeds


def random_inputs(session):
    rng = np.random.default_rng(7)
    kinds = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32}
    feeds = {}
    for spec in session.get_inputs():
        if spec.type not in kinds:
            return None
        shape = [d if isinstance(d, int) and d > 0 else (32 if i > 1 else 1)
                 for i, d in enumerate(spec.shape)]
        values = rng.random(shape) if spec.type == "tensor(float)" else np.zeros(shape)
        feeds[spec.name] = values.astype(kinds[spec.type])
    return feeds


def same(left, right):
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    if not isinstance(left, np.ndarray):
        return left == right
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    if left.dtype == object:
        return left.tolist() == right.tolist()
    return left.tobytes() == right.tobytes()


def compare(src, dst):
    """Nothing when ONNX Runtime cannot run the original, else whether both agree."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        session = ort.InferenceSession(str(src), options, providers=["CPUExecutionProvider"])
        conformance = (src.parent / "test_data_set_0").is_dir()
        feeds = stored_inputs(src.parent, session) if conformance else random_inputs(session)
        if feeds is None or {n.op_type for n in onnx.load(str(src)).graph.node} & RANDOM:
            return None
        expected = session.run(None, feeds)
    except Exception:  # pylint: disable=broad-except  (onnxruntime's own are not importable)
        return None
    session = ort.InferenceSession(str(dst), options, providers=["CPUExecutionProvider"])
    return same(expected, session.run(None, feeds))


def main():
    found = models()
    if not found:
        skip("neither ../shared/models nor libonnx-testdata is there")
    bad, ran = [], 0
    with tempfile.TemporaryDirectory() as folder:
        pairs = [(src, pathlib.Path(folder) / f"{i}.onnx") for i, src in enumerate(found)]
        bad += write_all(sys.argv[1], pairs)
        for src, dst in pairs:
            if not dst.exists():
                continue
            if dst.stat().st_size > src.stat().st_size * 1.01 + 64:
                bad.append(f"{src} grew from {src.stat().st_size} to {dst.stat().st_size} bytes")
            try:
                result = compare(src, dst)
            except Exception as error:  # pylint: disable=broad-except
                result = False
                bad.append(f"{src}: {error}")
            ran += result is not None
            if result is False:
                bad.append(f"{src} gives other results after a round trip")
    print("\n".join(bad))
    print(f"round trip: {len(found)} models, {ran} compared in ONNX Runtime, {len(bad)} problems")
    return 1 if bad or ran == 0 else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trained and reconstructed models score in ONNX Runtime, on integers, what the simulated ones score
in our engine; and a model that ONNX Runtime's own tool quantised can be analysed."""
import gzip
import json
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime
from onnxruntime import quantization
from onnxruntime.quantization.shape_inference import quant_pre_process

PROGRAM = str(Path(os.environ["QUENCH_BINARY"]) / "quench")
DATA = Path(os.environ["QUENCH_SOURCE"]) / "examples" / "data"
MODEL = DATA / "fashion.onnx"
SAMPLES = ["--data", DATA / "fashion-test-images-idx3-ubyte.gz", "--mean", "72.9", "--std", "90"]
MOST_APART = 0.2  # of 100 points


def read(name, header):
    return np.frombuffer(gzip.decompress((DATA / name).read_bytes())[header:], np.uint8)


X = ((read("fashion-test-images-idx3-ubyte.gz", 16).reshape(-1, 1, 28, 28).astype(np.float32)
      - np.float32(72.9)) / np.float32(90))
Y = read("fashion-test-labels-idx1-ubyte.gz", 8)


def quench(*words):
    done = subprocess.run([PROGRAM, *map(str, words), "--json"], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"
    return json.loads(done.stdout)


def in_onnxruntime(path):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    runs = [session.run(None, {name: X[i:i + 100]})[0] for i in range(0, len(X), 100)]
    return 100 * float(np.mean(np.concatenate(runs).argmax(1) == Y))


def check_learned(folder):
    learn = ["--limit", "300", "--seed", "3"]
    for name, words in {
            "trained W4A4": ["train", "--weight-bits", "4", "--activation-bits", "4", "--steps", "20"],
            "trained W2A8": ["train", "--weight-bits", "2", "--steps", "60"],
            "trained W8A8, batch normalisation kept": ["train", "--steps", "15", "--freeze-norm", "8"],
            "trained with PACT": ["train", "--weight-bits", "4", "--activation-quanter", "pact",
                                  "--steps", "15"],
            "reconstructed W3A8": ["quantize", "--weight-bits", "3", "--reconstruct",
                                   "--reconstruct-steps", "20"]}.items():
        path = folder / "learned.onnx"
        quench(words[0], MODEL, "-o", path, *SAMPLES, *learn, *words[1:])
        ours = quench("eval", path, *SAMPLES, "--metric", "top1")["top1"]
        theirs = in_onnxruntime(path)
        print(f"{name}: {ours:.2f} in our engine, {theirs:.2f} in ONNX Runtime")
        assert abs(ours - theirs) <= MOST_APART, name
        assert ours > 50, name


class Reader(quantization.CalibrationDataReader):
    def __init__(self, name):
        self.feeds = iter({name: X[i:i + 50]} for i in range(0, 200, 50))

    def get_next(self):
        return next(self.feeds, None)


def check_analysis(folder):
    prepared, path = folder / "prepared.onnx", folder / "theirs.onnx"
    quant_pre_process(str(MODEL), str(prepared), skip_symbolic_shape=True)
    name = onnxruntime.InferenceSession(str(MODEL)).get_inputs()[0].name
    quantization.quantize_static(str(prepared), str(path), Reader(name), per_channel=True)
    result = quench("analyze", "sensitivity", path, "--float", MODEL, *SAMPLES, "--limit", "100", "--metric",
                    "sqnr", "-o",
                    folder / "analysis")
    layers = [layer["layer"] for layer in result["layers"]]
    print(f"layers of ONNX Runtime's own model, most harmful first: {layers}")
    assert len(layers) >= 4 and result["not_in_float_model"] == [], result
    # Without a layer's quantisation the outputs are nearer to float, or about as near.
    values = [layer["metric"] for layer in result["layers"]]
    assert values[0] > result["quantized"], result
    assert values[-1] > result["quantized"] - 1, result


def main():
    with tempfile.TemporaryDirectory() as temporary:
        check_learned(Path(temporary))
        check_analysis(Path(temporary))
    print("ok")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/results.md: every observer on every small network with labels, by our own engine."""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("QUENCH_SHARED", SOURCE.parent / "shared"))
PROGRAM = str(Path(os.environ.get("QUENCH_BINARY", SOURCE / "build/release")) / "quench")
FASHION = [SOURCE / "examples/data/fashion-test-images-idx3-ubyte.gz", "--mean", "72.9", "--std",
           "90"]
KWS = SHARED / "data/kws"
# Model, data to calibrate with, data to score.
CASES = [
    (SOURCE / "examples/data/fashion.onnx", [*FASHION, "--limit", "200"], FASHION),
    (SHARED / "models/resnet8_cifar10_bn.onnx",
     [SHARED / "data/cifar10/data_batch_1.bin", "--limit", "200"],
     [SHARED / "data/cifar10/test_batch.bin"]),
    (SHARED / "models/dscnn_kws_bn.onnx", [KWS / "calib_x.npy"],
     [KWS / "eval_x.npy", "--labels", KWS / "eval_y.npy"]),
]
HEAD = """# Accuracy by observer

Made by `bench/results.py`. Each network is quantised for ONNX Runtime with every activation observer
(weights per channel, no bias correction), from the statistics of one data pass, and scored in our
own engine, which simulates the integers. The example network is scored on 1,000 images whose first
200 it was calibrated with; the others on data that calibration did not see.

| Network | Observer | top-1, % | agreement with float, % | cosine |
|---|---|---|---|---|
"""


def call(*words):
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout


def rows(model, calibration, scoring, folder):
    """The lines of one network."""
    top1 = json.loads(call("eval", model, "--metric", "top1", "--json", "--data", *scoring))["top1"]
    yield f"| {model.stem} | float | {top1:.2f} | | |\n"
    call("calibrate", model, "-o", folder / "stats", "--data", *calibration)
    for observer in json.loads(call("list", "observers", "--json"))["observers"]:
        out = folder / "int8.onnx"
        call("quantize", model, "-o", out, "--stats", folder / "stats", "--activation-observer",
             observer["name"])
        score = json.loads(call("eval", out, "--reference", model, "--metric",
                                "top1,agreement,cosine", "--json", "--data", *scoring))
        yield (f"| {model.stem} | {observer['name']} | {score['top1']:.2f} | "
               f"{score['agreement']:.2f} | {score['cosine']:.5f} |\n")


def main():
    text = HEAD
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            if case[0].exists():
                text += "".join(rows(*case, Path(folder)))
    (SOURCE / "docs/results.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

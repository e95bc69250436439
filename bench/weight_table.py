#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/results-weights.md: accuracy of weight-only quantisation at 1 to 8 bits, by how the
weights are rounded, on every network with labels, in our own engine.

    bench/weight_table.py [--only NAME] [--bits 8,4]
"""
import argparse
import os
import pathlib
import tempfile

import common

PROGRAM = pathlib.Path(os.environ.get("QUENCH_BINARY", common.SOURCE / "build/release")) / "quench"
FASHION = [common.SOURCE / "examples/data/fashion-test-images-idx3-ubyte.gz", "--mean", "72.9",
           "--std", "90"]
KWS = common.SHARED / "data/kws"
IMAGENET = common.SHARED / "data/imagenet-mini"
PHOTOS = ["--resize-shorter", "256", "--center-crop", "224,224", "--mean", "123.675,116.28,103.53",
          "--std", "58.395,57.12,57.375"]
# Model, samples for GPTQ, samples to score.
CASES = [
    (common.SOURCE / "examples/data/fashion.onnx", [*FASHION, "--limit", "160"], FASHION),
    (common.SHARED / "models/resnet8_cifar10_bn.onnx",
     [common.SHARED / "data/cifar10/data_batch_1.bin", "--limit", "160"],
     [common.SHARED / "data/cifar10/test_batch.bin"]),
    (common.SHARED / "models/dscnn_kws_bn.onnx", [KWS / "calib_x.npy"],
     [KWS / "eval_x.npy", "--labels", KWS / "eval_y.npy"]),
    (common.SHARED / "models/squeezenet1.1.onnx", [IMAGENET / "calib", *PHOTOS, "--limit", "40"],
     [IMAGENET / "eval", "--labels", IMAGENET / "eval_labels.txt", *PHOTOS]),
    (common.SHARED / "models/mobilenet_v2.onnx", [IMAGENET / "calib", *PHOTOS, "--limit", "40"],
     [IMAGENET / "eval", "--labels", IMAGENET / "eval_labels.txt", *PHOTOS]),
]
METHODS = ("abs_max", "mse", "gptq")
HEAD = """# Accuracy of weights at few bits

Made by `bench/weight_table.py`: top-1 in percent, weights by channel, in our own engine, which
computes in float with the weights that are stored. `gptq` sees up to 128 samples that are not
scored (the example network's are among the scored ones); where it does not lower a layer's error,
that layer keeps the rounding of `mse`. Below 8 bits every method keeps the mean of each channel.

| Network | Bits | abs_max | mse | gptq |
|---|---|---|---|---|
"""


def flags_of(method, calibration):
    if method == "gptq":
        return ["--weight-observer", "mse", "--gptq", "--data", *calibration]
    return ["--weight-observer", method]


def top1(model, scoring):
    return common.run_json([PROGRAM, "eval", model, "--metric", "top1", "--json", "--data",
                            *scoring])["top1"]


def rows(model, calibration, scoring, widths, out):
    exact = top1(model, scoring)
    yield f"| {model.stem} | float | {exact:.2f} | {exact:.2f} | {exact:.2f} |\n"
    for bits in widths:
        found = []
        for method in METHODS:
            common.run([PROGRAM, "quantize", model, "-o", out, "--type", "weight", "--bits", bits,
                        *flags_of(method, calibration), "--quiet"])
            found.append(top1(out, scoring))
        yield f"| {model.stem} | {bits} | " + " | ".join(f"{each:.2f}" for each in found) + " |\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--bits", default="8,7,6,5,4,3,2,1")
    arguments = parser.parse_args()
    text = HEAD
    with tempfile.TemporaryDirectory() as folder:
        for model, calibration, scoring in CASES:
            if not model.exists() or arguments.only not in model.stem:
                continue
            for row in rows(model, calibration, scoring, arguments.bits.split(","),
                            pathlib.Path(folder) / "weights.onnx"):
                print(row, end="", flush=True)
                text += row
    if not arguments.only:
        (common.SOURCE / "docs/results-weights.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/results.md: `observers` scores every observer on every network with labels, by
our own engine; `runtime` takes the last figures of bench/accuracy_ort.py. Without a word, both."""
import json
import sys
import tempfile
from pathlib import Path

import common
import labelled

SOURCE = common.SOURCE
CALIBRATION = 200
HEAD = """# Accuracy by observer

Weights only, 1 to 8 bits by abs_max, MSE and GPTQ, mixed bits and sizes: [results-weights.md](results-weights.md).

Made by `bench/results.py`. Each network is quantised for ONNX Runtime with every activation observer
(weights per channel, no bias correction), from the statistics of one data pass, and scored in our
own engine, which simulates the integers. The example network is scored on 1,000 images whose first
200 it was calibrated with; the others on data that calibration did not see (200 samples at most; of
text lines the first 100).

| Network | Observer | top-1, % | agreement with float, % | cosine |
|---|---|---|---|---|
"""
RUNTIME_MARK = "# Accuracy in ONNX Runtime"
RUNTIME_HEAD = RUNTIME_MARK + """

Made by `bench/accuracy_ort.py` and `bench/results.py runtime`: files of `quench quantize` with
default settings, run on integers by ONNX Runtime, beside float. MobileNetV2 and SqueezeNet are
calibrated with 100 other photographs, ResNet8 with 200 training images, DS-CNN with 100 other
recordings. Of text lines, pages and faces there is one set each: either half is scored by the model
that was calibrated with the other. The default observers were picked with these tables in view; how
biases are corrected was settled on held-out calibration samples. ONNX Runtime's own tool, best of
its three methods: MobileNetV2 80.00, SqueezeNet 57.75, ResNet8 87.25, DS-CNN 91.75.

| Network | by | score | float | int8 | agreement, % | cosine |
|---|---|---|---|---|---|---|
"""


def call(*words):
    return common.run([labelled.BUILD / "quench", *words])


def rows(model, prepare, folder):
    """The lines of one network."""
    calib, data, labels, flags = prepare(model, folder)
    scoring = ["--json", "--data", data, *flags, *(["--labels", labels] if labels else [])]
    top1 = json.loads(call("eval", model, "--metric", "top1", *scoring))["top1"]
    yield f"| {model.stem} | float | {top1:.2f} | | |\n"
    call("calibrate", model, "-o", folder / "stats", "--data", calib, "--limit", CALIBRATION,
         *flags)
    for observer in json.loads(call("list", "observers", "--json"))["observers"]:
        out = folder / "int8.onnx"
        call("quantize", model, "-o", out, "--stats", folder / "stats", "--activation-observer",
             observer["name"])
        score = json.loads(call("eval", out, "--reference", model, "--metric",
                                "top1,agreement,cosine", *scoring))
        yield (f"| {model.stem} | {observer['name']} | {score['top1']:.2f} | "
               f"{score['agreement']:.2f} | {score['cosine']:.5f} |\n")


def observers():
    text = HEAD
    networks = [(common.SHARED / "models" / name, prepare)
                for name, prepare in labelled.NETWORKS.items()]
    for model, prepare in [labelled.FASHION, *networks]:
        if model.exists():
            with tempfile.TemporaryDirectory() as folder:
                for line in rows(model, prepare, Path(folder)):
                    print(line, end="", flush=True)
                    text += line
    return text


def runtime():
    """The table of what bench/accuracy_ort.py measured last."""
    path = SOURCE / "build/bench/accuracy_ort.json"
    if not path.exists():
        sys.exit(f"{path} is absent: run bench/accuracy_ort.py first")
    text = RUNTIME_HEAD
    for row in json.loads(path.read_text(encoding="utf-8"))["rows"]:
        def shown(key, digits, row=row):
            return f"{row[key]:.{digits}f}" if key in row else ""
        text += (f"| {row['network']} | {row['by']} | {row['score']} | {shown('float', 2)} | "
                 f"{shown('int8', 2)} | {shown('agreement', 2)} | {shown('cosine', 5)} |\n")
    return text


def main():
    path = SOURCE / "docs/results.md"
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    before, mark, after = old.partition(RUNTIME_MARK)
    wanted = sys.argv[1:] or ["observers", "runtime"]
    first = observers() if "observers" in wanted else before.rstrip() + "\n"
    second = runtime() if "runtime" in wanted else mark + after
    path.write_text(first + ("\n" + second.lstrip() if second else ""), encoding="utf-8")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/results-weights.md: accuracy of weight-only quantisation at 1 to 8 bits, by how the
weights are rounded, on every network with labels, in our own engine.

    bench/weight_table.py [--only NAME ...] [--bits 8,4]
"""
import argparse
import os
import pathlib
import re
import tempfile

import common
import labelled

PROGRAM = pathlib.Path(os.environ.get("QUENCH_BINARY", common.SOURCE / "build/release")) / "quench"
PAGE = common.SOURCE / "docs/results-weights.md"
CASES = {**dict([labelled.FASHION]),
         **{common.SHARED / "models" / name: case for name, case in labelled.NETWORKS.items()}}
# Samples for GPTQ; of photographs fewer.
LIMITS = {"squeezenet1.1": 40, "mobilenet_v2": 40}
METHODS = ("abs_max", "mse", "gptq")
TITLE = "Accuracy of weights at few bits"
HEAD = """Made by `bench/weight_table.py`: top-1 in percent, weights by channel, in our own engine, which
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


def case(model, prepare, folder):
    """Flags that name the samples for GPTQ, and those that are scored."""
    calib, data, labels, flags = prepare(model, folder)
    limit = ["--limit", LIMITS.get(model.stem, 160)]
    return [calib, *flags, *limit], [data, *flags, *(["--labels", labels] if labels else [])]


def known_rows():
    """The rows of the page as it is, by network."""
    found = {}
    section = PAGE.read_text(encoding="utf-8").split(TITLE, 1)[-1].split("\n# ", 1)[0]
    for row in re.findall(r"^\| [\w.]+ \| (?:float|\d+) \|.*\n", section, re.MULTILINE):
        found.setdefault(row.split(" | ")[0][2:], []).append(row)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], help="networks; the page keeps the others")
    parser.add_argument("--bits", default="8,7,6,5,4,3,2,1")
    arguments = parser.parse_args()
    found = known_rows()
    for model, prepare in CASES.items():
        if not model.exists() or (arguments.only and model.stem not in arguments.only):
            continue
        found[model.stem] = []
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for row in rows(model, *case(model, prepare, folder), arguments.bits.split(","),
                            folder / "weights.onnx"):
                print(row, end="", flush=True)
                found[model.stem].append(row)
    common.write_section(PAGE, TITLE, HEAD + "".join("".join(each) for each in found.values()))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models that other tools have quantised, in ONNX Runtime: as they are, and retargeted without data.

    python3 bench/retarget.py --build build/release [--nncf PYTHON]

For each: the share of nodes that `lint` sees on integers, the share of convolutions and products
that ONNX Runtime's optimised graph has on integers, and top-1 there. Files of other tools are kept
in build/bench/retarget and made where they are missing; NNCF needs a Python that has it.
Exits with 1 where a share fell, or no model went from under 80 % to over 95 %."""
import argparse
import pathlib
import sys
import tempfile

import numpy as np

import accuracy_ort
import common
import integer_share

KEPT = common.RESULTS / "retarget"
CALIBRATE = 32
TOOLS = ("onnxruntime", "nncf")
NETWORKS = ("resnet8", "mobilenet_v2", "squeezenet", "dscnn_kws")
PADDLE = common.SHARED / "data/paddle-golden/quantised"
# What is quantised already: who did it, the file, and the network that knows its samples.
FILES = [
    ("Paddle 2.6, old form", PADDLE / "q_old/model.pdmodel", None),
    ("Paddle 2.6, new form", PADDLE / "q_onnx/model.pdmodel", None),
    ("Paddle 3.3", PADDLE / "newapi/p3old_ptq_absmax.pdmodel", None),
    ("TFLite converter", common.SHARED / "models/tflite/resnet8_cifar10_int8.tflite", None),
]


def made_by(tool, python, model, samples):
    KEPT.mkdir(parents=True, exist_ok=True)
    out = KEPT / f"{model.stem}_{tool}.onnx"
    if not out.exists():
        common.run([python, pathlib.Path(__file__).with_name("retarget_peer.py"), tool, model,
                    samples, out])
    return out


def shares(build, path, folder):
    lines = common.run_json([build / "quench", "lint", path, "--target", "onnxruntime", "--json"])
    optimised = folder / "optimised.onnx"
    run = integer_share.session(path, 1, optimised)
    integers, layers, _, _ = integer_share.share_of(optimised)
    return run, 100 * lines["integer_nodes"] / len(lines["nodes"]), integers, layers


def score(run, part, most):
    if part is None:
        return None
    name = run.get_inputs()[0].name
    outputs = [run.run(None, {name: part.score[i:i + 1]})[0] for i in range(most)]
    return accuracy_ort.top1([np.concatenate(outputs)], part.truth[:most])


def measure(build, tool, path, part, most, folder):
    before = path
    if path.suffix != ".onnx":
        before = folder / "before.onnx"
        common.run([build / "quench", "convert", path, "-o", before])
    after = folder / "after.onnx"
    common.run([build / "quench", "retarget", path, "--target", "onnxruntime", "-o", after,
                "--samples", "1", "--quiet"])
    row = {"tool": tool, "model": path.stem if path.suffix == ".onnx" else path.parent.name + "/" +
           path.name}
    for key, file in (("before", before), ("after", after)):
        run, percent, integers, layers = shares(build, file, folder)
        row[key] = {"percent": percent, "integers": integers, "layers": layers,
                    "top1": score(run, part, most)}
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=common.SOURCE / "build/release")
    parser.add_argument("--nncf", type=pathlib.Path, help="a Python that has NNCF")
    parser.add_argument("--images", type=int, default=200, help="to score with")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for network, file, read, _, _ in accuracy_ort.NETWORKS:
            if not network.startswith(NETWORKS) or "features" in network:
                continue
            model = accuracy_ort.MODELS / file
            part = read(model, folder)[0]
            samples = folder / "calibrate.npy"
            np.save(samples, part.calibrate[:CALIBRATE])
            for tool in TOOLS:
                python = arguments.nncf if tool == "nncf" else sys.executable
                if python or (KEPT / f"{model.stem}_{tool}.onnx").exists():
                    path = made_by(tool, python, model, samples)
                    rows.append(measure(arguments.build, tool, path, part, arguments.images, folder))
        for tool, path, _ in FILES:
            if path.exists():
                rows.append(measure(arguments.build, tool, path, None, 0, folder))
    table = []
    for row in rows:
        cells = [row["tool"], row["model"]]
        for key in ("before", "after"):
            side = row[key]
            cells += [f"{side['percent']:.1f}", f"{side['integers']} of {side['layers']}",
                      "" if side["top1"] is None else f"{side['top1']:.2f}"]
        table.append(cells)
    common.print_table(["tool", "model", "nodes, % before", "layers before", "top-1 before",
                        "nodes, % after", "layers after", "top-1 after"], table)
    common.write_results("retarget.json", {"images": arguments.images, "rows": rows})
    fell = [row for row in rows if row["after"]["percent"] < row["before"]["percent"]]
    risen = [row for row in rows if row["before"]["percent"] < 80 and row["after"]["percent"] > 95]
    return 0 if risen and not fell else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models that other tools have quantised, in ONNX Runtime: as they are, retargeted without data, and
repaired with the samples that they were calibrated with (--data).

    python3 bench/retarget.py --build build/release [--python nncf=PYTHON] [--only NAME]

For each: the share of nodes that `lint` sees on integers, the share of convolutions and products
that ONNX Runtime's optimised graph has on integers, and top-1 there. Files of other tools are kept
in build/bench/retarget and made where they are missing; nncf, quark and torch need a Python that has
them (torch: with torchao and onnxscript). Exits with 1 where a share fell, or no model went from
under 80 % to over 95 %."""
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
TOOLS = ("onnxruntime", "dynamic", "nncf", "quark", "torch")
OURS = ("onnxruntime", "dynamic")  # this Python has them
NEEDS_DATA = ("dynamic",)  # it has no scales to take over
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


def retargeted(build, path, out, samples=None):
    how = ["--data", samples] if samples else ["--samples", "1"]
    common.run([build / "quench", "retarget", path, "--target", "onnxruntime", "-o", out, *how,
                "--quiet"])
    return out


def measure(build, tool, path, part, samples, most, folder):
    files = {"before": path}
    if path.suffix != ".onnx":
        files["before"] = folder / "before.onnx"
        common.run([build / "quench", "convert", path, "-o", files["before"]])
    if tool not in NEEDS_DATA:
        files["after"] = retargeted(build, path, folder / "after.onnx")
    if samples:
        files["repaired"] = retargeted(build, path, folder / "repaired.onnx", samples)
    row = {"tool": tool, "model": path.stem if path.suffix == ".onnx" else path.parent.name + "/" +
           path.name}
    for key, file in files.items():
        run, percent, integers, layers = shares(build, file, folder)
        row[key] = {"percent": percent, "integers": integers, "layers": layers,
                    "top1": score(run, part, most)}
    return row


def cells(side):
    if side is None:
        return ["", "", ""]
    return [f"{side['percent']:.1f}", f"{side['integers']} of {side['layers']}",
            "" if side["top1"] is None else f"{side['top1']:.2f}"]


def others(arguments, folder):
    """Rows of what other tools make of the networks that have samples."""
    pythons = dict(item.split("=", 1) for item in arguments.python)
    pythons.update({tool: sys.executable for tool in OURS})
    for network, file, read, _, _ in accuracy_ort.NETWORKS:
        if not network.startswith(NETWORKS) or "features" in network:
            continue
        model = accuracy_ort.MODELS / file
        tools = [tool for tool in TOOLS if (arguments.only or tool) in (tool, model.stem) and
                 (tool in pythons or (KEPT / f"{model.stem}_{tool}.onnx").exists())]
        if not tools:
            continue
        part = read(model, folder)[0]
        samples = folder / "calibrate.npy"
        np.save(samples, part.calibrate[:CALIBRATE])
        for tool in tools:
            try:
                path = made_by(tool, pythons.get(tool), model, samples)
            except RuntimeError as problem:  # of their tool: one row less
                print(f"{tool} cannot quantise {model.name}: {str(problem)[-300:]}")
                continue
            yield measure(arguments.build, tool, path, part, samples, arguments.images, folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=common.SOURCE / "build/release")
    parser.add_argument("--python", action="append", default=[], metavar="TOOL=PYTHON")
    parser.add_argument("--images", type=int, default=200, help="to score with")
    parser.add_argument("--only", help="this tool, or this model, alone")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        rows = list(others(arguments, folder))
        for tool, path, _ in FILES:
            if path.exists() and not arguments.only:
                rows.append(measure(arguments.build, tool, path, None, None, 0, folder))
    sides = ("before", "after", "repaired")
    common.print_table(
        ["tool", "model", *(f"{what} {side}" for side in sides
                            for what in ("nodes, %", "layers", "top-1"))],
        [[row["tool"], row["model"], *(cell for side in sides for cell in cells(row.get(side)))]
         for row in rows])
    common.write_results("retarget.json", {"images": arguments.images, "rows": rows})
    last = [(row["before"]["percent"], row.get("after", row.get("repaired"))["percent"])
            for row in rows]
    fell = any(after < before for before, after in last)
    risen = any(before < 80 and after > 95 for before, after in last)
    return 0 if risen and not fell else 1


if __name__ == "__main__":
    sys.exit(main())

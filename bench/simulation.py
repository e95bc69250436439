#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How near our integer run comes to ONNX Runtime's of the same file: every quantised layer by
itself, fed with the same integers, and the classes of the whole network.

Layers: the file is cut at every quantised value, so that each layer reads inputs of the model and
one run computes them all; the integers fed are those of ONNX Runtime's run of the whole file."""
import argparse
import json
import pathlib
import tempfile

import numpy as np
import onnx
import onnxruntime

import accuracy_ort
from common import SOURCE, print_table, run, write_results

FASHION = (SOURCE / "examples/data/fashion.onnx",
           [SOURCE / "examples/data/fashion-test-images-idx3-ubyte.gz", "--mean", "72.9", "--std",
            "90"])
IN = "/fed"


def grids(model):
    """Activations on a grid: (quantised value, the type of its integers)."""
    constants = {each.name: each for each in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "QuantizeLinear" and node.input[0] not in constants:
            zero = constants[node.input[2]] if len(node.input) > 2 else None
            kind = zero.data_type if zero is not None else onnx.TensorProto.UINT8
            yield node.output[0], kind


def cut(model):
    """Readers of quantised values read inputs; the values themselves are outputs."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    kinds = dict(grids(model))
    for node in model.graph.node:
        for i, name in enumerate(node.input):
            if name in kinds:
                node.input[i] = name + IN
    del model.graph.output[:]
    for name, kind in kinds.items():
        model.graph.input.append(onnx.helper.make_tensor_value_info(name + IN, kind, None))
        model.graph.output.append(onnx.helper.make_tensor_value_info(name, kind, None))
    return model, list(kinds)


def session(model):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options,
                                        providers=["CPUExecutionProvider"])


def ours(path, feeds, folder):
    """`quench run`: outputs by name."""
    words = [accuracy_ort.BUILD / "quench", "run", path, "-o", folder / "out", "--quiet"]
    for i, (name, value) in enumerate(feeds.items()):
        np.save(folder / f"in{i}.npy", value)
        words += ["--input", f"{name}={folder / f'in{i}.npy'}"]
    run(words)
    index = json.loads((folder / "out/index.json").read_text())
    return {name: np.load(folder / "out" / each["file"]) for name, each in index.items()}


def layers(model, x, folder):
    """(value, share within a step, share equal) of each layer."""
    whole = onnx.ModelProto.FromString(model.SerializeToString())
    for name, kind in grids(model):
        whole.graph.output.append(onnx.helper.make_tensor_value_info(name, kind, None))
    source = whole.graph.input[0].name
    parts, names = cut(model)
    values = dict(zip(names, session(whole).run(names, {source: x})))
    feeds = {source: x, **{name + IN: value for name, value in values.items()}}
    read = {name for node in parts.graph.node for name in node.input}
    for unread in [each for each in parts.graph.input if each.name not in read]:
        parts.graph.input.remove(unread)
        feeds.pop(unread.name)
    path = folder / "layers.onnx"
    onnx.save(parts, path)
    theirs = dict(zip(names, session(parts).run(names, feeds)))
    mine = ours(path, feeds, folder)
    for name in names:
        gap = np.abs(mine[name].astype(np.int32) - theirs[name].astype(np.int32))
        yield name, float(np.mean(gap <= 1)), float(np.mean(gap == 0))


def quantised(model, calibration, folder):
    np.save(folder / "calibrate.npy", calibration)
    run([accuracy_ort.BUILD / "quench", "quantize", model, "-o", folder / "int8.onnx", "--data",
         folder / "calibrate.npy", "--quiet"])
    return folder / "int8.onnx"


def classes(path, x, folder):
    """The share of samples that both give the same class, where outputs are classes."""
    theirs = accuracy_ort.outputs_of(path, x)[0]
    source = onnx.load(path).graph.input[0]
    name = source.name
    step = source.type.tensor_type.shape.dim[0].dim_value or 100
    mine = [next(iter(ours(path, {name: x[i:i + step]}, folder).values()))
            for i in range(0, len(x), step)]
    mine = np.concatenate(mine).reshape(len(x), -1)
    return float(np.mean(mine.argmax(1) == theirs.reshape(len(x), -1).argmax(1)))


def networks(folder):
    """Name, model, samples to calibrate with, samples to score, whether outputs are classes."""
    model, data = FASHION
    x = accuracy_ort.samples(model, folder, *data)
    yield "fashion", model, x[:200], x[200:], True
    for name, file, read, what, _ in accuracy_ort.NETWORKS:
        path = accuracy_ort.MODELS / file
        if path.exists():
            part = read(path, folder)[0]
            yield name, path, part.calibrate, part.score, what == "top-1"


def measure(network, folder, options):
    name, path, calibration, x, has_classes = network
    file = quantised(path, calibration, folder)
    few = 1 if x[0].size > 1 << 19 else options.samples
    model = onnx.load(file)
    dim = model.graph.input[0].type.tensor_type.shape.dim[0]
    found = sorted(layers(model, x[:dim.dim_value or few], folder), key=lambda each: each[1])
    row = {"network": name, "layers": len(found), "worst": found[0][0],
           "within_a_step": found[0][1], "equal": float(np.mean([each[2] for each in found]))}
    if has_classes and not options.layers_only:
        row["same_class"] = classes(file, x[:options.limit], folder)
        row["scored"] = min(len(x), options.limit)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="networks whose name contains one of A,B")
    parser.add_argument("--samples", type=int, default=4, help="for the layers")
    parser.add_argument("--limit", type=int, default=1000, help="samples for the classes")
    parser.add_argument("--layers-only", action="store_true")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for network in networks(folder):
            if not options.only or any(word in network[0] for word in options.only.split(",")):
                rows.append(measure(network, folder, options))
    print_table(["network", "layers", "least within a step %", "equal %", "same class %", "of"],
                [[row["network"], str(row["layers"]), f"{100 * row['within_a_step']:.3f}",
                  f"{100 * row['equal']:.3f}",
                  f"{100 * row['same_class']:.2f}" if "same_class" in row else "",
                  str(row.get("scored", ""))] for row in rows])
    write_results("simulation.json", {"rows": rows})
    if any(row["within_a_step"] < 0.995 for row in rows):
        raise SystemExit("a layer has fewer than 99.5 % of its elements within one step")
    if any(row.get("same_class", 1) < 0.99 for row in rows):
        raise SystemExit("a network gives the same class for fewer than 99 % of the samples")


if __name__ == "__main__":
    main()

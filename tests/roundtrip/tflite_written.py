#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TFLite files that we write, in LiteRT: each real file by way of ONNX beside the file itself, and
networks from ONNX beside ONNX Runtime."""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

SKIPPED = 77
try:
    import onnx
    import onnxruntime as ort
    import tflite_vs_litert as read
    from ai_edge_litert.interpreter import Interpreter, OpResolverType
    from onnx import TensorProto, helper
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(SKIPPED)

RELATIVE = 1e-4  # of the largest element of a float output
# Of networks that were calibrated with noise, against float.
INT8_COSINE = 0.99
# Networks that have integers from the first operator to the last, with the shape of a sample.
WHOLE = {"resnet8_cifar10_bn.onnx": (3, 32, 32), "dscnn_kws_bn.onnx": (1, 49, 10),
         "mobilenet_v2.onnx": (3, 224, 224), "pplcnet_x0_25_textline_ori.onnx": (3, 80, 160)}


def quench(*words):
    program = Path(os.environ["QUENCH_BINARY"]) / "quench"
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True, check=False)
    return done.stderr.strip() if done.returncode != 0 else None


def worst(found, wanted):
    apart = np.abs(found.astype(np.float64) - wanted.astype(np.float64))
    return float(apart.max() / max(np.abs(wanted).max(), 1e-6)), float(np.mean(apart <= 1))


def there_and_back(path, folder):
    """What is wrong with a file that went to ONNX and back, or nothing."""
    between, back = folder / "between.onnx", folder / path.name
    problem = quench("convert", path, "-o", between) or quench("convert", between, "-o", back)
    if problem:
        return problem
    interpreter = Interpreter(str(path))
    interpreter.allocate_tensors()
    generator = np.random.default_rng(0)
    feeds = {d["name"]: read.make_input(generator, d) for d in interpreter.get_input_details()}
    theirs, ours = read.run_theirs(path, feeds), read.run_theirs(back, feeds)
    for name, wanted in theirs.items():
        if ours[name].shape != wanted.shape or ours[name].dtype != wanted.dtype:
            return f"{name} is {ours[name].dtype}{ours[name].shape}, was {wanted.dtype}{wanted.shape}"
        relative, near = worst(ours[name], wanted)
        print(f"{path.name} {name}: {relative:.1e} of the largest, {100 * near:.2f} % within one")
        if wanted.dtype == np.float32:
            if relative > RELATIVE:
                return f"{name} differs by {relative}"
        elif near < 0.999:
            return f"{name}: {100 * near:.2f} % within one integer"
    return None


def picking_network():
    """Slices with steps, a split and a lookup, of an image and behind a convolution."""
    rng = np.random.default_rng(1)
    def constant(name, array):
        return onnx.numpy_helper.from_array(np.asarray(array), name)
    constants = [constant("w", rng.standard_normal((6, 3, 3, 3)).astype(np.float32)),
                 constant("starts", np.array([1, -7], np.int64)),
                 constant("ends", np.array([5, 2**40], np.int64)),
                 constant("axes", np.array([1, 3], np.int64)),
                 constant("steps", np.array([1, 2], np.int64)),
                 constant("places", np.array([2, -1, 0], np.int64)),
                 constant("rows", np.array([0, -1], np.int64))]
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
             helper.make_node("Slice", ["c", "starts", "ends", "axes", "steps"], ["s"]),
             helper.make_node("Split", ["c"], ["a", "b"], axis=1),
             helper.make_node("Add", ["a", "b"], ["sum"]),
             helper.make_node("Gather", ["sum", "places"], ["g"], axis=1),
             helper.make_node("Shape", ["g"], ["shape"]),
             helper.make_node("Gather", ["shape", "rows"], ["ends_of_shape"]),
             helper.make_node("Concat", ["ends_of_shape", "minus"], ["wanted"], axis=0),
             helper.make_node("Reshape", ["g", "wanted"], ["y"])]
    constants.append(constant("minus", np.array([-1], np.int64)))
    graph = helper.make_graph(
        nodes, "picks", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 10])],
        [helper.make_tensor_value_info("s", TensorProto.FLOAT, [1, 4, 8, 4]),
         helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 10, 24])], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def function_network():
    """Each function that the target has on integers, behind a convolution of its own."""
    rng = np.random.default_rng(3)
    nodes, constants = [], []
    kinds = {"HardSwish": {}, "Sigmoid": {}, "Tanh": {}, "LeakyRelu": {"alpha": 0.1},
             "Softmax": {"axis": 1}}
    for kind, how in kinds.items():
        weight = rng.standard_normal((8, 3, 3, 3)).astype(np.float32)
        constants.append(onnx.numpy_helper.from_array(weight, f"w_{kind}"))
        nodes.append(helper.make_node("Conv", ["x", f"w_{kind}"], [f"c_{kind}"], pads=[1] * 4))
        nodes.append(helper.make_node(kind, [f"c_{kind}"], [f"f_{kind}"], **how))
    nodes.append(helper.make_node("Concat", [f"f_{kind}" for kind in kinds], ["y"], axis=1))
    graph = helper.make_graph(
        nodes, "functions", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8 * len(kinds), 8, 8])],
        constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)


def run_in_ort(path, x):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    run = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    outputs = run.run(None, {run.get_inputs()[0].name: x})
    return {spec.name: array for spec, array in zip(run.get_outputs(), outputs)}


def run_in_litert(path, x):
    interpreter = Interpreter(str(path))
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    return {d["name"]: interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()}


def from_onnx(path, shape, folder):
    """What is wrong with a network in LiteRT, in float and on integers, or nothing."""
    rng = np.random.default_rng(2)
    x = rng.standard_normal(shape).astype(np.float32)
    wanted = run_in_ort(path, x)
    plain, integers, samples = folder / "f.tflite", folder / "i.tflite", folder / "x.npy"
    np.save(samples, np.concatenate([x, rng.standard_normal((7, *shape[1:])).astype(np.float32)]))
    problem = quench("convert", path, "-o", plain) or quench(
        "quantize", path, "-o", integers, "--data", samples, "--no-bias-correction")
    if problem:
        return problem
    found, rounded = run_in_litert(plain, x), run_in_litert(integers, x)
    for name, array in wanted.items():
        relative, _ = worst(found[name], array)
        a, b = rounded[name].ravel(), array.ravel()
        cosine = float(a @ b / np.sqrt((a @ a) * (b @ b)))
        print(f"{path.name} {name}: float {relative:.1e} of the largest, int8 cosine {cosine:.4f}")
        if relative > RELATIVE or cosine < INT8_COSINE:
            return f"{name} differs: float by {relative}, int8 has a cosine of {cosine}"
    return None


def float_operators(path):
    """Operators between QUANTIZE and DEQUANTIZE that read or make floats."""
    interpreter = Interpreter(str(path), experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    types = {d["index"]: d["dtype"] for d in interpreter.get_tensor_details()}
    return [op["op_name"] for op in interpreter._get_ops_details()
            if op["op_name"] not in ("QUANTIZE", "DEQUANTIZE") and
            any(types.get(i) == np.float32 for i in (*op["inputs"], *op["outputs"]))]


def on_integers(model, folder):
    """What is in float in the file of a network, or nothing; and whether `lint` says the same."""
    shape = WHOLE[model.name]
    samples, out = folder / "few.npy", folder / "whole.tflite"
    np.save(samples, np.random.default_rng(4).uniform(-1, 1, (4, *shape)).astype(np.float32))
    problem = quench("quantize", model, "-o", out, "--data", samples, "--no-bias-correction")
    if problem:
        return problem
    floats = float_operators(out)
    if floats:
        return f"in float: {', '.join(floats)}"
    program = Path(os.environ["QUENCH_BINARY"]) / "quench"
    lint = json.loads(subprocess.run([program, "lint", out, "--target", "tflite", "--json"],
                                     stdout=subprocess.PIPE, check=True).stdout)
    said = [line for line in lint["nodes"] if not line["integer"]]
    return f"lint says float of {said}" if said else None


def main():
    shared = Path(os.environ["QUENCH_SHARED"])
    models = sorted(shared.glob("models/tflite/*.tflite")) + sorted(
        shared.glob("models/rfb320/*.tflite"))
    problems = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        onnx.save(picking_network(), folder / "picks.onnx")
        problems["picks"] = from_onnx(folder / "picks.onnx", (1, 3, 8, 10), folder)
        onnx.save(function_network(), folder / "functions.onnx")
        problems["functions"] = from_onnx(folder / "functions.onnx", (1, 3, 8, 8), folder)
        for model in sorted(shared.glob("models/rfb320/*.onnx")):
            problems[model.name] = from_onnx(model, (1, 3, 240, 320), folder)
        for name in WHOLE:
            if (shared / "models" / name).exists():
                problems[name] = on_integers(shared / "models" / name, folder)
        for model in models:
            problems[model.name] = there_and_back(model, folder)
    for model, problem in problems.items():
        if problem:
            print(f"FAILED: {model}: {problem}")
    return 1 if any(problems.values()) else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Integer TFLite models beside LiteRT, and those that we write beside TensorFlow's own.

    python3 bench/litert.py --build build/release [--tensorflow PYTHON] [--only NAME]

Agreement: files of others on real samples, our runs that round once against LiteRT's default
kernels, and those that round twice against its reference kernels: elements within one integer.
Accuracy: the networks of accuracy_ort.py by `quench quantize`, as ONNX in ONNX Runtime and as TFLite
in LiteRT, and which operators of the TFLite file compute in float.
Speed: networks of Keras, quantised by TensorFlow's converter (in the Python that --tensorflow
names; files are kept in build/bench/litert) and by `quench quantize`, in LiteRT with one thread, in
turns, by processor time. Exits with 1 where fewer than 99.9 % agree, the TFLite file scores 0.5 points
less than the ONNX file, or ours is slower by 3 %."""
import argparse
import pathlib
import statistics
import sys
import tempfile
import time

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

import accuracy_ort
import common

KEPT = common.RESULTS / "litert"
FILES = common.SHARED / "models/tflite"
# What has samples here: the file, and the network of accuracy_ort that knows them.
REAL = (("resnet8_cifar10_int8", "resnet8"), ("dscnn_kws_int8", "dscnn_kws"))
RANDOM = ("vww_96_int8", "ad01_int8")
KERAS = ("ResNet8", "MobileNetV2", "MobileNetV3Small", "ResNet50")
AGREES, SLOWER, POINTS = 99.9, 1.03, 0.5
CALIBRATE = 16


def integers(x, detail):
    scale, zero = detail["quantization"]
    limits = np.iinfo(detail["dtype"])
    return np.clip(np.rint(x / scale) + zero, limits.min, limits.max).astype(detail["dtype"])


def samples_of(path, network, most):
    detail = Interpreter(str(path)).get_input_details()[0]
    if network is None:
        shape = (most, *detail["shape"][1:])
        return np.random.default_rng(0).integers(-128, 128, shape).astype(detail["dtype"])
    _, file, read, _, _ = next(n for n in accuracy_ort.NETWORKS if n[0].startswith(network))
    with tempfile.TemporaryDirectory() as folder:
        x = read(accuracy_ort.MODELS / file, pathlib.Path(folder))[0].score[:most]
    return integers(np.moveaxis(x, 1, -1).reshape(-1, *detail["shape"][1:]), detail)


def theirs(path, x, kernels):
    interpreter = Interpreter(str(path), experimental_op_resolver_type=kernels)
    interpreter.allocate_tensors()
    at, out = interpreter.get_input_details()[0], interpreter.get_output_details()[0]["index"]
    rows = []
    for i in range(len(x)):
        interpreter.set_tensor(at["index"], x[i:i + 1])
        interpreter.invoke()
        rows.append(interpreter.get_tensor(out))
    return np.concatenate(rows).astype(int)


def ours(path, x, rounding):
    import quench
    session = quench.Session(str(path), rounding=rounding)
    return np.concatenate([session.run(x[i:i + 1])[session.outputs[0]]
                           for i in range(len(x))]).astype(int)


def agreement(most, only):
    rows, bad = [], 0
    for file, network in [*REAL, *((name, None) for name in RANDOM)]:
        path = FILES / f"{file}.tflite"
        if not path.exists() or (only and only not in file):
            continue
        x = samples_of(path, network, most)
        default = theirs(path, x, OpResolverType.AUTO)
        reference = theirs(path, x, OpResolverType.BUILTIN_REF)
        layers = ("once",) if "ad01" in file else ("once", "twice")  # no convolutions
        found = {how: ours(path, x, how) for how in layers}
        pairs = [(found["once"], default), (found.get("twice", found["once"]), reference),
                 (default, reference)]
        near = [100 * np.mean(np.abs(a - b) <= 1) for a, b in pairs]
        equal = [100 * np.mean(a == b) for a, b in pairs]
        bad += min(near[:2]) < AGREES
        rows.append([file, "random" if network is None else "real",
                     *(f"{n:.2f} ({e:.2f})" for n, e in zip(near, equal))])
    common.print_table(["file", "samples", "once, default", "twice, reference",
                        "LiteRT's two"], rows)
    return rows, bad


def float_operators(path):
    """Operators between QUANTIZE and DEQUANTIZE that read or make floats."""
    interpreter = Interpreter(str(path), experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    types = {d["index"]: d["dtype"] for d in interpreter.get_tensor_details()}
    return [op["op_name"] for op in interpreter._get_ops_details()
            if op["op_name"] not in ("QUANTIZE", "DEQUANTIZE") and
            any(types.get(i) == np.float32 for i in (*op["inputs"], *op["outputs"]))]


def in_litert(path, x, names):
    interpreter = Interpreter(str(path), num_threads=1)
    interpreter.allocate_tensors()
    at = interpreter.get_input_details()[0]["index"]
    out = {d["name"]: d["index"] for d in interpreter.get_output_details()}
    rows = []
    for i in range(len(x)):
        interpreter.set_tensor(at, x[i:i + 1])
        interpreter.invoke()
        rows.append([interpreter.get_tensor(out[name]) for name in names])
    return [np.concatenate(each) for each in zip(*rows)]


def accuracy(build, only):
    rows, bad = [], 0
    for name, file, read, what, score in accuracy_ort.NETWORKS:
        model = accuracy_ort.MODELS / file
        if score is None or not model.exists() or (only and only not in name):
            continue
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            parts = read(model, folder)
            names = [out.name for out in accuracy_ort.open_session(model).get_outputs()]
            shape = ",".join(map(str, parts[0].score[:1].shape))
            fixed = folder / "fixed.onnx"  # TFLite's files have known sizes
            given = accuracy_ort.open_session(model).get_inputs()[0].name
            common.run([build / "quench", "convert", "--fmk=ONNX", f"--modelFile={model}",
                        f"--outputFile={fixed}", f"--inputShape={given}:{shape}", "--quiet"])
            found = {".onnx": [], ".tflite": []}
            for part in parts:
                np.save(folder / "calibrate.npy", part.calibrate)
                for end, runs in found.items():
                    out = folder / f"int8{end}"
                    common.run([build / "quench", "quantize", fixed, "-o", out, "--data",
                                folder / "calibrate.npy", "--quiet"])
                    runs.append(accuracy_ort.outputs_of(out, part.score) if end == ".onnx" else
                                in_litert(out, part.score, names))
            truth = [one for part in parts for one in part.truth]
            plain = accuracy_ort.joined([accuracy_ort.outputs_of(model, p.score) for p in parts])
            scores = [score(plain, truth)] + [score(accuracy_ort.joined(runs), truth)
                                              for runs in found.values()]
            floats = float_operators(folder / "int8.tflite")
            bad += scores[1] - scores[2] > POINTS
            rows.append([name, what, *(f"{each:.2f}" for each in scores),
                         ", ".join(sorted(set(floats))) or "none"])
    common.print_table(["network", "score", "float", "ONNX int8", "TFLite int8",
                        "float operators"], rows)
    return rows, bad


def timed(path, x):
    """A function that gives the seconds of processor time of one run."""
    interpreter = Interpreter(str(path), num_threads=1)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x[:1])

    def once():
        began = time.thread_time()
        interpreter.invoke()
        return time.thread_time() - began
    return once


def by_theirs(python, network):
    """The samples, the float file and the integer file of TensorFlow's converter."""
    KEPT.mkdir(parents=True, exist_ok=True)
    paths = [KEPT / f"{network}{end}" for end in (".npy", ".float.tflite", ".int8.tflite")]
    if not all(path.exists() for path in paths):
        if not python:
            return None
        common.run([python, pathlib.Path(__file__).with_name("tflite_peer.py"), network, *paths])
    return paths


def speed(build, python, rounds, only):
    rows, bad = [], 0
    for network in KERAS:
        files = None if only and only not in network else by_theirs(python, network)
        if files is None:
            continue
        samples, plain, integer = files
        mine = KEPT / f"{network}.ours.tflite"
        common.run([build / "quench", "quantize", plain, "-o", mine, "--data", samples, "--limit",
                    CALIBRATE, "--quiet"])
        x = np.load(samples)
        runs = [timed(integer, x), timed(mine, x)]
        for run in runs * 3:
            run()
        times = np.array([[run() for run in runs] for _ in range(rounds)])
        ratio = statistics.median(times[:, 1] / times[:, 0])
        least = times.min(axis=0) * 1000
        bad += ratio > SLOWER
        rows.append([network, f"{least[0]:.3f}", f"{least[1]:.3f}", f"{ratio:.3f}",
                     f"{integer.stat().st_size / 1e6:.2f}", f"{mine.stat().st_size / 1e6:.2f}"])
    common.print_table(["network", "theirs, ms", "ours, ms", "ours / theirs", "theirs, MB",
                        "ours, MB"], rows)
    return rows, bad


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=common.SOURCE / "build/release")
    parser.add_argument("--tensorflow", type=pathlib.Path, help="a Python that has TensorFlow")
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--only", help="files and networks whose names have this")
    arguments = parser.parse_args()
    sys.path.insert(0, str(arguments.build / "python"))
    near, wrong = agreement(arguments.samples, arguments.only)
    right, less = accuracy(arguments.build, arguments.only)
    fast, slow = speed(arguments.build, arguments.tensorflow, arguments.rounds, arguments.only)
    common.write_results("litert.json", {"samples": arguments.samples, "agreement": near,
                                         "accuracy": right, "speed": fast})
    return 1 if wrong or less or slow else 0


if __name__ == "__main__":
    sys.exit(main())

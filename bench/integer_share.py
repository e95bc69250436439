#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What ONNX Runtime makes of our 8-bit files: the share of convolutions and matrix products that run
as integer operators in its optimised graph, and the latency of both files, side by side in one run.

    python3 bench/integer_share.py --build build/release

Exits with 1 where a network has a share below 95 %, or a convolutional one is slower than in float.
Ranges come from real samples where ../shared has some (they decide which channels are scaled, and
that costs time), and from noise elsewhere."""
import argparse
import collections
import pathlib
import statistics
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime

import accuracy_ort
import common

LAYERS = {"Conv", "FusedConv", "NhwcFusedConv", "MatMul", "FusedMatMul", "Gemm", "FusedGemm"}
INTEGERS = {"QLinearConv", "QLinearMatMul", "MatMulIntegerToFloat", "QGemm"}
LEAST_SHARE = 0.95
# Two runs of one file differ by this much.
NOISE = 1.03
SIZES = (1, 3, 320, 320)
SAMPLES = 32
WORDS = 24


def session(path, threads, optimised=None):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    if optimised:
        options.optimized_model_filepath = str(optimised)
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def noise_for(run, rng):
    feeds = {}
    for spec in run.get_inputs():
        words = spec.type != "tensor(float)"
        sizes = (1, WORDS) if words else SIZES
        shape = [d if isinstance(d, int) and d > 0 else sizes[min(i, len(sizes) - 1)]
                 for i, d in enumerate(spec.shape)]
        feeds[spec.name] = (rng.integers(1, 50, shape) if words
                            else rng.standard_normal(shape).astype(np.float32))
    return feeds


def samples_for(model, folder):
    """What to calibrate with, one set of inputs a row."""
    plain = session(model, 1)
    for _, name, read, _, _ in accuracy_ort.NETWORKS:
        if (accuracy_ort.MODELS / name).resolve() == model.resolve():
            x = read(model, folder)[0].calibrate[:SAMPLES]
            return [{plain.get_inputs()[0].name: x[i:i + 1]} for i in range(len(x))]
    rng = np.random.default_rng(7)
    return [noise_for(plain, rng) for _ in range(SAMPLES)]


def quantised(build, model, rows, form, folder):
    samples = folder / "samples.npz"
    np.savez(samples, **{name: np.concatenate([row[name] for row in rows]) for name in rows[0]})
    out = folder / f"{form}.onnx"
    common.run([build / "quench", "quantize", model, "-o", out, "--data", samples, "--batch", "1",
                "--no-bias-correction", "--format", form, "--quiet"])
    return out


def share_of(optimised):
    counts = collections.Counter(node.op_type for node in onnx.load(str(optimised)).graph.node)
    integers = sum(counts[op] for op in INTEGERS)
    layers = integers + sum(counts[op] for op in LAYERS)
    convolutional = counts["QLinearConv"] + counts["Conv"] > 0
    return integers, layers, convolutional, counts


def latencies(runs, feeds, seconds):
    """The median of each run's times, the runs taken in turn."""
    times = [[] for _ in runs]
    for run in runs:
        run.run(None, feeds)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < 5:
        for run, row in zip(runs, times):
            start = time.perf_counter()
            run.run(None, feeds)
            row.append(time.perf_counter() - start)
    return [1e3 * statistics.median(row) for row in times]


def prepare(model, arguments, folder):
    rows = samples_for(model, folder)
    out = quantised(arguments.build, model, rows, arguments.format, folder)
    optimised = folder / "optimised.onnx"
    run = session(out, arguments.threads, optimised)
    return model, run, share_of(optimised), rows[0]


def measure(model, run, share, feeds, arguments):
    integers, layers, convolutional, counts = share
    plain = session(model, arguments.threads)
    in_float, in_int8 = latencies([plain, run], feeds, arguments.seconds)
    slow = convolutional and in_int8 > NOISE * in_float
    return {"model": model.name, "integers": integers, "layers": layers,
            "float_ms": in_float, "int8_ms": in_int8, "convolutional": convolutional,
            "operators": dict(counts), "ok": integers >= LEAST_SHARE * layers and not slow}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, default=common.SOURCE / "build/release")
    parser.add_argument("--format", default="qdq", choices=("qdq", "qoperator"))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3, help="for each network")
    arguments = parser.parse_args()
    models = arguments.models or sorted((common.SHARED / "models").glob("**/*.onnx"))
    if not models:
        sys.exit("no models: give files, or set QUENCH_SHARED")
    with tempfile.TemporaryDirectory() as folder:
        ready = []
        for index, model in enumerate(models):
            inner = pathlib.Path(folder) / str(index)
            inner.mkdir()
            ready.append(prepare(model, arguments, inner))
        rows = [measure(*each, arguments) for each in ready]
    common.print_table(
        ["network", "layers on integers", "share", "float ms", "int8 ms", "int8 / float", ""],
        [[row["model"], f"{row['integers']} of {row['layers']}",
          f"{row['integers'] / max(1, row['layers']):.0%}", f"{row['float_ms']:.2f}",
          f"{row['int8_ms']:.2f}", f"{row['int8_ms'] / row['float_ms']:.2f}",
          "" if row["ok"] else "MISSED"] for row in rows])
    common.write_results(f"integer_share_{arguments.format}.json", {"rows": rows})
    return 0 if all(row["ok"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times a model in ONNX Runtime as `quench bench` does, and prints the same JSON keys.

    ort_bench.py MODEL --batch 1 --threads 2 [--shape NAME=1,3,48,192] [--save DIR]
"""
import argparse
import json
import pathlib
import time

import numpy
import onnxruntime

TYPES = {"tensor(float)": numpy.float32, "tensor(int64)": numpy.int64,
         "tensor(int32)": numpy.int32}


def memory_kb(key):
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1])
    raise RuntimeError(f"/proc/self/status has no {key}")


def reset_peak():
    """From now on VmHWM is the peak since this call."""
    pathlib.Path("/proc/self/clear_refs").write_text("5")


def shape_of(declared, batch, given):
    if given:
        return given
    return [size if isinstance(size, int) else (batch if index == 0 else 1)
            for index, size in enumerate(declared)]


def make_feeds(session, batch, shapes, seed=1):
    random = numpy.random.default_rng(seed)
    feeds = {}
    for value in session.get_inputs():
        shape = shape_of(value.shape, batch, shapes.get(value.name))
        kind = TYPES[value.type]
        if kind == numpy.float32:
            feeds[value.name] = random.standard_normal(shape, dtype=numpy.float32)
        else:
            feeds[value.name] = random.integers(0, 2, shape, dtype=kind)
    return feeds


def open_session(path, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def time_runs(session, feeds, arguments):
    for _ in range(arguments.warmup):
        session.run(None, feeds)
    times = []
    start = time.perf_counter()
    while len(times) < arguments.runs:
        begin = time.perf_counter()
        session.run(None, feeds)
        end = time.perf_counter()
        times.append((end - begin) * 1000)
        if end - start > arguments.max_seconds and len(times) >= 3:
            break
    return times


def parse_shapes(words):
    shapes = {}
    for word in words:
        name, dims = word.rsplit("=", 1)
        shapes[name] = [int(size) for size in dims.split(",")]
    return shapes


def save(session, feeds, folder):
    """Writes inputs and outputs as .npy, for a comparison."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    names = [value.name for value in session.get_outputs()]
    index = {"inputs": {}, "outputs": {}}
    for kind, items in (("inputs", feeds.items()),
                        ("outputs", zip(names, session.run(None, feeds)))):
        for number, (name, array) in enumerate(items):
            path = folder / f"{kind}_{number}.npy"
            numpy.save(path, array)
            index[kind][name] = str(path)
    print(json.dumps(index))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--max-seconds", type=float, default=10)
    parser.add_argument("--shape", action="append", default=[])
    parser.add_argument("--save", help="write inputs and outputs to this folder, time nothing")
    arguments = parser.parse_args()
    shapes = parse_shapes(arguments.shape)

    reset_peak()
    before_kb = memory_kb("VmRSS")
    begin = time.perf_counter()
    session = open_session(arguments.model, arguments.threads)
    load_ms = (time.perf_counter() - begin) * 1000
    feeds = make_feeds(session, arguments.batch, shapes)
    if arguments.save:
        save(session, feeds, arguments.save)
        return
    times = time_runs(session, feeds, arguments)
    print(json.dumps({
        "model": arguments.model, "batch": arguments.batch, "threads": arguments.threads,
        "runs": len(times), "median_ms": float(numpy.median(times)),
        "p95_ms": float(numpy.percentile(times, 95)), "min_ms": min(times), "load_ms": load_ms,
        "peak_rss_mb": (memory_kb("VmHWM") - before_kb) / 1024,
        "version": onnxruntime.__version__}))


if __name__ == "__main__":
    main()

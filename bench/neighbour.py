#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Latency beside a neighbour: a process that takes half of one core, pinned to it or not.

Each network, float and int8, is timed in turns with 1 thread, with 2, and in ONNX Runtime with 2,
all while the neighbour works; the median over the rounds of each side's medians counts.
"""
import argparse
import contextlib
import math
import os
import pathlib
import statistics
import subprocess
import sys

import common
import int8

# Busy for half of every period of its own processor time, and awake again on time.
NEIGHBOUR = """
import os, sys, time
share, period, core = float(sys.argv[1]), 0.01, int(sys.argv[2])
if core >= 0:
    os.sched_setaffinity(0, {core})
while True:
    end = time.process_time() + share * period
    while time.process_time() < end:
        pass
    time.sleep((1 - share) * period)
"""
SIDES = ("one", "two", "ort")


@contextlib.contextmanager
def neighbour(share, core):
    if share == 0:
        yield
        return
    process = subprocess.Popen([sys.executable, "-c", NEIGHBOUR, str(share), str(core)])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def measure(path, words, options):
    """Median latency of each side in ms."""
    flags = [*words, "--runs", options.runs, "--warmup", 10, "--max-seconds", options.max_seconds]
    quench = [options.build / "quench", "bench", path, "--json"]
    commands = {"one": [*quench, *flags, "--threads", 1], "two": [*quench, *flags, "--threads", 2],
                "ort": [sys.executable, int8.RUNNER, path, *flags, "--threads", 2]}
    times = {side: [] for side in SIDES}
    for _ in range(options.rounds):
        for side in SIDES:
            times[side].append(common.run_json(commands[side])["median_ms"])
    return {side: statistics.median(values) for side, values in times.items()}


def models(options):
    """Name and path of every network, float and 8-bit, with the shapes it is timed at."""
    for name, how, _ in int8.MODELS:
        if options.only not in name:
            continue
        source = int8.float_model(name, options.build)
        if not source.exists():
            print(f"{source} is absent: passed over", file=sys.stderr)
            continue
        words = ["--batch", 1, *int8.shape_words(name, how, source, 1, options)]
        yield f"{name}, float", source, words
        yield f"{name}, int8", int8.int8_model(name, how, source, options), words


def geometric_mean(values):
    return math.exp(sum(math.log(value) for value in values) / len(values))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=common.SOURCE / "build/release")
    parser.add_argument("--share", type=float, default=0.5, help="of one core; 0: no neighbour")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--max-seconds", type=float, default=1.5)
    parser.add_argument("--only", default="", help="models whose name contains this")
    options = parser.parse_args()
    common.RESULTS.mkdir(parents=True, exist_ok=True)
    items = []
    for name, path, words in models(options):
        for pinned in (True, False):
            with neighbour(options.share, os.cpu_count() - 1 if pinned else -1):
                times = measure(path, words, options)
            items.append({"model": name, "pinned": pinned, **times})
            print(name, pinned, times, file=sys.stderr, flush=True)
    rows = [[item["model"], "pinned" if item["pinned"] else "free",
             *(f"{item[side]:.2f}" for side in SIDES), f"{item['two'] / item['one']:.2f}",
             f"{item['two'] / item['ort']:.2f}"] for item in items]
    common.print_table(["model", "neighbour", "1 thread", "2 threads", "ort, 2", "2 / 1",
                        "2 / ort"], rows)
    means = {other: geometric_mean([item["two"] / item[other] for item in items])
             for other in ("one", "ort")}
    print(f"\ngeometric means: 2 threads / 1 thread {means['one']:.2f} (goal 1.05), "
          f"2 threads / ONNX Runtime {means['ort']:.2f} (goal 1.0)")
    common.write_results("neighbour.json", {"share": options.share, "items": items, **means})


if __name__ == "__main__":
    main()

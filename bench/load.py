#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long a 500 MB model takes to read and how much memory; how fast the small commands answer."""
import argparse
import os
import pathlib
import statistics
import subprocess
import time

import common


def timed(words):
    """Milliseconds and peak resident kB of a program."""
    begin = time.perf_counter()
    with subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        end = time.perf_counter()
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(str(word) for word in words)} exited with "
                           f"{process.returncode}")
    return (end - begin) * 1000, usage.ru_maxrss


def measure(words, runs):
    timed(words)  # warms the cache
    results = [timed(words) for _ in range(runs)]
    return {"median_ms": statistics.median(result[0] for result in results),
            "min_ms": min(result[0] for result in results),
            "peak_mb": max(result[1] for result in results) * 1024 / 1e6}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=common.SOURCE / "build/release")
    parser.add_argument("--size-mb", type=int, default=500)
    options = parser.parse_args()
    quench = options.build / "quench"
    size = str(options.size_mb)
    inside = common.generated(options.build, f"big{size}.onnx", ["big", "--size-mb", size])
    external = common.generated(options.build, f"big{size}_external.onnx",
                                ["big", "--size-mb", size, "--external"])
    small = common.SOURCE / "examples/data/fashion.onnx"
    cases = [
        ("--help", [quench, "--help"], 20, 50), ("list", [quench, "list", "operators"], 20, 50),
        ("inspect, small model", [quench, "inspect", small], 20, 50),
        (f"inspect, {size} MB in one file", [quench, "inspect", inside], 5, 500),
        (f"inspect, {size} MB external", [quench, "inspect", external], 5, 500)]
    rows = []
    results = {}
    for name, words, runs, goal in cases:
        result = measure(words, runs)
        results[name] = {**result, "goal_ms": goal}
        rows.append([name, f"{result['median_ms']:.1f}", f"{result['min_ms']:.1f}", str(goal),
                     f"{result['peak_mb']:.1f}"])
    common.print_table(["command", "median ms", "min ms", "goal ms", "peak MB"], rows)
    ratio = results[cases[3][0]]["peak_mb"] * 1e6 / inside.stat().st_size
    print(f"\npeak memory over file size: {ratio:.2f} (goal 1.2)")
    common.write_results("load.json", {"commands": results, "peak_over_file": ratio})


if __name__ == "__main__":
    main()

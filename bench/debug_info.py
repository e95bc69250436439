#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What --debug-info costs, in passes of calibration over the same samples (at most 3)."""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import time

import common

IMAGES = ["--preset", "imagenet"]
GOAL = 3


def process(words):
    """Wall clock and processor seconds of a program."""
    start = time.perf_counter()
    running = subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(running.pid, 0)
    running.returncode = os.waitstatus_to_exitcode(status)
    if running.returncode:
        sys.exit(f"{words} exited with {running.returncode}")
    return {"wall": time.perf_counter() - start, "processor": usage.ru_utime + usage.ru_stime}


def best(runs, words):
    """The least of each figure: others only ever add to it."""
    found = [process(words) for _ in range(runs)]
    return {key: min(run[key] for run in found) for key in found[0]}


def measure(quench, model, samples, runs):
    data = ["--data", common.SHARED / "data/imagenet-mini/calib", "--quiet", *IMAGES]
    out = common.RESULTS / "debugged.onnx"
    folder = common.RESULTS / "debug_tables"
    few = max(1, samples // 5)
    passes = {}
    for limit in (few, samples):
        passes[limit] = best(runs, [quench, "calibrate", model, "-o", f"{out}.stats", "--limit",
                                    limit, *data])
    words = [quench, "quantize", model, "-o", out, "--limit", samples, *data]
    plain = best(runs, words)
    shutil.rmtree(folder, ignore_errors=True)
    tables = best(runs, [*words, "--debug-info", folder])
    row = {"model": model.stem, "samples": samples}
    for key in ("wall", "processor"):
        one = (passes[samples][key] - passes[few][key]) * samples / (samples - few)
        row[f"pass_{key}_s"] = one
        row[f"tables_{key}_s"] = tables[key] - plain[key]
        row[f"passes_{key}"] = (tables[key] - plain[key]) / one
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=common.SOURCE / "build/release")
    parser.add_argument("--samples", type=int, default=60)
    parser.add_argument("--runs", type=int, default=2)
    flags = parser.parse_args()
    common.RESULTS.mkdir(parents=True, exist_ok=True)
    rows = [measure(flags.build / "quench", common.SHARED / "models" / f"{name}.onnx",
                    flags.samples, flags.runs) for name in ("mobilenet_v2", "squeezenet1.1")]
    common.print_table(
        ["network", "samples", "a pass, s", "the tables, s", "passes", "passes, processor"],
        [[row["model"], str(row["samples"]), f"{row['pass_wall_s']:.2f}",
          f"{row['tables_wall_s']:.2f}", f"{row['passes_wall']:.2f}",
          f"{row['passes_processor']:.2f}"] for row in rows])
    common.write_results("debug_info.json", {"goal": GOAL, "rows": rows})


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What calibration costs: beside a plain run, beside ONNX Runtime's tool, and with more samples."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

import common

IMAGES = ["--resize-shorter", "256", "--center-crop", "224,224", "--mean", "123.675,116.28,103.53",
          "--std", "58.395,57.12,57.375"]
RUNNER = pathlib.Path(__file__).resolve().parent / "ort_quantize.py"
# Model, and the most that a calibration pass may take of a plain one's time.
PASSES = [("mobilenet_v2", 1.8), ("resnet50", 1.3)]


def whole_process(words):
    """Seconds and peak memory in MB of a program from start to end."""
    start = time.perf_counter()
    process = subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{words} exited with {process.returncode}")
    return {"seconds": time.perf_counter() - start, "peak_rss_mb": usage.ru_maxrss / 1024}


def passes(build):
    """Calibration passes beside plain ones."""
    for name, goal in PASSES:
        path = (common.generated(build, "resnet50.onnx", ["resnet50"]) if name == "resnet50" else
                common.SHARED / "models" / f"{name}.onnx")
        result = common.run_json([build / "quench_bench_calibration", path])
        yield {"model": name, "goal": goal, **result}


def quantize(build, folder, limit, *words):
    return whole_process([build / "quench", "quantize", common.SHARED / "models/mobilenet_v2.onnx",
                          "-o", common.RESULTS / "calibrated.onnx", "--data", folder, "--limit",
                          limit, "--quiet", *IMAGES, *words])


def beside_ort(build):
    """The whole job beside ONNX Runtime's, whose samples are prepared beforehand."""
    model = common.SHARED / "models/mobilenet_v2.onnx"
    data = common.SHARED / "data/imagenet-mini/calib"
    common.RESULTS.mkdir(parents=True, exist_ok=True)
    samples = common.RESULTS / "calibration.npy"
    common.run([build / "quench_samples", model, samples, "--data", data, "--limit", 100,
                *IMAGES])
    ours = min((quantize(build, data, 100, "--activation-observer", "KL") for _ in range(2)),
               key=lambda run: run["seconds"])
    name = common.run_json([build / "quench", "inspect", model, "--json"])["inputs"][0]["name"]
    said = common.run([sys.executable, RUNNER, model, samples, common.RESULTS / "ort_int8.onnx",
                       name])
    theirs = json.loads(said.splitlines()[-1])  # its tool prints progress before
    return {"ours": ours, "theirs": theirs, "times_faster": theirs["seconds"] / ours["seconds"],
            "memory_share": ours["peak_rss_mb"] / theirs["peak_rss_mb"]}


def ranges(build):
    """Choosing the ranges of every tensor with four observers, from statistics."""
    common.RESULTS.mkdir(parents=True, exist_ok=True)
    path = common.RESULTS / "mobilenet_v2.stats"
    common.run([build / "quench", "calibrate", common.SHARED / "models/mobilenet_v2.onnx", "-o",
                path, "--data", common.SHARED / "data/imagenet-mini/calib", "--limit", 100,
                "--quiet", *IMAGES])
    return common.run_json([build / "quench_bench_ranges", path])


def memory(build):
    """Peak memory with 50 and with 400 images."""
    folder = common.SHARED / "data/imagenet-mini/eval"
    few, many = (quantize(build, folder, limit)["peak_rss_mb"] for limit in (50, 400))
    return {"mb_with_50": few, "mb_with_400": many, "growth": many / few - 1}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=common.SOURCE / "build/release")
    parser.add_argument("--only", choices=["passes", "ranges", "ort", "memory"])
    options = parser.parse_args()
    results = {}
    rows = []
    if options.only in (None, "passes"):
        results["passes"] = list(passes(options.build))
        rows += [[f"calibration pass, {each['model']}, times a plain run",
                  f"{each['ratio']:.2f}", f"<= {each['goal']}"] for each in results["passes"]]
    if options.only in (None, "ranges"):
        results["ranges"] = chosen = ranges(options.build)
        rows += [[f"ranges of {chosen['tensors']} tensors by KL, mse, emd and hist, seconds",
                  f"{chosen['seconds']:.3f}", "< 1"]]
    if options.only in (None, "ort"):
        results["ort"] = both = beside_ort(options.build)
        rows += [["mobilenet_v2, 100 images, seconds: ours",
                  f"{both['ours']['seconds']:.2f}", ""],
                 ["ONNX Runtime's", f"{both['theirs']['seconds']:.2f}", ""],
                 ["times faster", f"{both['times_faster']:.1f}", ">= 10"],
                 ["peak memory, MB: ours", f"{both['ours']['peak_rss_mb']:.0f}", ""],
                 ["ONNX Runtime's", f"{both['theirs']['peak_rss_mb']:.0f}", ""],
                 ["share", f"{both['memory_share']:.3f}", "<= 0.1"]]
    if options.only in (None, "memory"):
        results["memory"] = grown = memory(options.build)
        rows += [["peak memory, 50 images, MB", f"{grown['mb_with_50']:.0f}", ""],
                 ["peak memory, 400 images, MB", f"{grown['mb_with_400']:.0f}", ""],
                 ["growth", f"{grown['growth'] * 100:.1f} %", "<= 5 %"]]
    common.print_table(["what", "measured", "goal"], rows)
    common.write_results("calibration.json", results)


if __name__ == "__main__":
    main()

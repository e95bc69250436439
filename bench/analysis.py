#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an analysis costs: statistics and plots of MobileNetV2 beside its calibration pass, and the
HTML report of a network of 300 layers: its size, and when headless Chromium shows it with its data.
"""
import argparse
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

import numpy as np
import onnx

import common

IMAGES = ["--resize-shorter", "256", "--center-crop", "224,224", "--mean", "123.675,116.28,103.53",
          "--std", "58.395,57.12,57.375"]
LAYERS = 300
MOST_PASSES, MOST_MB, MOST_SECONDS = 3, 6, 2


def measure_statistics(quench, rounds):
    """Seconds of calibration and of everything, the round with the median ratio."""
    found = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            found.append(common.run_json(
                [quench, "analyze", "statistics", common.SHARED / "models/mobilenet_v2.onnx",
                 "--data", common.SHARED / "data/imagenet-mini/calib", "--limit", 100, "-o", folder,
                 "--quiet", "--json", *IMAGES]))
    return sorted(found, key=lambda each: each["seconds"] / each["calibration_seconds"])[rounds // 2]


def chain(path):
    """A network of convolutions, each with an activation."""
    make, random = onnx.helper, np.random.default_rng(5)
    nodes, weights, value = [], [], "x"
    for at in range(LAYERS):
        channels = 3 if at == 0 else 16
        weight = random.standard_normal((16, channels, 3, 3)) / np.sqrt(channels * 4.5)
        weights.append(onnx.numpy_helper.from_array(weight.astype(np.float32), f"w{at}"))
        nodes += [make.make_node("Conv", [value, f"w{at}"], [f"c{at}"], pads=[1, 1, 1, 1],
                                 name=f"backbone/stage_{at // 50}/block_{at}/conv"),
                  make.make_node("Relu", [f"c{at}"], [f"r{at}"], name=f"relu_{at}")]
        value = f"r{at}"
    graph = make.make_graph(
        nodes, "chain", [make.make_tensor_value_info("x", 1, ["n", 3, 8, 8])],
        [make.make_tensor_value_info(value, 1, ["n", 16, 8, 8])], weights)
    onnx.save(make.make_model(graph, opset_imports=[make.make_opsetid("", 13)], ir_version=8),
              str(path))


def first_paint(page, folder, rounds):
    """Milliseconds from the start of loading until the page has drawn its data; the median."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        return None
    times = []
    for number in range(rounds):
        dom = subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--timeout=20000", f"--user-data-dir={folder / f'profile{number}'}", "--dump-dom",
             page.as_uri()], capture_output=True, text=True, timeout=100, check=True).stdout
        times.append(int(re.search(r'data-ready="(\d+)"', dom)[1]))
    return statistics.median(times)


def measure_report(quench, rounds):
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        chain(folder / "chain.onnx")
        np.save(folder / "x.npy", np.random.default_rng(6).standard_normal((16, 3, 8, 8)).astype(
            np.float32))
        common.run([quench, "analyze", "sensitivity", folder / "chain.onnx", "--data",
                    folder / "x.npy", "-o", folder, "--quiet", "--report", folder / "report.html"])
        page = folder / "report.html"
        return page.stat().st_size / 1e6, first_paint(page, folder, rounds)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    quench = common.SOURCE / "build/release/quench"
    rows, missed, results = [], False, {}

    def add(what, value, most):
        nonlocal missed
        missed = missed or value > most
        results[what] = {"value": value, "at_most": most}
        rows.append([what, f"{value:.2f}", f"{most}"])

    if (common.SHARED / "models/mobilenet_v2.onnx").exists():
        found = measure_statistics(quench, options.rounds)
        add("statistics and plots, in calibration passes",
            found["seconds"] / found["calibration_seconds"], MOST_PASSES)
    size, paint = measure_report(quench, options.rounds)
    add(f"report of {LAYERS} layers, MB", size, MOST_MB)
    if paint is None:
        print("no Chromium here: the report is not opened")
    else:
        add("its first paint with data, s", paint / 1000, MOST_SECONDS)
    common.print_table(["what", "measured", "at most"], rows)
    common.write_results("analysis.json", results)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our post-training quantisation beside that of Paddle's own tool (PaddleSlim's quant_post_static):
the same calibration samples, the same algorithm names, both results run in Paddle Inference with
Q/DQ emulated, both jobs timed as whole processes.

  paddleslim.py --python ENVIRONMENT/bin/python [--only A,B] [--algos hist,KL] [--write]

The environment has `paddlepaddle` 2.6."""
import argparse
import os
import pathlib
import subprocess
import tempfile
import time

import common
from accuracy_ort import MODELS, NETWORKS, joined
from in_paddle import run_paddle

import numpy as np

BUILD = pathlib.Path(os.environ.get("QUENCH_BINARY", common.SOURCE / "build/release"))
HERE = pathlib.Path(__file__).parent
ALGOS = ("abs_max", "avg", "hist", "KL", "mse", "emd")
# What our quant_post_static does with its defaults, which are PaddleSlim's: three kinds of layers,
# every sample calibrates, weights by their largest number, no biases corrected. PaddleSlim has no
# parameter for equalisation, and ours equalises where samples say that it helps.
SAME_JOB = ("--op-types", "Conv,MatMul,Gemm", "--held-out", "0", "--hist-percent", "0.9999",
            "--weight-observer", "channel_wise_abs_max", "--bias-correction", "none")
PADDLE = {"ppocr_v2_cls": "ch_ppocr_mobile_v2.0_cls", "ppocrv4_det": "ppocrv4_det",
          "pplcnet_x0_25_textline_ori": "PP-LCNet_x0_25_textline_ori"}
TITLE = "Beside PaddleSlim"
TEXT = """Made by `bench/paddleslim.py --write`: the same calibration samples, algorithms and settings
(those of `quant_post_static`), each result run in Paddle Inference {version} with Q/DQ emulated; `ours / theirs`: wall time and peak
memory of the whole job.

"""


def timed(words):
    """Seconds and peak bytes of a process."""
    start = time.perf_counter()
    process = subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True)
    error = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise RuntimeError(error.strip().splitlines()[-1])
    return time.perf_counter() - start, usage.ru_maxrss * 1024


def measure(network, options):
    name, file, read, what, score = network
    source = MODELS / "paddle" / PADDLE[name]
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        parts = read(MODELS / file, folder)[:1 if name.endswith("det") else 2]
        model = folder / "float/inference.pdmodel"
        model.parent.mkdir()
        common.run([BUILD / "quench", "convert", source, "-o", model])
        inputs = common.run_json([BUILD / "quench", "inspect", model, "--json"])["inputs"]
        label = inputs[0]["name"]
        truth = [one for part in parts for one in part.truth[:options.limit]]
        base = joined([run_paddle(options.python, model, {label: part.score[:options.limit]}, folder,
                                  "plain")[0] for part in parts])
        for algo in options.algos.split(","):
            try:
                yield algo_row(network, algo, parts, model, label, base, folder, options)
            except RuntimeError as error:  # Paddle's tool fails on scalars with avg
                yield [name, algo, what, f"{score(base, truth):.2f}", str(error)[:60], "", "", ""]


def algo_row(network, algo, parts, model, label, base, folder, options):
    name, _, _, what, score = network
    truth = [one for part in parts for one in part.truth[:options.limit]]
    found, cost = {"ours": [], "theirs": []}, {"ours": [], "theirs": []}
    for part in parts:
        samples = part.calibrate[:options.samples]
        np.savez(folder / "calibrate.npz", **{label: samples})
        ours, theirs = folder / "ours/model.pdmodel", folder / "theirs/model.pdmodel"
        ours.parent.mkdir(exist_ok=True)
        cost["theirs"].append(timed(
            [options.python, HERE / "paddleslim_peer.py", model,
             model.with_suffix(".pdiparams"), folder / "calibrate.npz", algo, theirs.parent]))
        cost["ours"].append(timed(
            [BUILD / "quench", "quantize", model, "-o", ours, "--target", "paddle", "--data",
             folder / "calibrate.npz", "--activation-observer", algo, *SAME_JOB, "--quiet"]))
        for who, path in (("ours", ours), ("theirs", theirs)):
            found[who].append(run_paddle(options.python, path,
                                         {label: part.score[:options.limit]}, folder,
                                         "plain")[0])
    seconds, memory = (sum(each[i] for each in cost["ours"]) /
                       sum(each[i] for each in cost["theirs"]) for i in (0, 1))
    return [name, algo, what, f"{score(base, truth):.2f}",
           f"{score(joined(found['theirs']), truth):.2f}",
           f"{score(joined(found['ours']), truth):.2f}", f"{seconds:.2f}", f"{memory:.2f}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--python", required=True, help="of an environment with paddlepaddle 2.6")
    parser.add_argument("--only", default="", help="networks whose name contains one of A,B")
    parser.add_argument("--algos", default=",".join(ALGOS))
    parser.add_argument("--samples", type=int, default=16, help="to calibrate with")
    parser.add_argument("--limit", type=int, default=150, help="samples to score of each part")
    parser.add_argument("--write", action="store_true", help="put the table into docs/results.md")
    options = parser.parse_args()
    version = common.run([options.python, "-c", "import paddle; print(paddle.__version__)"])
    version = version.strip().splitlines()[-1]
    titles = ["network", "algo", "score", "float", "PaddleSlim", "Quench", "time, ours / theirs",
              "memory, ours / theirs"]
    rows = [row for each in NETWORKS if each[0] in PADDLE and
            (not options.only or any(word in each[0] for word in options.only.split(",")))
            for row in measure(each, options)]
    common.print_table(titles, rows)
    common.write_results("paddleslim.json", {"rows": rows, "paddle": version})
    if options.write:
        common.write_section(common.SOURCE / "docs/results.md", TITLE, TEXT.format(version=version) +
                             common.markdown_table(titles, rows))


if __name__ == "__main__":
    main()

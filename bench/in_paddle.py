#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Quantised models written for Paddle Inference: its answers beside our own run of the same model,
the score, and float / int8 latency there (one thread).

  in_paddle.py --python ENVIRONMENT/bin/python [--only A,B] [--write]

The environment has `paddlepaddle`. Models are quantised with --target paddle."""
import argparse
import json
import os
import pathlib
import tempfile

import numpy as np

import common
from accuracy_ort import MODELS, NETWORKS, joined, mean_cosine

BUILD = pathlib.Path(os.environ.get("QUENCH_BINARY", common.SOURCE / "build/release"))
TITLE = "In Paddle Inference"
TEXT = """Made by `bench/in_paddle.py --write`, Paddle {version}, one thread. `same` and `cosine`: its
emulated run beside our own run of the same file. `cosine, Paddle`: its emulated run beside the same
file on its own float kernels of oneDNN, which differ in the last digits only: what a network makes of
that no other runtime can be below. `ms`: the best run of one sample.

"""
RUNS = 30
WAYS = ("plain", "float", "int8")


def run_paddle(python, program, feeds, folder, way, runs=RUNS):
    np.savez(folder / "in.npz", **feeds)
    common.run([python, pathlib.Path(__file__).parent / "paddle_runtime.py", program,
                program.with_suffix(".pdiparams"), folder / "in.npz", folder / "out.npz", way, runs])
    made = dict(np.load(folder / "out.npz"))
    milliseconds = float(made.pop("milliseconds"))
    return [made[str(i)] for i in range(len(made))], milliseconds


def run_ours(program, feeds, folder):
    made = []
    for i in range(len(next(iter(feeds.values())))):
        words = [BUILD / "quench", "run", program, "-o", folder / "ours", "--quiet"]
        for name, x in feeds.items():
            np.save(folder / "one.npy", x[i:i + 1])
            words += ["--input", f"{name}={folder / 'one.npy'}"]
        common.run(words)
        files = json.loads((folder / "ours/index.json").read_text())
        made.append([np.load(folder / "ours" / entry["file"]) for entry in files.values()])
    return [np.concatenate(each) for each in zip(*made)]


def same_answers(a, b):
    """Classes of the last axis, or for maps which values exceed a half."""
    if a.ndim > 2:
        return 100 * float(np.mean((a > 0.5) == (b > 0.5)))
    return 100 * float(np.mean(a.argmax(-1) == b.argmax(-1)))


def measure(network, options):
    name, file, read, what, score = network
    model = MODELS / file
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        parts = read(model, folder)
        input_name = common.run_json([BUILD / "quench", "inspect", model, "--json"])["inputs"][0]["name"]
        common.run([BUILD / "quench", "convert", model, "-o", folder / "float.pdmodel"])
        found = {way: [] for way in (*WAYS, "ours", "again")}
        times = {}
        for part in parts:
            np.save(folder / "calibrate.npy", part.calibrate)
            common.run([BUILD / "quench", "quantize", model, "-o", folder / "int8.pdmodel", "--target",
                        "paddle", "--data", folder / "calibrate.npy", "--quiet"])
            feeds = {input_name: part.score[:options.limit]}
            for way in WAYS:
                made, times[way] = run_paddle(options.python, folder / "int8.pdmodel" if way != "float"
                                              else folder / "float.pdmodel", feeds, folder, way)
                found[way].append(made)
            found["again"].append(run_paddle(options.python, folder / "int8.pdmodel", feeds, folder,
                                             "float")[0])
            found["ours"].append(run_ours(folder / "int8.pdmodel", feeds, folder))
        truth = [one for part in parts if part.truth is not None
                 for one in part.truth[:options.limit]]
        made = {way: joined(each) for way, each in found.items() if each}
    points = {way: f"{score(each, truth):.2f}" if score else "" for way, each in made.items()}
    return [name, what, points["float"], points["ours"], points["plain"], points["int8"],
            f"{same_answers(made['plain'][0], made['ours'][0]):.2f}",
            f"{min(mean_cosine(a, b) for a, b in zip(made['plain'], made['ours'])):.5f}",
            f"{min(mean_cosine(a, b) for a, b in zip(made['plain'], made['again'])):.5f}",
            f"{times['float']:.2f}", f"{times['int8']:.2f}",
            f"{times['float'] / times['int8']:.2f}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--python", required=True, help="of an environment with paddlepaddle")
    parser.add_argument("--only", default="", help="networks whose name contains one of A,B")
    parser.add_argument("--limit", type=int, default=100, help="samples of each part")
    parser.add_argument("--write", action="store_true", help="put the table into docs/results.md")
    options = parser.parse_args()
    version = common.run([options.python, "-c", "import paddle; print(paddle.__version__)"])
    titles = ["network", "score", "float", "ours int8", "Paddle, emulated", "Paddle, int8", "same %",
              "cosine", "cosine, Paddle", "float ms", "int8 ms", "float / int8"]
    rows = [measure(each, options) for each in NETWORKS
            if not options.only or any(word in each[0] for word in options.only.split(","))]
    common.print_table(titles, rows)
    common.write_results("paddle.json", {"rows": rows, "paddle": version.strip().splitlines()[-1]})
    if options.write:
        common.write_section(common.SOURCE / "docs/results.md", TITLE,
                             TEXT.format(version=version.strip().splitlines()[-1]) +
                             common.markdown_table(titles, rows))


if __name__ == "__main__":
    main()

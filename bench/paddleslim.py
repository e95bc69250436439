#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our post-training quantisation beside that of Paddle's own tool (PaddleSlim's quant_post_static):
the same calibration samples, the same algorithm names, both results run in Paddle Inference with
Q/DQ emulated, both jobs timed as whole processes.

  paddleslim.py --python ENVIRONMENT/bin/python [--only A,B] [--algos hist,KL] [--sets 3] [--write]

What PaddleSlim made stays in build/bench/paddleslim for the next time.

The environment has `paddlepaddle` 2.6."""
import argparse
import json
import os
import pathlib
import subprocess
import tempfile

import common
from accuracy_ort import MODELS, NETWORKS, joined
from in_paddle import run_paddle

import numpy as np

BUILD = pathlib.Path(os.environ.get("QUENCH_BINARY", common.SOURCE / "build/release"))
HERE = pathlib.Path(__file__).parent
ALGOS = ("abs_max", "avg", "hist", "KL", "mse", "emd")
# Our quant_post_static with its defaults, which are PaddleSlim's. That has no parameter for
# equalisation, and ours equalises where samples say that it helps.
PADDLE = {"ppocr_v2_cls": "ch_ppocr_mobile_v2.0_cls", "ppocrv4_det": "ppocrv4_det",
          "pplcnet_x0_25_textline_ori": "PP-LCNet_x0_25_textline_ori"}
TITLE = "Beside PaddleSlim"
TEXT = """Made by `bench/paddleslim.py --write`: the same calibration samples, algorithms and settings
(those of `quant_post_static`), means over {sets} calibration sets (between what they lie), each result
run in Paddle Inference {version} with Q/DQ emulated and on oneDNN's integer kernels; `ours / theirs`:
processor time and peak memory of the whole job, PaddleSlim's search for KL's thresholds sped up and
on one thread. One line is 0.33 points, one box of a page about 1.

Paddle's tool fails on the direction classifier with `avg`, and on integers its detection files do not
run: their transposed convolutions have int8 weights, ours stay in float. Else the same types are
rounded in both: what the six listed ones read. Ours evens out channels, which PaddleSlim cannot:
PP-LCNet has channels of 900 beside channels of 1 behind hard-swish, and with one scale for all the
small ones are lost, and the network with them (two classes, so 50 is chance).

Of our peak on the text lines nearly all is there once the engine is loaded, whatever the network:
libraries that Debian's libtorch links, and its table of operators. A fifth of PaddleSlim's is less
than that floor.

"""


def timed(words):
    """Seconds of processor time and peak bytes of a process."""
    process = subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True)
    error = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise RuntimeError(error.strip().splitlines()[-1])
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def drawn(calibrate, number, options):
    """A calibration set: some of the samples, at most three quarters of them."""
    order = np.random.default_rng(number).permutation(len(calibrate))
    return calibrate[np.sort(order[:min(options.samples, 3 * len(calibrate) // 4)])]


def theirs(model, samples, algo, where, options):
    """PaddleSlim's model and what it cost; made once, for it is slow and does not depend on us."""
    if not (where / "cost.json").exists():
        where.mkdir(parents=True, exist_ok=True)
        cost = timed([options.python, HERE / "paddleslim_peer.py", model,
                      model.with_suffix(".pdiparams"), samples, algo, where])
        (where / "cost.json").write_text(json.dumps(cost))
    return where / "model.pdmodel", json.loads((where / "cost.json").read_text())


def ours(model, samples, algo, where):
    cost = timed([BUILD / "quench_post_static", model, samples, algo, where])
    return where / "model.pdmodel", cost


def measure(network, options):
    name, file, read, what, score = network
    source = MODELS / "paddle" / PADDLE[name]
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        parts = read(MODELS / file, folder)[:2]
        model = folder / "float/inference.pdmodel"
        model.parent.mkdir()
        common.run([BUILD / "quench", "convert", source, "-o", model])
        inputs = common.run_json([BUILD / "quench", "inspect", model, "--json"])["inputs"]
        label = inputs[0]["name"]
        truth = [one for part in parts for one in part.truth[:options.limit]]

        def points(models, way="plain"):
            found = [run_paddle(options.python, each, {label: part.score[:options.limit]}, folder,
                                way, 0)[0] for each, part in zip(models, parts)]
            return score(joined(found), truth)

        def job(part, number, algo):
            samples = folder / "calibrate.npz"
            np.savez(samples, **{label: drawn(parts[part].calibrate, number, options)})
            kept = common.RESULTS / f"paddleslim/{name}-{algo}-{number}-{part}"
            return (theirs(model, samples, algo, kept, options),
                    ours(model, samples, algo, folder / f"ours{part}"))

        base = points([model] * len(parts))
        for algo in options.algos.split(","):
            row = [name, algo, what, f"{base:.2f}"]
            try:
                yield row + algo_cells(job, points, len(parts), algo, options)
            except RuntimeError as error:  # Paddle's tool fails on scalars with avg
                yield row + [str(error)[:60]] + [""] * 5


def on_integers(points, models):
    try:
        return points(models, "int8")
    except RuntimeError:  # Paddle's integer kernels fail on int8 weights of conv2d_transpose
        return None


def summary(scores):
    """The mean, and between what it lies."""
    if None in scores:
        return "fails"
    return f"{np.mean(scores):.2f} ({min(scores):.2f} to {max(scores):.2f})"


def algo_cells(job, points, parts, algo, options):
    """Scores over calibration sets, and the whole cost of both tools."""
    emulated, integers, costs = [[], []], [[], []], [[], []]
    for number in range(options.sets):
        jobs = [job(part, number, algo) for part in range(parts)]
        for who in (0, 1):
            models = [each[who][0] for each in jobs]
            emulated[who].append(points(models))
            integers[who].append(on_integers(points, models))
            costs[who] += [each[who][1] for each in jobs]
    total = [np.sum(of, axis=0) for of in costs]
    return [summary(of) for of in emulated + integers] + [f"{each:.2f}" for each in total[1] / total[0]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--python", required=True, help="of an environment with paddlepaddle 2.6")
    parser.add_argument("--only", default="", help="networks whose name contains one of A,B")
    parser.add_argument("--algos", default=",".join(ALGOS))
    parser.add_argument("--samples", type=int, default=16, help="to calibrate with")
    parser.add_argument("--sets", type=int, default=3, help="calibration sets to average over")
    parser.add_argument("--limit", type=int, default=150, help="samples to score of each part")
    parser.add_argument("--write", action="store_true", help="put the table into docs/results.md")
    options = parser.parse_args()
    version = common.run([options.python, "-c", "import paddle; print(paddle.__version__)"])
    version = version.strip().splitlines()[-1]
    titles = ["network", "algo", "score", "float", "PaddleSlim", "Quench", "PaddleSlim, integers",
              "Quench, integers", "time, ours / theirs", "memory, ours / theirs"]
    rows = [row for each in NETWORKS if each[0] in PADDLE and
            (not options.only or any(word in each[0] for word in options.only.split(",")))
            for row in measure(each, options)]
    common.print_table(titles, rows)
    common.write_results("paddleslim.json", {"rows": rows, "paddle": version})
    if options.write:
        text = TEXT.format(version=version, sets=options.sets)
        common.write_section(common.SOURCE / "docs/results.md", TITLE,
                             text + common.markdown_table(titles, rows))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random networks, quantised with random settings: `quench` against ONNX Runtime on the same files.

  random_networks.py [--count 500] [--seed 1] [--first 0] [--keep FOLDER]

For every network
  float    our run of the float file is that of ONNX Runtime, but for a ten-thousandth of the largest
           number of each output;
  integer  our run of the quantised file is that of ONNX Runtime on the same file (a session with its
           default settings, but that weight-only products are computed in float), every element
           within one step. A step is the scale of the output's grid
           where its last node is a DequantizeLinear; where the file ends in float, a step of a grid
           of the activations' bits over the output's range. Weight-only files have no grids: there
           the float rule holds.
Where one value lies a hair from the middle of two steps, float arithmetic decides to which of them it
goes, and every later layer follows it. A file with such a difference is walked through value by value,
from equal integers each (see rounding.py), and its outputs are compared from there. How many networks
needed that is said at the end.

A failure prints the command that repeats it, and keeps the files."""
import argparse
import collections
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

sys.path.insert(0, str(Path(__file__).parent))
from images import image_network  # noqa: E402
from network import Network  # noqa: E402
from rounding import explain  # noqa: E402
from sequences import sequence_network  # noqa: E402
from settings import settings  # noqa: E402

BINARY = Path(os.environ.get("QUENCH_BINARY", Path(__file__).parents[2] / "build/release"))
JOBS = BINARY / "tests/quench_jobs"
SECONDS = 60  # for one network
FLOAT_RULE = 1e-4
# What a network with these settings may rightly be refused with.
REFUSALS = ("can be quantised", "dynamic quantisation has nothing to do")


def make(seed, number, folder):
    """Writes a network, its data and its settings; the files of the job."""
    random = np.random.default_rng([seed, number])
    batch = int(random.choice([0, 0, 1, 2]))
    net = Network(random, int(random.choice([11, 13, 13, 17, 20])), batch)
    (image_network if random.random() < 0.7 else sequence_network)(net)
    net.save(folder / "model.onnx")
    unit = batch or 1
    data = folder / "data"
    data.mkdir()
    calibration = net.samples(10 * unit)
    for name, array in calibration.items():
        np.save(data / f"{name}.npy", array)
    (folder / "settings.json").write_text(json.dumps(settings(
        random, ",".join(f"{name}:{data / name}.npy" for name in calibration),
        sorted({node.op_type for node in net.nodes}))))
    feeds = net.samples(batch or 3)
    for name, array in feeds.items():
        np.save(folder / f"{name}.npy", array)
    return feeds


class Jobs:
    """The process that quantises and runs."""

    def __init__(self):
        self.process = subprocess.Popen([str(JOBS), str(SECONDS)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def run(self, folder, feeds, model="model.onnx", settings_file="settings.json"):
        """What became of the job: "ok", or its outcome and message."""
        inputs = ",".join(f"{name}={folder / name}.npy" for name in feeds)
        words = [folder / model, folder / settings_file if settings_file else "-",
                 folder / "quantised.onnx", inputs, folder / "float", folder / "integer",
                 folder / "log.txt"]
        self.process.stdin.write("\t".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if answer == "ok":
            return "ok"
        log = folder / "log.txt"
        last = log.read_text().strip().splitlines()[-1:] if log.exists() else []
        return f"{answer}: {' '.join(last)}"


def session(path, optimised=True):
    options = onnxruntime.SessionOptions()
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    # Weights of weight-only files multiply floats, not activations that are rounded on the way.
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def ours(folder):
    index = json.loads((folder / "index.json").read_text())
    return {name: np.load(folder / entry["file"]) for name, entry in index.items()}


def apart(name, mine, theirs, step):
    """What is wrong with an output, or nothing."""
    if mine.shape != theirs.shape:
        return f"{name} has shape {mine.shape}, not {theirs.shape}"
    if not np.array_equal(np.isfinite(mine), np.isfinite(theirs)):
        return f"{name} is not finite in other places"
    off = np.abs(mine - theirs)
    count = int((off > 1.001 * step).sum())
    return (f"{count} of {off.size} elements of {name} are up to {off.max() / step:.3g} steps "
            f"({off.max():.3g}) off") if count else None


def check_float(folder, feeds):
    run = session(folder / "model.onnx")
    names = [output.name for output in run.get_outputs()]
    mine = ours(folder / "float")
    for name, theirs in zip(names, run.run(names, feeds)):
        wrong = apart(name, mine[name], theirs, FLOAT_RULE * max(1e-3, np.abs(theirs).max()))
        if wrong:
            return f"float: {wrong}"
    return None


def step_of(model, name, theirs, how):
    """The step by which an output is judged."""
    if how["type"] == "weight":
        return FLOAT_RULE * max(1e-3, np.abs(theirs).max())
    constants = {each.name: each for each in model.graph.initializer}
    for node in model.graph.node:
        if name in node.output and node.op_type == "DequantizeLinear":
            return float(onnx.numpy_helper.to_array(constants[node.input[1]]))
    bits = min(8, how.get("config", {}).get("global", {}).get("activation_bits", 8))
    return max(1e-6, float(theirs.max() - theirs.min())) / (2 ** bits - 1)


def run_both(jobs, room):
    """A function that runs a model on both sides; every value fed to it is a file in `room`."""
    def run(model, feeds):
        path = room / "part.onnx"
        onnx.save(model, str(path))
        names = [output.name for output in model.graph.output]
        for name, array in feeds.items():
            np.save(room / f"{name}.npy", array)
        theirs = session(path).run(names, feeds)
        outcome = jobs.run(room, feeds, path.name, None)
        if outcome != "ok":
            raise RuntimeError(f"part of the file: {outcome}")
        mine = ours(room / "float")
        return [mine[name] for name in names], theirs
    return run


def run_plain(room):
    """A function that runs a model in ONNX Runtime without optimisations."""
    def run(model, feeds):
        path = room / "plain.onnx"
        onnx.save(model, str(path))
        return session(path, optimised=False).run(None, feeds)
    return run


def check_integer(folder, feeds, jobs):
    """What is wrong, or nothing; and whether rounding had to be allowed for."""
    path = folder / "quantised.onnx"
    how = json.loads((folder / "settings.json").read_text())
    run = session(path)
    names = [output.name for output in run.get_outputs()]
    theirs = run.run(names, feeds)
    mine, model = ours(folder / "integer"), onnx.load(str(path))
    steps = [step_of(model, name, each, how) for name, each in zip(names, theirs)]

    def faults(found):
        return [wrong for name, step, a, b in zip(names, steps, *found)
                if (wrong := apart(name, a, b, step))]

    wrong = faults(([mine[name] for name in names], theirs))
    if not wrong or how["type"] == "weight":
        return (f"integer: {wrong[0]}" if wrong else None), False
    room = folder / "parts"
    room.mkdir(exist_ok=True)
    why, found = explain(model, names, feeds, run_both(jobs, room), run_plain(room))
    wrong = [why] if why else faults(found)
    return (f"integer: {wrong[0]}" if wrong else None), True


def judge(folder, feeds, outcome, jobs):
    """("ok", "rounding", "refused" or "failed", and what went wrong)."""
    if outcome != "ok":
        refused = outcome.startswith("unsupported") and any(text in (
            folder / "log.txt").read_text() for text in REFUSALS)
        return ("refused" if refused else "failed"), outcome
    wrong = check_float(folder, feeds)
    if wrong:
        return "failed", wrong
    wrong, rounding = check_integer(folder, feeds, jobs)
    return ("failed" if wrong else "rounding" if rounding else "ok"), wrong


def work(seed, numbers, keep):
    """Outcomes of some networks, by number."""
    jobs, found = Jobs(), {}
    with tempfile.TemporaryDirectory() as room:
        for number in numbers:
            folder = Path(room) / str(number)
            folder.mkdir()
            try:
                feeds = make(seed, number, folder)
                found[number] = judge(folder, feeds, jobs.run(folder, feeds), jobs)
            except Exception as error:  # pylint: disable=broad-except
                found[number] = ("failed", f"{type(error).__name__}: {error}")
            if found[number][0] == "failed":
                shutil.copytree(folder, keep / f"{seed}_{number}", dirs_exist_ok=True)
            shutil.rmtree(folder)
    return found


def report(seed, found, keep):
    counts = collections.Counter(outcome for outcome, _ in found.values())
    for number, (outcome, why) in sorted(found.items()):
        if outcome != "failed":
            continue
        print(f"network {number} of seed {seed}: {why}\n"
              f"  repeat: {Path(__file__)} --seed {seed} --first {number} --count 1\n"
              f"  files: {keep / f'{seed}_{number}'} (quench quantize model.onnx -o out.onnx "
              "--settings settings.json)")
    print(f"{len(found)} networks: {counts['ok']} agree, {counts['rounding']} agree but for "
          f"rounding, {counts['refused']} refused, {counts['failed']} failed")
    return 1 if counts["failed"] else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=Path("random_networks_failures"))
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    flags = parser.parse_args()
    numbers = range(flags.first, flags.first + flags.count)
    found = {}
    with concurrent.futures.ProcessPoolExecutor(flags.workers) as pool:
        parts = [pool.submit(work, flags.seed, numbers[i::flags.workers], flags.keep)
                 for i in range(flags.workers)]
        for part in parts:
            found.update(part.result())
    return report(flags.seed, found, flags.keep)


if __name__ == "__main__":
    sys.exit(main())

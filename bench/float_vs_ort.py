#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Float latency and memory beside ONNX Runtime, both in one run and in turns.

Each model is first checked: both sides must give the same outputs. Then `quench bench` and
ONNX Runtime are timed in turns, each in a process of its own. A machine is never quiet, so the
smallest of the medians counts on either side; "of min" is the ratio of the fastest single runs.
"""
import argparse
import math
import pathlib
import shutil
import sys

import numpy

import common

# Model, and the shape of one sample where the file leaves more than the batch open.
MODELS = [
    ("ad01_autoencoder_bn", None), ("dscnn_kws_bn", None), ("resnet8_cifar10_bn", None),
    ("mobilenet_v1_025_vww_bn", None), ("mobilenet_v2", None), ("mobilenet_v2_bn_features", None),
    ("squeezenet1.1", None), ("pplcnet_x0_25_textline_ori", None),
    ("ppocr_v2_cls", ("x", [3, 48, 192])), ("ppocrv4_det", ("x", [3, 640, 640])),
    ("rfb320/rfb320", None), ("rfb320/rfb320_no_postproc", None), ("resnet50", None),
]
FIXED_BATCH = {"rfb320/rfb320", "rfb320/rfb320_no_postproc"}
RUNNER = pathlib.Path(__file__).resolve().parent / "ort_bench.py"
# Outputs of equal networks differ by rounding only; random weights may amplify it a little.
MAX_DIFFERENCE = 2e-3


def model_path(name, build):
    if name == "resnet50":
        return common.generated(build, "resnet50.onnx", ["resnet50"])
    return common.SHARED / "models" / f"{name}.onnx"


def shape_words(sample, batch):
    if sample is None:
        return []
    dims = ",".join(str(size) for size in [batch, *sample[1]])
    return ["--shape", f"{sample[0]}={dims}"]


def difference(ours, theirs):
    """The largest difference, relative to the largest value."""
    if ours.shape != theirs.shape:
        raise RuntimeError(f"shapes differ: {ours.shape} and {theirs.shape}")
    scale = max(float(numpy.abs(theirs).max()), 1e-6)
    return float(numpy.abs(ours.astype(numpy.float64) - theirs).max()) / scale


def check_outputs(path, batch, words, options):
    """The worst difference over the outputs, on the same random inputs."""
    folder = common.RESULTS / "check"
    shutil.rmtree(folder, ignore_errors=True)
    index = common.run_json([sys.executable, RUNNER, path, "--batch", batch, "--save", folder,
                             *words])
    inputs = [f"{name}={file}" for name, file in index["inputs"].items()]
    flags = [word for pair in inputs for word in ("--input", pair)]
    done = common.run_json([options.build / "quench", "run", path, *flags, "-o", folder / "ours",
                            "--threads", options.threads, "--json"])
    files = {value["name"]: folder / "ours" / value["file"] for value in done["values"]}
    worst = max(difference(numpy.load(files[name]), numpy.load(file))
                for name, file in index["outputs"].items())
    if worst > MAX_DIFFERENCE:
        raise RuntimeError(f"outputs differ by {worst:.2g} of the largest value")
    return worst


def time_side(command, best):
    result = common.run_json(command)
    if best is None:
        return result
    least = {key: min(best[key], result[key]) for key in ("min_ms", "peak_rss_mb")}
    return {**min(best, result, key=lambda item: item["median_ms"]), **least}


def measure(name, sample, batch, options):
    path = model_path(name, options.build)
    words = shape_words(sample, batch)
    worst = check_outputs(path, batch, words, options)
    flags = ["--batch", batch, "--threads", options.threads, "--runs", options.runs, "--warmup", 3,
             "--max-seconds", options.max_seconds, *words]
    ours = theirs = None
    for _ in range(options.rounds):
        ours = time_side([options.build / "quench", "bench", path, "--json", *flags], ours)
        theirs = time_side([sys.executable, RUNNER, path, *flags], theirs)
    return {"model": name, "batch": batch, "ours": ours, "theirs": theirs, "difference": worst,
            "ratio": ours["median_ms"] / theirs["median_ms"],
            "min_ratio": ours["min_ms"] / theirs["min_ms"]}


def row_of(item):
    if "error" in item:
        return [item["model"], str(item["batch"]), "-", "-", "-", "-", "-", "-", "-", "FAILED"]
    ours, theirs = item["ours"], item["theirs"]
    return [item["model"], str(item["batch"]), f"{ours['median_ms']:.3f}",
            f"{theirs['median_ms']:.3f}", f"{item['ratio']:.2f}", f"{item['min_ratio']:.2f}",
            f"{ours['peak_rss_mb']:.1f}",
            f"{theirs['peak_rss_mb']:.1f}",
            f"{ours['peak_rss_mb'] / max(theirs['peak_rss_mb'], 0.1):.2f}",
            f"{item['difference']:.0e}"]


def summarise(items):
    done = [item for item in items if "error" not in item]
    failed = len(items) - len(done)
    if not done:
        return {"failed": failed}
    worst = max(done, key=lambda item: item["ratio"])
    memory = [item["ours"]["peak_rss_mb"] / max(item["theirs"]["peak_rss_mb"], 0.1)
              for item in done if item["batch"] == 1]
    return {"geometric_mean": math.exp(sum(math.log(item["ratio"]) for item in done) / len(done)),
            "worst": worst["ratio"], "worst_model": f"{worst['model']} batch {worst['batch']}",
            "worst_memory": max(memory, default=0), "failed": failed,
            "onnxruntime": done[0]["theirs"].get("version", "")}


def print_summary(items, summary):
    common.print_table(["model", "batch", "ours ms", "ort ms", "ratio", "of min", "ours MB",
                        "ort MB", "ratio", "max diff"], [row_of(item) for item in items])
    for item in items:
        if "error" in item:
            print(f"\n{item['model']} batch {item['batch']}: {item['error']}")
    if "geometric_mean" in summary:
        print(f"\nlatency, ours/theirs: geometric mean {summary['geometric_mean']:.3f} (goal 1.0), "
              f"worst {summary['worst']:.2f} (goal 1.2) at {summary['worst_model']}; "
              f"peak memory at batch 1, worst ours/theirs {summary['worst_memory']:.2f} (goal 1.0)")
    print(f"failed: {summary['failed']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=common.SOURCE / "build/release")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=10, help="turns of either side")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--max-seconds", type=float, default=2)
    parser.add_argument("--batches", default="1,8")
    parser.add_argument("--only", default="", help="models whose name contains this")
    options = parser.parse_args()
    items = []
    for name, sample in MODELS:
        for batch in [int(word) for word in options.batches.split(",")]:
            if options.only not in name or (batch > 1 and name in FIXED_BATCH):
                continue
            print(f"{name} batch {batch} ...", file=sys.stderr, flush=True)
            try:
                items.append(measure(name, sample, batch, options))
            except (RuntimeError, KeyError, OSError, ValueError) as error:
                items.append({"model": name, "batch": batch, "error": str(error)})
            print("  " + "  ".join(row_of(items[-1])[2:]), file=sys.stderr, flush=True)
    summary = summarise(items)
    print_summary(items, summary)
    common.write_results("float_vs_ort.json", {"summary": summary, "models": items})
    sys.exit(1 if summary["failed"] else 0)


if __name__ == "__main__":
    main()

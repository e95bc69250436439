#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Integer execution: int8 beside our float and beside ONNX Runtime's run of the same file.

Models are quantised by `quench quantize` (random samples for generated ones), then timed in turns,
each in a process of its own; of the medians the smallest counts. `bench/run.sh` runs it too.
"""
import argparse
import math
import pathlib
import sys

import numpy

import common

RUNNER = pathlib.Path(__file__).resolve().parent / "ort_bench.py"
PHOTOS = ["--resize-shorter", "256", "--center-crop", "224,224", "--mean", "123.675,116.28,103.53",
          "--std", "58.395,57.12,57.375"]
# Name, what it is calibrated with (photos, noise of a sample's shape, or nothing: dynamic), goal of
# float ms / int8 ms. Every network there is; speed does not depend on the ranges.
MODELS = [("resnet50", [3, 224, 224], 3.3), ("mobilenet_v2", "photos", 2.2),
          ("bert-base", "dynamic", 2.2), ("squeezenet1.1", "photos", None),
          ("mobilenet_v2_bn_features", "photos", None), ("resnet8_cifar10_bn", [3, 32, 32], None),
          ("mobilenet_v1_025_vww_bn", [3, 96, 96], None), ("dscnn_kws_bn", [1, 49, 10], None),
          ("ad01_autoencoder_bn", [640], None), ("pplcnet_x0_25_textline_ori", [3, 80, 160], None),
          ("ppocr_v2_cls", [3, 48, 192], None), ("ppocrv4_det", [3, 640, 640], None),
          ("rfb320/rfb320_no_postproc", [3, 240, 320], None), ("use_lite", "dynamic", None)]
FIXED_BATCH = {"rfb320/rfb320_no_postproc"}
LARGE = 20e6
WORDS = {"bert-base": 128, "use_lite": 32}


def float_model(name, build):
    if name in ("resnet50", "bert-base"):
        return common.generated(build, f"{name}.onnx", [name])
    return common.SHARED / "models" / f"{name}.onnx"


def noise(name, shape):
    path = common.RESULTS / f"{name}_samples.npy"
    if not path.exists():
        values = numpy.random.default_rng(1).standard_normal((8, *shape), dtype=numpy.float32)
        numpy.save(path, values)
    return path


def int8_model(name, how, source, options):
    """The quantised file, made when it is not there."""
    path = common.RESULTS / f"{name.split('/')[-1]}_int8.onnx"
    if path.exists():
        return path
    words = [options.build / "quench", "quantize", source, "-o", path, "--quiet"]
    if how == "photos":
        words += ["--data", common.SHARED / "data/imagenet-mini/calib", "--limit", 60, *PHOTOS]
    elif how != "dynamic":
        words += ["--data", noise(name.split("/")[-1], how), "--batch", 1, "--no-bias-correction"]
    else:
        words += ["--type", "dynamic"]
    common.run(words)
    return path


def least(best, result):
    return result if best is None or result["median_ms"] < best["median_ms"] else best


def shape_words(name, how, path, batch, options):
    """The shape of every input, where the file may leave it open."""
    inputs = common.run_json([options.build / "quench", "inspect", path, "--json"])["inputs"]
    if name in WORDS:
        shape = [batch, WORDS[name]]
    elif isinstance(how, list):
        shape = [batch, *how]
    else:
        return []
    dims = ",".join(str(size) for size in shape)
    return [word for value in inputs for word in ("--shape", f"{value['name']}={dims}")]


def measure(name, how, batch, options):
    source = float_model(name, options.build)
    int8 = int8_model(name, how, source, options)
    # What takes microseconds needs more runs, and time to wake the threads.
    more = 1 if source.stat().st_size > LARGE else 10
    what = ["--batch", batch, "--threads", options.threads,
            *shape_words(name, how, source, batch, options)]
    flags = [*what, "--runs", more * options.runs, "--warmup", 3 * more,
             "--max-seconds", options.max_seconds]
    quench = [options.build / "quench", "bench"]
    best = {"float": None, "int8": None, "ort": None}
    for _ in range(options.rounds):
        best["float"] = least(best["float"], common.run_json([*quench, source, "--json", *flags]))
        best["int8"] = least(best["int8"], common.run_json([*quench, int8, "--json", *flags]))
        best["ort"] = least(best["ort"], common.run_json([sys.executable, RUNNER, int8, *flags]))
    # From the loaded engine to the first result: loading, and the first run.
    once = [*what, "--runs", 1, "--warmup", 0]
    first = {"int8": [], "ort": []}
    for _ in range(options.rounds):
        first["int8"].append(common.run_json([*quench, int8, "--json", *once]))
        first["ort"].append(common.run_json([sys.executable, RUNNER, int8, *once]))
    return {"model": name, "batch": batch, **best,
            "first_result_ms": {side: min(result["load_ms"] + result["median_ms"]
                                          for result in results)
                                for side, results in first.items()}}


def convolutions(options):
    """ResNet-50's convolutions beside the bare primitives, for each batch."""
    int8 = int8_model("resnet50", [3, 224, 224], float_model("resnet50", options.build), options)
    rows = []
    for batch in [int(word) for word in options.batches.split(",")]:
        row = common.run_json([options.build / "quench_bench_convolutions", int8, batch,
                               options.threads])
        print(f"ResNet-50's convolutions, batch {batch}: {row['ours_ms']:.2f} ms, bare oneDNN "
              f"{row['bare_ms']:.2f} ms, ratio {row['ratio']:.2f} (goal 1.15)")
        rows.append(row)
    return rows


def row_of(item):
    if "error" in item:
        return [item["model"], str(item["batch"])] + ["-"] * 7
    ours, base, theirs = item["int8"], item["float"], item["ort"]
    first = item["first_result_ms"]
    return [item["model"], str(item["batch"]), f"{base['median_ms']:.2f}",
            f"{ours['median_ms']:.2f}", f"{theirs['median_ms']:.2f}",
            f"{base['median_ms'] / ours['median_ms']:.2f}",
            f"{theirs['median_ms'] / ours['median_ms']:.2f}",
            f"{ours['peak_rss_mb'] / max(base['peak_rss_mb'], 0.1):.2f}",
            f"{first['int8'] / max(first['ort'], 0.1):.2f}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=common.SOURCE / "build/release")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--max-seconds", type=float, default=3)
    parser.add_argument("--batches", default="1,8")
    parser.add_argument("--only", default="", help="models whose name contains this")
    options = parser.parse_args()
    common.RESULTS.mkdir(parents=True, exist_ok=True)
    items = []
    for name, how, goal in MODELS:
        for batch in [int(word) for word in options.batches.split(",")]:
            if options.only not in name or (batch != 1 and name in FIXED_BATCH):
                continue
            try:
                items.append({**measure(name, how, batch, options), "goal": goal})
            except (RuntimeError, KeyError, OSError, ValueError) as error:
                items.append({"model": name, "batch": batch, "error": str(error)})
            print("  ".join(row_of(items[-1])), file=sys.stderr, flush=True)
    common.print_table(["model", "batch", "float ms", "int8 ms", "ort int8 ms", "float/int8",
                        "ort/int8", "memory", "load"], [row_of(item) for item in items])
    done = [item for item in items if "error" not in item]
    if done:
        ratios = [item["ort"]["median_ms"] / item["int8"]["median_ms"] for item in done]
        mean = math.exp(sum(math.log(ratio) for ratio in ratios) / len(ratios))
        print(f"\nONNX Runtime / ours: geometric mean {mean:.2f} (goal 1.8), least "
              f"{min(ratios):.2f} (goal 1.0)")
    for item in items:
        if "error" in item:
            print(f"{item['model']} batch {item['batch']}: {item['error']}")
    bare = convolutions(options) if options.only in "resnet50" else []
    common.write_results("int8.json", {"items": items, "convolutions": bare})
    return 0 if len(done) == len(items) else 1


if __name__ == "__main__":
    sys.exit(main())

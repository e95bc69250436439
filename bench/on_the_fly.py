#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory of weights that stay packed while a model runs, beside float weights."""
import argparse
import pathlib
import sys

import common

MOST = {"8": 0.3, "4": 0.18}  # of the float weights, held by those that stay packed


def peak(quench, model, when):
    result = common.run_json([quench, "bench", model, "--dequant", when, "--runs", "3", "--warmup",
                              "1", "--threads", "2", "--json"])
    return result["peak_rss_mb"], result["median_ms"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=common.SOURCE / "build/release")
    parser.add_argument("--size-mb", type=int, default=400)
    options = parser.parse_args()
    quench = options.build / "quench"
    size = str(options.size_mb)
    model = common.generated(options.build, f"big{size}.onnx", ["big", "--size-mb", size])
    small = common.generated(options.build, "big4.onnx", ["big", "--size-mb", "4"])
    floor, _ = peak(quench, small, "at-load")
    rows, results = [], []
    for bits in ("float", "8", "4"):
        files = {"onnx": model}
        if bits != "float":
            files["onnx"] = common.RESULTS / f"big{size}_w{bits}.onnx"
            common.run([quench, "quantize", model, "--type", "weight", "--bits", bits, "-o",
                        files["onnx"]])
            files["packed"] = files["onnx"].with_suffix(".qnch")
            common.run([quench, "pack", files["onnx"], "-o", files["packed"]])
        for kind, path in files.items():
            for when in ("at-load", "on-the-fly"):
                megabytes, milliseconds = peak(quench, path, when)
                share = (megabytes - floor) / options.size_mb
                rows.append([f"{bits}, {kind}, {when}", f"{megabytes:.0f}", f"{share:.3f}",
                             f"{milliseconds:.1f}"])
                results.append({"bits": bits, "file": kind, "dequant": when, "peak_mb": megabytes,
                                "share_of_float": share, "median_ms": milliseconds})
    common.print_table(["weights", "peak MB", "share of float", "ms"], rows)
    common.write_results("on_the_fly.json", {"rows": results})
    worst = {bits: max(row["share_of_float"] for row in results
                       if row["bits"] == bits and row["dequant"] == "on-the-fly")
             for bits in MOST}
    for bits, most in MOST.items():
        print(f"{bits} bits on the fly hold {worst[bits]:.1%} of the float weights; at most {most:.0%}")
    return 1 if any(worst[bits] > most for bits, most in MOST.items()) else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the evaluations of `quench analyze target` on classification models with 4-bit weights."""
import argparse
import sys
import tempfile

import common

DATA = common.SHARED / "data"
IMAGENET = (DATA / "imagenet-mini/calib", DATA / "imagenet-mini/eval",
            DATA / "imagenet-mini/eval_labels.txt",
            ["--resize-shorter", "256", "--center-crop", "224,224", "--mean",
             "123.675,116.28,103.53", "--std", "58.395,57.12,57.375"])
# Model, calibration samples, evaluation samples, their labels, flags, points below float.
CASES = {
    "dscnn_kws_bn.onnx": (DATA / "kws/calib_x.npy", DATA / "kws/eval_x.npy",
                          DATA / "kws/eval_y.npy", []),
    "resnet8_cifar10_bn.onnx": (DATA / "cifar10/data_batch_1.bin", DATA / "cifar10/test_batch.bin",
                                None, []),
    "squeezenet1.1.onnx": IMAGENET,
    "mobilenet_v2.onnx": IMAGENET,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="one model")
    parser.add_argument("--bits", type=int, default=4)
    parser.add_argument("--drop", type=float, default=0.5, help="points of top-1 below float")
    parser.add_argument("--eval-limit", type=int, default=400)
    options = parser.parse_args()
    build = common.SOURCE / "build" / "release"
    rows, results, missed = [], {}, False
    for name, (calib, data, labels, flags) in CASES.items():
        if options.only not in (None, name):
            continue
        words = [build / "quench", "analyze", "target", common.SHARED / "models" / name, "--data",
                 calib, "--limit", 100, "--eval-data", data, "--eval-limit", options.eval_limit,
                 "--weight-bits", options.bits, "--metric", "top1", "--quiet", "--json", *flags]
        if labels:
            words += ["--eval-labels", labels]
        with tempfile.TemporaryDirectory() as folder:
            known = common.run_json([*words, "-o", folder, "--at-least", 0])
            found = common.run_json([*words, "-o", folder, "--at-least",
                                     known["float"] - options.drop])
        most = found["one_by_one"] / 3
        missed = missed or found["evaluations"] > most
        results[name] = found
        rows.append([name, f"{found['float']:.2f}", f"{found['quantized']:.2f}",
                     f"{found['value']:.2f}", f"{len(found['in_float'])} of {found['layers']}",
                     f"{found['evaluations']:.1f}", f"{found['one_by_one']}", f"{most:.1f}"])
    common.print_table(["model", "float", "all quantised", "found", "in float", "passes",
                        "one by one", "at most"], rows)
    common.write_results("target.json", {"bits": options.bits, "drop": options.drop,
                                         "models": results})
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the evaluations of `quench analyze target` on classification models with 4-bit weights.

A pass is one evaluation of a quantised model on all samples; a choice that is clearly good or bad
takes a part of one. Beside it: the passes that PaddleSlim's way takes, which leaves the worst layer
in float, then the worst two, and so on, until the model is good enough. Ranking the layers, scoring
the float model and the one with every layer quantised come before either and are not counted."""
import argparse
import pathlib
import sys
import tempfile

import numpy as np

import accuracy_ort
import common

DATA = common.SHARED / "data"
IMAGENET = (DATA / "imagenet-mini/calib", DATA / "imagenet-mini/eval",
            DATA / "imagenet-mini/eval_labels.txt",
            ["--resize-shorter", "256", "--center-crop", "224,224", "--mean",
             "123.675,116.28,103.53", "--std", "58.395,57.12,57.375"])


def files(calib, data, labels, flags):
    """Samples that lie in files as they are."""
    return lambda model, folder: (calib, data, labels, flags)


def text_lines(flags):
    """Text lines, every second one turned: the first 100 calibrate, the others are scored."""
    def prepare(model, folder):
        x = accuracy_ort.turned(accuracy_ort.samples(model, folder, DATA / "textlines/eval", *flags))
        np.save(folder / "calib.npy", x[:100])
        np.save(folder / "eval.npy", x[100:])
        np.save(folder / "labels.npy", np.arange(100, len(x)) % 2)
        return folder / "calib.npy", folder / "eval.npy", folder / "labels.npy", []
    return prepare


TITLES = ["model", "float", "all quantised", "found", "in float", "passes", "one by one", "at most"]
# What prepares calibration samples, evaluation samples, their labels and flags, by model.
CASES = {
    "dscnn_kws_bn.onnx": files(DATA / "kws/calib_x.npy", DATA / "kws/eval_x.npy",
                               DATA / "kws/eval_y.npy", []),
    "resnet8_cifar10_bn.onnx": files(DATA / "cifar10/data_batch_1.bin",
                                     DATA / "cifar10/test_batch.bin", None, []),
    "ppocr_v2_cls.onnx": text_lines(accuracy_ort.OCR_CLS),
    "pplcnet_x0_25_textline_ori.onnx": text_lines(accuracy_ort.OCR_ORI),
    "squeezenet1.1.onnx": files(*IMAGENET),
    "mobilenet_v2.onnx": files(*IMAGENET),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="one model")
    parser.add_argument("--bits", type=int, default=4)
    parser.add_argument("--drop", type=float, default=0.5, help="points of top-1 below float")
    parser.add_argument("--eval-limit", type=int, default=400)
    options = parser.parse_args()
    build = common.SOURCE / "build" / "release"
    rows, results, missed = [], {}, False
    for name, prepare in CASES.items():
        if options.only not in (None, name):
            continue
        with tempfile.TemporaryDirectory() as place:
            folder, model = pathlib.Path(place), common.SHARED / "models" / name
            calib, data, labels, flags = prepare(model, folder)
            words = [build / "quench", "analyze", "target", model, "--data", calib, "--limit", 100,
                     "--eval-data", data, "--eval-limit", options.eval_limit, "--weight-bits",
                     options.bits, "--metric", "top1", "--quiet", "--json", "-o", folder, *flags]
            if labels:
                words += ["--eval-labels", labels]
            known = common.run_json([*words, "--at-least", 0])
            words += ["--at-least", known["float"] - options.drop]
            found = common.run_json(words)
            plain = common.run_json([*words, "--one-by-one"])
        most = plain["tried"] / 3
        missed = missed or found["evaluations"] > most
        results[name] = {"search": found, "one_by_one": plain}
        rows.append([name, f"{found['float']:.2f}", f"{found['quantized']:.2f}",
                     f"{found['value']:.2f}", f"{len(found['in_float'])} of {found['layers']}",
                     f"{found['evaluations']:.1f}",
                     f"{plain['tried']}, {len(plain['in_float'])} in float", f"{most:.1f}"])
        common.print_table(TITLES, rows[-1:])
    common.print_table(TITLES, rows)
    common.write_results("target.json", {"bits": options.bits, "drop": options.drop,
                                         "models": results})
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())

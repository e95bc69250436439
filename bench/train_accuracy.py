#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Accuracy of what `quench train` and `quench quantize --reconstruct` write, from unlabelled images,
beside float and beside post-training quantisation of the same bits from the same images.

Each file is scored twice: by our engine, whose score must be that of the simulated model, and on
integers by ONNX Runtime. --only NAME measures one row, --write puts the table into docs/results.md."""
import argparse
import gzip
import json
import pathlib
import tempfile
import time

import numpy as np

from accuracy_ort import BUILD, DATA, MODELS, PHOTO, cifar, outputs_of, photos, top1, words
from common import SOURCE, markdown_table, print_table, run, run_json, write_results, write_section

FASHION = SOURCE / "examples" / "data"
FASHION_FLAGS = ["--mean", "72.9", "--std", "90"]


def fashion(model, folder):
    """The demo's 1,000 images, which it learns from too, without their labels."""
    images = gzip.decompress((FASHION / "fashion-test-images-idx3-ubyte.gz").read_bytes())[16:]
    labels = gzip.decompress((FASHION / "fashion-test-labels-idx1-ubyte.gz").read_bytes())[8:]
    x = (np.frombuffer(images, np.uint8).reshape(-1, 1, 28, 28).astype(np.float32) - 72.9) / 90
    y = np.frombuffer(labels, np.uint8)

    class Part:
        score, truth = x.astype(np.float32), y
    return [Part]


# Name, model, what it learns from, flags of both, flags of what is learned, reader of the test
# images, what is to be reached.
ROWS = [
    ("ResNet8 CIFAR-10, W4A4, trained", MODELS / "resnet8_cifar10_bn.onnx",
     ["--data", DATA / "cifar10/data_batch_1.bin"], ["--weight-bits", "4", "--activation-bits", "4"],
     ["train", "--loss", "distill", "--epochs", "60", "--train-batch", "64", "--flip", "--crop", "2",
      "--held-out", "400"], cifar, 86.0),
    ("ResNet8 CIFAR-10, W3A8, reconstructed", MODELS / "resnet8_cifar10_bn.onnx",
     ["--data", DATA / "cifar10/data_batch_1.bin"], ["--weight-bits", "3"],
     ["quantize", "--reconstruct", "--reconstruct-steps", "1000", "--held-out", "400"], cifar, 86.5),
    ("DS-CNN KWS, W4A8, trained", MODELS / "dscnn_kws_bn.onnx",
     ["--data", DATA / "kws/calib_x.npy"], ["--weight-bits", "4"],
     ["train"], words, 90.5),
    ("MobileNetV2, W4A8, reconstructed", MODELS / "mobilenet_v2.onnx",
     ["--data", DATA / "imagenet-mini/calib", *PHOTO], ["--weight-bits", "4"],
     ["quantize", "--reconstruct", "--reconstruct-steps", "250"], photos, 77.0),
    ("Fashion network, W2A8, trained", FASHION / "fashion.onnx",
     ["--data", FASHION / "fashion-test-images-idx3-ubyte.gz", *FASHION_FLAGS],
     ["--weight-bits", "2"], ["train", "--epochs", "60", "--loss", "distill"], fashion, 91.0),
]


def engine_top1(model, folder, part):
    """Top-1 of our engine on the test images."""
    np.save(folder / "x.npy", part.score)
    np.save(folder / "y.npy", np.asarray(part.truth, np.int64))
    return run_json([BUILD / "quench", "eval", model, "--data", folder / "x.npy", "--labels",
                     folder / "y.npy", "--metric", "top1", "--json"])["top1"]


def measure(row, keep):
    name, model, data, bits, learned, read, goal = row
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        part = read(model, folder)[0]
        post, out = folder / "post.onnx", folder / "learned.onnx"
        run([BUILD / "quench", "quantize", model, "-o", post, *data, *bits, "--quiet"])
        began = time.monotonic()
        report = run_json([BUILD / "quench", learned[0], model, "-o", out, *data, *bits, *learned[1:],
                           "--json", "--quiet"])
        seconds = time.monotonic() - began
        if keep:
            keep.mkdir(parents=True, exist_ok=True)
            (keep / (name.split(",")[0].replace(" ", "_") + learned[0] + ".onnx")).write_bytes(
                out.read_bytes())
        return {"row": name, "float": float(top1(outputs_of(model, part.score), part.truth)),
                "post_training": engine_top1(post, folder, part),
                "engine": engine_top1(out, folder, part),
                "onnxruntime": float(top1(outputs_of(out, part.score), part.truth)),
                "goal": goal, "samples": report["training"]["samples"], "seconds": seconds,
                "flags": " ".join(str(word) for word in bits + learned)}


def cells(one):
    return [one["row"], f"{one['float']:.2f}", f"{one['post_training']:.2f}",
            f"{one['engine']:.2f}", f"{one['onnxruntime']:.2f}", f"{one['goal']:.1f}",
            str(one["samples"]), f"{one['seconds'] / 60:.1f}"]


TITLES = ["network", "float", "post-training", "learned", "in ONNX Runtime", "goal", "images",
          "minutes"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--keep", type=pathlib.Path, help="folder for the models")
    parser.add_argument("--write", action="store_true", help="put the table into docs/results.md")
    options = parser.parse_args()
    path = SOURCE / "build" / "bench" / "train_accuracy.json"
    known = {}
    if options.only and path.exists():
        known = {one["row"]: one for one in json.loads(path.read_text())["rows"]}
    for row in ROWS:
        if options.only in row[0] and row[1].exists():
            known[row[0]] = measure(row, options.keep)
    results = [known[row[0]] for row in ROWS if row[0] in known]
    print_table(TITLES, [cells(one) for one in results])
    write_results("train_accuracy.json", {"rows": results})
    if options.write:
        text = ("Top-1 of models whose rounding or weights were learned from images without labels "
                "(`bench/train_accuracy.py`), beside post-training quantisation to the same bits "
                "from the same images. Minutes are of a machine with other work on its two cores.\n\n"
                + markdown_table(TITLES, [cells(one) for one in results]))
        write_section(SOURCE / "docs" / "results.md", "Training and reconstruction", text)


if __name__ == "__main__":
    main()

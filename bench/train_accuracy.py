#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Accuracy of what `quench train` and `quench quantize --reconstruct` write, from unlabelled images,
beside float and beside post-training quantisation of the same bits from the same images.

Each file is scored twice: by our engine, whose score must be that of the simulated model, and on
integers by ONNX Runtime. No row learns from images that it is scored by. --only NAME measures one row,
--write puts the table into docs/results.md."""
import argparse
import dataclasses
import gzip
import json
import pathlib
import tempfile
import time

import numpy as np

from accuracy_ort import (BUILD, DATA, MODELS, PHOTO, Part, cifar, outputs_of, photos, top1,
                          words)
from common import SOURCE, markdown_table, print_table, run, run_json, write_results, write_section

FASHION = SOURCE / "examples" / "data"
# Of Debian's package dataset-fashion-mnist: the repository holds test images alone.
FASHION_TRAIN = pathlib.Path("/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz")
CIFAR_TRAIN = DATA / "cifar10/data_batch_1.bin"


def fashion(model, folder):
    """The demo's 1,000 test images."""
    images = gzip.decompress((FASHION / "fashion-test-images-idx3-ubyte.gz").read_bytes())[16:]
    labels = gzip.decompress((FASHION / "fashion-test-labels-idx1-ubyte.gz").read_bytes())[8:]
    x = (np.frombuffer(images, np.uint8).reshape(-1, 1, 28, 28).astype(np.float32) - 72.9) / 90
    return [Part(x[:0], x.astype(np.float32), np.frombuffer(labels, np.uint8))]


@dataclasses.dataclass
class Row:
    """A line of the table."""
    name: str
    model: pathlib.Path
    data: pathlib.Path    # what it learns from
    flags: list           # of the data
    bits: list
    learned: list         # the command and its flags
    read: object          # gives the test images
    goal: float


ROWS = [
    Row("ResNet8 CIFAR-10, W4A4", MODELS / "resnet8_cifar10_bn.onnx", CIFAR_TRAIN, [],
        ["--weight-bits", "4", "--activation-bits", "4"],
        ["train", "--epochs", "40", "--flip", "--crop", "2"], cifar, 86.0),
    Row("ResNet8 CIFAR-10, W3A8", MODELS / "resnet8_cifar10_bn.onnx", CIFAR_TRAIN, [],
        ["--weight-bits", "3"],
        ["quantize", "--reconstruct", "--flip", "--crop", "4", "--held-out", "400"], cifar, 86.5),
    # As the papers on reconstruction have it: the first and the last layer keep 8 bits.
    Row("ResNet8 CIFAR-10, W3A8, first and last W8", MODELS / "resnet8_cifar10_bn.onnx", CIFAR_TRAIN,
        [], ["--weight-bits", "3", "--rule", "layer:conv2d:weight_bits=8", "--rule",
             "layer:dense:weight_bits=8"],
        ["quantize", "--reconstruct", "--flip", "--crop", "4", "--held-out", "400"], cifar, 86.5),
    Row("DS-CNN KWS, W4A8", MODELS / "dscnn_kws_bn.onnx", DATA / "kws/calib_x.npy", [],
        ["--weight-bits", "4"], ["train", "--reconstruct"], words, 90.5),
    Row("MobileNetV2, W4A8", MODELS / "mobilenet_v2.onnx", DATA / "imagenet-mini/calib", PHOTO,
        ["--weight-bits", "4"],
        ["quantize", "--reconstruct", "--reconstruct-steps", "1000", "--flip", "--zoom",
         "0.4"], photos, 77.0),
    Row("MobileNetV2, W4A8, first and last W8", MODELS / "mobilenet_v2.onnx",
        DATA / "imagenet-mini/calib", PHOTO,
        ["--weight-bits", "4", "--rule", "layer:conv0:weight_bits=8", "--rule",
         "layer:fc:weight_bits=8"],
        ["quantize", "--reconstruct", "--reconstruct-steps", "500", "--flip", "--zoom", "0.4"], photos,
        77.0),
    Row("Fashion network, W2A8", FASHION / "fashion.onnx", FASHION_TRAIN,
        ["--limit", "20000", "--mean", "72.9", "--std", "90"], ["--weight-bits", "2"], ["train"],
        fashion, 91.0),
]


def engine_top1(model, folder, part):
    """Top-1 of our engine on the test images."""
    np.save(folder / "x.npy", part.score)
    np.save(folder / "y.npy", np.asarray(part.truth, np.int64))
    return run_json([BUILD / "quench", "eval", model, "--data", folder / "x.npy", "--labels",
                     folder / "y.npy", "--metric", "top1", "--json"])["top1"]


def measure(row, keep):
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        part = row.read(row.model, folder)[0]
        post, out = folder / "post.onnx", folder / "learned.onnx"
        given = ["--data", row.data, *row.flags, *row.bits]
        run([BUILD / "quench", "quantize", row.model, "-o", post, *given, "--quiet"])
        began = time.monotonic()
        report = run_json([BUILD / "quench", row.learned[0], row.model, "-o", out, *given,
                           *row.learned[1:], "--json", "--quiet"])
        seconds = time.monotonic() - began
        if keep:
            keep.mkdir(parents=True, exist_ok=True)
            (keep / (row.name.replace(" ", "_") + ".onnx")).write_bytes(out.read_bytes())
        return {"row": row.name, "float": float(top1(outputs_of(row.model, part.score), part.truth)),
                "post_training": engine_top1(post, folder, part),
                "engine": engine_top1(out, folder, part),
                "onnxruntime": float(top1(outputs_of(out, part.score), part.truth)),
                "goal": row.goal, "samples": report["training"]["samples"], "seconds": seconds,
                "with": " ".join(str(word) for word in row.learned)}


def cells(one):
    return [one["row"], f"{one['float']:.2f}", f"{one['post_training']:.2f}",
            f"{one['engine']:.2f}", f"{one['onnxruntime']:.2f}", f"{one['goal']:.1f}",
            str(one["samples"]), f"{one['seconds'] / 60:.1f}", f"`{one['with']}`"]


TITLES = ["network", "float", "post-training", "learned", "in ONNX Runtime", "goal", "images",
          "minutes", "with"]
TEXT = ("Made by `bench/train_accuracy.py`. Top-1 of models that learned from images without labels (the "
        "float model is the teacher), beside post-training quantisation to the same bits from the same "
        "images: one run each, with the settings of the last column and defaults. The images are those "
        "that it learns from; others validate, and others still are scored. Minutes are of two cores "
        "with other work on them.\n\n")


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
        missing = [path for path in (row.model, row.data) if not path.exists()]
        if options.only in row.name and missing:
            print(f"{row.name}: left out, there is no {missing[0]}")
        elif options.only in row.name:
            known[row.name] = measure(row, options.keep)
    results = [known[row.name] for row in ROWS if row.name in known]
    print_table(TITLES, [cells(one) for one in results])
    write_results("train_accuracy.json", {"rows": results})
    if options.write:
        write_section(SOURCE / "docs" / "results.md", "Training",
                      TEXT + markdown_table(TITLES, [cells(one) for one in results]))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Accuracy of what `quench quantize` writes, run on integers by ONNX Runtime, beside float and, with
--peer, beside ONNX Runtime's own `quantize_static` on the same samples.

Samples are decoded and prepared by `quench_samples`, so that all sides see the same numbers. Where
there is one set only (text lines, pages, faces) it is cut in two: each half is scored by the model
that was calibrated with the other.

The text-line networks' own figures (90.33 and 92.33 on these images) were taken with a resize that
averages over what it shrinks; ours is OpenCV's, as in PaddleOCR, and gives 90.00 and 91.33, which
OpenCV itself gives too. Turning images before or after the resize makes no difference."""
import argparse
import dataclasses
import json
import os
import pathlib
import shlex
import tempfile

import numpy as np
import onnxruntime

import detections
from common import SHARED, SOURCE, print_table, run, write_results

BUILD = pathlib.Path(os.environ.get("QUENCH_BINARY", SOURCE / "build/release"))
MODELS, DATA = SHARED / "models", SHARED / "data"
PHOTO = ["--resize-shorter", "256", "--center-crop", "224,224", "--mean", "123.675,116.28,103.53",
         "--std", "58.395,57.12,57.375"]
OCR_CLS = ["--color", "BGR", "--resize-fit", "192,48", "--mean", "127.5,127.5,127.5", "--std",
           "127.5,127.5,127.5"]
OCR_ORI = ["--resize", "160,80", "--mean", "123.675,116.28,103.53", "--std", "58.395,57.12,57.375"]
OCR_DET = ["--color", "BGR", "--mean", "123.675,116.28,103.53", "--std", "58.395,57.12,57.375"]
FACE = ["--resize", "320,240", "--mean", "127,127,127", "--std", "128,128,128"]
PEER_METHODS = ("MinMax", "Entropy", "Percentile")


@dataclasses.dataclass
class Part:
    """Samples to calibrate with, and samples to score with what is known of them."""
    calibrate: np.ndarray
    score: np.ndarray
    truth: object = None


def samples(model, folder, path, *flags):
    out = folder / "samples.npy"
    run([BUILD / "quench_samples", model, out, "--data", path, *flags])
    return np.load(out)


def file_labels(path):
    return np.array([int(line.split()[-1]) for line in path.read_text().splitlines() if line])


def photos(model, folder):
    root = DATA / "imagenet-mini"
    return [Part(samples(model, folder, root / "calib", *PHOTO),
                 samples(model, folder, root / "eval", *PHOTO),
                 file_labels(root / "eval_labels.txt"))]


def cifar(model, folder):
    root = DATA / "cifar10"
    labels = np.fromfile(root / "test_batch.bin", np.uint8).reshape(-1, 3073)[:, 0]
    return [Part(samples(model, folder, root / "data_batch_1.bin", "--limit", "200"),
                 samples(model, folder, root / "test_batch.bin"), labels)]


def words(model, folder):
    root = DATA / "kws"
    return [Part(samples(model, folder, root / "calib_x.npy"),
                 samples(model, folder, root / "eval_x.npy"), np.load(root / "eval_y.npy"))]


def halves(x, truth):
    """Each part scores one half, and calibrates with at most 100 samples of the other."""
    middle = len(x) // 2
    return [Part(x[middle:][:100], x[:middle], truth[:middle]),
            Part(x[:middle][:100], x[middle:], truth[middle:])]


def turned(x):
    """Every second image by 180 degrees; the padding (exact zeros) stays on the right."""
    x = x.copy()
    for image in x[1::2]:
        width = int(np.flatnonzero(np.any(image != 0, axis=(0, 1)))[-1]) + 1
        image[:, :, :width] = image[:, ::-1, :width][:, :, ::-1].copy()
    return x


def text_lines(flags):
    def read(model, folder):
        x = turned(samples(model, folder, DATA / "textlines/eval", *flags))
        return halves(x, np.arange(len(x)) % 2)
    return read


def pages(model, folder):
    x = samples(model, folder, DATA / "textlines/pages", *OCR_DET)
    lines = (DATA / "textlines/pages_boxes.txt").read_text().splitlines()
    boxes = [np.array(line.split()[1:], np.float64).reshape(-1, 4) for line in lines]
    return halves(x, boxes)


def faces(model, folder):
    x = samples(model, folder, DATA / "faces", *FACE)
    known = json.loads((DATA / "faces/rfb320_fp32_detections.json").read_text())
    names = sorted(path.name for path in (DATA / "faces").glob("*.jpg"))
    return halves(x, [np.array(known[name]).reshape(-1, 5)[:, :4] for name in names])


def top1(outputs, truth):
    return 100 * np.mean(outputs[0].reshape(len(truth), -1).argmax(1) == truth)


def text_f1(outputs, truth):
    return detections.f1([(detections.text_boxes(heat[0]), boxes)
                          for heat, boxes in zip(outputs[0], truth)])


def face_f1(outputs, truth):
    return detections.f1([(detections.face_boxes(scores, boxes), known)
                          for scores, boxes, known in zip(*outputs, truth)])


# Name, model, reader of samples, what is scored and how (None: no labels).
NETWORKS = [
    ("mobilenet_v2", "mobilenet_v2.onnx", photos, "top-1", top1),
    ("mobilenet_v2_bn_features", "mobilenet_v2_bn_features.onnx", photos, "", None),
    ("squeezenet1.1", "squeezenet1.1.onnx", photos, "top-1", top1),
    ("resnet8_cifar10_bn", "resnet8_cifar10_bn.onnx", cifar, "top-1", top1),
    ("dscnn_kws_bn", "dscnn_kws_bn.onnx", words, "top-1", top1),
    ("ppocr_v2_cls", "ppocr_v2_cls.onnx", text_lines(OCR_CLS), "top-1", top1),
    ("pplcnet_x0_25_textline_ori", "pplcnet_x0_25_textline_ori.onnx", text_lines(OCR_ORI), "top-1",
     top1),
    ("ppocrv4_det", "ppocrv4_det.onnx", pages, "F1", text_f1),
    ("rfb320", "rfb320/rfb320.onnx", faces, "F1 of boxes", face_f1),
]


def open_session(path):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def outputs_of(path, x):
    """All outputs; one sample a run where the model fixes its batch, to spare memory where large."""
    session = open_session(path)
    inputs = session.get_inputs()[0]
    step = 1 if inputs.shape[0] == 1 or x[0].size > 1 << 19 else 50
    runs = [session.run(None, {inputs.name: x[i:i + step]}) for i in range(0, len(x), step)]
    return [np.concatenate(each) for each in zip(*runs)]


def mean_cosine(a, b):
    a = a.reshape(len(a), -1).astype(np.float64)
    b = b.reshape(len(b), -1).astype(np.float64)
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return float(np.mean(np.sum(a * b, axis=1) / np.maximum(norms, 1e-30)))


def row(expected, actual, parts, score):
    """Scores of both, agreement of classes and the worst output's cosine, over all parts."""
    truth = [one for part in parts if part.truth is not None for one in part.truth]
    figures = {"cosine": min(mean_cosine(a, b) for a, b in zip(actual, expected))}
    if score is not None:
        figures["float"] = float(score(expected, truth))
        figures["int8"] = float(score(actual, truth))
    if score is top1:
        same = actual[0].reshape(len(truth), -1).argmax(1) == \
            expected[0].reshape(len(truth), -1).argmax(1)
        figures["agreement"] = 100 * float(np.mean(same))
    return figures


def joined(parts):
    return [np.concatenate(each) for each in zip(*parts)]


def ours(model, part, folder, flags):
    np.save(folder / "calibrate.npy", part.calibrate)
    out = folder / "int8.onnx"
    run([BUILD / "quench", "quantize", model, "-o", out, "--data", folder / "calibrate.npy",
         "--quiet", *flags])
    return outputs_of(out, part.score)


def theirs(model, part, folder, method):
    """ONNX Runtime's own tool, per channel, on its own preprocessed model."""
    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Reader(quantization.CalibrationDataReader):
        def __init__(self, name):
            step = 1 if part.calibrate[0].size > 1 << 19 or len(part.calibrate) < 50 else 10
            self.feeds = iter({name: part.calibrate[i:i + step]}
                              for i in range(0, len(part.calibrate), step))

        def get_next(self):
            return next(self.feeds, None)

    prepared, out = folder / "prepared.onnx", folder / "peer.onnx"
    quant_pre_process(str(model), str(prepared), skip_symbolic_shape=True)
    quantization.quantize_static(
        str(prepared), str(out), Reader(open_session(model).get_inputs()[0].name),
        per_channel=True, calibrate_method=getattr(quantization.CalibrationMethod, method))
    return outputs_of(out, part.score)


def measure(network, options):
    name, file, read, what, score = network
    model = MODELS / file
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        parts = read(model, folder)
        expected = joined([outputs_of(model, part.score) for part in parts])
        makers = {"quench": lambda part: ours(model, part, folder, shlex.split(options.flags))}
        for method in options.peer:
            makers[method] = lambda part, method=method: theirs(model, part, folder, method)
        for maker, make in makers.items():
            actual = joined([make(part) for part in parts])
            yield {"network": name, "score": what, "by": maker,
                   **row(expected, actual, parts, score)}


def cells(figures):
    def shown(key, digits):
        return f"{figures[key]:.{digits}f}" if key in figures else ""
    return [figures["network"], figures["by"], figures["score"], shown("float", 2),
            shown("int8", 2), shown("agreement", 2), shown("cosine", 5)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="networks whose name contains one of A,B")
    parser.add_argument("--flags", default="", help="more flags for `quench quantize`")
    parser.add_argument("--peer", nargs="*", default=[], choices=PEER_METHODS,
                        help="measure ONNX Runtime's quantize_static too (Percentile on photographs"
                             " takes gigabytes)")
    options = parser.parse_args()
    results = []
    for network in NETWORKS:
        wanted = not options.only or any(word in network[0] for word in options.only.split(","))
        if wanted and (MODELS / network[1]).exists():
            results += measure(network, options)
    print_table(["network", "by", "score", "float", "int8", "agreement %", "cosine"],
                [cells(each) for each in results])
    write_results("accuracy_ort.json", {"rows": results})


if __name__ == "__main__":
    main()

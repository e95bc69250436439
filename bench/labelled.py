# SPDX-License-Identifier: Apache-2.0
"""The classification networks of ../shared and what scores them: for each a function that gives
samples to calibrate with, samples to score, their labels (None: in the file of samples) and flags."""
import numpy as np

import accuracy_ort
import common

BUILD = accuracy_ort.BUILD
DATA = common.SHARED / "data"


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


# The example network, scored on images of which the first may have calibrated it.
FASHION_DATA = common.SOURCE / "examples/data/fashion-test-images-idx3-ubyte.gz"
FASHION = (common.SOURCE / "examples/data/fashion.onnx",
           files(FASHION_DATA, FASHION_DATA, None, ["--mean", "72.9", "--std", "90"]))
PHOTOS = files(DATA / "imagenet-mini/calib", DATA / "imagenet-mini/eval",
               DATA / "imagenet-mini/eval_labels.txt", accuracy_ort.PHOTO)
NETWORKS = {
    "dscnn_kws_bn.onnx": files(DATA / "kws/calib_x.npy", DATA / "kws/eval_x.npy",
                               DATA / "kws/eval_y.npy", []),
    "resnet8_cifar10_bn.onnx": files(DATA / "cifar10/data_batch_1.bin",
                                     DATA / "cifar10/test_batch.bin", None, []),
    "ppocr_v2_cls.onnx": text_lines(accuracy_ort.OCR_CLS),
    "pplcnet_x0_25_textline_ori.onnx": text_lines(accuracy_ort.OCR_ORI),
    "squeezenet1.1.onnx": PHOTOS,
    "mobilenet_v2.onnx": PHOTOS,
}

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Quantises a model with another tool, in the Python that has it.

    python3 bench/retarget_peer.py TOOL MODEL SAMPLES.npy OUT

TOOL is onnxruntime (symmetric int8, as its documentation says for TensorRT), dynamic (its dynamic
quantisation of products), nncf, quark (AMD's, for its NPU: powers of two) or torch (torchao's PT2E)."""
import os
import sys
import tempfile

import numpy as np
import onnx


def reader_of(rows):
    from onnxruntime.quantization import CalibrationDataReader

    class Reader(CalibrationDataReader):
        def __init__(self):
            super().__init__()
            self.rows = iter(rows)

        def get_next(self):
            return next(self.rows, None)

    return Reader()


def by_onnxruntime(path, rows, out):
    from onnxruntime.quantization import QuantType, quantize_static

    quantize_static(path, out, reader_of(rows), activation_type=QuantType.QInt8,
                    weight_type=QuantType.QInt8, per_channel=True,
                    extra_options={"ActivationSymmetric": True, "WeightSymmetric": True})


def by_nncf(path, rows, out):
    import nncf

    onnx.save(nncf.quantize(onnx.load(path), nncf.Dataset(rows), subset_size=len(rows)), out)


def by_dynamic(path, _, out):
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(path, out, weight_type=QuantType.QInt8)


def by_quark(path, rows, out):
    from quark.onnx import ModelQuantizer
    from quark.onnx.quantization.config.config import Config
    from quark.onnx.quantization.config.custom_config import get_default_config

    config = Config(global_quant_config=get_default_config("XINT8"))
    path, out = os.path.abspath(path), os.path.abspath(out)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # it writes tables of its own into the working directory
        ModelQuantizer(config).quantize_model(path, out, reader_of(rows))
        os.chdir(os.path.dirname(out))


def by_torch(path, rows, out):
    import retarget_torch

    retarget_torch.quantize(path, rows, out)


MAKERS = {"onnxruntime": by_onnxruntime, "dynamic": by_dynamic, "nncf": by_nncf, "quark": by_quark,
          "torch": by_torch}


def main():
    tool, path, samples, out = sys.argv[1:]
    x = np.load(samples)
    name = onnx.load(path).graph.input[0].name
    rows = [{name: x[i:i + 1]} for i in range(len(x))]
    MAKERS[tool](path, rows, out)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Quantises a model with another tool, in the Python that has it.

    python3 bench/retarget_peer.py TOOL MODEL SAMPLES.npy OUT

TOOL is onnxruntime (symmetric int8, as its documentation says for TensorRT) or nncf."""
import sys

import numpy as np
import onnx


def by_onnxruntime(path, rows, out):
    from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static

    class Reader(CalibrationDataReader):
        def __init__(self):
            self.rows = iter(rows)

        def get_next(self):
            return next(self.rows, None)

    quantize_static(path, out, Reader(), activation_type=QuantType.QInt8,
                    weight_type=QuantType.QInt8, per_channel=True,
                    extra_options={"ActivationSymmetric": True, "WeightSymmetric": True})


def by_nncf(path, rows, out):
    import nncf

    onnx.save(nncf.quantize(onnx.load(path), nncf.Dataset(rows), subset_size=len(rows)), out)


def main():
    tool, path, samples, out = sys.argv[1:]
    x = np.load(samples)
    name = onnx.load(path).graph.input[0].name
    rows = [{name: x[i:i + 1]} for i in range(len(x))]
    {"onnxruntime": by_onnxruntime, "nncf": by_nncf}[tool](path, rows, out)


if __name__ == "__main__":
    main()

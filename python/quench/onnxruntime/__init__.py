# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime's quantisation calls: `from quench.onnxruntime import quantize_static`."""
from quench.onnxruntime import quantization  # noqa: F401
from quench.onnxruntime.quantization import *  # noqa: F401,F403
from quench.onnxruntime.quantization import __all__  # noqa: F401

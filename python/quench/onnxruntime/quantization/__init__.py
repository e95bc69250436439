# SPDX-License-Identifier: Apache-2.0
"""The names and arguments of onnxruntime.quantization, turned into Quench's own."""
from quench.onnxruntime.quantization import (  # noqa: F401
    calibrate, matmul_4bits_quantizer, matmul_nbits_quantizer, quant_utils, shape_inference)
from quench.onnxruntime.quantization.calibrate import (  # noqa: F401
    CalibrationDataReader, CalibrationMethod)
from quench.onnxruntime.quantization.quant_utils import QuantFormat, QuantType  # noqa: F401
from quench.onnxruntime.quantization.quantize import (  # noqa: F401
    DynamicQuantConfig, StaticQuantConfig, quantize, quantize_dynamic, quantize_static)
from quench.onnxruntime.quantization.shape_inference import quant_pre_process  # noqa: F401

__all__ = [
    "CalibrationDataReader", "CalibrationMethod", "DynamicQuantConfig", "QuantFormat", "QuantType",
    "StaticQuantConfig", "quant_pre_process", "quantize", "quantize_dynamic", "quantize_static"]

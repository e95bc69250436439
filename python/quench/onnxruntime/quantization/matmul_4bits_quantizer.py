# SPDX-License-Identifier: Apache-2.0
"""The older name of matmul_nbits_quantizer."""
from quench.onnxruntime.quantization.matmul_nbits_quantizer import (  # noqa: F401
    DefaultWeightOnlyQuantConfig, MatMul4BitsQuantizer, MatMulNBitsQuantizer)

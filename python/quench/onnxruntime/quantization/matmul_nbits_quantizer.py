# SPDX-License-Identifier: Apache-2.0
"""Weights in few bits, as onnxruntime.quantization.matmul_nbits_quantizer names it."""
import logging

import quench
from quench.onnxruntime.quantization.quant_utils import QuantFormat, model_of

_log = logging.getLogger("quench")


class DefaultWeightOnlyQuantConfig:
    def __init__(self, block_size=128, is_symmetric=False, accuracy_level=None,
                 quant_format=QuantFormat.QOperator, op_types_to_quantize=None, quant_axes=None,
                 bits=4):
        self.block_size = block_size
        self.is_symmetric = is_symmetric
        self.accuracy_level = accuracy_level
        self.quant_format = quant_format
        self.op_types_to_quantize = op_types_to_quantize or ("MatMul",)
        self.quant_axes = quant_axes
        self.bits = bits


class _Quantized:
    """What `MatMulNBitsQuantizer.model` is after `process`."""

    def __init__(self, model):
        self.model = model

    def save_model_to_file(self, output_path, use_external_data_format=False):
        quench.save(self.model, output_path, external=True if use_external_data_format else None)


class MatMulNBitsQuantizer:
    """Stores weights as integers, by blocks: `process()`, then `model.save_model_to_file(path)`."""

    def __init__(self, model, bits=4, block_size=128, is_symmetric=False, accuracy_level=None,
                 nodes_to_exclude=None, nodes_to_include=None, quant_format=QuantFormat.QOperator,
                 op_types_to_quantize=None, quant_axes=None, algo_config=None):
        self.algo_config = algo_config or DefaultWeightOnlyQuantConfig(
            block_size, is_symmetric, accuracy_level, quant_format, op_types_to_quantize, quant_axes,
            bits)
        if not isinstance(self.algo_config, DefaultWeightOnlyQuantConfig):
            raise ValueError("algo_config is a DefaultWeightOnlyQuantConfig here; for others see "
                             "quench.quantize(type='weight', gptq=True)")
        self._source = model_of(model)
        self._excluded = nodes_to_exclude or None
        if nodes_to_include:
            _log.warning("nodes_to_include has no counterpart and changes nothing")
        self.model = None
        self.result = None

    def process(self):
        config = self.algo_config
        self.result = quench.quantize(
            self._source, None, type="weight", bits=config.bits, group_size=config.block_size,
            symmetric=True if config.is_symmetric else None, skip_node=self._excluded,
            op_types=list(config.op_types_to_quantize))
        self.model = _Quantized(self.result.model)


MatMul4BitsQuantizer = MatMulNBitsQuantizer

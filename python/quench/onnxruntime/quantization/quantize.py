# SPDX-License-Identifier: Apache-2.0
"""The functions of onnxruntime.quantization.quantize, in front of quench.quantize."""
import logging

import quench
from quench.onnxruntime.quantization.calibrate import (  # noqa: F401
    CalibrationDataReader, CalibrationMethod)
from quench.onnxruntime.quantization.quant_utils import QuantFormat, QuantType, model_of

_log = logging.getLogger("quench")

# Keys of extra_options that say the same here as an option, with how their value is said.
_EXTRA = {
    "CalibPercentile": lambda value: {"hist_percent": float(value) / 100},
    "CalibNumBins": lambda value: {"bins": int(value)},
    "CalibMovingAverage": lambda value: (
        {"activation_observer": "moving_average_abs_max"} if value else {}),
    "CalibMaxIntermediateOutputs": lambda value: {},  # statistics take the same memory for any number
    "CalibTensorRangeSymmetric": lambda value: {},    # as ActivationSymmetric
    "WeightSymmetric": lambda value: {},              # of the target; symmetric by default there too
}


def _extra(options):
    known = {}
    for key, value in (options or {}).items():
        if key in _EXTRA:
            known.update(_EXTRA[key](value))
        else:
            _log.warning("extra_options: '%s' has no counterpart and changes nothing", key)
    return known


def _escaped(name):
    return name.replace(",", "\\,")


def _layers(op_types_to_quantize, nodes_to_quantize, nodes_to_exclude):
    found = {"op_types": op_types_to_quantize or None, "skip_node": nodes_to_exclude or None}
    if nodes_to_quantize:
        found["rule"] = ["global:skip=true"] + [
            f"layer:{_escaped(name)}:skip=false" for name in nodes_to_quantize]
    return found


def quantize_static(model_input, model_output, calibration_data_reader, quant_format=QuantFormat.QDQ,
                    op_types_to_quantize=None, per_channel=False, reduce_range=False,
                    activation_type=QuantType.QInt8, weight_type=QuantType.QInt8,
                    nodes_to_quantize=None, nodes_to_exclude=None, use_external_data_format=False,
                    calibrate_method=CalibrationMethod.MinMax, calibration_providers=None,
                    extra_options=None):
    """Quantises weights and activations by samples. Returns a quench.QuantizeResult."""
    options = {
        "format": quant_format.value,
        "per_channel": True if per_channel else None,
        "per_layer": None if per_channel else True,
        "isa": "avx2" if reduce_range else None,
        "activation_bits": activation_type.bits,
        "weight_bits": weight_type.bits,
        "activation_observer": calibrate_method.value,
        **_layers(op_types_to_quantize, nodes_to_quantize, nodes_to_exclude),
        **_extra(extra_options)}
    reader = iter(calibration_data_reader.get_next, None)
    return _written(model_output, use_external_data_format,
                    lambda out: quench.quantize(model_of(model_input), out, data=reader, **options))


def quantize_dynamic(model_input, model_output, op_types_to_quantize=None, per_channel=False,
                     reduce_range=False, weight_type=QuantType.QInt8, nodes_to_quantize=None,
                     nodes_to_exclude=None, use_external_data_format=False, extra_options=None):
    """Quantises weights; activations as the model runs. Returns a quench.QuantizeResult."""
    if weight_type.bits != 8:
        raise ValueError(f"weight_type {weight_type} is not for dynamic quantisation; take QInt8")
    if reduce_range:
        _log.warning("reduce_range changes nothing here: dynamic quantisation has no such form")
    options = {
        "type": "dynamic",
        "strategy": "ALWC" if per_channel else None,
        **_layers(op_types_to_quantize, nodes_to_quantize, nodes_to_exclude),
        **_extra(extra_options)}
    return _written(model_output, use_external_data_format,
                    lambda out: quench.quantize(model_of(model_input), out, **options))


def _written(output, external, run):
    if not external:
        return run(output)
    result = run(None)
    quench.save(result.model, output, external=True)
    return result


class StaticQuantConfig:
    """The arguments of quantize_static, kept for `quantize`."""

    def __init__(self, calibration_data_reader, calibrate_method=CalibrationMethod.MinMax,
                 quant_format=QuantFormat.QDQ, **options):
        self._options = {"calibration_data_reader": calibration_data_reader,
                         "calibrate_method": calibrate_method, "quant_format": quant_format, **options}

    def quantize(self, model_input, model_output):
        return quantize_static(model_input, model_output, **self._options)


class DynamicQuantConfig:
    """The arguments of quantize_dynamic, kept for `quantize`."""

    def __init__(self, weight_type=QuantType.QInt8, **options):
        self._options = {"weight_type": weight_type, **options}

    def quantize(self, model_input, model_output):
        return quantize_dynamic(model_input, model_output, **self._options)


def quantize(model_input, model_output, quant_config):
    """Quantises as the configuration says. Returns a quench.QuantizeResult."""
    return quant_config.quantize(model_input, model_output)

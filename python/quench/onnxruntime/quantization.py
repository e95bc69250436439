# SPDX-License-Identifier: Apache-2.0
"""The names and arguments of onnxruntime.quantization, turned into Quench's own."""
import abc
import enum
import logging

import quench

__all__ = [
    "CalibrationDataReader", "CalibrationMethod", "QuantFormat", "QuantType", "quant_pre_process",
    "quantize_dynamic", "quantize_static"]

_log = logging.getLogger("quench")


class _Named(enum.Enum):
    def __str__(self):
        return self.name

    @classmethod
    def from_string(cls, name):
        try:
            return cls[name]
        except KeyError:
            raise ValueError(f"there is no {cls.__name__} '{name}'; there are "
                             f"{', '.join(each.name for each in cls)}") from None


class QuantFormat(_Named):
    QOperator = "qoperator"
    QDQ = "qdq"


class QuantType(_Named):
    """The value is the number of bits; whether integers have a sign is the target's to say."""
    QInt8 = (8, True)
    QUInt8 = (8, False)
    QInt16 = (16, True)
    QUInt16 = (16, False)
    QInt4 = (4, True)
    QUInt4 = (4, False)

    @property
    def bits(self):
        return self.value[0]


class CalibrationMethod(_Named):
    MinMax = "min_max"
    Entropy = "KL"
    Percentile = "hist"
    Distribution = "mse"


class CalibrationDataReader(abc.ABC):
    """Gives a dict of arrays by input each time, and None at the end."""

    @classmethod
    def __subclasshook__(cls, other):
        return hasattr(other, "get_next") and callable(other.get_next) or NotImplemented

    @abc.abstractmethod
    def get_next(self):
        raise NotImplementedError

    def __iter__(self):
        return iter(self.get_next, None)


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


def _path(model):
    """A path, or an onnx.ModelProto, which is written to memory first."""
    if not hasattr(model, "SerializeToString"):
        return model
    import os
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "model.onnx")
        with open(file, "wb") as out:
            out.write(model.SerializeToString())
        return quench.load(file)


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
                    lambda out: quench.quantize(_path(model_input), out, data=reader, **options))


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
                    lambda out: quench.quantize(_path(model_input), out, **options))


def _written(output, external, run):
    if not external:
        return run(output)
    result = run(None)
    quench.save(result.model, output, external=True)
    return result


def quant_pre_process(input_model, output_model_path, **_):
    """Quench prepares models itself; this only writes the model again."""
    model = _path(input_model)
    quench.save(model if isinstance(model, quench.Model) else quench.load(model), output_model_path)

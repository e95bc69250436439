# SPDX-License-Identifier: Apache-2.0
"""Where samples come from, as onnxruntime.quantization.calibrate names it."""
import abc

from quench.onnxruntime.quantization.quant_utils import Named


class CalibrationMethod(Named):
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

# SPDX-License-Identifier: Apache-2.0
"""Formats and types, as onnxruntime.quantization.quant_utils names them, and how models come in."""
import enum
import os
import tempfile

import quench


class Named(enum.Enum):
    def __str__(self):
        return self.name

    @classmethod
    def from_string(cls, name):
        try:
            return cls[name]
        except KeyError:
            raise ValueError(f"there is no {cls.__name__} '{name}'; there are "
                             f"{', '.join(each.name for each in cls)}") from None


class QuantFormat(Named):
    QOperator = "qoperator"
    QDQ = "qdq"


class QuantType(Named):
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


def model_of(model):
    """A path or a quench.Model as it is; an onnx.ModelProto is written first, and read."""
    if not hasattr(model, "SerializeToString"):
        return model
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "model.onnx")
        with open(file, "wb") as out:
            out.write(model.SerializeToString())
        return quench.load(file)


def load_model_with_shape_infer(model_path):
    """Shapes are inferred wherever they are needed: this only loads."""
    return quench.load(model_path)

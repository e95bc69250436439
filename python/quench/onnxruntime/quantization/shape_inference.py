# SPDX-License-Identifier: Apache-2.0
"""The step before quantisation, as onnxruntime.quantization.shape_inference names it."""
import quench
from quench.onnxruntime.quantization.quant_utils import model_of


def quant_pre_process(input_model=None, output_model_path=None, *_, input_model_path=None,
                      save_as_external_data=False, **__):
    """Quench prepares models itself; this only writes the model again."""
    model = model_of(input_model if input_model is not None else input_model_path)
    if model is None or output_model_path is None:
        raise ValueError("quant_pre_process takes the model and the path to write it to: "
                         "quant_pre_process(input_model, output_model_path)")
    quench.save(model if isinstance(model, quench.Model) else quench.load(model),
                output_model_path, external=True if save_as_external_data else None)

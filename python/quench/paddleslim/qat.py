# SPDX-License-Identifier: Apache-2.0
"""PaddleSlim's QAT: its configuration, in front of quench.train.

    qat = paddleslim.QAT({"weight_bits": 4, "weight_quantize_type": "channel_wise_lsq_weight"})
    net = qat.quantize("model.onnx")
    net.fit(images, epochs=10)
    qat.save_quantized_model(net, "trained.onnx")
"""
import quench
from quench._quench.paddleslim import save_quantized_model

DEFAULTS = {
    "weight_preprocess_type": None, "activation_preprocess_type": None,
    "weight_quantize_type": "channel_wise_abs_max",
    "activation_quantize_type": "moving_average_abs_max", "weight_bits": 8, "activation_bits": 8,
    "dtype": "int8", "window_size": 10000, "moving_rate": 0.9,
    "quantizable_layer_type": ["Conv2D", "Linear"], "fuse_conv_bn": False, "onnx_format": True}
# What else than its default would change nothing here.
FIXED = ("dtype", "window_size", "onnx_format")
LAYERS = {"Conv2D": ["Conv"], "Conv2DTranspose": ["ConvTranspose"], "Linear": ["Gemm", "MatMul"]}


def _usage(sentence):
    error = quench.Error(sentence)
    error.kind = "usage"
    return error


def _checked(config):
    for key, value in config.items():
        if key not in DEFAULTS:
            raise _usage(f"QAT has no setting '{key}' (there are: {', '.join(DEFAULTS)})")
        if key in FIXED and value != DEFAULTS[key]:
            raise _usage(f"QAT takes no other {key} than {DEFAULTS[key]}")
        if key.endswith("preprocess_type") and value not in (None, "PACT"):
            raise _usage(f"{key} is None or 'PACT', not '{value}'")
    return {**DEFAULTS, **config}


class TrainableModel:
    """A model to be trained, and what became of it. Its loop is quench.train's."""

    def __init__(self, model, options):
        self._model = model
        self._options = options
        self.result = None

    def fit(self, data, labels=None, **options):
        """Trains, as quench.train does with these options: by labels, or by the float model."""
        self.result = quench.train(self._model, None, data, labels=labels,
                                   **{**self._options, **options})
        return self.result

    @property
    def model(self):
        """The quantised model."""
        if self.result is None:
            raise _usage("the model was not trained yet: call fit(data)")
        return self.result.model


class QAT:
    """Trains with quantisation in the loop, configured by PaddleSlim's keys."""

    def __init__(self, config=None, weight_preprocess=None, act_preprocess=None,
                 weight_quantize=None, act_quantize=None):
        if any((weight_preprocess, act_preprocess, weight_quantize, act_quantize)):
            raise _usage("layers of your own before or as quanters are C++ classes (quench/qat.h); "
                         "in Python name one of `quench list quanters`")
        self.config = _checked(config or {})

    def _options(self, model):
        config = self.config
        types = {node.op_type for node in model.nodes}
        # A type that the model does not have is no mistake: most of them are defaults.
        wanted = [kind for layer in config["quantizable_layer_type"]
                  for kind in LAYERS.get(layer, [layer])]
        wanted = [kind for kind in wanted if kind in types]
        if not wanted:  # which would mean all types
            raise _usage("the model has no layer of the types in quantizable_layer_type: there is "
                         "nothing to quantise")
        weight = config["weight_preprocess_type"] or config["weight_quantize_type"]
        options = {
            "weight_bits": config["weight_bits"], "activation_bits": config["activation_bits"],
            "weight_quanter": weight, "moving_rate": config["moving_rate"],
            "activation_quanter": (config["activation_preprocess_type"]
                                   or config["activation_quantize_type"]),
            "op_types": wanted}
        # As with observers, what begins with channel_wise has a scale for each channel.
        if not config["weight_quantize_type"].startswith("channel_wise"):
            options["per_layer"] = True
        return options

    def quantize(self, model, inplace=False):
        """The model with quantisation in its loop: `fit` trains it."""
        loaded = model if isinstance(model, quench.Model) else quench.load(model)
        return TrainableModel(model, self._options(loaded))

    def save_quantized_model(self, model, path, input_spec=None):
        """Writes what was trained, with fixed shapes where `input_spec` has them."""
        save_quantized_model(model.model, path, input_spec or {})

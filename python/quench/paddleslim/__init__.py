# SPDX-License-Identifier: Apache-2.0
"""PaddleSlim's quantisation calls: `import quench.paddleslim as paddleslim`.

Models are paths, of Paddle or of ONNX, or quench.Model; observers, configuration and files are
PaddleSlim's. What speaks of Paddle's runtime (executor, scope) is taken and not needed.
"""
import inspect

import quench
from quench._quench import paddleslim as _slim
from quench._quench.paddleslim import LegacyPTQ, QuantConfig  # noqa: F401

__all__ = ["Analysis", "AnalysisPTQ", "AnalysisQAT", "Executor", "LegacyPTQ", "PTQ", "QAT", "QuantConfig",
           "observers", "quant", "quant_post", "quant_post_dynamic", "quant_post_only_weight",
           "quant_post_static"]


def _given(**options):
    return {name: value for name, value in options.items() if value is not None}


def quant_post_static(executor=None, model_dir=None, quantize_model_path=None, batch_generator=None,
                      sample_generator=None, data_loader=None, model_filename=None,
                      params_filename=None, **options):
    """Quantises a model by samples and writes it, as PaddleSlim's function does."""
    _slim.quant_post_static(**_given(
        model_dir=model_dir, quantize_model_path=quantize_model_path, batch_generator=batch_generator,
        sample_generator=sample_generator, data_loader=data_loader, model_filename=model_filename,
        params_filename=params_filename), **options)


def quant_post_dynamic(model_dir=None, save_model_dir=None, model_filename=None, params_filename=None,
                       **options):
    """Stores the weights of a model as integers, as PaddleSlim's function does."""
    _slim.quant_post_dynamic(**_given(
        model_dir=model_dir, save_model_dir=save_model_dir, model_filename=model_filename,
        params_filename=params_filename), **options)


quant_post_only_weight = quant_post_dynamic
quant_post = quant_post_static  # the name it had first


def PTQ(config=None, **legacy):
    """Quantises in steps: `quantize(model)`, run it, `convert(model)`. Without a QuantConfig it is
    the older class, by activation_quantizer and weight_quantizer."""
    return LegacyPTQ(**legacy) if config is None else _slim.PTQ(config, **legacy)


class Executor:
    """What an eval_function of PaddleSlim's runs the quantised model with."""

    def run(self, program, feed=None, fetch_list=None, return_numpy=True):
        results = program.session.run(feed, [str(name) for name in fetch_list or []])
        return [results[str(name)] for name in fetch_list or program.session.outputs]


class _Program:
    def __init__(self, model):
        self.session = quench.Session(model)


def _takes_program(function):
    """Whether it is called as PaddleSlim does: (executor, program, feed_names, fetch_list)."""
    try:
        inspect.signature(function).bind(None, None, None, None)
    except TypeError:
        return False
    except ValueError:  # a function that does not say
        return False
    return True


def _evaluator(function):
    if function is None or not _takes_program(function):
        return function

    def evaluate(model):
        program = _Program(model)
        return function(Executor(), program, program.session.inputs, program.session.outputs)
    return evaluate


class AnalysisPTQ(_slim.AnalysisPTQ):
    """Finds the layers that cost accuracy, as PaddleSlim's class does."""

    def __init__(self, model_dir=None, model_filename=None, params_filename=None, eval_function=None,
                 data_loader=None, **options):
        super().__init__(**_given(
            model_dir=model_dir, model_filename=model_filename, params_filename=params_filename,
            eval_function=_evaluator(eval_function), data_loader=data_loader), **options)


class Analysis(_slim.Analysis):
    """AnalysisPTQ as PaddleSlim 2.5 has it: `quant_config`, and layers ranked by their cosine."""

    def __init__(self, float_model_dir=None, quant_model_dir=None, model_filename=None,
                 params_filename=None, data_loader=None, eval_function=None, **options):
        super().__init__(**_given(
            float_model_dir=float_model_dir, quant_model_dir=quant_model_dir,
            model_filename=model_filename, params_filename=params_filename, data_loader=data_loader,
            eval_function=_evaluator(eval_function)), **options)


class AnalysisQAT(_slim.AnalysisQAT):
    """What each layer of a quantised model costs, beside the float model it came from."""

    def __init__(self, quant_model_dir=None, float_model_dir=None, model_filename=None,
                 params_filename=None, eval_function=None, data_loader=None, **options):
        super().__init__(**_given(
            quant_model_dir=quant_model_dir, float_model_dir=float_model_dir,
            model_filename=model_filename, params_filename=params_filename,
            eval_function=_evaluator(eval_function), data_loader=data_loader), **options)


from quench.paddleslim import observers, quant  # noqa: E402,F401
from quench.paddleslim.qat import QAT  # noqa: E402,F401

# SPDX-License-Identifier: Apache-2.0
"""Quench: quantises trained models, and runs, scores and times them.

    import quench
    result = quench.quantize("model.onnx", "int8.onnx", data=images)
    print(result.outputs[0].scores)

Every function is the library's own; `help(quench.quantize)` lists its options. What others call
these things is in quench.onnxruntime and quench.paddleslim.
"""
from quench._quench import (  # noqa: F401
    Error, Model, Session, Statistic, QuantSpec, QuantizeResult, EvaluateResult, CompareResult,
    BenchResult, SensitivityResult, TargetResult, StatisticsResult, ModelSummary, PackSummary,
    __version__, analyze, bench, calibrate, compare, evaluate, inspect, lint, load, metrics,
    observers, pack, quantize, save, targets, train)

__all__ = [
    "Error", "Model", "Session", "analyze", "bench", "calibrate", "compare", "evaluate", "inspect",
    "lint", "load", "metrics", "observers", "pack", "quantize", "save", "targets", "train"]

# SPDX-License-Identifier: Apache-2.0
# Made by python/make_stubs.py: a test sees that it is up to date.
from os import PathLike
from typing import Any, Callable, Iterable, Literal, Mapping, Sequence, TypedDict, Union

import numpy
from typing_extensions import Unpack

__version__: str
Path = Union[str, PathLike[str]]
ModelLike = Union[str, PathLike[str], "Model"]
Data = Union[str, PathLike[str], numpy.ndarray, Iterable[Any], Mapping[str, Any]]
Labels = Union[str, PathLike[str], numpy.ndarray, Sequence[int]]
Observer = Union[str, Callable[["Statistic", "QuantSpec"], Any]]
Metric = Union[str, Callable[[numpy.ndarray, numpy.ndarray], float]]
Progress = Union[bool, Callable[[str, int, int], Any]]
Distributed = Union[bool, Mapping[str, Any]]

class Error(Exception):
    kind: Literal["usage", "bad_model", "bad_data", "bad_config", "unsupported", "io", "internal",
                  "cancelled"]

class _Common(TypedDict, total=False):
    threads: int
    seed: int
    progress: Progress
    device: str
    precision: Literal["float", "tf32", "half"]
    max_memory_mb: int

class _Job(_Common, total=False):
    distributed: Distributed
    labels: Labels
    config: Path
    settings: Path
    data_config: Path

class QuantizeOptions(_Job, total=False):
    rule: Sequence[str]
    type: Literal["full", "weight", "dynamic"]
    target: str
    isa: Literal["avx2", "avx512", "vnni"]
    activation_observer: Observer
    weight_observer: str
    activation_bits: int
    weight_bits: int
    per_channel: bool
    per_layer: bool
    skip_node: Sequence[str]
    skip_tensor: Sequence[str]
    op_types: Sequence[str]
    hist_percent: float
    bins: int
    bits: int
    init_scale: float
    auto_tune: bool
    target_cosine: float
    target_size: float
    symmetric: bool
    group_size: int
    gptq: bool
    strategy: Literal["ALWC", "ACWL"]
    characters: str
    limit: int
    preset: str
    color: Literal["RGB", "BGR", "GRAY"]
    resize: Sequence[int]
    resize_shorter: int
    resize_fit: Sequence[int]
    resize_method: Literal["LINEAR", "NEAREST", "CUBIC"]
    center_crop: Sequence[int]
    mean: Sequence[float]
    std: Sequence[float]
    normalize_first: bool
    adaround: bool
    reconstruct: bool
    reconstruct_steps: int
    flip: bool
    crop: int
    zoom: float
    stats: Sequence[str]
    batch: int
    held_out: int
    no_bias_correction: bool
    bias_correction: Literal["none", "fast", "full", "auto"] | bool
    correction_samples: int
    equalize: Literal["never", "always", "auto"]
    pad_channels: bool
    no_pad_channels: bool
    format: Literal["qdq", "qoperator"]
    integer_io: bool
    shape: Mapping[str, Sequence[int]]
    min_weight_size: int
    min_weight_channel: int
    debug_info: str
    debug_samples: int
    no_metadata: bool

class CalibrateOptions(_Job, total=False):
    rule: Sequence[str]
    target: str
    skip_node: Sequence[str]
    skip_tensor: Sequence[str]
    op_types: Sequence[str]
    characters: str
    limit: int
    preset: str
    color: Literal["RGB", "BGR", "GRAY"]
    resize: Sequence[int]
    resize_shorter: int
    resize_fit: Sequence[int]
    resize_method: Literal["LINEAR", "NEAREST", "CUBIC"]
    center_crop: Sequence[int]
    mean: Sequence[float]
    std: Sequence[float]
    normalize_first: bool
    batch: int
    held_out: int
    shape: Mapping[str, Sequence[int]]
    min_weight_size: int
    min_weight_channel: int

class AnalyzeOptions(_Job, total=False):
    rule: Sequence[str]
    type: Literal["full", "weight", "dynamic"]
    target: str
    isa: Literal["avx2", "avx512", "vnni"]
    activation_observer: Observer
    weight_observer: str
    activation_bits: int
    weight_bits: int
    per_channel: bool
    per_layer: bool
    skip_node: Sequence[str]
    skip_tensor: Sequence[str]
    op_types: Sequence[str]
    hist_percent: float
    bins: int
    bits: int
    init_scale: float
    auto_tune: bool
    target_cosine: float
    target_size: float
    symmetric: bool
    group_size: int
    gptq: bool
    strategy: Literal["ALWC", "ACWL"]
    characters: str
    limit: int
    preset: str
    color: Literal["RGB", "BGR", "GRAY"]
    resize: Sequence[int]
    resize_shorter: int
    resize_fit: Sequence[int]
    resize_method: Literal["LINEAR", "NEAREST", "CUBIC"]
    center_crop: Sequence[int]
    mean: Sequence[float]
    std: Sequence[float]
    normalize_first: bool
    adaround: bool
    reconstruct: bool
    reconstruct_steps: int
    flip: bool
    crop: int
    zoom: float
    stats: Sequence[str]
    batch: int
    held_out: int
    no_bias_correction: bool
    bias_correction: Literal["none", "fast", "full", "auto"] | bool
    correction_samples: int
    equalize: Literal["never", "always", "auto"]
    pad_channels: bool
    no_pad_channels: bool
    format: Literal["qdq", "qoperator"]
    shape: Mapping[str, Sequence[int]]
    min_weight_size: int
    min_weight_channel: int
    no_metadata: bool

class SampleOptions(_Common, total=False):
    characters: str
    limit: int
    preset: str
    color: Literal["RGB", "BGR", "GRAY"]
    resize: Sequence[int]
    resize_shorter: int
    resize_fit: Sequence[int]
    resize_method: Literal["LINEAR", "NEAREST", "CUBIC"]
    center_crop: Sequence[int]
    mean: Sequence[float]
    std: Sequence[float]
    normalize_first: bool

class TrainOptions(_Job, total=False):
    rule: Sequence[str]
    target: str
    isa: Literal["avx2", "avx512", "vnni"]
    activation_observer: Observer
    weight_observer: str
    activation_bits: int
    weight_bits: int
    per_channel: bool
    per_layer: bool
    skip_node: Sequence[str]
    skip_tensor: Sequence[str]
    op_types: Sequence[str]
    hist_percent: float
    bins: int
    bits: int
    init_scale: float
    auto_tune: bool
    target_cosine: float
    target_size: float
    symmetric: bool
    group_size: int
    gptq: bool
    strategy: Literal["ALWC", "ACWL"]
    characters: str
    limit: int
    preset: str
    color: Literal["RGB", "BGR", "GRAY"]
    resize: Sequence[int]
    resize_shorter: int
    resize_fit: Sequence[int]
    resize_method: Literal["LINEAR", "NEAREST", "CUBIC"]
    center_crop: Sequence[int]
    mean: Sequence[float]
    std: Sequence[float]
    normalize_first: bool
    adaround: bool
    reconstruct: bool
    reconstruct_steps: int
    steps: int
    epochs: float
    minutes: float
    train_batch: int
    loss: Literal["auto", "labels", "distill"]
    distill_features: float
    optimizer: Literal["adamw", "adam", "sgd"]
    rate: float
    momentum: float
    weight_decay: float
    warmup: float
    flip: bool
    crop: int
    zoom: float
    freeze_norm: int
    patience: int
    weight_quanter: str
    activation_quanter: str
    moving_rate: float
    checkpoint: str
    checkpoint_steps: int
    resume: bool
    stats: Sequence[str]
    batch: int
    held_out: int
    no_bias_correction: bool
    bias_correction: Literal["none", "fast", "full", "auto"] | bool
    correction_samples: int
    equalize: Literal["never", "always", "auto"]
    pad_channels: bool
    no_pad_channels: bool
    format: Literal["qdq", "qoperator"]
    shape: Mapping[str, Sequence[int]]
    min_weight_size: int
    min_weight_channel: int
    no_metadata: bool

class BenchResult:
    model: str
    batch: int
    threads: int
    runs: int
    median_ms: float
    p95_ms: float
    min_ms: float
    samples_per_second: float
    load_ms: float
    peak_rss_mb: float
    steps: list[BenchStep]
    def to_dict(self) -> dict[str, Any]: ...

class BenchStep:
    node: str
    op_type: str
    start_ms: float
    ms: float
    mean_ms: float
    def to_dict(self) -> dict[str, Any]: ...

class CompareResult:
    samples: int
    outputs: list[OutputScores]
    layers: list[OutputScores]
    padded: int
    equalized: int
    def to_dict(self) -> dict[str, Any]: ...

class EvaluateResult:
    samples: int
    batch: int
    seconds: float
    outputs: list[OutputScores]
    scores: dict[str, float]
    def to_dict(self) -> dict[str, Any]: ...

class FloatLayer:
    node: str
    op_type: str
    reason: str
    def to_dict(self) -> dict[str, Any]: ...

class LayerScore:
    node: str
    op_type: str
    value: str
    own_sqnr: float
    own_cosine: float
    accumulated_sqnr: float
    accumulated_cosine: float
    output_sqnr: float
    def to_dict(self) -> dict[str, Any]: ...

class LayerSensitivity:
    layer: str
    op_type: str
    weight: str
    metric: float
    sqnr: float
    samples: int
    def to_dict(self) -> dict[str, Any]: ...

class LintLine:
    node: str
    op_type: str
    integer: bool
    reason: str
    def to_dict(self) -> dict[str, Any]: ...

class ModelSummary:
    path: str
    bytes_on_disk: int
    ir_version: int
    opsets: dict[str, int]
    producer: str
    inputs: list[Value]
    outputs: list[Value]
    op_counts: dict[str, int]
    num_nodes: int
    num_parameters: int
    weights_by_type: dict[str, WeightBytes]
    unsupported: list[UnsupportedNode]
    def to_dict(self) -> dict[str, Any]: ...

class Node:
    name: str
    op_type: str
    domain: str
    inputs: list[str]
    outputs: list[str]
    def to_dict(self) -> dict[str, Any]: ...

class OutputScores:
    output: str
    scores: dict[str, float]
    def to_dict(self) -> dict[str, Any]: ...

class PackSummary:
    bytes: int
    codings: list[PackedCoding]
    def to_dict(self) -> dict[str, Any]: ...

class PackedCoding:
    name: str
    streams: int
    bytes: int
    stored: int
    def to_dict(self) -> dict[str, Any]: ...

class QuantSpec:
    bits: int
    is_signed: bool
    symmetric: bool
    narrow: bool
    axis: int
    observer: str
    def to_dict(self) -> dict[str, Any]: ...

class QuantizeResult:
    path: str
    calibration_samples: int
    validation_samples: int
    integer_nodes: int
    pass_through_nodes: int
    float_layers: list[FloatLayer]
    bytes_before: int
    bytes_after: int
    activation_observer: str
    outputs: list[OutputScores]
    layers: list[LayerScore]
    weights: list[WeightChoice]
    warnings: list[str]
    seconds: float
    settings: str
    model: Model
    def to_dict(self) -> dict[str, Any]: ...

class SensitivityResult:
    metric: str
    higher_is_better: bool
    reverse: bool
    float_metric: float
    quantized_metric: float
    layers: list[LayerSensitivity]
    samples: int
    resumed: int
    seconds: float
    def to_dict(self) -> dict[str, Any]: ...

class Statistic:
    samples: int
    count: int
    nans: int
    infinities: int
    min: float
    max: float
    zeros: int
    bin_width: float
    first_bin: int
    abs_max: float
    mean: float
    variance: float
    bins: numpy.ndarray
    def to_dict(self) -> dict[str, Any]: ...

class StatisticsResult:
    layers: int
    samples: int
    calibration_seconds: float
    seconds: float
    def to_dict(self) -> dict[str, Any]: ...

class TargetResult:
    metric: str
    at_least: float
    met: bool
    value: float
    float_metric: float
    quantized_metric: float
    in_float: list[str]
    weight_bits: dict[str, int]
    layers: int
    tried: int
    evaluations: float
    samples: int
    seconds: float
    def to_dict(self) -> dict[str, Any]: ...

class UnsupportedNode:
    node: str
    op_type: str
    reason: str
    def to_dict(self) -> dict[str, Any]: ...

class Value:
    name: str
    dtype: str
    shape: list[int | str | None] | None
    def to_dict(self) -> dict[str, Any]: ...

class WeightBytes:
    tensors: int
    elements: int
    bytes: int
    def to_dict(self) -> dict[str, Any]: ...

class WeightChoice:
    node: str
    op_type: str
    weight: str
    bits: int
    elements: int
    bytes: int
    error: float
    method: str
    def to_dict(self) -> dict[str, Any]: ...

class Model:
    inputs: list[Value]
    outputs: list[Value]
    nodes: list[Node]
    constants: list[str]
    opsets: dict[str, int]
    metadata: dict[str, str]
    def constant(self, name: str) -> numpy.ndarray: ...
    def dump(self) -> str: ...

class Session:
    inputs: list[str]
    outputs: list[str]
    def __init__(self, model: ModelLike, *, taps: Sequence[str] = ..., reference: bool = ...,
                 dequantize: Literal["at-load", "on-the-fly"] = ...,
                 rounding: Literal["once", "twice"] = ..., threads: int = ..., device: str = ...,
                 precision: Literal["float", "tf32", "half"] = ...) -> None: ...
    def run(self, inputs: Any, outputs: str | Sequence[str] | None = ...) -> dict[str, numpy.ndarray]: ...

def load(path: Path, *, model_filename: str = ..., params_filename: str = ...) -> Model: ...
def save(model: Model, path: Path, *, external: bool | None = ..., encode: bool = ...) -> None: ...
def inspect(model: ModelLike) -> ModelSummary: ...
def lint(model: ModelLike, target: str = ...) -> list[LintLine]: ...
def pack(model: ModelLike, output: Path, *, encode: bool = ...) -> PackSummary: ...
def quantize(model: ModelLike, output: Path | None = ..., data: Data | None = ..., *,
             report: Path = ..., **options: Unpack[QuantizeOptions]) -> QuantizeResult: ...
def train(model: ModelLike, output: Path | None = ..., data: Data | None = ..., *,
          report: Path = ..., **options: Unpack[TrainOptions]) -> QuantizeResult: ...
def calibrate(model: ModelLike, output: Path, data: Data | None = ..., *, resume: bool = ...,
              **options: Unpack[CalibrateOptions]) -> None: ...
def evaluate(model: ModelLike, data: Data | None = ...,
             metrics: Metric | Sequence[Metric] | None = ..., *, labels: Labels = ...,
             reference: ModelLike = ..., output: str = ..., batch: int = ..., data_config: Path = ...,
             dequantize: str = ..., rounding: str = ..., distributed: Distributed = ...,
             **options: Unpack[SampleOptions]) -> EvaluateResult: ...
def compare(model: ModelLike, reference: ModelLike, data: Data | None = ..., *,
            metrics: Sequence[str] = ..., output: str = ..., batch: int = ..., random: int = ...,
            shape: Mapping[str, Sequence[int]] = ..., labels: Labels = ..., data_config: Path = ...,
            **options: Unpack[SampleOptions]) -> CompareResult: ...
def bench(model: ModelLike, *, batch: int = ..., warmup: int = ..., runs: int = ...,
          max_seconds: float = ..., shape: Mapping[str, Sequence[int]] = ..., profile: bool = ...,
          dequantize: str = ..., **options: Unpack[_Common]) -> BenchResult: ...
def analyze(model: ModelLike, data: Data | None = ...,
            kind: Literal["sensitivity", "target", "statistics"] = ..., *, metric: str = ...,
            eval_function: Callable[[Model], float] = ..., eval_data: Data = ...,
            eval_labels: Labels = ..., eval_limit: int = ..., save_dir: Path = ...,
            resume: bool = ..., report: Path = ..., at_least: float = ..., raise_bits: int = ...,
            output: Path = ..., reverse: bool = ..., quick: bool = ..., worst: int = ...,
            **options: Unpack[AnalyzeOptions]) -> Any: ...
def metrics() -> list[str]: ...
def observers() -> list[str]: ...
def targets() -> list[str]: ...

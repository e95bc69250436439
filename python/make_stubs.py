#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes quench/__init__.pyi from the module itself: options from the table, fields from results."""
import argparse
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
JOBS = {"QuantizeOptions": 1, "CalibrateOptions": 2, "AnalyzeOptions": 4, "SampleOptions": 8,
        "TrainOptions": 16}
# The kinds of an option's value, in the order of OptionKind.
KINDS = ["bool", "int", "float", "str", "str", "Sequence[str]", "Sequence[float]", "Sequence[int]",
         "Mapping[str, Sequence[int]]", "Any"]

HEAD = '''# SPDX-License-Identifier: Apache-2.0
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
'''

COMMON = '''
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
'''

TAIL = '''
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
'''


def type_of(row):
    if row["observer"]:
        return "Observer"
    if row["choices"]:
        words = ", ".join(f'"{word}"' for word in row["choices"])
        return f"Literal[{words}]" + (" | bool" if "none" in row["choices"] else "")
    if row["switch"]:
        return "bool"
    return "Sequence[str]" if row["many"] and row["kind"] == 4 else KINDS[row["kind"]]


def options_text(rows):
    for name, job in JOBS.items():
        base = "_Common" if job == 8 else "_Job"
        yield f"\nclass {name}({base}, total=False):"
        for row in rows:
            if row["jobs"] & job and row["name"] not in ("data", "labels"):
                yield f"    {row['name']}: {type_of(row)}"


def records_text(module):
    for name, kind in sorted(vars(module).items()):
        fields = vars(kind).get("__annotations__") if isinstance(kind, type) else None
        if not fields:
            continue
        yield f"\nclass {name}:"
        for field, annotation in fields.items():
            yield f"    {field}: {annotation}"
        if name == "QuantizeResult":
            yield "    model: Model"
        yield "    def to_dict(self) -> dict[str, Any]: ..."


def stub(module):
    parts = [HEAD + COMMON, *options_text(module._options()), *records_text(module)]
    return "\n".join(part.rstrip("\n") for part in parts) + "\n" + TAIL


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("package", help="folder that holds the built package")
    parser.add_argument("--check", action="store_true", help="exit 1 where the file is out of date")
    given = parser.parse_args()
    sys.path.insert(0, given.package)
    from quench import _quench
    file = HERE / "quench" / "__init__.pyi"
    text = stub(_quench)
    if not given.check:
        file.write_text(text)
    elif not file.exists() or file.read_text() != text:
        print(f"{file} is out of date: run python/make_stubs.py {given.package}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

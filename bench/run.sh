#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs every measurement but the long tables of docs/results*.md against build/release and prints the
# tables; JSON goes to build/bench.
cd "$(dirname "$0")/.." || exit 1
python=.venv/bin/python
if [ ! -x "$python" ]; then
  echo "bench: no .venv with ONNX Runtime; 'make venv' makes it" >&2
  exit 1
fi
status=0

# measure TITLE SCRIPT [ARGUMENTS]
measure() {
  echo "== $1 =="
  shift
  "$python" "$@" || status=1
  echo
}

measure "reading and starting" bench/load.py
measure "float latency and memory beside ONNX Runtime" bench/float_vs_ort.py "$@"
measure "calibration" bench/calibration.py
measure "accuracy in ONNX Runtime" bench/accuracy_ort.py
measure "what ONNX Runtime makes of our files" bench/integer_share.py
measure "layers and classes beside ONNX Runtime's" bench/simulation.py
measure "int8 beside float and beside ONNX Runtime" bench/int8.py
measure "beside a process that takes half of a core" bench/neighbour.py
measure "weights: quantising 1 GB" bench/weight_speed.py
measure "weights: packed files beside zstd -19" bench/packed_size.py
measure "weights: shares of the float ones" bench/weight_size.py
measure "weights: mixed bits beside 7" bench/mixed_bits.py
measure "weights that stay packed" bench/on_the_fly.py
measure "dynamic quantisation of sentence encoders" bench/stsb.py --time
measure "analysis: sensitivity" bench/sensitivity.py
measure "analysis: statistics and report" bench/analysis.py
measure "analysis: evaluations to meet a target" bench/target.py
measure "training: steps beside float and beside torch.ao" bench/train.py
exit $status

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs every measurement against build/release and prints the tables; JSON goes to build/bench.
cd "$(dirname "$0")/.." || exit 1
python=.venv/bin/python
if [ ! -x "$python" ]; then
  echo "bench: no .venv with ONNX Runtime; 'make venv' makes it" >&2
  exit 1
fi
status=0
echo "== reading and starting =="
"$python" bench/load.py || status=1
echo
echo "== float latency and memory beside ONNX Runtime =="
"$python" bench/float_vs_ort.py "$@" || status=1
echo
echo "== calibration =="
"$python" bench/calibration.py || status=1
echo
echo "== int8 beside float and beside ONNX Runtime =="
"$python" bench/int8.py || status=1
echo
echo "== weights: quantising 1 GB =="
"$python" bench/weight_speed.py || status=1
echo
echo "== weights: packed files beside zstd -19 =="
"$python" bench/packed_size.py || status=1
echo
echo "== weights: mixed bits beside 7 =="
"$python" bench/mixed_bits.py || status=1
echo
echo "== weights that stay packed =="
"$python" bench/on_the_fly.py || status=1
echo
echo "== dynamic quantisation of sentence encoders =="
"$python" bench/stsb.py --time || status=1
echo
echo "== analysis: sensitivity =="
"$python" bench/sensitivity.py || status=1
echo
echo "== analysis: statistics and report =="
"$python" bench/analysis.py || status=1
echo
echo "== analysis: evaluations to meet a target =="
"$python" bench/target.py || status=1
exit $status

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
exit $status

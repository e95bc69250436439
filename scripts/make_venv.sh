#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes .venv with the runtimes that check our output. Where Python's registry cannot be reached this
# is passed over with a message, except in CI (CI=true), where it is an error.
set -eu
cd "$(dirname "$0")/.."
# Paddle is pinned: tests/roundtrip/in_paddle.py holds what this version computes against ours.
packages="numpy onnx onnxruntime paddlepaddle==3.3.1 ai-edge-litert"
stamp=".venv/.made-with"

if [ "$(cat "$stamp" 2>/dev/null || true)" = "$packages" ]; then
  exit 0
fi

make_venv() {
  rm -rf .venv
  python3 -m venv .venv || return 1
  # shellcheck disable=SC2086  # a list of words
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --retries 2 $packages ||
    return 1
  .venv/bin/python -c 'import numpy, onnx, onnxruntime, paddle, ai_edge_litert' || return 1
  echo "$packages" > "$stamp"
}

if make_venv; then
  echo "make_venv: .venv is ready"
  exit 0
fi
rm -rf .venv
if [ "${CI:-}" = true ]; then
  echo "make_venv: .venv could not be made, and CI must run the round-trip tests" >&2
  exit 1
fi
echo "make_venv: .venv could not be made (see above); the round-trip tests will be skipped" >&2

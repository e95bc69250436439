#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs Python from .venv with the given arguments. Without .venv it exits with 77, which ctest
# reports as skipped, or with 1 in CI.
python="$(dirname "$0")/../.venv/bin/python"
if [ -x "$python" ] && [ -e "$(dirname "$python")/../.made-with" ]; then
  exec "$python" "$@"
fi
echo "in_venv: no .venv; 'make venv' makes it when Python's registry can be reached" >&2
[ "${CI:-}" = true ] && exit 1
exit 77

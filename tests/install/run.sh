#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds and runs the consumer project against Quench.
#   run.sh package SOURCE BUILD WORK       against an installed copy that was moved afterwards
#   run.sh subdirectory SOURCE BUILD WORK  with Quench as a part of the consumer's build
set -eu
mode=$1 source=$2 build=$3 work=$4
rm -rf "$work"
mkdir -p "$work"

case $mode in
package)
  cmake --install "$build" --prefix "$work/first" >"$work/install.log"
  mv "$work/first" "$work/moved"
  set -- -DCMAKE_PREFIX_PATH="$work/moved"
  ;;
subdirectory)
  # The engine's build takes minutes and is the same in both cases.
  set -- -DQUENCH_FROM="$source" -DQUENCH_ENGINE=OFF
  if command -v ccache >/dev/null; then
    set -- "$@" -DCMAKE_CXX_COMPILER_LAUNCHER=ccache
  fi
  ;;
*)
  echo "run.sh: no mode '$mode'" >&2
  exit 2
  ;;
esac

cmake -G Ninja -S "$source/tests/install/consumer" -B "$work/build" "$@"
cmake --build "$work/build" -j 2 --target consumer
"$work/build/consumer" | tee "$work/output"
grep -q '^float32\[2x2\]$' "$work/output"
grep -q '^io: .*no_such_model.onnx' "$work/output"
if [ "$mode" = package ] && [ -x "$build/quench" ]; then
  "$work/moved/bin/quench" list dtypes
fi

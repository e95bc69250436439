#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds and runs the consumer project against Quench.
#   run.sh package SOURCE BUILD WORK       against an installed copy that was moved afterwards
#   run.sh subdirectory SOURCE BUILD WORK  with Quench as a part of the consumer's build; compiles only
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
  set -- -DQUENCH_FROM="$source" -DQUENCH_ENGINE=OFF
  ;;
*)
  echo "run.sh: no mode '$mode'" >&2
  exit 2
  ;;
esac

cmake -G Ninja -S "$source/tests/install/consumer" -B "$work/build" "$@"
if [ "$mode" = subdirectory ]; then
  # The consumer's own file is compiled; building the whole library once more would show no more.
  ninja -C "$work/build" CMakeFiles/consumer.dir/main.cpp.o
  ninja -C "$work/build" -n consumer >"$work/plan.log"
  exit 0
fi
cmake --build "$work/build" --target consumer
"$work/build/consumer" | tee "$work/output"
grep -q '^float32\[2x2\]$' "$work/output"
grep -q '^io: .*no_such_model.onnx' "$work/output"
"$work/moved/bin/quench" list dtypes

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs every fuzzing harness of a build tree: fuzz.sh BUILD SECONDS [NAME...]. A harness is a program
# fuzz_NAME; it starts from fuzz/seeds/NAME and fuzz/regressions/NAME and, when NAME contains onnx or
# session, from the small models of Debian's libonnx-testdata, and Paddle's from the programs that the
# tests hold. What it learns stays in
# BUILD/corpus/NAME; a crash is kept in BUILD/crashes and fails the run.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$1" && pwd) seconds=$2
shift 2
if [ $# -eq 0 ]; then
  for harness in "$build"/fuzz_*; do
    if [ -f "$harness" ] && [ -x "$harness" ]; then
      set -- "$@" "${harness##*/fuzz_}"
    fi
  done
fi
if [ $# -eq 0 ]; then
  echo "fuzz: no harness in $build" >&2
  exit 1
fi

model_seeds() {
  seeds="$build/seeds/models"
  if [ ! -d "$seeds" ]; then
    mkdir -p "$seeds"
    dpkg -L libonnx-testdata 2>/dev/null | grep '/model\.onnx$' | while read -r model; do
      if [ "$(stat -c %s "$model")" -le 65536 ]; then
        cp "$model" "$seeds/$(basename "$(dirname "$model")").onnx"
      fi
    done
  fi
  echo "$seeds"
}

mkdir -p "$build/crashes"
failed=
for name in "$@"; do
  corpus="$build/corpus/$name"
  mkdir -p "$corpus"
  folders="$corpus"
  for folder in "$root/fuzz/seeds/$name" "$root/fuzz/regressions/$name"; do
    if [ -d "$folder" ]; then folders="$folders $folder"; fi
  done
  case $name in
  *onnx* | *session*) folders="$folders $(model_seeds)" ;;
  paddle_pir) folders="$folders $root/tests/unit/formats/paddle_cases/pir" ;;
  paddle_program) folders="$folders $root/tests/unit/formats/paddle_cases" ;;
  esac
  extra=
  if [ "$name" = session ]; then
    engine=$(sed -n 's/^QUENCH_FUZZ_ENGINE:PATH=//p' "$build/CMakeCache.txt")
    if [ ! -f "$engine/libquench_engine.so" ]; then
      echo "fuzz: session skipped: no engine in $engine (make build)"
      continue
    fi
    # The engine is not instrumented: its vectors have no borders, and libtorch keeps what it has.
    export ASAN_OPTIONS=detect_container_overflow=0:detect_odr_violation=0
    extra="-detect_leaks=0 -rss_limit_mb=2048"
  fi
  echo "fuzz: $name for $seconds s"
  # shellcheck disable=SC2086  # a list of folders, none of which holds a blank
  "$build/fuzz_$name" -max_total_time="$seconds" -timeout=5 -rss_limit_mb=1024 \
    -malloc_limit_mb=512 -max_len=65536 $extra \
    -print_final_stats=1 -verbosity=0 -artifact_prefix="$build/crashes/$name-" $folders ||
    failed="$failed $name"
done
if [ -n "$failed" ]; then
  echo "fuzz: findings in:$failed; see $build/crashes" >&2
  exit 1
fi
echo "fuzz: no findings"

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The README's way from a bare Debian 12 to a quantised model of one's own: its commands, as they
# stand there, at most four.
#   first_model.sh SOURCE [MODEL IMAGES]     needs root; compiles everything
set -eu
if [ "${1:-}" != --inside ]; then
  source=$1
  shift
  exec "$source/scripts/bare.sh" tests/install/first_model.sh --inside "$@"
fi
# One's own: files that are not where the clone is.
me=$(mktemp -d)
model=${2:-examples/data/fashion.onnx}
images=${3:-examples/data/fashion-test-images-idx3-ubyte.gz}
[ $# -gt 1 ] && preset='--preset imagenet' || preset='--mean 72.9 --std 90'
cp "$model" "$me/MODEL.onnx"
cp -r "$images" "$me"
images=$me/$(basename "$images")
block=$(sed -n '/^From a bare Debian 12/,/^```$/p' README.md | sed '1,/^```sh$/d;/^```$/d')
commands=$(printf '%s\n' "$block" | wc -l)
[ "$commands" -le 4 ] || { echo "the README has $commands commands" >&2; exit 1; }
script=$(printf '%s\n' "$block" | sed "s|REPOSITORY|/project|; s|MODEL.onnx|$me/MODEL.onnx|; \
s|int8.onnx|$me/int8.onnx|; s|--data IMAGES|--data $images|; s|--preset imagenet|$preset|")
cd "$me"
printf '%s\n' "$script"
DEBIAN_FRONTEND=noninteractive sh -eux -c "$script"
test -s "$me"/int8.onnx

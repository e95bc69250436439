#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages on a bare Debian 12, and quantises there with the program, Python and a
# program of one's own.
#   bare_packages.sh SOURCE PACKAGES
set -eu
if [ "${1:-}" != --inside ]; then
  QUENCH_BARE_FILES=$2 exec "$1/scripts/bare.sh" tests/install/bare_packages.sh --inside
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update --quiet --quiet
apt-get install --yes --quiet --quiet --no-install-recommends /files/quench_*.deb \
  /files/python3-quench_*.deb >/dev/null
data=/project/examples/data
images=$data/fashion-test-images-idx3-ubyte.gz
cd /tmp
quench quantize $data/fashion.onnx -o int8.onnx --data $images --mean 72.9 --std 90 --limit 200
quench eval int8.onnx $images --mean 72.9 --std 90 --limit 1000 --at-least top1=88
/usr/bin/python3 - "$data/fashion.onnx" "$images" <<'SCRIPT'
import sys
import quench
result = quench.quantize(sys.argv[1], "again.onnx", data=sys.argv[2], mean=[72.9], std=[90], limit=200)
print(quench.__file__, result.outputs[0].scores["sqnr"])
assert result.outputs[0].scores["sqnr"] > 20
SCRIPT
# The headers go with a compiler and CMake; their names and what they need of others is what is shown.
dpkg-deb --contents /files/libquench-dev_*.deb | grep -q 'include/quench/quench.h'

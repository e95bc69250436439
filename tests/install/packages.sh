#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the Debian packages from the build tree, unpacks them side by side, and uses what is in them.
#   packages.sh BUILD WORK
set -eu
build=$1 work=$2
rm -rf "$work"
mkdir -p "$work/unpacked"
(cd "$build" && cpack -G DEB -B "$work" >"$work/cpack.log" 2>&1) || { cat "$work/cpack.log"; exit 1; }
for name in quench libquench-dev python3-quench; do
  package=$(ls "$work"/${name}_*.deb)
  dpkg-deb --info "$package" | grep -E '^ (Package|Depends):'
  dpkg-deb --extract "$package" "$work/unpacked"
done
# What dpkg found out about libraries: the engine needs libtorch.
dpkg-deb --field "$work"/quench_*.deb Depends | grep -q libtorch
dpkg-deb --field "$work"/python3-quench_*.deb Depends | grep -q 'quench (= '
"$work/unpacked/usr/bin/quench" list dtypes >/dev/null
test -f "$work/unpacked/usr/include/quench/quench.h"
test -f "$work/unpacked/usr/share/man/man1/quench-quantize.1" || test -f "$work/unpacked/usr/share/man/man1/quench-quantize.1.gz"
cd "$work"
PYTHONPATH="$work/unpacked/usr/lib/python3/dist-packages" /usr/bin/python3 -B -c '
import quench, sys
print(quench.__file__, quench.__version__)
assert "/unpacked/usr/lib" in quench.__file__
'

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the references of C++ (Doxygen) and Python (Sphinx) in build/docs: make_docs.sh BUILD. A
# warning of either is an error. Exits with 77 where one of them is missing, or 1 in CI.
set -eu
cd "$(dirname "$0")/.."
build=$1
if ! command -v doxygen >/dev/null || ! /usr/bin/python3 -c 'import sphinx' 2>/dev/null; then
  echo "make_docs: doxygen or python3-sphinx is missing: make deps-test" >&2
  [ "${CI:-}" = true ] && exit 1
  exit 77
fi
mkdir -p build/docs
doxygen docs/api/Doxyfile
PYTHONPATH="$build/python" PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -m sphinx -q -W --keep-going \
  -b html -d build/docs/doctrees docs/api/python build/docs/python
# Names that a reader will look for.
grep -q 'QuantizeReport' build/docs/cpp/annotated.html
grep -q 'quench.quantize' build/docs/python/index.html
echo "make_docs: build/docs/cpp/index.html and build/docs/python/index.html"

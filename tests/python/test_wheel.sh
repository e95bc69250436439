#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds a wheel from the build tree, installs it in a fresh virtual environment, and quantises there;
# then `pip install .` in another.
set -eu
for module in setuptools wheel pip numpy venv; do
  if ! /usr/bin/python3 -c "import $module" 2>/dev/null; then
    echo "Debian's Python has no $module: see scripts/packages.txt" >&2
    [ "${CI:-}" = true ] && exit 1
    exit 77
  fi
done
folder="$QUENCH_BINARY/wheel-test"
rm -rf "$folder"
mkdir -p "$folder/source"
# setuptools writes beside its setup.py.
cd "$QUENCH_SOURCE"
cp -r pyproject.toml setup.py README.md CMakeLists.txt "$folder/source"
cd "$folder/source"
QUENCH_BUILD_DIR="$QUENCH_BINARY" /usr/bin/python3 -m pip wheel . --no-deps --no-build-isolation \
  --quiet --wheel-dir "$folder"
[ "$(/usr/bin/python3 -m zipfile -l "$folder"/quench-*.whl | grep -c 'libquench\.so')" -eq 1 ]
# NumPy is Debian's: nothing is fetched.
/usr/bin/python3 -m venv --system-site-packages "$folder/venv"
"$folder/venv/bin/pip" install --quiet --no-deps --no-index "$folder"/quench-*.whl
cd "$folder"
env -i PATH=/usr/bin:/bin HOME="$folder" "$folder/venv/bin/python" - "$QUENCH_SOURCE" <<'SCRIPT'
import sys, pathlib
import quench
assert "venv" in quench.__file__, quench.__file__
data = pathlib.Path(sys.argv[1]) / "examples" / "data"
result = quench.quantize(data / "fashion.onnx", "int8.onnx", limit=100, mean=[72.9], std=[90],
                         data=data / "fashion-test-images-idx3-ubyte.gz")
print(result.outputs[0].scores, result.bytes_before, result.bytes_after)
assert result.outputs[0].scores["sqnr"] > 20
SCRIPT
# What a clone says is installed: the same files, without a wheel to be named.
/usr/bin/python3 -m venv --system-site-packages "$folder/clone"
cd "$folder/source"
QUENCH_BUILD_DIR="$QUENCH_BINARY" "$folder/clone/bin/pip" install . --quiet --no-deps --no-index \
  --no-build-isolation
cd "$folder"
env -i PATH=/usr/bin:/bin HOME="$folder" "$folder/clone/bin/python" - "$QUENCH_SOURCE" <<'SCRIPT'
import sys
import quench
print(quench.__version__, quench.__file__)
assert "clone" in quench.__file__, quench.__file__
model = quench.quantize(sys.argv[1] + "/examples/data/fashion.onnx", "weights.onnx", type="weight", bits=8)
assert model.bytes_after < 0.5 * model.bytes_before, model
SCRIPT

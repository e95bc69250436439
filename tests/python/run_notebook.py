# SPDX-License-Identifier: Apache-2.0
"""Runs the cells of examples/quantize.ipynb in order, and looks at what they leave behind."""
import json
import os
import shutil
import sys

from testing import BINARY, SOURCE

try:
    import matplotlib
except ImportError:
    print("Matplotlib is missing: install python3-matplotlib")
    sys.exit(1 if os.environ.get("CI") == "true" else 77)


def last_value(source, names):
    """Runs a cell; the value of its last line, where that is an expression."""
    import ast
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last else None


def main():
    matplotlib.use("Agg")
    # The notebook writes to ../build/notebook: beside a copy of the examples, not in the source.
    folder = BINARY / "notebook-test"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(SOURCE / "examples" / "data", folder / "examples" / "data")
    out = folder / "build" / "notebook"
    out.mkdir(parents=True)
    os.chdir(folder / "examples")
    notebook = json.loads((SOURCE / "examples" / "quantize.ipynb").read_text())
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert not any(cell.get("outputs") for cell in notebook["cells"]), "store it without outputs"
    names = {}
    for cell in cells:
        print(cell, "\n-->", last_value(cell, names), "\n")
    for file in ("int8.onnx", "report.html", "layers.png"):
        assert (out / file).stat().st_size > 1000, file
    return 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""The Python reference: `make docs` has Sphinx read the docstrings of the package that was built."""
import quench

project = "Quench"
release = quench.__version__
extensions = ["sphinx.ext.autodoc"]
html_theme = "alabaster"
html_theme_options = {"nosidebar": False, "description": "Quantises trained models"}
autodoc_default_options = {"members": True, "undoc-members": True, "imported-members": True}
autodoc_member_order = "groupwise"


def as_written(_app, _what, _name, _thing, _options, lines):
    """What follows the first paragraph is a list of arguments, laid out by hand: it stays so."""
    end = lines.index("") if "" in lines else len(lines)
    rest = lines[end:]
    if any(line.startswith("    ") for line in rest):
        lines[end:] = ["", "::", "", *(f"    {line}" for line in rest), ""]


def setup(app):
    app.connect("autodoc-process-docstring", as_written)

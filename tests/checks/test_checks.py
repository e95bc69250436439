# SPDX-License-Identifier: Apache-2.0
"""Tests of the checks in tools/: each must find what it is for, and only that."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parent.parent.parent / "tools"
sys.path.insert(0, str(TOOLS))
import check_sizes  # noqa: E402

HEADER = "// SPDX-License-Identifier: Apache-2.0\n// A file.\n"


def run_check(name, files):
    """Runs a check over a folder with these files; gives its exit status and what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            target = pathlib.Path(folder) / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        run = subprocess.run([sys.executable, TOOLS / f"check_{name}.py", folder],
                             capture_output=True, text=True, check=False)
        return run.returncode, run.stdout


class Layers(unittest.TestCase):
    def check(self, path, line):
        status, text = run_check("layers", {path: line + "\n", "src/ir/uses.h": "", "cli/bar.h": ""})
        return text if status else ""

    def test_lower_rooms_are_seen_and_higher_ones_are_not(self):
        self.assertEqual(self.check("src/passes/a.cpp", '#include "ir/uses.h"'), "")
        self.assertIn("comes after", self.check("src/tensor/a.cpp", '#include "ir/uses.h"'))
        self.assertIn("comes after", self.check("src/ir/a.cpp", '#include "quench/session.h"'))

    def test_third_party_headers_stay_in_their_rooms(self):
        self.assertEqual(self.check("src/exec/a.cpp", "#include <torch/torch.h>"), "")
        self.assertIn("only by", self.check("src/data/a.cpp", "#include <torch/torch.h>"))
        self.assertIn("only by", self.check("src/data/npy.cpp", "#include <opencv2/core.hpp>"))
        self.assertEqual(self.check("src/data/images.cpp", "#include <opencv2/core.hpp>"), "")
        self.assertIn("not in the table", self.check("src/ir/a.cpp", "#include <boost/any.hpp>"))

    def test_one_place_says_how_many_threads_there_are(self):
        line = "int n = std::thread::hardware_concurrency();"
        self.assertEqual(self.check("src/base/context.cpp", line), "")
        self.assertIn("only by", self.check("src/quant/a.cpp", line))

    def test_the_program_sees_public_headers_only(self):
        self.assertEqual(self.check("cli/a.cpp", '#include "quench/model.h"'), "")
        self.assertEqual(self.check("cli/a.cpp", '#include "bar.h"'), "")
        self.assertIn("private", self.check("cli/a.cpp", '#include "ir/uses.h"'))

    def test_public_headers_see_the_standard_library_only(self):
        header = "include/quench/tensor.h"
        self.assertEqual(self.check(header, "#include <vector>"), "")
        self.assertIn("only by", self.check(header, "#include <fmt/format.h>"))
        self.assertIn("may not", self.check(header, '#include "tensor/half.h"'))


class Sizes(unittest.TestCase):
    def lengths(self, text):
        return [length for _, length in check_sizes.cpp_functions(text)]

    def test_functions_are_measured_from_signature_to_brace(self):
        self.assertEqual(self.lengths("namespace q {\nint f(int a,\n      int b) {\n  g();\n}\n}\n"), [4])
        self.assertEqual(self.lengths("struct S {\n  int f() const { return 1; }\n};\n"), [1])
        self.assertEqual(self.lengths("S::S(int a) : a_{a}, b_(2) {\n  g({1});\n}\n"), [3])

    def test_tables_and_types_are_not_functions(self):
        self.assertEqual(self.lengths("const int k[] = {\n  f(1),\n};\nenum class E { A };\n"), [])

    def test_braces_in_text_do_not_count(self):
        self.assertEqual(self.lengths("void f() {\n  // }\n  g(\"}\", '}', 1'000);\n}\nvoid h() {}\n"), [4, 1])

    def test_a_long_function_and_a_long_file_are_found(self):
        long_function = HEADER + "void f() {\n" + "  g();\n" * 60 + "}\n"
        status, text = run_check("sizes", {"src/ir/a.cpp": long_function, "b.sh": "\n" * 501})
        self.assertEqual(status, 1)
        self.assertIn("a.cpp:3: a function of 62 lines", text)
        self.assertIn("b.sh: 501 lines", text)


class Text(unittest.TestCase):
    def check(self, text, path="src/ir/a.cpp"):
        return run_check("text", {path: text})[1]

    def test_a_clean_file_passes(self):
        self.assertEqual(self.check(HEADER), "check_text: ok\n")

    def test_each_fault_is_named(self):
        self.assertIn("is missing", self.check("int a;\n"))
        self.assertIn("a sentence", self.check(HEADER.split("\n", maxsplit=1)[0] + "\nint a;\n"))
        self.assertIn(":3: a character", self.check(HEADER + "// caf\u00e9\n"))
        self.assertIn(":3: blanks", self.check(HEADER + "int a; \n"))
        self.assertIn(":3: a tab", self.check(HEADER + "\tint a;\n"))
        self.assertIn("no line end", self.check(HEADER + "int a;"))
        self.assertIn("a path of one machine", self.check("see /" + "home/me/x\n", "a.md"))

    def test_users_read_the_words_of_the_field(self):
        self.assertIn(":3: 'grid'", self.check(HEADER + 'const char* a = "one grid";\n'))
        self.assertIn(":1: 'judged'", self.check("a result is judged\n", "docs/guide/a.md"))
        self.assertIn(":3: 'grid'", self.check(HEADER + "int grid_of_values = 0;\n"))
        self.assertIn(":3: 'Settled'", self.check(HEADER + "// Settled by now.\n"))
        self.assertIn(":3: 'team'", self.check(HEADER + "int team = 0;\n", "src/exec/a.cpp"))
        self.assertIn("ok", self.check(HEADER + 'infer_grid_sample("Grid", gridlock);\n'))


if __name__ == "__main__":
    unittest.main()

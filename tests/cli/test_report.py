# SPDX-License-Identifier: Apache-2.0
"""The HTML report: data that stay data, one file, and what changed between two."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import harness

DATA = re.compile(r'<script id="quench-data" type="application/json">(.*?)</script>', re.DOTALL)
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")


class ReportTest(harness.CliTest):
    def report(self, name, *words, model="model.onnx"):
        self.run_quench("analyze", "sensitivity", model, "--data", "images.npy", "-o", "folder",
                        "--report", name, *words)
        return (self.dir / name).read_text(encoding="utf-8")

    def data_of(self, page):
        return json.loads(DATA.search(page)[1])

    def test_what_it_holds(self):
        data = self.data_of(self.report("a.html"))
        self.assertEqual([layer["name"] for layer in data["layers"]], ["conv_node", "gemm_node"])
        for layer in data["layers"]:
            self.assertGreater(layer["sqnr"], 10)
            self.assertAlmostEqual(sum(layer["weight"]["share"]), 1, 3)
            low, high = layer["activation"]["range"]
            self.assertLess(low, high)
        self.assertEqual(len(data["nodes"]), 5)
        self.assertEqual(len(data["sensitivity"]["layers"]), 2)
        self.assertIn("onnxruntime", str(data["settings"]))

    def test_shows_the_file_that_was_written(self):
        """In every type, its figures are those of `compare` on the validation set."""
        shape, values = harness.read_npy(self.dir / "images.npy")
        last = values[-4 * (len(values) // shape[0]):]  # 16 of 20 samples calibrate
        harness.write_npy(self.dir / "last.npy", "<f4", (4, *shape[1:]), last)
        pages = set()
        cases = (["--weight-bits", "3"], ["--no-bias-correction"], ["--type", "weight", "--bits", "3"])
        for words in cases:
            self.run_quench("quantize", "model.onnx", "-o", "shown.onnx", "--data", "images.npy",
                            "--report", "shown.html", *words)
            data = self.data_of((self.dir / "shown.html").read_text(encoding="utf-8"))
            near = self.run_json("compare", "shown.onnx", "model.onnx", "--data", "last.npy")
            self.assertAlmostEqual(data["outputs"][0]["scores"]["sqnr"], near["outputs"][0]["sqnr"],
                                   2, words)
            self.assertIn(3 if "3" in words else 8, [layer["bits"] for layer in data["layers"]])
            pages.add(json.dumps(data["layers"]))
        self.assertEqual(len(pages), 3)

    def test_which_layer_costs_the_outputs(self):
        """The table that `quantize` prints, as the ranking of the page."""
        job = self.run_json("quantize", "residual.onnx", "-o", "ranked.onnx", "--data", "images.npy",
                            "--report", "ranked.html")
        data = self.data_of((self.dir / "ranked.html").read_text(encoding="utf-8"))
        shown = [(row["layer"], round(row["sqnr"], 4)) for row in data["sensitivity"]["layers"]]
        found = [(row["node"], round(row["output_sqnr"], 4)) for row in job["layers"]]
        self.assertEqual(sorted(shown), sorted(found))
        self.assertEqual([sqnr for _, sqnr in shown], sorted(sqnr for _, sqnr in shown))

    def test_of_statistics_alone(self):
        self.run_quench("calibrate", "model.onnx", "-o", "own.stats", "--data", "images.npy")
        self.run_quench("quantize", "model.onnx", "-o", "s.onnx", "--stats", "own.stats", "--report",
                        "s.html")
        data = self.data_of((self.dir / "s.html").read_text(encoding="utf-8"))
        self.assertLess(*data["layers"][0]["activation"]["range"])

    def test_of_a_target(self):
        self.run_quench("analyze", "target", "model.onnx", "--data", "images.npy", "-o", "found",
                        "--metric", "sqnr", "--at-least", "10", "--report", "t.html")
        self.assertIn("gemm_node", (self.dir / "t.html").read_text(encoding="utf-8"))

    def test_offline(self):
        page = self.report("b.html")
        for pattern in (r'src\s*=\s*"', r"<link\b", r"@import", r"url\(\s*['\"]?http"):
            self.assertIsNone(re.search(pattern, page.replace(DATA.search(page)[1], "")), pattern)

    def test_difference(self):
        for name, words in (("c", []), ("d", ["--weight-bits", "4"])):
            self.run_quench("quantize", "model.onnx", "-o", f"{name}.onnx", "--data", "images.npy",
                            "--report", f"{name}.html", *words)
        diff = self.run_json("report", "diff", "c.html", "d.html")
        rows = diff["layers"]
        self.assertEqual({row["layer"] for row in rows}, {"conv_node", "gemm_node"})
        for row in rows:
            self.assertGreater(row["a"]["sqnr"], row["b"]["sqnr"])
            self.assertEqual((row["a"]["bits"], row["b"]["bits"]), (8, 4))
            self.assertLessEqual({"bits", "weight scale"}, set(row["changed"]))
            self.assertLess(row["change"], 0)
        changes = [abs(row["change"]) for row in rows]
        self.assertEqual(changes, sorted(changes, reverse=True))
        self.assertTrue(any(fact["name"].startswith("scores ") for fact in diff["outputs"]))
        self.assertTrue(any("4" in fact["b"] and fact["a"] != fact["b"] for fact in diff["facts"]))
        text = self.run_quench("report", "diff", "c.html", "d.html").stdout
        self.assertRegex(text, r"conv_node +integer +8 -> 4 ")
        self.assertRegex(text, r"-?\d+\.\d\d -> -?\d+\.\d\d")

    def test_difference_of_the_same_and_of_another_model(self):
        self.report("e.html")
        same = self.run_quench("report", "diff", "e.html", "e.html").stdout
        self.assertIn("2 layers did not change", same)
        self.assertNotIn("conv_node", same)
        self.assertIn("conv_node", self.run_quench("report", "diff", "e.html", "e.html",
                                                   "--all").stdout)
        self.report("f.html", "--skip-node", "conv_node")
        first = self.run_json("report", "diff", "e.html", "f.html")["layers"][0]
        self.assertEqual((first["layer"], first["a"]["kind"], first["b"]["kind"]),
                         ("conv_node", "integer", "float"))
        self.report("g.html", model="residual.onnx")
        rows = self.run_json("report", "diff", "e.html", "g.html")["layers"]
        self.assertIn("", {row["a"]["kind"] for row in rows})
        self.assertIn("", {row["b"]["kind"] for row in rows})

    def test_not_a_report(self):
        error = self.run_quench("report", "diff", "images.npy", "images.npy", expect=3).stderr
        self.assertIn("images.npy", error)
        self.run_quench("report", "diff", "nowhere.html", "nowhere.html", expect=3)

    def test_names_are_only_text(self):
        page = self.report("odd.html", model="names.onnx")
        self.assertNotIn("<script>alert", page)
        names = [layer["name"] for layer in self.data_of(page)["layers"]]
        self.assertEqual(names[0], 'a,"b"/</script><script>alert(1)</script>\u00e9')

    @unittest.skipIf(BROWSER is None and not os.environ.get("CI"), "no chromium here")
    def test_browser(self):
        self.report("seen.html", model="names.onnx")
        page = pathlib.Path(self.dir / "seen.html").as_uri()
        flags = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu",
                 "--disable-dev-shm-usage", "--virtual-time-budget=9000",
                 f"--user-data-dir={self.dir}/profile"]
        dom = subprocess.run([*flags, "--dump-dom", page], capture_output=True, text=True,
                             timeout=100, check=True).stdout
        ready = re.search(r'data-ready="(\d+)"', dom)
        self.assertIsNotNone(ready, "the script did not come to its end")
        self.assertIn("conv2_node", dom)
        subprocess.run([*flags, f"--screenshot={self.dir}/seen.png", "--window-size=1200,2400", page],
                       capture_output=True, timeout=100, check=True)
        self.assertGreater((self.dir / "seen.png").stat().st_size, 20000)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""The HTML report in a browser: clicking, searching, moving and zooming."""
import json
import os
import re
import unittest

import browser
import harness

DATA = re.compile(r'(<script id="quench-data" type="application/json">)(.*?)(</script>)', re.DOTALL)
VIEW = "return document.querySelector('#graph > g').getAttribute('transform')"
SCALE = "return Number(document.getElementById('graph-frame').dataset.scale)"


def many_layers(data, count):
    """The data of a report with so many layers, and connections that skip some of them."""
    layer, node = data["layers"][0], data["nodes"][0]
    data["layers"] = [{**layer, "index": i, "name": f"layer{i}", "sqnr": 60 - i * 50 / count}
                      for i in range(count)]
    data["nodes"] = [{**node, "name": f"layer{i}", "depth": i // 2, "sqnr": 60 - i * 50 / count,
                      "kind": "integer", "inputs": [j for j in (i - 2, i - 12) if j >= 0]}
                     for i in range(count)]
    data["sensitivity"] = None
    return data


def long_names(data):
    """Names that begin alike, as exporters make them."""
    for each in (*data["layers"], *data["nodes"], *data["sensitivity"]["layers"]):
        key = "layer" if "layer" in each else "name"
        each[key] = f"model/features/block/sequential/convolution/{each[key]}"
    return data


@unittest.skipIf((browser.CHROMIUM is None or browser.DRIVER is None) and not os.environ.get("CI"),
                 "no chromium with chromedriver here")
class PageTest(harness.CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.page = browser.Browser(cls.dir / "profile")
        cls.addClassCleanup(cls.page.__exit__)

    def report(self, name, *words, model="residual.onnx"):
        self.run_quench("analyze", "sensitivity", model, "--data", "images.npy", "-o", "folder",
                        "--report", name, *words)
        return self.dir / name

    def open(self, path):
        self.page.open(path.as_uri())

    def text(self, css):
        return self.page.run("return document.querySelector(arguments[0]).textContent", css)

    def test_what_a_click_does(self):
        self.open(self.report("a.html"))
        names = self.page.run("return data.layers.map((l) => l.name)")
        self.page.click("#layers tbody tr:nth-child(2)")
        self.assertEqual(self.text("#detail-name"), names[1])
        self.assertEqual(self.text("#layers tr.chosen td:nth-child(2)"), names[1])
        # Its node is marked in the graph, and a click there chooses its layer.
        self.assertIn(names[1], self.text("#graph g.chosen title"))
        node = self.page.run("return data.nodes.findIndex((n) => n.name === arguments[0])", names[0])
        self.page.click("#zoom-fit")
        self.page.click(f'#graph g[data-node="{node}"] rect')
        self.assertEqual(self.text("#detail-name"), names[0])

    def test_parameters_are_those_of_the_job(self):
        self.open(self.report("p.html"))
        facts = self.text("#weight-facts")
        params = self.page.run("return data.layers[0].weight.params")
        for key in ("scheme", "scale", "zero_point"):
            self.assertIn(params[key], facts)
        self.assertEqual(params["scheme"], "symmetric, per channel")
        shares = self.page.run("return data.layers[0].weight.quantized")
        self.assertAlmostEqual(sum(shares), 1, 3)

    def test_search(self):
        self.open(self.report("s.html"))
        last = self.page.run("return data.layers[data.layers.length - 1].name")
        self.page.type("#search", last.upper())
        self.assertEqual(self.page.run("return document.querySelectorAll('#layers tbody tr').length"), 1)
        before = self.page.run(VIEW)
        self.page.type("#graph-search", last)
        self.assertEqual(self.text("#graph-found"), "1 found")
        self.assertIn(last, self.text("#graph g.found title"))
        self.assertNotEqual(self.page.run(VIEW), before)

    def test_zoom_and_move(self):
        self.open(self.report("z.html"))
        first = self.page.run(SCALE)
        self.page.click("#zoom-in")
        self.assertAlmostEqual(self.page.run(SCALE), first * 1.25, 3)
        self.page.click("#zoom-fit")
        fitted = self.page.run(SCALE)
        self.page.wheel("#graph-frame", -200)
        self.assertGreater(self.page.run(SCALE), fitted)
        before = self.page.run(VIEW)
        self.page.drag("#graph-frame", 40, 25)
        moved = [float(n) for n in re.findall(r"-?[\d.]+", self.page.run(VIEW))]
        were = [float(n) for n in re.findall(r"-?[\d.]+", before)]
        self.assertAlmostEqual(moved[0] - were[0], 40, 0)
        self.assertAlmostEqual(moved[1] - were[1], 25, 0)

    def test_worst_layer_is_on_top(self):
        self.open(self.report("w.html"))
        losses = self.page.run("return data.sensitivity.layers.map(loss_of)")
        self.assertEqual(losses, sorted(losses, reverse=True))
        self.assertGreater(losses[0], 0)

    def test_a_bar_of_a_node_without_weights_leads_to_the_graph(self):
        self.run_quench("quantize", "residual.onnx", "-o", "bar.onnx", "--data", "images.npy",
                        "--report", "bar.html")
        self.open(self.dir / "bar.html")
        without = self.page.run("return data.sensitivity.layers.map((row) => row.layer)"
                                ".filter((name) => !layers_by_name.has(name))")
        self.assertTrue(without)
        self.page.run("show(arguments[0])", without[0])
        self.assertIn(without[0], self.text("#graph g.chosen title"))
        self.assertRegex(self.text("#ranking-text"), r"worst on top, by \d+ sample")

    def edited(self, page, change):
        """A report with other data."""
        text = page.read_text(encoding="utf-8")
        match = DATA.search(text)
        data = json.dumps(change(json.loads(match[2])))
        path = self.dir / "edited.html"
        path.write_text(text[:match.start(2)] + data + text[match.end(2):], encoding="utf-8")
        return path

    def test_a_metric_that_loses_nothing_still_ranks(self):
        def lossless(data):
            sensitivity = data["sensitivity"]
            sensitivity.update(metric="top1", float=90, higher_is_better=True)
            for place, layer in enumerate(sensitivity["layers"]):
                layer.update(metric=90, sqnr=20 + 10 * (place % 2))
            return data
        self.open(self.edited(self.report("l.html", "--metric", "sqnr"), lossless))
        bars = self.page.run("return charts.ranking.data.datasets[0].data")
        self.assertAlmostEqual(bars[0], 1)  # 20 dB: a hundredth of the signal
        self.assertEqual(bars, sorted(bars, reverse=True))
        self.assertIn("no layer costs any top1", self.text("#ranking-text"))

    def test_sections_and_rows_that_are_empty_are_not_shown(self):
        self.open(self.report("n.html"))
        shown = self.page.run("return [...document.querySelectorAll('nav a')].map((a) => "
                              "document.querySelector(a.getAttribute('href')).offsetHeight)")
        self.assertGreater(len(shown), 4)
        self.assertGreater(min(shown), 0)
        self.assertNotIn("Training", self.text("nav"))
        empty = self.page.run("return [...document.querySelectorAll('#settings td, #summary td')]"
                              ".filter((cell) => cell.textContent === '').length")
        self.assertEqual(empty, 0)
        self.assertGreater(self.page.run("return document.querySelectorAll('.card').length"), 0)

    def test_header(self):
        self.open(self.report("h.html", "--weight-bits", "4"))
        self.assertRegex(self.text("#command"), r"^quench \d.* \$ quench analyze sensitivity "
                         r"residual.onnx .*--weight-bits 4$")

    def test_dark(self):
        self.open(self.report("d.html"))
        color = "return getComputedStyle(document.body).backgroundColor"
        light = self.page.run(color)
        self.page.click("#theme")
        self.assertNotEqual(self.page.run(color), light)
        self.page.run("set_theme(false)")  # a script that fails is an error here
        self.assertEqual(self.page.run(color), light)

    def test_boxes_do_not_lie_on_each_other(self):
        self.open(self.report("b.html"))
        boxes = self.page.run("return [...document.querySelectorAll('#graph rect')].map((r) => "
                              "[+r.getAttribute('x'), +r.getAttribute('y')])")
        for i, (x, y) in enumerate(boxes):
            for other_x, other_y in boxes[:i]:
                self.assertTrue(abs(x - other_x) >= 150 or abs(y - other_y) >= 24)

    def test_a_thousand_layers(self):
        self.open(self.edited(self.report("m.html"), lambda data: many_layers(data, 1000)))
        self.assertEqual(self.page.run("return document.querySelectorAll('#graph g.node').length"), 1000)
        # Moving and zooming touch one element, however many there are: that is what keeps it fluid.
        self.page.run("window.touched = new Set(); new MutationObserver((all) => all.forEach((each) => "
                      "touched.add(each.target))).observe(document.getElementById('graph'), "
                      "{ attributes: true, childList: true, subtree: true });"
                      "for (let i = 0; i < 50; ++i) graph.zoom(i % 2 ? 1.1 : 0.9);")
        self.assertEqual(self.page.run("return touched.size"), 1)

    def test_choosing_among_a_thousand_layers(self):
        """Changes two rows, and draws no table anew; the chosen row is in sight."""
        self.open(self.edited(self.report("c.html"), lambda data: many_layers(data, 1000)))
        self.page.run("window.changed = []; new MutationObserver((all) => changed.push(...all)).observe("
                      "document.getElementById('layers'), { attributes: true, childList: true, subtree: true });"
                      "choose(990)")
        kinds = self.page.run("return changed.map((each) => each.type)")
        self.assertEqual(kinds, ["attributes"] * 2)
        self.assertTrue(self.page.run(
            "const [row, frame] = ['#layers tr.chosen', '.scroll'].map((css) => document.querySelector(css)"
            ".getBoundingClientRect()); return row.top >= frame.top && row.bottom <= frame.bottom + 1"))

    def test_keys(self):
        self.open(self.report("k.html"))
        names = self.page.run("return data.layers.map((l) => l.name)")
        press = "document.body.dispatchEvent(new KeyboardEvent('keydown', { key: arguments[0], bubbles: true }))"
        self.page.run(press, "j")
        self.assertEqual(self.text("#layers tr.chosen td:nth-child(2)"), names[1])
        self.page.run(press, "k")
        self.assertEqual(self.text("#layers tr.chosen td:nth-child(2)"), names[0])
        self.page.run(press, "/")
        self.assertEqual(self.page.run("return document.activeElement.id"), "search")

    def test_columns_sort(self):
        self.open(self.report("o.html"))
        shown = "return [...document.querySelectorAll('#layers tbody tr')].map((row) => +row.dataset.layer)"
        first = self.page.run(shown)
        self.page.click("#layers th:first-child button")
        self.assertEqual(self.page.run(shown), first[::-1])
        self.assertEqual(self.page.run("return document.querySelector('#layers th').ariaSort"), "descending")

    def test_long_names_stay_apart(self):
        self.open(self.edited(self.report("i.html"), long_names))
        labels = self.page.run("return charts.ranking.scales.y.ticks.map((tick) => tick.label)")
        self.assertEqual(len(set(labels)), len(labels))
        boxes = self.page.run("return [...document.querySelectorAll('#graph g.node')].map((box) => ["
                              "box.querySelector('text').textContent, box.querySelector('text')"
                              ".getComputedTextLength(), +box.querySelector('rect').getAttribute('width')])")
        self.assertEqual(len({text for text, _, _ in boxes}), len(boxes))
        for text, length, width in boxes:
            self.assertLess(length, width - 6, text)

    def test_on_a_telephone(self):
        self.addCleanup(self.page.devtools, "Emulation.clearDeviceMetricsOverride")
        self.page.devtools("Emulation.setDeviceMetricsOverride", width=390, height=844,
                           deviceScaleFactor=1, mobile=True)
        self.open(self.edited(self.report("t390.html"), long_names))
        self.assertLessEqual(self.page.run("return document.documentElement.scrollWidth"), 390)
        area = self.page.run("const area = charts.along.chartArea; return area.right - area.left")
        self.assertGreater(area, 200)

    def test_on_paper(self):
        """Everything that scrolls is whole, and the dark page is light."""
        self.open(self.edited(self.report("v.html"), lambda data: many_layers(data, 60)))
        self.page.run("set_theme(true); dispatchEvent(new Event('beforeprint'))")
        self.addCleanup(self.page.devtools, "Emulation.setEmulatedMedia", media="")
        self.page.devtools("Emulation.setEmulatedMedia", media="print")
        sizes = self.page.run("const s = document.querySelector('.scroll'); return [s.clientHeight, s.scrollHeight]")
        self.assertEqual(*sizes)
        self.assertEqual(self.page.run("return document.querySelector('nav').offsetHeight"), 0)
        self.assertFalse(self.page.run("return document.documentElement.classList.contains('dark')"))
        self.page.run("dispatchEvent(new Event('afterprint'))")
        self.assertTrue(self.page.run("return document.documentElement.classList.contains('dark')"))

    def test_activations_before_and_after(self):
        """The shares of both sum to one; what was clipped lies at the ends of the range."""
        self.open(self.report("q.html", "--activation-observer", "avg"))
        for layer in self.page.run("return data.layers"):
            seen = layer["activation"]
            for shares in (seen["share"], seen["quantized"]):
                self.assertAlmostEqual(sum(shares), 1, 3)
        self.assertEqual(self.page.run("return charts.activation.data.datasets.map((set) => set.label)"),
                         ["quantised", "float"])

    def test_search_for_a_metric_is_drawn(self):
        low = self.run_json("analyze", "target", "residual.onnx", "--data", "images.npy", "-o", "t",
                            "--metric", "sqnr", "--at-least", "5")
        self.run_quench("analyze", "target", "residual.onnx", "--data", "images.npy", "-o", "t",
                        "--metric", "sqnr", "--at-least", low["quantized"] + 1, "--report", "t.html")
        self.open(self.dir / "t.html")
        points = self.page.run("return data.target.points")
        self.assertEqual(points[0]["in_float"], 0)
        self.assertAlmostEqual(points[0]["value"], low["quantized"], 2)
        self.assertGreater(points[-1]["in_float"], 0)
        self.assertTrue(self.page.run("return Boolean(charts.target)"))


if __name__ == "__main__":
    unittest.main()

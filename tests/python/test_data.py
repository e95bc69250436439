# SPDX-License-Identifier: Apache-2.0
"""What may be given as data, and what is said of data that does not fit."""
import itertools
import os
import subprocess
import sys
import unittest

from testing import MODEL, PACKAGE, PythonTest, images, labels, np, quench

QUICK = {"held_out": 4, "equalize": "never", "no_bias_correction": True}
NAME = quench.load(MODEL).inputs[0].name


def samples_of(data, **options):
    """How many samples quantisation saw."""
    result = quench.quantize(MODEL, data=data, **QUICK, **options)
    return result.calibration_samples + result.validation_samples


class Forms(PythonTest):
    def test_everything_that_holds_arrays(self):
        x = images(24)
        forms = {
            "array": x, "dict": {NAME: x}, "tuple with labels": (x, labels(24)),
            "list of batches": [x[:16], x[16:]], "list of samples": list(x),
            "dicts": [{NAME: x[:12]}, {NAME: x[12:]}],
            "dicts with labels": [{NAME: x, "label": labels(24)}],
            "pairs": [(x[:12], labels(12)), (x[12:], labels(12))],
            "lists": [[x[:12]], [x[12:]]], "lists of a dict": [[{NAME: x[:12]}], [{NAME: x[12:]}]], "generator": (row for row in x),
            "function": lambda: iter([x[:20], x[20:]]), "float64": x.astype(np.float64),
            "big end first": x.astype(">f4"), "not in order": np.asfortranarray(x),
            "nested lists": x.tolist()}
        for form, data in forms.items():
            with self.subTest(form):
                self.assertEqual(samples_of(data), 24)

    def test_limit(self):
        self.assertEqual(samples_of(images(40), limit=10), 10)
        endless = (images(8) for _ in itertools.count())
        self.assertEqual(samples_of(endless, limit=20), 20)
        self.assertEqual(next(endless).shape, (8, 1, 28, 28))  # no more was taken than needed

    def test_the_result_does_not_depend_on_the_form(self):
        x = images(40)
        quench.quantize(MODEL, self.path("a.onnx"), data=x, **QUICK, no_metadata=True)
        quench.quantize(MODEL, self.path("b.onnx"), data=({NAME: row} for row in x), **QUICK,
                        no_metadata=True)
        self.assertEqual((self.dir / "a.onnx").read_bytes(), (self.dir / "b.onnx").read_bytes())

    def test_a_loader_may_use_its_buffer_again(self):
        x = images(24)

        def loader():
            buffer = np.empty_like(x[:8])
            for start in range(0, 24, 8):
                buffer[:] = x[start:start + 8]
                yield {NAME: buffer}
            buffer[:] = 0

        for name, data in (("a.onnx", x), ("b.onnx", loader())):
            quench.quantize(MODEL, self.path(name), data=data, **QUICK, no_metadata=True)
        self.assertEqual((self.dir / "a.onnx").read_bytes(), (self.dir / "b.onnx").read_bytes())

    def test_labels_in_the_data(self):
        x, y = images(), labels()
        wanted = quench.evaluate(MODEL, x, "top1", labels=y).scores
        batches = [(x[i:i + 16], y[i:i + 16]) for i in range(0, 64, 16)]
        self.assertEqual(quench.evaluate(MODEL, batches, "top1").scores, wanted)
        self.assertEqual(quench.evaluate(MODEL, (x, y), "top1").scores, wanted)

    def test_settings_of_such_a_run_ask_for_data(self):
        result = quench.quantize(MODEL, self.path("a.onnx"), data=images(16), **QUICK)
        self.assertIn("<given>", result.settings)
        self.assert_error("usage", ["give the data again"],
                          lambda: quench.quantize(MODEL, settings=self.path("a.onnx")))
        again = quench.quantize(MODEL, data=images(16), settings=self.path("a.onnx"))
        self.assertEqual(again.calibration_samples, result.calibration_samples)


class Wrong(PythonTest):
    def refused(self, kind, words, data, **options):
        self.assert_error(kind, words, lambda: quench.quantize(MODEL, data=data, **options))

    def test_names_shapes_and_types(self):
        x = images(8)
        self.refused("bad_data", ["'imput'", "it has " + NAME], [{"imput": x}])
        self.refused("bad_data", ["data[0]", "3x5"], [np.zeros((3, 5), np.float32)])
        self.refused("bad_data", ["data[1]", "28x27"], [x, x[..., :27]])
        self.refused("bad_data", ["data[0]", "dtype", "|O"], [np.array([object()])])
        self.refused("bad_data", ["arrays given: 3"], [(x, labels(8), x)])
        self.refused("bad_data", ["class index"], (x, labels(8).astype(np.float32)))
        self.refused("bad_data", ["7 int64 for 8"], (x, labels(7)))
        self.refused("usage", ["int"], 3)
        self.refused("bad_data", ["no samples"], [])
        self.refused("bad_data", ["strings"], [{1: x}])
        self.refused("io", ["nowhere"], "nowhere.npy")
        self.refused("bad_data", [f"'{NAME}'", "NaN"], np.full_like(images(24), np.nan))
        self.refused("unsupported", ["complex128"], x.astype(complex))

    def test_keywords(self):
        x = images(8)
        self.refused("usage", ["did you mean 'activation_observer'?"], x, activation_obsever="KL")
        self.refused("usage", ["here it is 'batch'"], x, batch_size=3)
        self.refused("usage", ["batch takes a whole number", "'many'"], x, batch="many")

    def test_observers(self):
        x = images(24)
        for wrong in (float("nan"), -1, (3, 1), (0, float("inf")), ("a", "b"), None, "x", (1, 2, 3)):
            self.refused("bad_data", ["two finite numbers"], x, activation_observer=lambda s, p: wrong)
        with self.assertRaises(ZeroDivisionError):
            quench.quantize(MODEL, data=x, activation_observer=lambda s, p: 1 / 0)

    def test_labels(self):
        x = images(8)

        def evaluate(**how):
            return lambda: quench.evaluate(MODEL, x, "top1", **how)

        self.assert_error("bad_data", ["5 labels", "8 samples"], evaluate(labels=labels(5)))
        self.assert_error("bad_data", ["floats"], evaluate(labels=labels(8) / 2))
        self.assert_error("bad_data", ["class indices"], evaluate(labels=["a"] * 8))

    def test_generators(self):
        def raises():
            yield images(8)
            raise LookupError("the disk is gone")

        with self.assertRaisesRegex(LookupError, "the disk is gone"):
            quench.quantize(MODEL, data=raises())
        small = images(1)
        self.refused("bad_data", ["has not ended", "limit=N"], itertools.repeat(small))
        with self.assertLogs("quench", "WARNING") as logs:  # one that ends early
            self.assertEqual(samples_of((row for row in images(6)), limit=50), 6)
        self.assertIn("fewer than the 50", "".join(logs.output))

    def test_a_generator_without_end_ends_before_the_memory(self):
        script = """
import itertools, resource, sys
import numpy as np, quench
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
try:
    quench.quantize(sys.argv[1], data=(np.zeros((10000, 1, 28, 28), np.float32) for _ in itertools.count()))
except quench.Error as error:
    print(error.kind, error)
"""
        done = subprocess.run([sys.executable, "-c", script, MODEL], capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": str(PACKAGE)}, timeout=120)
        self.assertRegex(done.stdout, "bad_data .*has not ended.*limit=N", done.stderr)

    def test_image_options_for_arrays(self):
        with self.assertLogs("quench", "WARNING") as logs:
            samples_of(images(8), mean=[1.0])
        self.assertIn("image options do not apply", "".join(logs.output))


if __name__ == "__main__":
    unittest.main()

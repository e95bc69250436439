# SPDX-License-Identifier: Apache-2.0
"""What the tests of the Python package share: the package of the build tree, a model and images."""
import gzip
import os
import pathlib
import shutil
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["QUENCH_SOURCE"])
BINARY = pathlib.Path(os.environ["QUENCH_BINARY"])
PACKAGE = BINARY / "python"
sys.path.insert(0, str(PACKAGE))

try:
    import numpy as np
except ImportError:
    print("NumPy is missing: install python3-numpy")
    sys.exit(1 if os.environ.get("CI") == "true" else 77)

import quench  # noqa: E402

DATA = SOURCE / "examples" / "data"
MODEL = str(DATA / "fashion.onnx")
IMAGES = str(DATA / "fashion-test-images-idx3-ubyte.gz")


def images(count=64):
    """Images as the network takes them, as float32."""
    with gzip.open(IMAGES) as file:
        pixels = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 1, 28, 28)
    return ((pixels[:count].astype(np.float32) - 72.9) / 90).astype(np.float32)


def labels(count=64):
    with gzip.open(DATA / "fashion-test-labels-idx1-ubyte.gz") as file:
        return np.frombuffer(file.read(), np.uint8, offset=8)[:count].astype(np.int64)


class PythonTest(unittest.TestCase):
    """A test case with a folder of its own."""

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="quench_python_"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def path(self, name):
        return str(self.dir / name)

    def assert_error(self, kind, words, call):
        """That the call raises quench.Error of a kind, whose text holds every word."""
        with self.assertRaises(quench.Error) as caught:
            call()
        self.assertEqual(caught.exception.kind, kind, str(caught.exception))
        for word in words:
            self.assertIn(word, str(caught.exception))
        return str(caught.exception)

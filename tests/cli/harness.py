# SPDX-License-Identifier: Apache-2.0
"""What the tests of the program share: a folder of models, a way to run it, and .npy files."""
import ast
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import tempfile
import unittest

BINARY = pathlib.Path(os.environ["QUENCH_BINARY"])
SOURCE = pathlib.Path(os.environ["QUENCH_SOURCE"])
PROGRAM = str(BINARY / "quench")
IMAGES = 20
CODES = {"<f4": "f", "<i8": "q", "<i4": "i", "|u1": "B"}


def write_npy(path, kind, shape, values):
    """Writes numbers as an .npy file of version 1."""
    header = repr({"descr": kind, "fortran_order": False, "shape": tuple(shape)})
    header = header.ljust(64 - 10 - 1 + (len(header) + 11) // 64 * 64) + "\n"
    body = struct.pack(f"<{len(values)}{CODES[kind]}", *values)
    pathlib.Path(path).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header))
                                   + header.encode() + body)


def read_npy(path):
    """The shape and the numbers of an .npy file."""
    data = pathlib.Path(path).read_bytes()
    assert data[:6] == b"\x93NUMPY", path
    size, start = (struct.unpack("<H", data[8:10])[0], 10) if data[6] == 1 else (
        struct.unpack("<I", data[8:12])[0], 12)
    header = ast.literal_eval(data[start:start + size].decode())
    code = CODES[header["descr"]]
    body = data[start + size:]
    return header["shape"], struct.unpack(f"<{len(body) // struct.calcsize(code)}{code}", body)


class CliTest(unittest.TestCase):
    """A test case whose working folder holds models, x.npy and images.npy."""

    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="quench_cli_"))
        cls.addClassCleanup(shutil.rmtree, cls.dir, ignore_errors=True)
        subprocess.run([str(BINARY / "tests" / "make_cli_models"), str(cls.dir)], check=True)
        source = random.Random(7)
        pixels = [source.gauss(0, 1) for _ in range(IMAGES * 3 * 8 * 8)]
        write_npy(cls.dir / "images.npy", "<f4", (IMAGES, 3, 8, 8), pixels)
        write_npy(cls.dir / "x.npy", "<f4", (1, 3, 8, 8), pixels[:192])
        write_npy(cls.dir / "labels.npy", "<i8", (IMAGES,), [i % 10 for i in range(IMAGES)])

    def run_quench(self, *arguments, expect=0, **options):
        """Runs the program; its exit code must be `expect`."""
        result = subprocess.run([PROGRAM, *map(str, arguments)], cwd=self.dir, check=False,
                                capture_output=True, text=True, timeout=100, **options)
        self.assertEqual(result.returncode, expect,
                         f"{arguments}\n{result.stdout}\n{result.stderr}")
        if expect > 1 and expect != 130:
            # One sentence; unsupported nodes follow theirs as a list.
            self.assertRegex(result.stderr,
                             r"\Aquench: error: \S.*\S\n(  \S.*\n)*\Z|\AQuench")
            self.assertEqual(result.stdout, "")
        return result

    def run_json(self, *arguments, expect=0):
        """Runs the program with --json and returns the object."""
        return json.loads(self.run_quench(*arguments, "--json", expect=expect).stdout)

    def predictions(self, model="model.onnx"):
        """The class that the model gives each image, by way of `quench run`."""
        self.run_quench("run", model, "--input", "x=images.npy", "-o", "predictions")
        shape, scores = read_npy(self.dir / "predictions" / "scores.npy")
        self.assertEqual(shape, (IMAGES, 10))
        rows = [scores[i * 10:i * 10 + 10] for i in range(IMAGES)]
        return [row.index(max(row)) for row in rows]

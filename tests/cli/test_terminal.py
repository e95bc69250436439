# SPDX-License-Identifier: Apache-2.0
"""What is drawn on a terminal, what is not in a pipe, and Ctrl-C."""
import os
import pty
import signal
import subprocess
import time
import unittest

import harness

LONG = ["bench", "model.onnx", "--runs", "1000000", "--max-seconds", "60"]


def read_all(descriptor):
    """Everything until the other side closes."""
    parts = []
    while True:
        try:
            part = os.read(descriptor, 65536)
        except OSError:  # how Linux says that a terminal was closed
            break
        if not part:
            break
        parts.append(part)
    return b"".join(parts).decode()


class TerminalTest(harness.CliTest):
    WORDS = ["eval", "model.onnx", "--data", "images.npy", "--labels", "labels.npy", "--batch", "1"]

    def on_terminal(self, *words):
        """What the program writes to a terminal on stderr, and to a pipe on stdout."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen([harness.PROGRAM, *words], cwd=self.dir, stderr=theirs,
                                   stdout=subprocess.PIPE, text=True)
        os.close(theirs)
        drawn = read_all(ours)
        os.close(ours)
        output, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, drawn)
        return drawn, output

    def test_bar_on_a_terminal(self):
        drawn, output = self.on_terminal(*self.WORDS)
        self.assertIn("[#", drawn.replace("[-", "[#"))
        self.assertIn("/20", drawn)
        self.assertTrue(drawn.endswith("\r\x1b[K"), repr(drawn))
        self.assertNotIn("\x1b", output)

    def test_bar_shows_rate_and_time_left(self):
        drawn, _ = self.on_terminal("bench", "model.onnx", "--runs", "100000", "--max-seconds",
                                    "1")
        self.assertRegex(drawn, r"\d+\.\d/s, \d+:\d\d left")

    def test_quiet_draws_nothing(self):
        drawn, _ = self.on_terminal(*self.WORDS, "--quiet")
        self.assertEqual(drawn, "")

    def test_nothing_in_a_pipe(self):
        result = self.run_quench(*self.WORDS)
        self.assertEqual(result.stderr, "")
        self.assertNotIn("\r", result.stdout)
        self.assertNotIn("\x1b", result.stdout)

    def test_interrupt_ends_cleanly(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = subprocess.Popen([harness.PROGRAM, *LONG], cwd=self.dir,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            time.sleep(2)
            process.send_signal(number)
            output, errors = process.communicate(timeout=20)
            self.assertEqual((process.returncode, output, errors), (130, "", ""))


if __name__ == "__main__":
    unittest.main()

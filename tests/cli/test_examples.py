# SPDX-License-Identifier: Apache-2.0
"""Every example of every help text runs as it stands."""
import shlex
import unittest

import harness


class ExampleTest(harness.CliTest):
    def examples(self, *words):
        text = self.run_quench(*words, "--help").stdout
        return [line.strip() for line in text.split("Example:\n")[-1].splitlines()
                if line.startswith("  quench ")]

    def test_examples_run(self):
        pages = [[], ["inspect"], ["run"], ["eval"], ["bench"], ["compare"], ["list"], ["demo"]]
        for page in pages:
            examples = self.examples(*page)
            self.assertEqual(len(examples), 1, page)
            with self.subTest(example=examples[0]):
                result = self.run_quench(*shlex.split(examples[0])[1:])
                self.assertNotEqual(result.stdout, "")


if __name__ == "__main__":
    unittest.main()

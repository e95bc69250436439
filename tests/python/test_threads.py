# SPDX-License-Identifier: Apache-2.0
"""Python's lock, Ctrl-C, several threads, and what an import costs."""
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
import unittest

from testing import MODEL, PACKAGE, PythonTest, images, np, quench


class Threads(PythonTest):
    def test_one_session_for_many(self):
        session = quench.Session(MODEL, threads=1)
        x = images(16)
        wanted = session.run(x)[session.outputs[0]]
        wrong = []

        def work():
            for _ in range(20):
                if not np.array_equal(session.run(x)[session.outputs[0]], wanted):
                    wrong.append(1)

        workers = [threading.Thread(target=work) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.assertFalse(wrong)

    def test_jobs_beside_each_other(self):
        made = {}

        def work(index):
            result = quench.quantize(MODEL, data=(row for row in images(24)), held_out=4, threads=1,
                                     activation_observer=lambda s, spec: s.abs_max)
            made[index] = result.outputs[0].scores["sqnr"]

        workers = [threading.Thread(target=work, args=(i,)) for i in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.assertEqual(len(set(made.values())), 1)
        self.assertEqual(len(made), 3)

    def test_others_run_meanwhile(self):
        ticks = []
        stop = threading.Event()

        def tick():
            while not stop.is_set():
                ticks.append(time.monotonic())
                time.sleep(0.002)

        ticker = threading.Thread(target=tick)
        ticker.start()
        began = time.monotonic()
        quench.quantize(MODEL, data=images(64), progress=False)
        ended = time.monotonic()
        stop.set()
        ticker.join()
        during = [t for t in ticks if began <= t <= ended]
        longest = max(b - a for a, b in zip(during, during[1:]))
        self.assertLess(longest, 0.5 * (ended - began), "the lock was held")


class Forks(unittest.TestCase):
    SCRIPT = """
import os, sys
import numpy as np, quench
x = np.zeros((8, 1, 28, 28), np.float32)
session = quench.Session(sys.argv[1], threads=2)
session.run(x)
pid = os.fork()
if pid == 0:
    for work in (lambda: session.run(x), lambda: quench.Session(sys.argv[1], threads=2)):
        try:
            work()
        except quench.Error as error:
            print(error.kind, "spawn" in str(error))
    print(quench.Session(sys.argv[1], threads=1).run(x)[session.outputs[0]].shape, flush=True)
    os._exit(0)
os.waitpid(pid, 0)
"""

    def test_a_forked_process_does_not_wait_for_threads(self):
        done = subprocess.run([sys.executable, "-c", self.SCRIPT, MODEL], capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": str(PACKAGE)}, timeout=60, check=True)
        self.assertEqual(done.stdout, "unsupported True\nunsupported True\n(8, 10)\n", done.stderr)


class Interrupts(PythonTest):
    SCRIPT = """
import signal, sys, threading, os, time
import numpy as np, quench
def interrupt():
    time.sleep(float(sys.argv[2]))
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
x = np.random.default_rng(0).standard_normal((4000, 1, 28, 28)).astype(np.float32)
print("begun", flush=True)
try:
    while True:
        quench.quantize(sys.argv[1], data=x, threads=1)
except KeyboardInterrupt:
    print("stopped", flush=True)
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
result = quench.quantize(sys.argv[1], data=x[:16], threads=1)
print(result.integer_nodes > 0)
"""

    def test_ctrl_c(self):
        began = time.monotonic()
        done = subprocess.run([sys.executable, "-c", self.SCRIPT, MODEL, "1.5"],
                              env={**os.environ, "PYTHONPATH": str(PACKAGE)}, timeout=120,
                              capture_output=True, text=True)
        self.assertEqual(done.stdout.split(), ["begun", "stopped", "True", "True"], done.stderr)
        self.assertLess(time.monotonic() - began, 60)

    def test_a_handler_of_the_users_own_is_left_alone(self):
        caught = []
        before = signal.signal(signal.SIGINT, lambda *_: caught.append(1))
        try:
            os.kill(os.getpid(), signal.SIGINT)
            quench.quantize(MODEL, data=images(16))
        finally:
            signal.signal(signal.SIGINT, before)
        self.assertEqual(caught, [1])


class Import(unittest.TestCase):
    def test_import_is_quick_and_loads_no_engine(self):
        script = ("import time; t = time.perf_counter(); import quench; "
                  "t = time.perf_counter() - t; import sys; "
                  "maps = open('/proc/self/maps').read(); "
                  "print(t, 'libtorch' in maps, 'numpy' in sys.modules)")
        times = []
        for _ in range(5):
            done = subprocess.run([sys.executable, "-B", "-c", script], check=True, text=True,
                                  env={**os.environ, "PYTHONPATH": str(PACKAGE)},
                                  capture_output=True)
            seconds, engine, numpy = done.stdout.split()
            self.assertEqual((engine, numpy), ("False", "False"))
            times.append(float(seconds))
        print(f"import quench: {statistics.median(times):.3f} s")
        self.assertLess(statistics.median(times), 0.2)


if __name__ == "__main__":
    unittest.main()

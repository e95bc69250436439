# SPDX-License-Identifier: Apache-2.0
"""Builds the Python package by CMake, which knows how; setuptools only packs what it installs.

QUENCH_BUILD_DIR names a build tree to use (make wheel gives its own, which is built already).
"""
import os
import pathlib
import re
import subprocess
import sys

from setuptools import Distribution, setup
from setuptools.command.build import build

ROOT = pathlib.Path(__file__).resolve().parent
VERSION = re.search(r"VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text().split("project(")[1])[1]


class CMakeBuild(build):
    """Has CMake build and install the package where setuptools looks for it."""

    def run(self):
        super().run()
        given = os.environ.get("QUENCH_BUILD_DIR")
        tree = pathlib.Path(given) if given else ROOT / "build" / f"wheel-{sys.version_info[1]}"
        if not given:
            subprocess.run(["cmake", "-S", ROOT, "-B", tree, "-G", "Ninja",
                            "-DCMAKE_BUILD_TYPE=Release", "-DQUENCH_DEVELOP=OFF",
                            f"-DPython_EXECUTABLE={sys.executable}"], check=True)
        jobs = os.environ.get("QUENCH_JOBS", "2")
        subprocess.run(["cmake", "--build", tree, "-j", jobs, "--target", "quench_wheel"], check=True)
        subprocess.run(["cmake", "--install", tree, "--component", "wheel", "--prefix",
                        pathlib.Path(self.build_lib).resolve()], check=True)
        # A wheel has no links: what one leads to would be in it twice. Only its name is asked for.
        for link in pathlib.Path(self.build_lib).rglob("*.so*"):
            if link.is_symlink():
                link.resolve().replace(link)


class BinaryDistribution(Distribution):
    """A wheel for this machine and this Python."""

    def has_ext_modules(self):
        return True


setup(version=VERSION, packages=[], cmdclass={"build": CMakeBuild}, distclass=BinaryDistribution)

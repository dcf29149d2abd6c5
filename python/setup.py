# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds the package btrfswalk. `make python` and `make wheel` call it; build_binding.py says what
it needs."""
import os
import re
import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import build_binding  # noqa: E402

VERSION = re.search(r"^VERSION *:= *(.*)", (HERE.parent / "Makefile").read_text(), re.M)[1]


class BuildModules(build_py):
    """Also writes what the comments of the headers say."""

    def run(self):
        super().run()
        if not self.dry_run:
            Path(self.build_lib, "btrfswalk/_headers.py").write_text(
                build_binding.documentation(VERSION), encoding="utf-8")


class BuildExtension(build_ext):
    """Also writes the types of the classes that are made when the package is imported."""

    def run(self):
        super().run()
        if not self.inplace and not self.dry_run:
            preload = os.environ.get("BTRFS_WALK_PRELOAD", "")
            subprocess.run([sys.executable, HERE / "make_stubs.py", self.build_lib], check=True,
                           env={**os.environ, "LD_PRELOAD": preload,
                                "ASAN_OPTIONS": "detect_leaks=0"} if preload else None)


setup(version=VERSION,
      cffi_modules=["build_binding.py:make"],
      cmdclass={"build_py": BuildModules, "build_ext": BuildExtension})

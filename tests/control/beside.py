# SPDX-License-Identifier: Apache-2.0
"""Cases that wait for the daemon's clock run beside the others of their file, each in a process of its own."""
import subprocess
import sys
import tempfile
import unittest


def waits(test):
    """Marks a case that waits for some seconds, and needs hardly any CPU time meanwhile."""
    test.waits = True
    return test


def is_marked(case):
    return getattr(getattr(case, method_of(case), None), "waits", False)


def method_of(case):
    return case.id().rpartition(".")[2]


def cases_of(suite):
    for test in suite:
        yield from cases_of(test) if isinstance(test, unittest.TestSuite) else [test]


class Beside(unittest.TestCase):
    """A case that has begun in another process."""

    def __init__(self, case, build):
        super().__init__()
        self.name = f"{type(case).__name__}.{method_of(case)}"
        self.output = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([sys.executable, "-SB", sys.argv[0], build, self.name],
                                        stdout=self.output, stderr=subprocess.STDOUT)

    def __str__(self):
        return self.name

    def runTest(self):
        with self.output:
            if self.process.wait():
                self.output.seek(0)
                self.fail(self.output.read())


class Runner(unittest.TextTestRunner):
    build = None

    def run(self, test):
        cases = list(cases_of(test))
        marked = [case for case in cases if is_marked(case)] if len(cases) > 1 else []
        beside = [Beside(case, self.build) for case in marked]
        others = [case for case in cases if case not in marked]
        return super().run(unittest.TestSuite(others + beside))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Page-locked host memory is charged to the control group (cgroup) of the program that has it, not to
the server's. Needs a cgroup of memory that this process may make; else nothing is tested.
Run as: python3 test_cgroup.py BUILD."""
import os
import unittest

import limits_harness
from limits_harness import MIB, TestCase, wait_until

LOCKED = 192 * MIB
# Of cgroups version 2 and 1: the file that has the bytes.
USAGE = ("memory.current", "memory.usage_in_bytes")


def own_group():
    """The directory of this process's cgroup of memory, or None."""
    with open("/proc/self/cgroup") as lines:
        groups = [line.rstrip("\n").split(":", 2) for line in lines]
    for _, controllers, path in groups:
        root = "/sys/fs/cgroup/memory" if controllers == "memory" else "/sys/fs/cgroup"
        if controllers in ("memory", ""):
            # In a container the path may be the host's.
            for directory in (root + path, root):
                if any(os.path.exists(os.path.join(directory, name)) for name in USAGE):
                    return directory
    return None


class Group:
    """A cgroup inside of this process's own, for as long as a test takes."""

    def __init__(self, test, name):
        self.path = os.path.join(own_group() or "", f"funnel-test-{os.getpid()}-{name}")
        try:
            os.mkdir(self.path)
            test.addCleanup(wait_until, self.is_gone, "the end of a cgroup's processes")
            self.used()
        except OSError as error:
            raise unittest.SkipTest(f"No cgroup of memory can be made here: {error}")

    def is_gone(self):
        try:
            os.rmdir(self.path)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True

    def join(self):
        """Called in a process before it becomes another program."""
        with open(os.path.join(self.path, "cgroup.procs"), "w") as processes:
            processes.write("0")

    def used(self):
        names = [os.path.join(self.path, name) for name in USAGE]
        found = [name for name in names if os.path.exists(name)]
        if not found:
            raise OSError("it counts no memory")
        with open(found[0]) as text:
            return int(text.read())


class Cgroup(TestCase):
    def test_program_pays_for_its_page_locked_memory(self):
        self.environment["FUNNEL_SOFT_POPULATES"] = "1"
        servers, programs = Group(self, "servers"), Group(self, "programs")
        self.start(preexec_fn=servers.join)
        self.ask("sms")
        before = servers.used()
        program = self.begin(f"lock={LOCKED // MIB}", "wait", preexec_fn=programs.join)
        self.assertEqual(program.answer(), [0])
        self.assertGreaterEqual(programs.used(), LOCKED)
        self.assertLess(servers.used() - before, LOCKED / 2)
        program.go_on()
        self.assertEqual(program.end(), 0)


if __name__ == "__main__":
    limits_harness.main()

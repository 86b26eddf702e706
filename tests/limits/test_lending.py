# SPDX-License-Identifier: Apache-2.0
"""Idle multiprocessors are lent to clients with a share, and come back when their owner works."""
import os
import unittest

import limits_harness
from limits_harness import wait_until

PERCENT = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
PARTITIONS = """
[[servers.a.devices]]
uuid = "0"

[[servers.a.devices.sm_partitions]]
name = "small"
chunks = 1
max_chunks = 3

[[servers.a.devices.sm_partitions]]
name = "closed"
chunks = 1

[[servers.a.devices.sm_partitions]]
name = "large"
chunks = 2
shareable = true
"""


class Borrowers(limits_harness.TestCase):
    def count(self, program, answers):
        """How many multiprocessors each of so many answers names."""
        return [len(program.answer()) for _ in range(answers)]

    def run_beside(self, program, **environment):
        """Another program, whose kernel runs until it is killed, and `program` goes on."""
        other = self.begin("endless", "600", program="limits_load", environment=environment)
        self.assertEqual(other.process.stdout.readline(), "ready\n")
        other.process.stdin.write("\n")
        other.process.stdin.flush()
        self.assertEqual(other.process.stdout.readline(), "launched 600\n")
        program.go_on()
        return other

    def check_lending(self, own, lent, borrower, other):
        """A client with `own` multiprocessors runs on `lent` while the other rests."""
        program = self.begin(f"smid={lent}", f"kept-smid={lent}", "sms", "wait", f"smid={own}",
                             f"kept-smid={own}", f"new-smid={own}", "wait", f"kept-smid={lent}",
                             f"new-smid={lent}", environment=borrower)
        self.assertEqual(self.count(program, 2), [lent, lent])
        self.assertEqual(program.answer(), [own])  # what it has been granted
        owner = self.run_beside(program, **other)
        self.assertEqual(self.count(program, 3), [own, own, own])
        owner.process.kill()
        program.go_on()
        self.assertEqual(self.count(program, 2), [lent, lent])
        self.assertEqual(program.end(), 0)


class Shares(Borrowers):
    def test_a_lone_client_borrows(self):
        self.environment["FUNNEL_LEND"] = "1"
        self.start()
        self.check_lending(4, 16, {PERCENT: "25"}, {})

    def test_the_server_decides_on_lending(self):
        self.start()
        self.assertEqual(self.count(self.begin("smid", environment={PERCENT: "25"}), 1), [4])
        self.mps("server set uid_%d --lend=true\n" % os.getuid())
        program = self.begin("smid=16", "wait", environment={PERCENT: "25"})
        self.assertEqual(self.count(program, 1), [16])
        self.assertIn("may borrow SMs of others that rest", self.server_log())

    def test_a_share_that_changes(self):
        self.environment["FUNNEL_LEND"] = "1"
        self.start()
        program = self.begin("kept-smid=16", "wait", "kept-smid=8", "wait", "kept-smid=16",
                             environment={PERCENT: "25"})
        self.assertEqual(self.count(program, 1), [16])
        done = self.funnel("limit", "--client", str(program.pid), "--sm", "50")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        other = self.run_beside(program)
        self.assertEqual(self.count(program, 1), [8])
        other.process.kill()
        program.go_on()
        self.assertEqual(self.count(program, 1), [16])


class Partitions(Borrowers):
    devices = "1:sms=36,mem=1G"

    def setUp(self):
        super().setUp()
        path = os.path.join(self.root, "mps.toml")
        with open(path, "w") as file:
            file.write(PARTITIONS)
        self.start("-a", path)

    def words(self, line, status=0):
        done = self.run_program("nvidia-cuda-mps-control", *line.split())
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout.splitlines()

    def inside(self, name):
        """What makes a program one of that partition."""
        rows = [row.split(",") for row in self.words("sm-partition list --format=csv,noheader")]
        return {"CUDA_MPS_PIPE_DIRECTORY": os.path.join(self.pipe, "a"),
                "CUDA_MPS_SM_PARTITION": [row[7] for row in rows if row[2] == name][0]}

    def test_chunks_are_lent(self):
        self.check_lending(8, 24, self.inside("small"), self.inside("large"))

    def test_only_what_is_shareable(self):
        """The partition that is closed neither lends nor borrows."""
        small = self.begin("smid=24", "wait", "smid=24", environment=self.inside("small"))
        lent = set(small.answer())
        other = self.run_beside(small, **self.inside("closed"))
        self.assertEqual(set(small.answer()), lent)
        other.process.kill()
        closed, = self.ask("smid", environment=self.inside("closed"))
        self.assertEqual(len(closed), 8)
        self.assertFalse(lent & set(closed))

    def test_a_partition_that_lends_stays(self):
        program = self.begin("smid=24", "wait", environment=self.inside("small"))
        self.assertEqual(self.count(program, 1), [24])
        delete = "sm-partition delete large --server=a --device=0"
        self.assertIn("has 1 client;", self.words(delete, status=1)[0])
        program.process.kill()
        program.process.wait()
        wait_until(lambda: not self.words("client list --server=a --format=csv,noheader"))
        self.assertIn("deleted", self.words(delete)[0])
        self.words("sm-partition create other --server=a --device=0 --chunks=1 --shareable=true")
        self.assertEqual(len(self.ask("smid=16", environment=self.inside("small"))[0]), 16)


if __name__ == "__main__":
    limits_harness.main()

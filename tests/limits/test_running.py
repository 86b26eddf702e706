# SPDX-License-Identifier: Apache-2.0
"""Limits of programs that run are changed, and the programs feel it."""
import unittest

import limits_harness
from limits_harness import MIB, SMS

PERCENT = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"


class Running(limits_harness.TestCase):
    def setUp(self):
        super().setUp()
        self.start()

    def limit(self, *arguments):
        done = self.funnel("limit", *arguments)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout.splitlines()

    def places(self, program):
        """How many SMs: default stream, a new stream, and one that was there before."""
        return [len(program.answer()) for _ in range(3)]

    @staticmethod
    def where(expected):
        return [f"{question}={expected}" for question in ("smid", "new-smid", "kept-smid")]

    def test_share_shrinks_and_grows(self):
        program = self.begin(*self.where(SMS), "wait", *self.where(4), "wait", *self.where(12),
                             "sms")
        self.assertEqual(self.places(program), [16, 16, 16])
        self.limit("--client", str(program.pid), "--sm", "25")
        program.go_on()
        self.assertEqual(self.places(program), [4, 4, 4])
        self.limit("--client", str(program.pid), "--sms", "12")
        program.go_on()
        self.assertEqual(self.places(program), [12, 12, 12])
        # What it was told at its start it is told for its whole life.
        self.assertEqual(program.answer(), [SMS])
        self.assertEqual(program.end(), 0)

    def test_clusters_run_in_a_share_that_changes(self):
        program = self.begin("cluster=8", "wait", "cluster=8", "wait", "cluster=8", "wait",
                             "cluster=8", environment={PERCENT: "90"})
        self.assertEqual(program.answer(), [0, 0, 8, 8])
        for sms, expected in ((8, 8), (16, 16), (12, 8)):
            self.limit("--client", str(program.pid), "--sms", str(sms))
            program.go_on()
            self.assertEqual(program.answer()[:3], [0, 0, expected])

    def test_a_share_is_lifted(self):
        program = self.begin(*self.where(4), "wait", *self.where(SMS), environment={PERCENT: "25"})
        self.assertEqual(self.places(program), [4, 4, 4])
        self.limit("--client", str(program.pid), "--sm", "100")
        program.go_on()
        self.assertEqual(self.places(program), [16, 16, 16])

    def test_contexts_with_a_part_follow(self):
        program = self.begin("context=8", "smid=8", "wait", "smid=4", "wait", "smid=8")
        self.assertEqual([len(program.answer()) for _ in range(2)], [3, 8])
        self.limit("--client", str(program.pid), "--sm", "25")
        program.go_on()
        self.assertEqual(len(program.answer()), 4)
        self.limit("--client", str(program.pid), "--sm", "100")
        program.go_on()
        self.assertEqual(len(program.answer()), 8)

    def test_memory(self):
        program = self.begin("info", "wait", "info", "fill=16", "drop", "wait", "info")
        free, total = program.answer()
        self.assertEqual(total, 1 << 30)
        self.assertGreater(free, 1013 * MIB)  # the server has something there, too
        self.limit("--client", str(program.pid), "--memory", "128M", "--device", "0")
        program.go_on()
        self.assertEqual(program.answer()[0], 128 * MIB)
        self.assertEqual(program.answer(), [8, 2])
        program.answer()
        self.limit("--client", str(program.pid), "--memory", "none")
        program.go_on()
        self.assertEqual(program.answer()[0], free)

    def test_priority_and_view(self):
        program = self.begin("info", "wait", *self.where(SMS))
        program.answer()
        self.limit("--client", str(program.pid), "--priority", "1", "--memory", "1G")
        client, = self.funnel_json("ps")
        self.assertEqual((client["priority"], client["sm_centipercent"]), (1, 10000))
        self.assertIn("below", self.funnel("ps").stdout)
        program.go_on()
        self.assertEqual(self.places(program), [16, 16, 16])
        self.assertIn("below normal priority", self.server_log())

    def test_a_group_now_and_later(self):
        programs = [self.begin("smid", "wait", f"smid={later}", environment={"FUNNEL_GROUP": group})
                    for group, later in (("batch", 4), ("batch", 4), ("other", SMS))]
        self.assertEqual([len(p.answer()) for p in programs], [16, 16, 16])
        self.assertEqual(len(self.limit("--group", "batch", "--sm", "25")), 2)
        for program in programs:
            program.go_on()
        self.assertEqual([len(p.answer()) for p in programs], [4, 4, 16])
        self.assertEqual(len(self.ask("smid", environment={"FUNNEL_GROUP": "batch"})[0]), 4)
        self.assertEqual(len(self.ask("smid")[0]), 16)
        tighter = {"FUNNEL_GROUP": "batch", PERCENT: "12.5"}
        self.assertEqual(len(self.ask("smid", environment=tighter)[0]), 2)

    def test_a_user(self):
        import os
        self.limit("--user", str(os.getuid()), "--sm", "50", "--memory", "256M")
        self.assertEqual(self.ask("sms", "info")[0], [8])
        self.assertEqual(self.ask("info")[0][0], 256 * MIB)

    def test_wrong_words(self):
        for words, said in (([], "one of"), (["--client", "1"], "what to change"),
                            (["--client", "1", "--sm", "5"], "no such client"),
                            (["--client", "x", "--sm", "5"], "process id"),
                            (["--user", "1", "--group", "g", "--sm", "5"], "one of"),
                            (["--client", "1", "--sm", "5", "--sms", "5"], "use one"),
                            (["--client", "1", "--device", "0", "--sm", "5"], "needs --memory"),
                            (["--client", "1", "--memory", "5"], "512M"),
                            (["--group", "a-b", "--sm", "5"], "letters")):
            done = self.funnel("limit", *words)
            self.assertNotEqual(done.returncode, 0, words)
            self.assertIn(said, done.stdout + done.stderr)


class Provision(limits_harness.TestCase):
    def setUp(self):
        super().setUp()
        self.start()

    def begin_four(self, *later):
        """Programs that look where they run, now and when they have so many SMs."""
        self.later = list(later)
        self.programs = [self.begin("smid", "wait", f"smid={count}",
                                    environment={"FUNNEL_GROUP": name})
                         for name, count in zip("aabc", later)]
        for program in self.programs:
            program.answer()

    def check_provision(self, *arguments):
        done = self.funnel("provision", *arguments)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for program in self.programs:
            program.go_on()
        self.assertEqual([len(program.answer()) for program in self.programs], self.later)

    def test_equal(self):
        self.begin_four(4, 4, 4, 4)
        self.check_provision("equal")

    def test_half_equal(self):
        self.begin_four(8, 8, 8, 8)
        self.check_provision("half-equal")

    def test_for_clients_to_come(self):
        self.begin_four(2, 2, 2, 2)
        self.check_provision("equal", "--clients", "8")
        self.assertEqual(self.mps("get_default_active_thread_percentage\n"), ["12.5"])
        self.assertEqual(len(self.ask("smid")[0]), 2)

    def test_by_weight(self):
        self.begin_four(2, 2, 4, 8)
        self.check_provision("weight", "a=1", "b=2", "c=4")

    def test_by_count(self):
        self.begin_four(2, 2, 10, SMS)
        self.check_provision("sms", "a=2", f"{self.programs[2].pid}=10")

    def test_wrong_words(self):
        self.begin_four(SMS, SMS, SMS, SMS)
        for words in ([], ["twice"], ["weight"], ["weight", "a"], ["weight", "a=0"],
                      ["sms", "unknown=4"], ["equal", "--clients", "0"], ["equal", "x"]):
            self.assertNotEqual(self.funnel("provision", *words).returncode, 0, words)


if __name__ == "__main__":
    limits_harness.main()

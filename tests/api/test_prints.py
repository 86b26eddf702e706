#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What kernels print comes out of the program that launched them, all of it and nothing else, in
time. Run as: python3 test_prints.py BUILD [unittest options]."""
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

BUILD = None
DEVICE = os.environ.get("FUNNEL_TEST_DEVICE", "soft")
TIMEOUT_S = 120
LINE = re.compile(r"block (\d+) of (\d+) says (\d+), hello, ([\d.]+) and x")


class Prints(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="fnl-", dir="/tmp")
        self.environment = dict(os.environ, FUNNEL_SOFT_DEVICES="2", CUDA_MPS_PIPE_DIRECTORY=self.folder.name + "/pipe",
                                CUDA_MPS_LOG_DIRECTORY=self.folder.name + "/log")
        self.funnel = os.path.join(BUILD, "bin/funnel")
        self.addCleanup(self.folder.cleanup)
        self.addCleanup(self.stop)
        subprocess.run([self.funnel, "start", "--device", DEVICE], env=self.environment, check=True,
                       timeout=TIMEOUT_S, stdout=subprocess.DEVNULL)

    def stop(self):
        subprocess.run([self.funnel, "stop", "--force"], env=self.environment, timeout=TIMEOUT_S,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def begin(self, *arguments, device=0):
        command = [self.funnel, "run", "-q", "--no-start", "--",
                   os.path.join(BUILD, "tests/api/talks"), *map(str, arguments)]
        environment = dict(self.environment, CUDA_VISIBLE_DEVICES=str(device))
        process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        return process

    def end(self, process):
        out, errors = process.communicate("\n", timeout=TIMEOUT_S)
        self.assertEqual(process.returncode, 0, out[-2000:] + errors)
        return out, errors

    def check_rounds(self, text, number, rounds, blocks, copies=()):
        """Each round's lines are between its own heading and the next one. Lines of copies, with
        their numbers and blocks, may be among them."""
        heading, *parts = re.split(r"^round \d+\n", text, flags=re.M)
        self.assertEqual(heading, "")
        self.assertEqual(len(parts), rounds)
        self.assertTrue(parts[-1].endswith("end\n"), parts[-1][-200:])
        parts[-1] = parts[-1][:-len("end\n")]
        for part in parts:
            self.check_part(part, number, blocks, copies)

    def check_part(self, part, number, blocks, copies):
        seen = []
        for line in part.splitlines():
            match = LINE.fullmatch(line)
            self.assertIsNotNone(match, line)
            block, of, said = (int(match[i]) for i in (1, 2, 3))
            if (of, said - block) == (blocks, number):
                seen.append(block)
            else:
                self.assertIn((said - block, of), copies)
        self.assertEqual(sorted(seen), list(range(blocks)))

    def test_alone(self):
        out, _ = self.end(self.begin(1000, 20, 10))
        self.check_rounds(out, 1000, 20, 10)

    def run_copies(self, count):
        """None misses a line of its own, nor has it twice, and each is in the right round. The
        output tells copies apart only where their kernels do not run at once."""
        numbers = [1000000 * (i + 1) for i in range(count)]
        programs = [self.begin(number, 40, 20) for number in numbers]
        texts = [None] * len(programs)

        def collect(i):
            texts[i] = programs[i].communicate(timeout=TIMEOUT_S)

        threads = [threading.Thread(target=collect, args=(i,)) for i in range(len(programs))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for number, program, (out, errors) in zip(numbers, programs, texts):
            self.assertEqual(program.returncode, 0, errors)
            self.check_rounds(out, number, 40, 20, [(other, 20) for other in numbers])

    def test_two_copies_at_once(self):
        self.run_copies(2)

    def test_four_copies_at_once(self):
        self.run_copies(4)

    def test_copies_one_after_the_other(self):
        """Each attaches while the first one lives, which has printed before."""
        first = self.begin(3000, 2, 3, "victim")
        while first.stdout.readline() != "end\n":
            pass
        for number in (1000, 2000):
            out, _ = self.end(self.begin(number, 5, 10))
            self.check_rounds(out, number, 5, 10)
        first.kill()
        self.assertNotRegex(first.communicate(timeout=TIMEOUT_S)[0], "hello")

    def begin_holder(self, number, role, device=0):
        """A program whose kernel ends only when the test ends the program."""
        holder = self.begin(number, 1, 1, role, device=device)
        while holder.stdout.readline() != "holds\n":
            pass
        return holder

    @unittest.skipIf(DEVICE != "soft", "there the second program's code waits for that kernel")
    def test_beside_kernels_that_may_print_and_do_not_end(self):
        """As those of two jobs of NCCL are, each waiting for its own ranks."""
        holders = [self.begin_holder(1 + i, "quiet") for i in range(2)]
        out, _ = self.end(self.begin(1000, 20, 10))
        self.check_rounds(out, 1000, 20, 10)
        for holder in holders:
            self.assertEqual(self.end(holder)[0], "end\n")

    @unittest.skipIf(DEVICE != "soft", "there the second program's code waits for that kernel")
    def test_beside_a_copy_whose_kernel_does_not_end(self):
        holder = self.begin_holder(3000, "holds")
        out, _ = self.end(self.begin(1000, 20, 10))
        self.check_rounds(out, 1000, 20, 10, [(3000, 1)])
        out, _ = self.end(holder)
        self.assertRegex(out, r"block 0 of 1 says 3000,")

    @unittest.skipIf(DEVICE != "soft", "needs two devices")
    def test_a_kernel_on_one_device_does_not_hold_up_another_device(self):
        holder = self.begin_holder(3000, "holds")
        out, _ = self.end(self.begin(1000, 20, 10, device=1))
        self.check_rounds(out, 1000, 20, 10)
        out, _ = self.end(holder)
        self.assertEqual(len(LINE.findall(out)), 1)

    def test_a_megabyte_arrives_whole(self):
        out, _ = self.end(self.begin(1000000, 1, 22000))
        self.assertGreater(len(out), 1 << 20)
        self.check_rounds(out, 1000000, 1, 22000)

    def test_a_program_that_only_asks_gets_all_output_when_it_waits(self):
        out, _ = self.end(self.begin(5000, 1, 4000, "asks"))
        self.check_rounds(out, 5000, 1, 4000)

    def test_more_than_a_megabyte_comes_out_while_asking(self):
        """No more is kept, and nothing is lost or said twice."""
        out, _ = self.end(self.begin(1000000, 2, 22000, "asks"))
        blocks = [int(match[1]) for match in map(LINE.fullmatch, out.splitlines()) if match]
        self.assertGreater(len(out), 2 << 20)
        self.assertEqual(sorted(blocks), sorted(2 * list(range(22000))))

    def test_a_program_killed_in_the_middle(self):
        victim = self.begin(1000000, 1000000, 500)
        other = self.begin(5000000, 30, 20)
        victim.stdout.read(100000)  # it has come as far as printing, and now no process reads it
        time.sleep(0.2)
        victim.send_signal(signal.SIGKILL)
        out, _ = self.end(other)
        self.check_rounds(out, 5000000, 30, 20, [(1000000, 500)])
        victim.communicate(timeout=TIMEOUT_S)
        out, _ = self.end(self.begin(7000000, 3, 20))
        self.check_rounds(out, 7000000, 3, 20)

    def check_assertion(self, out, errors):
        """What was printed before it has come out, too."""
        self.assertIn("round 0\n", out)
        self.assertIn("block 0 of 1 says 2,", out)
        self.assertRegex(errors, r"talk\.cu:\d+: .*number == 1")

    def test_failed_assertion(self):
        self.check_assertion(*self.end(self.begin(2, 1, 3, "assert")))

    def test_failed_assertion_among_others(self):
        """The others end by it as well, but neither text is theirs."""
        others = [self.begin(1000 * (i + 1), 1, 3, "victim") for i in range(2)]
        for other in others:
            while other.stdout.readline() != "end\n":
                pass
            other.stdin.write("\n")
            other.stdin.flush()
        self.check_assertion(*self.end(self.begin(2, 1, 3, "assert")))
        for other in others:
            out, errors = self.end(other)
            self.assertEqual((out, errors), ("error 710\n", ""))


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)

# SPDX-License-Identifier: Apache-2.0
"""Device memory that the programs of a user or a group may have together, also in several servers.
Run as: python3 test_joint.py BUILD."""
import os
import signal

import limits_harness
import test_cgroups
from limits_harness import MIB, harness, wait_until

OUT_OF_MEMORY = 2


class Joint(test_cgroups.Maker, limits_harness.TestCase):
    def setUp(self):
        super().setUp()
        self.start()

    def limit(self, *words):
        done = self.funnel("limit", *words)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def of_group(self, *questions, group="pod", **environment):
        return self.begin(*questions, environment={"FUNNEL_GROUP": group, **environment})

    def await_row_end(self):
        """A program has ended, and its server has noticed."""
        wait_until(lambda: self.of_group("info").answer()[0] == 128 * MIB, "the end of a row")

    def test_programs_of_a_group(self):
        self.limit("--group", "pod", "--joint-memory", "128M")
        first = self.of_group("info", "fill=32", "wait")
        self.assertEqual(first.answer()[0], 128 * MIB)
        self.assertEqual(first.answer(), [4, OUT_OF_MEMORY])
        second = self.of_group("info", "fill=32", "wait", "info", "fill=32", "wait")
        self.assertEqual(second.answer()[0], 0)
        self.assertEqual(second.answer(), [0, OUT_OF_MEMORY])
        self.assertGreater(self.ask("fill=32")[0][0], 8)
        first.end()
        self.await_row_end()
        second.go_on()
        self.assertEqual(second.answer()[0], 128 * MIB)
        self.assertEqual(second.answer(), [4, OUT_OF_MEMORY])
        self.assertIn("their joint limit is 128 MiB", self.server_log())

    def test_a_limit_for_running_programs(self):
        programs = [self.of_group("fill=256", "wait", "fill=64", "wait") for _ in range(2)]
        self.assertEqual(sum(program.answer()[0] for program in programs), 3)
        self.assertIn("with all of its group at most 832 MiB",
                      self.limit("--group", "pod", "--joint-memory", "832M", "--device", "0"))
        programs[0].go_on()
        self.assertEqual(programs[0].answer()[1], OUT_OF_MEMORY)
        self.assertEqual(self.of_group("fill=32").answer(), [0, OUT_OF_MEMORY])
        self.limit("--group", "pod", "--joint-memory", "none")
        self.assertGreater(self.of_group("fill=32").answer()[0], 0)

    def test_a_user_and_a_group(self):
        self.limit("--user", str(os.getuid()), "--joint-memory", "192M")
        self.limit("--group", "pod", "--joint-memory", "128M", "--memory", "96M")
        holder = self.of_group("fill=32", "wait")
        self.assertEqual(holder.answer(), [3, OUT_OF_MEMORY])
        self.assertEqual(self.of_group("fill=32").answer(), [1, OUT_OF_MEMORY])
        self.assertEqual(self.ask("fill=32"), [[3, OUT_OF_MEMORY]])
        self.assertEqual(self.ask("total", environment={"FUNNEL_SHOW_LIMIT": "1"})[0][0], 192 * MIB)
        self.assertEqual([limit["joint_memory_limit"] for limit in self.funnel_json("limits")["limits"]
                          if "joint_memory_limit" in limit], [192 * MIB, 128 * MIB])

    def test_two_lanes(self):
        self.limit("--group", "pod", "--joint-memory", "128M")
        batch = self.of_group("fill=32", "wait", FUNNEL_CLASS="batch")
        self.assertEqual(batch.answer(), [4, OUT_OF_MEMORY])
        self.assertEqual(len(self.servers()), 1)
        self.assertEqual(self.of_group("fill=32").answer(), [0, OUT_OF_MEMORY])
        self.assertEqual(len(self.servers()), 2)
        batch.end()
        self.await_row_end()

    def test_the_next_daemon(self):
        self.limit("--group", "pod", "--joint-memory", "128M")
        holder = self.of_group("fill=32", "wait")
        self.assertEqual(holder.answer(), [4, OUT_OF_MEMORY])
        daemon = self.daemon_pid()
        os.kill(daemon, signal.SIGKILL)
        wait_until(lambda: not harness.alive(daemon), "the end of the daemon")
        self.start()
        self.assertEqual(self.of_group("fill=32").answer(), [0, OUT_OF_MEMORY])
        holder.end()
        self.await_row_end()

    def test_a_container_of_hami(self):
        """Its limit is that of the container, and each container has its own."""
        group = self.new_group()
        first, second = self.container(group, "9f" * 32), self.container(group, "7e" * 32)
        limit = {"CUDA_DEVICE_MEMORY_LIMIT_0": "128m"}
        self.assertEqual(self.inside(first, "fill=32", "wait", **limit).answer(), [4, OUT_OF_MEMORY])
        self.assertEqual(self.inside(first, "info", **limit).answer(), [0, 128 * MIB])
        self.assertEqual(self.inside(first, "fill=32", **limit).answer(), [0, OUT_OF_MEMORY])
        self.assertEqual(self.inside(second, "fill=32", **limit).answer(), [4, OUT_OF_MEMORY])
        each = {**limit, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=128M"}
        self.assertEqual(self.inside(first, "fill=32", **each).answer(), [4, OUT_OF_MEMORY])
        self.assertIn("The programs of its container have 128 MiB together", self.server_log())

    def container(self, group, number):
        container = os.path.join(group, f"docker-{number}.scope")
        self.make_group(container)
        return container

    def inside(self, container, *questions, **environment):
        return self.begin(*questions, environment=environment,
                          preexec_fn=lambda: test_cgroups.join(container))

    def test_words(self):
        for words, said in ((["--client", "1", "--joint-memory", "1G"], "together"),
                            (["--group", "pod", "--joint-memory", "5"], "512M")):
            done = self.funnel("limit", *words)
            self.assertNotEqual(done.returncode, 0, words)
            self.assertIn(said, done.stdout + done.stderr)


if __name__ == "__main__":
    limits_harness.main()

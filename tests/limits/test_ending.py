# SPDX-License-Identifier: Apache-2.0
"""Programs that are ended by an order or by a fault, and kernels without an end."""
import os
import signal
import socket
import subprocess
import time

import limits_harness
import wire
from limits_harness import SMS, wait_until, waits


class Ending(limits_harness.TestCase):
    def setUp(self):
        super().setUp()
        self.environment["FUNNEL_SOFT_NO_ABORT"] = "1"  # as on NVIDIA's driver

    @waits
    def test_a_kernel_without_an_end(self):
        """It cannot be stopped; its client is ended, and no other client is affected."""
        self.start()
        witness, victim = self.play("calm"), self.play("endless")
        self.assertIn("launched", victim.process.stdout.readline())
        server, = self.servers()
        answers = self.mps(f"terminate_client {server} {victim.pid}\n")
        self.assertEqual(answers[0], "702")
        self.assertIn("does not end", answers[1])
        self.assertEqual(victim.answer(), [810, 810])
        self.assertIsNone(witness.process.poll())
        self.assertEqual(self.ask("sms"), [[SMS]])

    def test_the_software_gpu_ends_it(self):
        del self.environment["FUNNEL_SOFT_NO_ABORT"]
        self.start()
        witness, victim = self.play("calm"), self.play("endless")
        self.assertIn("launched", victim.process.stdout.readline())
        server, = self.servers()
        self.assertEqual(self.mps(f"terminate_client {server} {victim.pid}\n"), ["0"])
        self.assertEqual(victim.answer(), [810, 810])
        self.assertIsNone(witness.process.poll())
        self.assertEqual(self.ask("sms"), [[SMS]])
        self.assertEqual(self.servers(), [server])

    def abandon(self, times=1):
        """A kernel without an end, whose program is gone: returns when the daemon knows of it."""
        victim = self.play("endless")
        self.assertIn("launched", victim.process.stdout.readline())
        # What the server has not read yet vanishes with the program. The first launch is a trial.
        wait_until(lambda: [c for c in self.funnel_json("ps")
                            if c["pid"] == victim.pid and c["launches"] == 2])
        victim.process.kill()
        victim.process.wait()
        wait_until(lambda: self.control_log().count("but a kernel goes on") == times)

    @waits
    def test_a_new_server_when_only_that_is_left(self):
        self.start()
        witness = self.begin("info", "wait", "info")
        witness.answer()
        first, = self.servers()
        self.abandon()
        self.ask("sms")  # with the witness, who must not be disturbed
        self.assertEqual(self.servers(), [first])
        witness.go_on()
        self.assertEqual(len(witness.answer()), 2)
        self.assertEqual(witness.end(), 0)
        # A client is missing from the list a moment before the daemon is told that it left.
        wait_until(lambda: self.control_log().count("has left") == 2)
        self.assertEqual(len(self.funnel_json("ps")), 1)
        self.assertEqual(self.ask("sms"), [[SMS]])
        self.assertNotIn(first, self.servers())
        self.assertEqual(len(self.servers()), 1)

    @waits
    def test_a_terminated_program_is_not_in_the_way(self):
        """Even while its process lives on."""
        self.start()
        victim = self.play("endless")
        self.assertIn("launched", victim.process.stdout.readline())
        first, = self.servers()
        self.assertEqual(self.mps(f"terminate_client {first} {victim.pid}\n")[0], "702")
        self.assertEqual(self.ask("sms"), [[SMS]])
        self.assertNotIn(first, self.servers())

    @waits
    def test_no_one_waits_for_the_end_of_that(self):
        self.start()
        self.abandon()
        server, = self.servers()
        self.mps(f"shutdown_server {server}\n")
        wait_until(lambda: not self.servers())
        self.abandon(2)
        done = self.run_program("nvidia-cuda-mps-control", input="quit\n")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIsNone(self.daemon_pid())

    def test_others_may_come_meanwhile(self):
        """MPS refuses new clients with 807 while it terminates a client."""
        self.start()
        victim = self.play("endless")
        self.assertIn("launched", victim.process.stdout.readline())
        server, = self.servers()
        program = subprocess.Popen([os.path.join(self.root, "bin/nvidia-cuda-mps-control")],
                                   text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   env=self.environment)
        self.processes.append(program)
        program.stdin.write(f"terminate_client {server} {victim.pid}\n")
        program.stdin.flush()
        self.assertEqual(victim.answer(), [810, 810])
        self.assertIsNone(program.poll())
        self.assertEqual(self.ask("sms"), [[SMS]])

    def test_answered_when_its_kernels_are_done(self):
        self.start()
        victim = self.play("steady")
        server, = self.servers()
        self.assertEqual(self.mps(f"terminate_client {server} {victim.pid}\n"), ["0"])
        self.assertEqual(victim.process.stdout.readline().split()[1], "810")


class Faults(limits_harness.TestCase):
    def new_client(self):
        return self.funnel("run", "-q", "--no-start", "--", *self.command("sms")[5:])

    def fault(self):
        offender = self.begin("fault", "10", program="limits_load")
        self.assertEqual(offender.process.communicate("\n", timeout=60)[0], "ready\n700 700\n")
        wait_until(lambda: "fatal GPU error" in self.control_log(), "the fault in the log")

    def test_new_clients_while_old_ones_are_there(self):
        """Two programs had work, so it is not known which has faulted: both are waited for."""
        self.start()
        bystander = self.play("endless")
        self.assertIn("launched", bystander.process.stdout.readline())
        bystander.process.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        self.fault()
        newcomer = self.new_client()
        if time.monotonic() - began >= 10:
            self.skipTest("this machine is too busy")
        self.assertNotEqual(newcomer.returncode, 0)
        self.assertIn("807", newcomer.stdout)
        bystander.process.send_signal(signal.SIGCONT)
        self.assertEqual(bystander.answer(), [700, 700])
        bystander.process.wait()
        self.assertEqual(self.ask("sms"), [[SMS]])

    def test_new_clients_do_not_wait_for_the_user_of_the_offender(self):
        self.start()
        bystander = self.begin("info", "wait", "info", environment={"FUNNEL_OFF": "recovery"})
        bystander.answer()
        server, = self.servers()
        self.fault()
        self.assertEqual(self.ask("sms"), [[SMS]])
        self.assertNotEqual(self.servers(), [server])
        bystander.go_on()
        self.assertIn("error 700", bystander.process.stdout.readline())
        bystander.end()

    def test_given_to_a_server_that_is_ending(self):
        """The connection ends before an answer: the program asks once more, and gets the reason."""
        os.makedirs(self.pipe)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(self.socket_path)
            listener.settimeout(limits_harness.harness.TIMEOUT)
            listener.listen()
            program = self.begin_by_itself("sms")
            for answer in (b"", wire.WELCOME.pack(wire.WELCOME_MAGIC, 807, b"later")):
                with listener.accept()[0] as connection:
                    connection.recv(1 << 16)
                    connection.send(answer) if answer else None
            self.assertIn("807", program.process.stdout.readline())


if __name__ == "__main__":
    limits_harness.main()

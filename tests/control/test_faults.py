# SPDX-License-Identifier: Apache-2.0
"""Who pays for faults in a server for all users: the user whose programs fault, and no other."""
import json
import os
import re
import signal
import unittest

import harness
import wire
from harness import wait_until


class ClientOfUser:
    """A client that is a process of its own, of some user, and stays until it is ended."""

    def __init__(self, path, uid, **hello):
        reading, writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self.stay(path, uid, hello, writing)
            finally:
                os._exit(1)
        os.close(writing)
        with os.fdopen(reading) as answer:
            self.welcome = json.loads(answer.read())

    @staticmethod
    def stay(path, uid, hello, writing):
        if uid != os.getuid():
            harness.become_user(uid)
        client = harness.Client(path, **hello)
        os.write(writing, json.dumps(client.welcome()).encode())
        os.close(writing)
        signal.pause()

    def end(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        self.pid = None


class TestCase(harness.TestCase):
    options = []

    def setUp(self):
        super().setUp()
        self.environment["FUNNEL_FAKE_BLAMES"] = "1"
        self.start("--device", "soft", *self.options)

    def client_of(self, uid, **hello):
        client = ClientOfUser(self.socket_path, uid, **hello)
        self.addCleanup(client.end)
        return client

    def attach(self, uid, **hello):
        """The daemon also knows that the client has attached, which its server reports a little later."""
        client = self.client_of(uid, **hello)
        self.assertEqual(client.welcome, [0, ""])
        self.server_of(client)
        return client

    def server_of(self, client):
        attached = re.compile(rf"Client {client.pid} attached to server (\d+) ")
        wait_until(lambda: attached.search(self.control_log()), "the client's server")
        return int(attached.search(self.control_log())[1])

    def fault(self, client, ends=True):
        """The server blames the first of its clients, which this one has to be."""
        server = self.server_of(client)
        os.kill(server, signal.SIGUSR1)
        wait_until(lambda: f"Server {server}: fatal GPU error" in self.control_log(), "the fault")
        os.kill(server, signal.SIGUSR2)
        wait_until(lambda: not harness.alive(server), "the end of the server")
        if ends:
            client.end()

    def is_in_quarantine(self, client):
        return f"Client {client.pid} is in quarantine" in self.control_log()


@unittest.skipIf(os.geteuid() != 0, "needs root, to be two users")
class Users(TestCase):
    options = ["--multiuser-server"]

    def test_processes_that_do_not_end(self):
        """They stay after each fault, and keep no program of another user away."""
        for _ in range(3):
            self.fault(self.attach(2001), ends=False)
            self.attach(2002).end()

    def test_other_users_are_waited_for(self):
        offender, other = self.attach(2001), self.attach(2002)
        self.fault(offender, ends=False)
        self.assertEqual(self.client_of(2003).welcome[0], 807)
        other.end()
        self.attach(2003)

    def test_the_next_fault_meets_the_offenders_server(self):
        self.fault(self.attach(2001))
        other, offender = self.attach(2002), self.attach(2001)
        self.assertTrue(self.is_in_quarantine(offender))
        self.assertFalse(self.is_in_quarantine(other))
        self.fault(offender)
        self.assertTrue(harness.alive(self.server_of(other)))

    def test_users_in_quarantine_are_apart(self):
        for uid in (2001, 2002):
            self.fault(self.attach(uid))
        first, second = self.attach(2001), self.attach(2002)
        self.assertNotEqual(self.server_of(first), self.server_of(second))

    def test_names_of_scripts(self):
        """All of these processes run python3. What they say that it runs helps two times."""
        names = [f"python3\0{number}.py".encode() for number in range(4)]
        for name in names[:3]:
            offender = self.attach(2001, command=name)
            self.assertFalse(self.is_in_quarantine(offender))
            self.fault(offender)
        self.assertTrue(self.is_in_quarantine(self.attach(2001, command=names[3])))
        self.assertFalse(self.is_in_quarantine(self.attach(2002, command=names[3])))


class Lane(TestCase):
    """Programs in quarantine are in a lane of their service, which holds what holds for the service."""

    def setUp(self):
        super().setUp()
        self.user = f"uid_{os.getuid()}"
        self.fault(self.attach(os.getuid(), command=b"python3\0offender.py"))

    def enter(self, name, **hello):
        return self.attach(os.getuid(), command=b"python3\0" + name.encode(), **hello)

    def lanes(self):
        return {server["name"]: server["pid"] for server in self.funnel_json("status")["servers"]}

    def test_limits_and_ids(self):
        self.enter("other.py")
        main = self.lanes()[self.user]
        self.assertEqual(self.mps(f"set_active_thread_percentage {main} 25\n"), ["25.0"])
        self.enter("offender.py")
        told = self.server_events("client")[-2:]
        self.assertEqual([event["share"] for event in told], [10000, 2500])
        self.assertEqual([event["number"] for event in told], [1, 2])
        self.assertEqual(self.mps(f"set_active_thread_percentage {main} 50\n"), ["50.0"])
        self.enter("offender.py")
        self.assertEqual(self.server_events("client")[-1]["share"], 5000)

    def test_batch_programs_stay_batch(self):
        self.enter("offender.py", program_class=wire.BATCH)
        lanes = self.lanes()
        self.assertEqual(list(lanes), [self.user + ":batch_quarantine"])
        self.assertIn("--batch", self.server_events("start")[-1]["argv"])
        self.assertIn("it serves programs that have faulted", self.funnel("status").stdout)

    def test_the_lane_ends_after_its_programs(self):
        self.enter("other.py")
        offender = self.enter("offender.py")
        lanes = self.lanes()
        self.assertEqual(sorted(lanes), [self.user, self.user + ":quarantine"])
        offender.end()
        wait_until(lambda: not harness.alive(lanes[self.user + ":quarantine"]), "the end of the lane")
        self.assertEqual(list(self.lanes()), [self.user])

    def test_named_server(self):
        self.assertEqual(self.run_program("nvidia-cuda-mps-control", "server", "create",
                                          "night").returncode, 0)
        client = ClientOfUser(os.path.join(self.pipe, "night", "funnel"), os.getuid(),
                              command=b"python3\0offender.py")
        self.addCleanup(client.end)
        self.assertEqual(client.welcome, [0, ""])
        running = [name for name, server in self.lanes().items() if server]
        self.assertEqual(running, ["night:quarantine"])


class OneProcessAtATime(TestCase):
    """Programs in quarantine and others share the server that has the device."""
    fake = "exclusive"
    SCRIPTS = [b"python3\0" + name for name in (b"offender.py", b"other.py", b"third.py")]

    def test_others_come_first(self):
        self.fault(self.attach(os.getuid(), command=self.SCRIPTS[0]))
        other = self.attach(os.getuid(), command=self.SCRIPTS[1])
        offender = self.attach(os.getuid(), command=self.SCRIPTS[0])
        self.assertTrue(self.is_in_quarantine(offender))
        self.assertEqual(self.server_of(offender), self.server_of(other))

    def test_the_offender_comes_first(self):
        self.fault(self.attach(os.getuid(), command=self.SCRIPTS[0]))
        offender = self.attach(os.getuid(), command=self.SCRIPTS[0])
        for name in self.SCRIPTS[1:]:
            other = self.attach(os.getuid(), command=name)
            self.assertFalse(self.is_in_quarantine(other))
            self.assertEqual(self.server_of(offender), self.server_of(other))


if __name__ == "__main__":
    harness.main()

# SPDX-License-Identifier: Apache-2.0
"""Servers with names of MPS v3: each has a socket of its own, its own devices and limits."""
import os
import signal

import harness
from harness import Client, alive, wait_until


class TestCase(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.start("--device", "soft")

    def words(self, line, status=0):
        done = self.run_program("nvidia-cuda-mps-control", *line.split())
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout.splitlines()

    def enter(self, *folder, **hello):
        client = Client(os.path.join(self.pipe, *folder, "funnel"), **hello)
        self.addCleanup(client.close)
        self.assertEqual(client.welcome(), (0, ""))
        return client

    def status(self, name):
        return self.words(f"server get {name} status")[0]

    def told(self, name):
        """The message that the server of that name got about its last client."""
        return self.server_events("client", name)[-1]


class Named(TestCase):
    def test_create_and_serve(self):
        path = os.path.join(self.pipe, "training")
        self.assertIn(path, self.words("server create training")[0])
        row = ["training", str(os.getuid()), "-", "Stopped", path, "all", "-"]
        self.assertEqual(self.words("server list --format=csv,noheader"), [",".join(row)])
        self.assertEqual(self.words("client list --server=training --format=csv,noheader"), [])
        self.enter("training")
        first, = self.servers()
        self.assertEqual(self.words("server get training pid"), [str(first)])
        self.client().welcome()
        self.enter("training")
        self.assertEqual(len(self.servers()), 2)
        self.assertEqual(len(self.words("client list --server=training --format=csv,noheader")), 2)
        self.assertEqual([line.split(",")[0]
                          for line in self.words("server list --format=csv,noheader")],
                         ["training", f"uid_{os.getuid()}"])

    def test_every_field(self):
        """Those that the help of a `get` names can be had, by an answer of one line."""
        self.words("server create a")
        self.enter("a")
        for module, whose in (("server", "a"), ("namespace", "default a"),
                              ("client", str(os.getpid()))):
            help_text = self.words(f"{module} get help")[1]
            fields = help_text.replace(" or ", ", ").split(", ")
            self.assertGreater(len(fields), 5)
            for field in fields:
                with self.subTest(f"{module} {field}"):
                    answer, = self.words(f"{module} get {whose} {field}")
                    self.assertTrue(answer)

    def test_a_server_that_died_is_replaced(self):
        self.words("server create a")
        self.enter("a")
        first, = self.servers()
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: not alive(first))
        self.enter("a")
        self.assertNotEqual(self.servers(), [first])

    def slices(self, name):
        return [event["us"] for event in self.server_events("timeslice", name)]

    def test_shares_of_time(self):
        """Servers are told their time slices, and those without a percentage share the rest."""
        for name in ("a", "b", "c"):
            self.words(f"server create {name}")
            self.enter(name)
        self.assertEqual(self.slices("a"), [])
        self.assertEqual(self.words("server get a timeslice-pct"), ["-"])
        self.words("server set a --timeslice-pct=60")
        self.assertEqual(self.words("server get a timeslice-pct"), ["60"])
        wait_until(lambda: [self.slices(name) for name in ("a", "b", "c")] ==
                   [[6000], [2000], [2000]])
        self.words("server set b --timeslice-pct=25")
        wait_until(lambda: [self.slices(name) for name in ("a", "b", "c")] ==
                   [[6000], [2000, 2500], [2000, 1500]])
        self.words("server delete c --force")
        self.words("server set a --timeslice-pct=0")
        wait_until(lambda: self.slices("a")[-1] == 7500)
        self.words("server set b --timeslice-pct=0")
        wait_until(lambda: (self.slices("a")[-1], self.slices("b")[-1]) == (0, 0))
        self.assertIn("expected a percentage of 1 to 100, or 0 for none",
                      self.words("server set a --timeslice-pct=101", 2)[0])

    def test_limits(self):
        self.words("server create a")
        self.words("server set a active-thread-percentage=30 --pinned-memory-limit=4G "
                   "--client-priority=1")
        self.enter("a", sm_centipercent=5000)
        self.assertEqual((self.told("a")["share"], self.told("a")["priority"]), (3000, 1))
        self.assertEqual(self.told("a")["memory"], [4 << 30, 4 << 30])
        self.enter("a", sm_centipercent=1000, priority=0, memory=[1 << 30, 8 << 30])
        self.assertEqual((self.told("a")["share"], self.told("a")["priority"]), (3000, 0))
        self.assertEqual(self.told("a")["memory"], [1 << 30, 4 << 30])
        self.assertEqual(self.words("server set a", status=2), ["Nothing to set, see -h"])

    def test_allowed_devices(self):
        self.words("server create a --allowed-devices=1,GPU-00112233")
        self.assertEqual(self.words("server get a allowed-devices"), ["1,GPU-00112233"])
        self.enter("a")
        start, = self.server_events("start", "a")
        self.assertEqual(start["environment"]["CUDA_VISIBLE_DEVICES"], "1,GPU-00112233")

    def test_delete(self):
        self.words("server create a")
        client = self.enter("a")
        self.assertIn("has 1 client;", self.words("server delete a", status=1)[0])
        self.assertEqual(self.status("a"), "Ready")
        server, = self.servers()
        self.assertEqual(self.words("server delete a --force"), [])
        wait_until(lambda: not alive(server))
        self.assertEqual(client.socket.recv(100), b"")
        self.assertFalse(os.path.exists(os.path.join(self.pipe, "a")))
        self.words("server create a")
        self.assertEqual(self.words("server delete a"), [])
        self.assertEqual(self.words("server delete a", status=1), ["Server 'a' not found"])

    def test_server_of_a_user(self):
        name = f"uid_{os.getuid()}"
        self.words(f"server create --uid={os.getuid()}")
        self.words(f"server set {name} --active-thread-percentage=25")
        self.client().welcome()
        self.assertEqual(self.server_events("client")[-1]["share"], 2500)
        self.assertEqual(self.words(f"server get {name} name"), [name])

    def test_another_owner(self):
        name = "given"
        self.words(f"server create {name}")
        if os.geteuid() == 0:
            self.words(f"server set {name} --uid=65534")
            self.assertEqual(self.words(f"server get {name} uid"), ["65534"])
            self.words(f"server set {name} --uid=0")
        else:
            self.assertIn("cannot start", self.words(f"server set {name} --uid=0", status=1)[0])
        self.enter(name)
        self.assertIn("runs", self.words(f"server set {name} --uid={os.getuid() + 1}", status=1)[0])
        self.assertEqual(self.words(f"server set {name} --uid={os.getuid()}"), [])
        self.assertEqual(self.words(f"server get {name} uid"), [str(os.getuid())])

    def test_wrong_names(self):
        for name in ("log", "empty", "funnel", "control", "Big", "uid_7777"):
            self.assertTrue(self.words(f"server create {name}", status=1))
        self.assertTrue(self.words("server create", status=2))
        self.words("server create a")
        self.assertEqual(self.words("server create a", status=1), ["Server 'a' exists already"])
        self.assertTrue(self.words("server create b --locality-domains=true", status=1))
        self.assertEqual(len(self.words("server list")), 2)

    def test_leftovers(self):
        """Sockets vanish with the daemon, and the next one removes those of one that was killed, but
        for servers that are kept."""
        path = os.path.join(self.pipe, "a")
        self.words("server create a")
        os.kill(self.daemon_pid(), signal.SIGKILL)
        self.assertTrue(os.path.exists(path))
        os.unlink(os.path.join(self.pipe, "funnel.servers", "settings"))
        wait_until(lambda: self.run_program("funneld", "-d").returncode == 0)
        self.assertFalse(os.path.exists(path))
        self.words("server create a")
        self.mps("quit\n")
        self.assertFalse(os.path.exists(path))


class Views(TestCase):
    """What `funnel` shows of named servers, running or not."""

    def setUp(self):
        super().setUp()
        self.words("server create night")
        self.words("namespace create batch --server=night")
        self.words("namespace set batch --server=night active-thread-percentage=25 "
                   "pinned-memory-limit=4G")

    def lines(self, *words):
        done = self.funnel(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [line.split() for line in done.stdout.splitlines()]

    def test_servers(self):
        path = os.path.join(self.pipe, "night")
        titles, row = self.lines("servers")
        self.assertEqual((titles[0], titles[-2:]), ("NAME", ["PIPE", "DIRECTORY"]))
        self.assertEqual((row[0], row[1], row[3], row[-1]), ("night", "-", "stopped", path))
        self.enter("night")
        row = self.lines("servers")[1]
        self.assertEqual((row[0], row[1], row[3], row[-1]),
                         ("night", str(self.servers()[0]), "active", path))
        server, = self.funnel_json("servers")
        self.assertEqual((server["name"], server["pipe_directory"], server["clients"]),
                         ("night", path, 1))

    def test_log(self):
        self.enter("night")
        self.assertIn('"event": "start"', self.funnel("log", "--server=night").stdout)
        self.client().welcome()
        own = f"--server=uid_{os.getuid()}"  # whose log may grow between two commands
        wait_until(lambda: self.funnel("log", "--server").stdout == self.funnel("log", own).stdout,
                   "the same log by both names")
        self.assertEqual(self.funnel("log", "--server=unknown").returncode, 1)
        inside = {"CUDA_MPS_PIPE_DIRECTORY": os.path.join(self.pipe, "night")}
        self.assertIn("NEW CLIENT", self.funnel("log", "--daemon", environment=inside).stdout)
        for wrong in (["--server=../x"], ["--server", "night"], ["-n", "x"]):
            self.assertEqual(self.funnel("log", *wrong).returncode, 2, wrong)

    def test_front_ends_at_the_servers_own_socket(self):
        """A user who has set the directory for programs need not change it for the front ends."""
        inside = {"CUDA_MPS_PIPE_DIRECTORY": os.path.join(self.pipe, "night")}
        self.assertEqual(self.funnel("servers", environment=inside).stdout,
                         self.funnel("servers").stdout)
        done = self.run_program("nvidia-cuda-mps-control", "server", "get", "night", "status",
                                environment=inside)
        self.assertEqual((done.returncode, done.stdout), (0, "Stopped\n"))

    def test_status(self):
        self.assertIn("night of user", self.funnel("status").stdout)
        self.assertIn(os.path.join(self.pipe, "night"), self.funnel("status").stdout)

    def test_clients(self):
        self.enter("night", "batch")
        self.enter("night")
        self.assertEqual([row[3] for row in self.lines("ps")[1:]], ["night/batch", "night"])
        self.assertEqual([(c["server_name"], c["namespace"]) for c in self.funnel_json("clients")],
                         [("night", "batch"), ("night", "default")])
        self.assertEqual({row[0] for row in self.lines("devices")[1:]}, {"night"})
        self.assertEqual({d["server_name"] for d in self.funnel_json("devices")}, {"night"})

    def test_limits(self):
        self.mps("set_default_active_thread_percentage 50\nset_default_device_pinned_mem_limit 0 "
                 "2G\n"
                 "limit -group nightly -sms 16 -priority 1\n")
        self.enter("night", "batch")
        self.mps(f"set_active_thread_percentage {self.servers()[0]} 40\n")
        rows = self.lines("limits")
        self.assertEqual(rows[1], ["default", "50%", "-", "-", "-", "normal", "-", "-", "-"])
        self.assertEqual(rows[2], ["default", "-", "2.0", "GiB", "-", "0", "-", "-", "-", "-"])
        self.assertEqual(rows[3], ["server", "night", "40%", "-", "-", "-", "-", "-", "-", "-"])
        self.assertIn(["namespace", "night/batch", "25%", "4.0", "GiB", "-", "each", "-", "-", "-", "-"],
                      rows)
        self.assertIn(["group", "nightly", "16", "-", "-", "-", "below", "normal", "-", "-", "-"],
                      rows)
        self.assertEqual(rows[-1][:6], [str(os.getpid()), "night", "0", "33", "of", "132"])
        limits = self.funnel_json("limits")
        self.assertEqual(limits["limits"][0],
                         {"scope": "daemon", "sm_centipercent": 5000, "sm_percent": 50.0,
                          "priority": 0})
        self.assertIn({"scope": "namespace", "server": "night", "namespace": "batch",
                       "sm_centipercent": 2500, "sm_percent": 25.0, "memory_limit": 4 << 30}, limits["limits"])
        self.assertIn({"scope": "group", "group": "nightly", "sms": 16, "priority": 1},
                      limits["limits"])
        self.assertEqual(limits["clients"][0]["devices"][0]["sm_granted"], 33)


class Namespaces(TestCase):
    def setUp(self):
        super().setUp()
        self.words("server create a")
        self.path = os.path.join(self.pipe, "a", "batch")

    def test_limits_and_lists(self):
        self.assertIn(self.path, self.words("namespace create batch --server=a")[0])
        self.words("namespace set batch --server=a active-thread-percentage=12.5 "
                   "pinned-memory-limit=512M")
        self.words("namespace set default --server=a client-priority=1")
        self.assertEqual(self.words("namespace list --server=a --format=csv"), [
            "name,server,server-status,pinned-memory-limit,active-thread-percentage,"
            "client-priority,pipe-directory",
            f"default,a,Stopped,-,-,1,{self.pipe}/a", f"batch,a,Stopped,512M,12.5,-,{self.path}"])
        self.enter("a", "batch")
        self.assertEqual((self.told("a")["share"], self.told("a")["priority"]), (1250, 0))
        self.assertEqual(self.told("a")["memory"], [512 << 20] * 2)
        self.enter("a")
        self.assertEqual((self.told("a")["share"], self.told("a")["priority"]), (10000, 1))
        self.assertEqual(len(self.servers()), 1)
        self.assertEqual(self.words("namespace get batch a server-status"), ["Ready"])
        self.assertEqual(self.words("namespace get batch a pinned-memory-limit"), ["512M"])
        self.assertEqual([line.split(",")[3] for line in
                          self.words("client list --server=a --format=csv,noheader")],
                         ["batch", "default"])

    def test_delete(self):
        self.words("namespace create batch --server=a")
        client, other = self.enter("a", "batch"), self.enter("a")
        self.assertIn("has 1 client;", self.words("namespace delete batch --server=a", status=1)[0])
        self.assertEqual(self.words("namespace delete batch --server=a --force"), [])
        self.assertEqual(client.socket.recv(100), b"")
        self.assertFalse(os.path.exists(self.path))
        self.assertTrue(self.words("namespace delete default --server=a", status=1))
        self.assertEqual(self.words("namespace get batch a name", status=1),
                         ["Namespace 'batch' not found"])

    def test_wrong(self):
        for line in ("create x --server=b", "create default --server=a", "create funnel --server=a",
                     "create Big --server=a", "set x --server=a client-priority=1",
                     "list --server=b", "list x"):
            self.assertTrue(self.words("namespace " + line, status=1))

    def test_too_long_a_path(self):
        long = "x" * 64
        self.words("server create " + long)
        answer, = self.words(f"namespace create {long} --server={long}", status=1)
        self.assertIn("too long", answer)
        self.assertEqual(len(self.words(f"namespace list --server={long}")), 2)

    def test_leftovers(self):
        self.words("namespace create batch --server=a")
        os.kill(self.daemon_pid(), signal.SIGKILL)
        os.unlink(os.path.join(self.pipe, "funnel.servers", "settings"))
        wait_until(lambda: self.run_program("funneld", "-d").returncode == 0)
        self.assertFalse(os.path.exists(os.path.join(self.pipe, "a")))


class Users(TestCase):
    def test_the_server_of_another_user(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        self.words("server create a --uid=65534")
        client = Client(os.path.join(self.pipe, "a", "funnel"))
        self.addCleanup(client.close)
        status, text = client.welcome()
        self.assertEqual(status, 807)
        self.assertIn("serves user 65534 only", text)

    def test_a_user_sees_servers_of_its_own(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        for name, uid in (("mine", 65534), ("theirs", 65533)):
            self.words(f"server create {name} --uid={uid}")
            self.words(f"server set {name} --active-thread-percentage=20")
        for view in ("servers", "limits"):
            done = self.funnel(view, user=65534, group=65534, extra_groups=[])
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("mine", done.stdout)
            self.assertNotIn("theirs", done.stdout)


if __name__ == "__main__":
    harness.main()

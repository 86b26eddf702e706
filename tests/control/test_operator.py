# SPDX-License-Identifier: Apache-2.0
"""What an operator does wrong, looks for, or is not allowed to do: each with an answer that helps."""
import os
import pwd
import signal
import socket
import subprocess
import tempfile
import unittest

import harness
from harness import wait_until


def install_library(root):
    """`funnel run` puts it before a program; these programs do not use it."""
    os.makedirs(os.path.join(root, "lib/funnel"))
    with open(os.path.join(root, "lib/funnel/libcuda.so.1"), "w"):
        pass


class Started(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.start("--device", "soft")

    def attach(self, **hello):
        client = self.client(**hello)
        self.assertEqual(client.welcome(), (0, ""))
        return client

    def words(self, line, status=0):
        done = self.run_program("nvidia-cuda-mps-control", *line.split())
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout.splitlines()

    def refused(self, *arguments):
        done = self.funnel(*arguments)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        return done.stderr


class Rude(Started):
    fake = "rude"

    def test_words_of_a_server_move_no_cursor(self):
        """It is a process of its user; root looks at it."""
        self.attach(group=b"batch")
        with open(os.path.join(self.log, "server.log"), "a") as log:
            log.write("\033[2J from a kernel\n")
        for words in (("status",), ("ps",), ("ps", "--columns", "cause"), ("devices",),
                      ("limits",), ("metrics",), ("log", "--server"), ("log", "--daemon")):
            done = self.funnel(*words)
            self.assertEqual(done.returncode, 0, done.stderr)
            for raw in ("\033", "\x9b", "\u202e"):
                self.assertNotIn(raw, done.stdout, words)
        self.assertIn("Test GPU?[2J", self.funnel("devices").stdout)
        self.assertIn("?[2J from a kernel", self.funnel("log", "--server").stdout)
        self.assertNotIn("\033", self.mps("device_query\n")[1])


class Operator(Started):
    def test_limits_that_no_device_has(self):
        self.attach()
        pid = str(os.getpid())
        self.assertIn("No device has 133 SMs: the largest has 132",
                      self.refused("limit", "--client", pid, "--sms", "133"))
        self.assertIn("No server has a device 5",
                      self.refused("limit", "--client", pid, "--memory", "1G", "--device", "5"))
        for share in ("101", "0", "0x20", "half"):
            self.assertIn("expected a percentage above 0 and at most 100, or none",
                          self.refused("limit", "--client", pid, "--sm", share))
        self.assertEqual(self.funnel_json("limits")["limits"],
                         self.funnel_json("limits")["limits"][:2])

    def test_refused_limits_do_not_bind_later_programs(self):
        self.attach()
        self.refused("limit", "--group", "batch", "--sms", "133")
        self.assertNotIn("batch", self.funnel("limits").stdout)

    def test_words_of_the_front_end(self):
        self.attach()
        told = self.refused("limit", "--client", str(os.getpid()), "--sm", "5", "--sms", "5")
        self.assertIn("--sm and --sms", told)
        self.assertIn("--client, --user and --group", self.refused("limit", "--sm", "5"))
        self.assertIn("there is no user nobody_here",
                      self.refused("limit", "--user", "nobody_here", "--sm", "5"))
        # The words of earlier releases are still understood.
        self.assertEqual(self.mps("limit -group batch -sm 50\n"), [])

    def test_mistyped_words(self):
        for words, told in ((["strat"], 'is it "start"?'), (["suspnd", "1"], 'is it "suspend"?'),
                            (["xyz"], 'no command "xyz"; funnel help'),
                            (["run", "--devise", "soft", "true"], "unknown option --devise"),
                            (["run", "--device"], "--device: its value is missing"),
                            (["run", "--quiet=3", "true"], "--quiet=3: this option takes no value"),
                            (["top", "-n"], "unknown option -n, or its value is missing"),
                            (["servers", "--sort", "pid"], "only funnel ps has options"),
                            (["disable", "--nvml"], "--nvml is for funnel enable")):
            with self.subTest(words=words):
                done = self.funnel(*words)
                self.assertEqual(done.returncode, 2)
                self.assertIn(told, done.stderr)

    def test_a_limit_is_lifted(self):
        self.assertEqual(self.funnel("limit", "--group", "batch", "--sm", "25").returncode, 0)
        self.attach(group=b"batch")
        self.assertEqual(self.funnel("limit", "--group", "batch", "--sm", "none",
                                     "--memory", "none").returncode, 0)
        self.attach(group=b"batch")
        self.assertEqual([e["share"] for e in self.server_events("client")], [2500, 10000])

    def test_a_group_does_not_loosen_what_its_user_has(self):
        me = pwd.getpwuid(os.getuid()).pw_name
        self.funnel("limit", "--user", me, "--sm", "10")
        self.attach(group=b"batch")
        done = self.funnel("limit", "--group", "batch", "--sm", "90")
        self.assertIn(f"Client {os.getpid()}: 10.0 % of the SMs", done.stdout)
        self.funnel("limit", "--group", "batch", "--sm", "5")
        self.assertEqual([e["share"] for e in self.server_events("limits")], [1000, 500])

    def test_a_default_memory_limit_is_lifted(self):
        self.assertEqual(self.mps("set_default_device_pinned_mem_limit 0 2G\n"
                                  "get_default_device_pinned_mem_limit 0\n"
                                  "set_default_device_pinned_mem_limit 0 none\n"
                                  "get_default_device_pinned_mem_limit 0\n"), ["2G"])
        self.attach()
        self.assertEqual(self.server_events("client")[0]["memory"][0], 0)

    def test_the_limit_of_its_own_devices_is_shown(self):
        """The client of the fake server uses device 0; that of device 1 is not its own."""
        self.mps("set_default_device_pinned_mem_limit 0 4G\n"
                 "set_default_device_pinned_mem_limit 1 1G\n")
        self.attach()
        row = self.funnel("ps").stdout.splitlines()[1]
        self.assertIn("4.0 GiB", row)
        self.assertNotIn("1.0 GiB", row)

    def test_percentages(self):
        self.assertEqual(self.mps("set_default_active_thread_percentage 0.01\n"), ["0.01"])
        self.assertEqual(self.mps("set_default_active_thread_percentage 33.3\n"), ["33.3"])
        self.assertEqual(self.mps("set_default_active_thread_percentage 101\n"), ["100.0"])
        self.assertIn("Invalid value", self.mps("set_default_active_thread_percentage 0x20\n")[0])
        self.words("server create night")
        self.assertIn("at most 100",
                      self.words("server set night --active-thread-percentage=101", status=2)[0])

    # ---- servers of users ----

    def test_the_server_of_a_user_needs_no_creation(self):
        name = f"uid_{os.getuid()}"
        self.assertEqual(self.words(f"server set {name} --active-thread-percentage=25"), [])
        self.attach()
        self.assertEqual(self.server_events("client")[0]["share"], 2500)
        self.assertIn("created", self.words(f"namespace create batch --server={name}")[0])

    def test_partitions_of_the_server_of_a_user(self):
        name = f"uid_{os.getuid()}"
        self.attach().close()
        for option in ("--all", f"--server={name}"):
            rows = self.words(f"sm-partition list {option} --format=csv,noheader")
            self.assertEqual([row.split(",")[0] for row in rows], [name, name])
            self.assertEqual([row.split(",")[3:5] for row in rows], [["16", "132"], ["8", "66"]])
        wait_until(lambda: not self.words("client list --format=csv,noheader"))
        created = self.words(f"sm-partition create half --server={name} --device=0 --chunks=8")
        self.assertIn("(sm-count=64)", created[0])

    def test_a_server_that_does_not_exist(self):
        for line in ("server set day --client-priority=1", "namespace create x --server=day",
                     "server delete uid_7777", "server delete day"):
            self.assertIn("not found", self.words(line, status=1)[0])
        self.assertIn("cannot start a server" if os.geteuid() else "created",
                      self.words("namespace create x --server=uid_7777",
                                 status=1 if os.geteuid() else 0)[0])

    # ---- where things are ----

    def test_a_mistyped_server_starts_no_daemon(self):
        inside = {"CUDA_MPS_PIPE_DIRECTORY": os.path.join(self.pipe, "nigth")}
        done = self.funnel("run", "--", "true", environment=inside)
        self.assertEqual(done.returncode, 1)
        self.assertIn("has no server of the name nigth", done.stderr)
        self.assertFalse(os.path.exists(inside["CUDA_MPS_PIPE_DIRECTORY"]))

    def log_of_programs(self, **environment):
        done = self.funnel("run", "--no-start", "--", "printenv", "FUNNEL_LOG",
                           environment=environment)
        return done.stdout.strip()

    def test_log_of_programs(self):
        install_library(self.root)
        self.words("server create night")
        own = os.path.join(self.log, "client.log")
        self.assertEqual(self.log_of_programs(), own)
        inside = {"CUDA_MPS_PIPE_DIRECTORY": os.path.join(self.pipe, "night")}
        with open(own, "w") as file:
            file.write("what went wrong\n")
        self.assertEqual(self.log_of_programs(**inside), own)
        self.assertEqual(self.funnel("log", "--client", environment=inside).stdout,
                         "what went wrong\n")

    def test_prompt_and_partitions_without_static_partitioning(self):
        self.assertIn("-S", self.mps("sm_partition add 0 1\n")[1])


    # ---- what the front end can do ----

    def test_managed_by_the_front_end(self):
        """Servers, namespaces and partitions without nvidia-cuda-mps-control."""
        me = pwd.getpwuid(os.getuid()).pw_name
        done = self.funnel("server", "create", "night", "--allowed-devices", "0", "--uid", me)
        self.assertIn(f"CUDA_MPS_PIPE_DIRECTORY={self.pipe}/night", done.stdout)
        for arguments in (("server", "set", "night", "--active-thread-percentage=50"),
                          ("namespace", "create", "batch", "--server", "night"),
                          ("namespace", "set", "batch", "--server", "night",
                           "--pinned-memory-limit", "2G"),
                          ("partition", "create", "left", "--server=night", "--device", "0",
                           "--chunks", "2"),
                          ("memory", "set", "--audit_log", "true")):
            done = self.funnel(*arguments)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("night", self.funnel("server", "list").stdout)
        server, = self.funnel_json("server", "list", "night")
        self.assertEqual((server["uid"], server["pid"], server["allowed_devices"]),
                         (os.getuid(), None, 0))
        batch, = (space for space in self.funnel_json("namespace", "list")
                  if space["name"] == "batch")
        self.assertEqual((batch["server"], batch["pinned_memory_limit"]), ("night", "2G"))
        partition, = self.funnel_json("partition", "list", "--server", "night")
        self.assertEqual((partition["name"], partition["chunks"], partition["include_remainder"]),
                         ("left", 2, False))
        self.assertEqual(self.funnel_json("memory", "list"), [])
        for arguments in (("partition", "delete", "left", "--server=night", "--device=0"),
                          ("namespace", "delete", "batch", "--server", "night"),
                          ("server", "delete", "night", "--force")):
            done = self.funnel(*arguments)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.funnel_json("server", "list"), [])

    def test_limits_are_confirmed(self):
        """All that the client has from then on, and not only its share."""
        self.attach()
        me = str(os.getpid())
        self.assertEqual(self.funnel("limit", "--client", me, "--memory", "512M", "--device",
                                     "0").stdout,
                         f"Client {me}: 100.0 % of the SMs, normal priority, at most 512 MiB of "
                         "device 0\n")
        self.assertEqual(self.funnel("limit", "--client", me, "--memory", "none").stdout,
                         f"Client {me}: 100.0 % of the SMs, normal priority\n")

    def test_limits_in_json(self):
        me = pwd.getpwuid(os.getuid()).pw_name
        self.funnel("limit", "--user", me, "--sm", "12.5")
        limit, = (limit for limit in self.funnel_json("limits")["limits"]
                  if limit["scope"] == "user")
        self.assertEqual((limit["uid"], limit["user"], limit["sm_percent"]),
                         (os.getuid(), me, 12.5))

    def test_why_reads_records(self):
        """Neither the words of a line matter nor a process id or error in them."""
        with open(os.path.join(self.log, "server.log"), "w") as log:
            log.write('no fault at all\t{"client":4100001,"error":700}\n'
                      "Fatal GPU error (2): {PID: 4100001, Context ID: 1} last kernel is refused with status 2\n"
                      'Client {PID: 4100001, Context ID: 1} connected\t{"client":4100001}\n'
                      'of another one\t{"client":4100002,"error":2}\n'
                      'cut off\t{"client":4100001,"error":1\n')
        done = self.funnel("why", "4100001")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.splitlines()[:3],
                         [os.path.join(self.log, "server.log") + ":", "  no fault at all", ""])
        self.assertIn("CUDA_ERROR_ILLEGAL_ADDRESS (700): ", done.stdout)
        self.assertEqual(self.funnel("why", "4100003").returncode, 1)
        self.assertIn("CUDA_ERROR_ILLEGAL_ADDRESS (700)", self.funnel("why", "cuda_error_illegal_address").stdout)

    def test_wrong_words_to_manage(self):
        self.assertIn("there is no user nobody-of-this-name",
                      self.refused("server", "create", "a", "--uid", "nobody-of-this-name"))
        self.assertIn("wants a value", self.refused("server", "create", "a", "--uid"))
        self.assertIn("is not one word", self.refused("server", "create", "a\nquit"))
        self.assertIn('Unknown command "server destroy"', self.refused("server", "destroy", "a"))
        self.assertEqual(self.funnel("server").returncode, 2)
        self.assertIn("--allowed-devices=DEVICES",
                      self.funnel("server", "create", "--help").stdout)
        self.assertIn("Usage: funnel server create", self.funnel("server", "--help").stdout)

    def test_terminate(self):
        client = self.attach()
        done = self.funnel("terminate", str(os.getpid()))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("has lost the GPU", done.stdout)
        self.assertEqual(client.socket.recv(1), b"")
        self.assertIn("not found", self.refused("terminate", "99999999"))
        self.assertEqual(self.funnel("terminate").returncode, 2)
        self.assertEqual(self.funnel("terminate", "x").returncode, 2)

    def test_suspend(self):
        self.attach()
        self.assertIn("not found", self.refused("suspend", "99999999"))
        for order in ("suspend", "evict", "resume"):
            self.assertIn(f"is {order}", self.funnel(order, str(os.getpid())).stdout)
            self.assertEqual(self.funnel(order).returncode, 2)
            self.assertEqual(self.funnel(order, "x").returncode, 2)

    def test_json_for_people_and_programs(self):
        self.mps("set_default_active_thread_percentage 33.3\n")
        self.assertEqual(self.funnel_json("limits")["limits"][0]["sm_percent"], 33.3)
        self.assertIn('"sm_percent": 33.3,\n', self.funnel("limits", "--json").stdout)
        self.mps("set_default_active_thread_percentage 12.5\n")
        self.attach()
        client, = self.funnel_json("ps")
        self.assertEqual(client["sm_percent"], 12.5)
        self.assertEqual(client["user"], pwd.getpwuid(os.getuid()).pw_name)
        self.assertIsNone(client["devices"][0]["memory_limit"])
        server, = self.funnel_json("servers")
        self.assertEqual((server["sm_percent"], server["user"]),
                         (12.5, pwd.getpwuid(os.getuid()).pw_name))
        status = self.funnel_json("status")
        self.assertEqual((status["multiuser"], status["static_partitioning"]), (False, False))


class Foreign(Started):
    """Clients of another PID namespace have no process id that the daemon knows; their ID names
    them wherever a process id does. Here the daemon is in one of its own, where a server's process
    id is not the ID of a client, too."""

    def start(self, *arguments):
        daemon = subprocess.Popen(
            ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
             'echo 1000 >/proc/sys/kernel/ns_last_pid; exec "$@"', "sh",
             os.path.join(self.root, "bin/funneld"), "-f", *arguments],
            env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.processes.append(daemon)
        wait_until(lambda: self.listens() or daemon.poll() is not None, "the daemon's socket")
        if daemon.poll() is not None:
            self.skipTest("no PID namespace can be made here")

    def listens(self):
        """A socket has its path before it takes connections."""
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe:
                probe.connect(self.socket_path)
        except OSError:
            return False
        return True

    def daemon_pid(self):
        """It ends with its namespace."""
        return None

    def test_limits_by_id(self):
        self.attach()
        self.attach()
        done = self.funnel("provision", "equal")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.funnel("limit", "--client", "2", "--sm", "25").stdout,
                         "Client 2: 25.0 % of the SMs, normal priority\n")
        self.assertEqual([(e["id"], e["share"]) for e in self.server_events("limits")],
                         [(1, 5001), (2, 5001), (2, 2500)])

    def test_by_id(self):
        first, second = self.attach(), self.attach()
        self.assertEqual([line.split()[:2] for line in self.mps("ps\n")[1:]],
                         [["0", "1"], ["0", "2"]])
        self.assertEqual([line.split()[1] for line in self.mps("ps -p 2\n")[1:]], ["2"])
        self.assertEqual(self.words("client get 2 server"), [f"uid_{os.getuid()}"])
        server, = self.servers()
        self.assertEqual(self.mps(f"terminate_client {server} 1\n"), ["0"])
        self.assertEqual(first.socket.recv(1), b"")
        self.assertEqual(self.words("client terminate 2"), ["0"])
        self.assertEqual(second.socket.recv(1), b"")
        self.assertEqual(self.words("client terminate 2", status=1), ["Client 2 not found"])


class Starts(harness.TestCase):
    def test_modes_are_shown(self):
        self.start("--device", "soft", "--static-partitioning")
        self.assertIn("mode:           static partitioning", self.funnel("status").stdout)
        self.assertTrue(self.funnel_json("status")["static_partitioning"])

    def test_servers_of_a_file(self):
        path = os.path.join(self.root, "servers.toml")
        with open(path, "w") as file:
            file.write("[servers.night]\n")
        done = self.funnel("start", "--device", "soft", "--apply", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([s["name"] for s in self.funnel_json("servers")], ["night"])

    def test_a_driver_that_does_not_work(self):
        nothing = {"FUNNEL_DRIVER": "/nonexistent/libcuda.so.1"}
        done = self.funnel("start", "--device", "cuda", environment=nothing)
        self.assertEqual(done.returncode, 1)
        self.assertIn("NVIDIA's driver does not work here", done.stderr)
        self.assertIsNone(self.daemon_pid())
        done = self.funnel("start", environment=nothing)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("device: auto, which is the software GPU here", done.stdout)

    def test_nvidias_front_end_says_so(self):
        nothing = {"FUNNEL_DRIVER": "/nonexistent/libcuda.so.1"}
        done = self.run_program("nvidia-cuda-mps-control", "-d", environment=nothing)
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertIn("software GPU", done.stderr)

    def test_version_3_says_how_to_connect(self):
        done = self.run_program("nvidia-cuda-mps-control", "-p", "3", "-d",
                                environment={"FUNNEL_DEVICE": "soft"})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn(f"set env CUDA_MPS_PIPE_DIRECTORY={self.pipe}\n", done.stdout)

    def test_the_reason_of_a_failed_start(self):
        """The log may be on the disk that is full, so the user who starts the daemon is told."""
        os.makedirs(os.path.join(self.pipe, "nvidia-cuda-mps-control.pid"), 0o700)
        done = self.run_program("funneld", "-d")
        self.assertEqual(done.returncode, 1)
        self.assertIn("Cannot write nvidia-cuda-mps-control.pid in the pipe directory", done.stderr)
        self.assertIn("File exists", done.stderr)


@unittest.skipIf(os.geteuid() != 0, "needs root, to be two users")
class Users(harness.TestCase):
    def funnel_as(self, uid, *arguments, **environment):
        return self.funnel(*arguments, user=uid, group=uid, extra_groups=[],
                           environment=environment)

    def client_of(self, uid):
        """A program of that user: its process id, once it is welcome."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            harness.become_user(uid)
            client = harness.Client(self.socket_path)
            os.write(writing, repr(client.welcome()).encode())
            signal.pause()
            os._exit(0)
        self.addCleanup(os.waitpid, child, 0)
        self.addCleanup(os.kill, child, signal.SIGKILL)
        os.close(writing)
        with os.fdopen(reading) as file:
            self.assertEqual(file.read(7), "(0, '')")
        return child

    def test_stop_without_rights(self):
        self.start("--device", "soft")
        for options in ((), ("--force",), ("--wait",)):
            done = self.funnel_as(2001, "stop", *options)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn("Permission denied", done.stderr)
        self.assertTrue(harness.alive(self.daemon_pid()))

    def test_a_servers_log_is_its_users(self):
        """It has full command lines, and what other programs print."""
        self.start("--device", "soft")
        self.client_of(2001)
        wait_until(lambda: self.server_events("client", "uid_2001"), "the log of the server")
        shown = self.funnel_as(2001, "log", "--server=uid_2001")
        self.assertIn('"event": "client"', shown.stdout, shown.stderr)
        self.assertIn('"event": "client"', self.funnel("log", "--server=uid_2001").stdout)
        for user, arguments in ((2002, ("--server=uid_2001",)), (2001, ("--daemon",)), (2001, ("--server",))):
            shown = self.funnel_as(user, "log", *arguments)
            self.assertEqual((shown.returncode, shown.stdout), (1, ""))

    def test_large_user_ids_in_json(self):
        """Those above 2^31 are numbers of users as well; they were printed as negative ones."""
        uid = 3000000000
        self.start("--device", "soft")
        self.client_of(uid)
        status = self.funnel_json("status")
        self.assertEqual([server["uid"] for server in status["servers"]], [uid])
        self.assertEqual([client["uid"] for client in status["clients"]], [uid])

    def test_one_server_for_all_users(self):
        """A user sees that server, and of its programs only the user's own."""
        self.start("--multiuser-server", "--device", "soft")
        self.assertEqual(self.client().welcome(), (0, ""))
        pid = self.client_of(2001)
        self.assertIn(" is active", self.funnel_as(2001, "status").stdout)
        lines = self.funnel_as(2001, "ps").stdout.splitlines()[1:]
        self.assertEqual([line.split()[0] for line in lines], [str(pid)])
        self.assertEqual(len(self.funnel("ps").stdout.splitlines()), 3)
        done = self.run_program("nvidia-cuda-mps-control", input="ps\n", user=2001, group=2001,
                                extra_groups=[])
        self.assertEqual([line.split()[0] for line in done.stdout.splitlines()[1:]], [str(pid)])

    def test_users_suspend_their_own_programs(self):
        for option in ((), ("--multiuser-server",)):
            self.start(*option, "--device", "soft")
            pid = str(self.client_of(2001))
            for words in (("suspend", pid), ("evict", pid), ("resume", pid),
                          ("migrate", pid, "--device", "0")):
                done = self.funnel_as(2002, *words)
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertIn(f"Client {pid} not found", done.stderr)
            self.sees_no_client_to_checkpoint(2002, pid)
            self.assertIn("is suspended", self.funnel_as(2001, "suspend", pid).stdout)
            self.assertIn("is resumed", self.funnel("resume", pid).stdout)
            self.assertEqual(self.funnel("stop", "--force").returncode, 0)

    def sees_no_client_to_checkpoint(self, uid, pid):
        """The front end finds none, and the daemon does not rely on that."""
        with tempfile.TemporaryDirectory() as home:
            os.chown(home, uid, uid)
            for options in ((), ("--stop",), ("--detach",), ("--store", home + "/store")):
                done = self.funnel_as(uid, "checkpoint", *options, pid, home + "/place")
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertIn(f"no program {pid}", done.stderr)
                self.assertNotIn("place", os.listdir(home))
        for order in ("checkpoint", "suspend", "detach", "lock", "resume"):
            done = self.run_program("nvidia-cuda-mps-control", input=f"{order} {pid}\n", user=uid,
                                    group=uid, extra_groups=[])
            self.assertIn(f"Client {pid} not found", done.stdout + done.stderr)

    def test_users_trace_their_own_servers(self):
        self.start("--device", "soft")
        self.assertEqual(self.client().welcome(), (0, ""))
        done = self.funnel_as(2001, "trace", "--seconds", "1", "--summary")
        self.assertEqual(done.returncode, 1)
        self.assertIn("No server of yours runs", done.stderr)

    def test_log_of_a_users_programs(self):
        """Users may not write to the log directory of root's daemon."""
        home = os.path.join(self.root, "home")
        os.mkdir(home)
        os.chown(home, 2001, 2001)
        install_library(self.root)
        self.start("--device", "soft")
        done = self.funnel_as(2001, "run", "--no-start", "--", "printenv", "FUNNEL_LOG", HOME=home,
                              XDG_STATE_HOME="")
        log = os.path.join(home, ".local/state/funnel/client.log")
        self.assertEqual(done.stdout.strip(), log, done.stderr)
        with open(log, "w") as file:
            file.write("what went wrong\n")
        self.assertEqual(self.funnel_as(2001, "log", "--client", HOME=home,
                                        XDG_STATE_HOME="").stdout,
                         "what went wrong\n")


if __name__ == "__main__":
    harness.main()

# SPDX-License-Identifier: Apache-2.0
"""The configuration file of MPS v3: what it creates, and what is said about one that is wrong."""
import os

import harness
from harness import Client

WHOLE = """# Servers of this machine
schema_version = "1.0"

[servers.training]
allowed_devices = ["0",   # ordinals and UUIDs
                   "GPU-00112233",]
active_thread_percentage = 60
pinned_memory_limit = '8G'
locality_domains = false

[servers.training.namespaces.batch]
active_thread_percentage = 20
client_priority = 1
show_limit = true

[servers.training.namespaces.default]
client_priority = 0

[ servers . "inference" ]
uid = %d

[[servers.inference.devices]]
uuid = "GPU-00010203"

[[servers.inference.devices.sm_partitions]]
name = "small"
chunks = 2

[[servers.inference.devices.sm_partitions]]
name = "large"
chunks = 10
include_remainder = true

[[servers.inference.devices]]
uuid = "GPU-10111213"

[[servers.inference.devices.sm_partitions]]
name = "small"
chunks = 1

[features.memacct]
enabled = true
audit_log = false

[features.context-share]
enabled = false
""" % os.getuid()


class Config(harness.TestCase):
    def write(self, text):
        path = os.path.join(self.root, "mps.toml")
        with open(path, "w") as file:
            file.write(text)
        return path

    def words(self, line):
        done = self.run_program("nvidia-cuda-mps-control", *line.split())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout.splitlines()

    def test_servers_and_namespaces(self):
        for options in (("-a", self.write(WHOLE)), ("--apply=" + self.write(WHOLE),)):
            done = self.run_program("nvidia-cuda-mps-control", "-d", "-p", "3", *options)
            self.assertEqual(done.returncode, 0, done.stderr)
            rows = self.words("namespace list --format=csv,noheader")
            self.assertEqual([",".join(row.split(",")[:6]) for row in rows],
                             ["default,training,Stopped,8G,60,0", "batch,training,Stopped,-,20,1",
                              "default,inference,Stopped,-,-,-"])
            self.assertEqual(self.words("server get training allowed-devices"), ["0,GPU-00112233"])
            client = Client(os.path.join(self.pipe, "training", "batch", "funnel"))
            self.addCleanup(client.close)
            self.assertEqual(client.welcome(), (0, ""))
            self.assertEqual(self.server_events("client", "training")[-1]["share"], 2000)
            self.assertIn("totals that show the limit", self.control_log())
            client.close()
            self.mps("quit\n")

    def test_partitions(self):
        done = self.run_program("nvidia-cuda-mps-control", "-d", "-a", self.write(WHOLE))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.words("memacct describe --format=csv,noheader"), ["audit_log,false"])
        rows = [row.split(",") for row in self.words("sm-partition list --format=csv,noheader")]
        self.assertEqual([row[:7] for row in rows],
                         [["inference", "GPU-00010203", "small", "2", "-", "false", "configured"],
                          ["inference", "GPU-00010203", "large", "10", "-", "true", "configured"],
                          ["inference", "GPU-10111213", "small", "1", "-", "false", "configured"]])
        client = Client(os.path.join(self.pipe, "inference", "funnel"),
                        partition=rows[1][7].encode())
        self.addCleanup(client.close)
        self.assertEqual(client.welcome(), (0, ""))
        rows = [row.split(",") for row in self.words("sm-partition list --format=csv,noheader")]
        self.assertEqual([row[2:7] for row in rows],
                         [["small", "2", "16", "false", "created"],
                          ["large", "10", "84", "true", "created"],
                          ["small", "1", "8", "false", "created"],
                          ["-", "4", "32", "-", "unallocated"],
                          ["-", "7", "58", "-", "unallocated"]])

    def test_example_of_the_documentation(self):
        with open(os.path.join(harness.HERE, "../../docs/servers.md")) as file:
            text = file.read()
        example = text[text.index("    schema_version"):text.index("It is given to the daemon")]
        done = self.run_program("nvidia-cuda-mps-control", "-d", "-a",
                                self.write("\n".join(line[4:] for line in example.splitlines())))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.words("server list")), 3)
        self.assertEqual(len(self.words("namespace list --server=night")), 3)
        self.assertEqual(len(self.words("sm-partition list")), 2)

    def test_other_ways_to_write_the_same(self):
        """Dotted keys, tables in a line, tables that only hold tables, in any order."""
        plain = ('[servers.a]\nclient_priority = 1\nallowed_devices = ["0"]\n'
                 '[servers.a.namespaces.x]\nactive_thread_percentage = 25\n'
                 '[servers.b]\npinned_memory_limit = "4G"\n')
        other = ('[servers]\nb = {pinned_memory_limit = "4G"}\n'
                 'a.namespaces."x" = {active_thread_percentage = 0x19}\n'
                 "a.client_priority = 1 # one\na.allowed_devices = [\n'0',\n]\n")
        answers = []
        for text in (plain, other):
            self.start("-a", self.write(text))
            answers.append((sorted(self.words("server list")), sorted(self.words("namespace list")),
                            sorted(map(str, self.funnel_json("limits")["limits"]))))
            self.mps("quit\n")
        self.assertEqual(answers[0], answers[1])
        self.assertIn("25", str(answers[0]))

    def test_memory_of_users_and_groups(self):
        self.start("-a", self.write('[servers.a]\nevict_after = 600\n'
                                    '[groups.notebooks]\nevict_after = 300\njoint_memory = "24G"\n'))
        limits = {row.get("group", row.get("server")): row for row in self.funnel_json("limits")["limits"]}
        self.assertEqual(limits["a"]["evict_after"], 600)
        self.assertEqual(limits["notebooks"]["evict_after"], 300)
        self.assertEqual(limits["notebooks"]["joint_memory_limit"], 24 << 30)
        self.assertEqual(self.words("server set a --evict-after=none"), [])
        self.assertEqual([row.get("evict_after") for row in self.funnel_json("limits")["limits"]
                          if row.get("namespace") == "default"], [0])

    def test_time_slices(self):
        """Those of a policy, until a percentage divides five of them."""
        self.start("-a", self.write('[compute_policy]\ntimeslice = "medium"\n'
                                    'timeslice_yield_level = 2\n[servers.a]\n[servers.b]\n'
                                    '[features.memacct]\nforce_polling = true\n'))
        for name in ("a", "b"):
            client = Client(os.path.join(self.pipe, name, "funnel"))
            self.addCleanup(client.close)
            self.assertEqual(client.welcome(), (0, ""))
        slices = lambda: [[event["us"] for event in self.server_events("timeslice", name)]
                          for name in ("a", "b")]
        harness.wait_until(lambda: slices() == [[5000], [5000]])
        self.words("server set a --timeslice-pct=60")
        harness.wait_until(lambda: slices() == [[5000, 15000], [5000, 10000]])
        log = self.control_log()
        self.assertIn("timeslice_yield_level = 2 has no effect", log)
        self.assertIn("force_polling has no effect", log)

    def test_relative_path(self):
        self.write(WHOLE)
        done = self.run_program("nvidia-cuda-mps-control", "-d", "-a", "mps.toml", cwd=self.root)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_wrong(self):
        """The daemon does not start, and leaves nothing behind."""
        for line, text in (
                (1, 'schema_version = "2.0"'), (1, "color = 1"), (1, "[server.a]"),
                (1, "[servers.a.devices.x]"), (2, "[servers]\ncolor = 1"),
                (2, "[servers]\na = 1"), (1, 'servers.a = {color = 1}'),
                (1, "servers.a.devices = [{uuid = '0'}, 1]"),
                (1, "servers.a.devices = [{uuid = '0', sm_partitions = [{name = 'x'}]}]"),
                (1, "servers.a.allowed_devices = [[0]]"),
                (2, "[servers.a]\nallowed_devices = '" + "0," * 300 + "'"),
                (2, "[servers.a]\ncolor = 1"), (2, "[servers.a]\nactive_thread_percentage = 0"),
                (2, "[servers.a]\nactive-thread-percentage = 10"),
                (2, "[servers.a]\nclient_priority = 2"),
                (2, "[servers.a]\npinned_memory_limit = 4G"),
                (2, '[servers.a]\npinned_memory_limit = "4"'),
                (2, "[servers.a]\nlocality_domains = true"),
                (2, '[servers.a]\nallowed_devices = ["a b"]'), (3, "[servers.a]\n\n[servers.a]"),
                (3, "[servers.a]\nclient_priority = 1\nclient_priority = 1"),
                (2, "[servers.a.namespaces.b]\nuid = 0"), (1, "[servers.Big]"), (1, "[servers.a"),
                (1, "[servers.uid_7777]\nuid = 1"), (1, "[features.x]"), (1, "[servers.a.devices]"),
                (2, "[features.memacct]\nenabled = false"),
                (2, "[features.context-share]\nenabled = true"),
                (2, '[features.context-share]\ndefault_socket = "/tmp/x"'),
                (1, "[[servers.a.devices.sm_partitions]]"),
                (2, "[[servers.a.devices]]\nordinal = 1"),
                (4, '[[servers.a.devices]]\nuuid = '
                    '"0"\n[[servers.a.devices.sm_partitions]]\nchunks = 0'),
                (4, '[[servers.a.devices]]\nuuid = "0"\n[[servers.a.devices.sm_partitions]]\nname '
                    '= "a-b"'),
                (3, '[[servers.a.devices]]\nuuid = '
                    '"0"\n[[servers.a.devices.sm_partitions]]\nchunks = 1\n'
                    '[servers.b]'),
                (7, '[[servers.a.devices]]\nuuid = "0"\n' +
                    '[[servers.a.devices.sm_partitions]]\nname = "x"\nchunks = 1\n' * 2),
                (1, 'schema_version = "1.0'), (1, 'schema_version = "1.0" x'), (1, "x"), (1, "= 1"),
                (2, "[servers.a]\nallowed_devices = [0 1]"),
                (2, "[servers.a]\nallowed_devices = [0"),
                (1, "a.b.c = 1"), (1, "[a.b.c.d.e.f.g.h.i]"), (1, "x" * 300 + " = 1")):
            if text.startswith("[servers.uid_7777]") and os.geteuid() == 0:
                line = 2
            done = self.run_program("nvidia-cuda-mps-control", "-d", "-a", self.write(text))
            self.assertEqual(done.returncode, 1, text)
            self.assertIn(f"mps.toml, line {line}: ", done.stderr, text)
            self.assertIsNone(self.daemon_pid())
            self.assertFalse(os.path.exists(os.path.join(self.pipe, "a")))

    def test_unreadable(self):
        for path in ("/nowhere", self.root, "/dev/zero"):
            done = self.run_program("nvidia-cuda-mps-control", "-d", "-a", path)
            self.assertEqual(done.returncode, 1)
            self.assertIn("Cannot read", done.stderr)
        done = self.run_program("nvidia-cuda-mps-control", "-a", "x")
        self.assertEqual((done.returncode, done.stderr), (1, "-a goes with -d or -f\n"))


if __name__ == "__main__":
    harness.main()

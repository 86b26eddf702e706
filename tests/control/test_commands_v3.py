# SPDX-License-Identifier: Apache-2.0
"""Commands of MPS v3 on the command line: tables, comma-separated values, single fields,
statuses."""
import csv
import os

import harness


class CommandsV3(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.start("--device", "soft")
        client = self.client()
        self.assertEqual(client.welcome(), (0, ""))
        self.server, = self.servers()
        self.name = f"uid_{os.getuid()}"

    def words(self, *words, status=0):
        done = self.run_program("nvidia-cuda-mps-control", *words)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout.splitlines()

    def test_server_list(self):
        row = [self.name, str(os.getuid()), str(self.server), "Ready", self.pipe, "all", "-"]
        titles = "name,uid,pid,status,pipe-directory,allowed-devices,context-ids"
        self.assertEqual(self.words("server", "list", "--format=csv"), [titles, ",".join(row)])
        self.assertEqual(self.words("server", "list", self.name, "format=csv,noheader"),
                         [",".join(row)])
        header, line = self.words("server", "list")
        self.assertEqual((header.split(), line.split()), (titles.upper().split(","), row))
        self.assertEqual(header.index("STATUS"), line.index("Ready"))
        self.assertEqual(self.mps("server list --format=csv,noheader\n"), [",".join(row)])

    def test_server_get(self):
        for field, value in (("pid", str(self.server)), ("status", "Ready"), ("name", self.name),
                             ("pipe-directory", self.pipe)):
            self.assertEqual(self.words("server", "get", self.name, field), [value])
        self.assertEqual(self.words("server", "get", self.name, "x", status=2),
                         ["There is no field 'x'"])
        self.assertEqual(self.words("server", "get", "unknown", "pid", status=1),
                         ["Server 'unknown' not found"])

    def test_clients(self):
        line, = self.words("client", "list", "--server=" + self.name, "--format=csv,noheader")
        self.assertEqual(next(csv.reader([line]))[:4],
                         [str(os.getpid()), self.name, "0", "default"])
        self.assertEqual(len(self.words("client", "list", "--all")), 2)
        space = str(os.stat("/proc/self/ns/pid").st_ino)
        for field, value in (("device", "0"), ("linux-ns", space), ("pci-id", "0000:01:00.0")):
            self.assertEqual(self.words("client", "get", str(os.getpid()), field), [value])
        self.assertEqual(self.words("client", "terminate", "1", status=1), ["Client 1 not found"])
        self.assertEqual(self.words("client", "terminate", str(os.getpid())), ["0"])

    def test_devices(self):
        rows = list(csv.reader(self.words("device", "list", "--format=csv")))
        self.assertEqual(rows[0],
                         ["Ordinal", "Server", "PCI ID", "Device UUID", "Name", "Total SMs",
                          "Total Chunks", "Attributes"])
        self.assertEqual([row[5:7] for row in rows[1:]], [["132", "16"], ["66", "8"]])

    def test_features(self):
        self.assertEqual([line.split("  ")[0] for line in self.words("feature", "describe")],
                         ["FEATURE", "memacct", "context-share"])
        self.assertEqual(self.words("feature", "describe", "memacct", "--format=csv,noheader"),
                         ["memacct,enabled (default),memacct,device memory of each client"])
        self.assertEqual(self.words("feature", "enable", "memacct"), [])
        self.assertTrue(self.words("feature", "disable", "memacct", status=1))
        self.assertEqual(self.words("feature", "disable", "context-share"), [])
        self.assertTrue(self.words("feature", "enable", "context-share", status=1))

    def test_memory_accounting(self):
        rows = list(csv.reader(self.words("memacct", "list", "--format=csv")))
        self.assertEqual(rows[0],
                         ["server", "device", "pid", "namespace", "memory-used", "memory-peak",
                          "memory-limit", "cmd"])
        self.assertEqual(rows[1][:7],
                         [self.name, "0", str(os.getpid()), "default", "1048576", "2097152", "-"])
        self.assertEqual(rows[2], [self.name, "0", "-", "-", str(1 << 34), "-", str(1 << 34),
                                   "(the whole device)"])
        self.assertIn("16.0G", self.words("memacct", "list", "--server=" + self.name)[2])
        self.assertEqual(self.words("memacct", "list", "--server=x", status=1),
                         ["Server 'x' not found"])

    def test_audit_log(self):
        def described():
            return self.words("memacct", "describe", "--format=csv,noheader")
        self.assertEqual(described(), ["audit_log,false (default)"])
        second = self.client()
        self.assertEqual(second.welcome(), (0, ""))
        second.close()
        harness.wait_until(lambda: len(self.words("client", "list")) == 2)
        self.assertNotIn("Audit:", self.control_log())
        self.assertEqual(self.words("memacct", "set", "audit_log=true"), [])
        self.assertEqual(described(), ["audit_log,true"])
        self.words("client", "terminate", str(os.getpid()))
        self.assertIn(f"Audit: client {os.getpid()} (id 1) of server {self.name} held at most "
                      f"3145728 bytes "
                      "of device 0", self.control_log())
        self.assertIn("met its memory limit 5 times", self.control_log())
        self.assertEqual(self.words("memacct", "set", "--audit_log=false"), [])
        self.assertEqual(described(), ["audit_log,false"])

    def test_context_share(self):
        for words in (["describe"], ["set", "default_socket=x"]):
            self.assertIn("not supported", self.words("context-share", *words, status=1)[0])

    def test_wrong_command_lines(self):
        for words in (["server"], ["server", "crate", "x"], ["server", "list", "a b"],
                      ["-d", "server", "list"], ["server", "list", "x" * 5000]):
            done = self.run_program("nvidia-cuda-mps-control", *words, input="")
            self.assertIn(done.returncode, (1, 2))
            self.assertTrue(done.stdout + done.stderr, words)


class Help(harness.TestCase):
    """Help needs no daemon."""

    def help(self, *words, status=0):
        done = self.run_program("nvidia-cuda-mps-control", *words)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout

    def test_of_a_command(self):
        usage = "Usage: server create [NAME] [--uid=UID]"
        for words in (["server", "create", "help"], ["help", "server", "create"],
                      ["server", "create", "x", "--help"]):
            text = self.help(*words)
            self.assertIn(usage, text)
            self.assertRegex(text, r"--uid=UID +a user id; may be left out")
        self.assertIn("Usage: ps [-p CLIENT]", self.help("help", "ps"))

    def test_of_a_module(self):
        for words in (["server", "help"], ["help", "server"], ["server", "--help"]):
            lines = self.help(*words).splitlines()
            self.assertEqual([line.split()[1] for line in lines[::2]],
                             ["list", "get", "create", "set", "delete"])

    def test_of_all(self):
        text = self.help("help")
        self.assertIn(text, self.help("-h"))
        for name in ("terminate_client SERVER CLIENT", "namespace set", "memacct list"):
            self.assertIn(name, text)

    def test_of_nothing(self):
        for words in (["help", "nonsense"], ["nonsense", "--help"], ["help", "x" * 100]):
            self.assertIn("no such command", self.help(*words, status=2))

    def test_in_the_shell(self):
        self.start("--device", "soft")
        self.assertIn("Commands:", self.mps("help\n"))
        self.assertIn("Usage: server list [NAME] [--format=FORMAT]", self.mps("server list help\n"))
        self.assertNotIn("help", self.control_log())


if __name__ == "__main__":
    harness.main()

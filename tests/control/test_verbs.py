# SPDX-License-Identifier: Apache-2.0
"""Commands of MPS v3 on the command line: tables, comma-separated values, single fields, statuses."""
import csv
import os

import harness


class Verbs(harness.TestCase):
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
        self.assertEqual(self.words("server", "list", self.name, "format=csv,noheader"), [",".join(row)])
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
        self.assertEqual(self.words("server", "get", "nobody", "pid", status=1),
                         ["Server 'nobody' not found"])

    def test_clients(self):
        line, = self.words("client", "list", "--server=" + self.name, "--format=csv,noheader")
        self.assertEqual(next(csv.reader([line]))[:4], [str(os.getpid()), self.name, "0", "default"])
        self.assertEqual(len(self.words("client", "list", "--all")), 2)
        space = str(os.stat("/proc/self/ns/pid").st_ino)
        for field, value in (("device", "0"), ("linux-ns", space), ("pci-id", "0000:01:00.0")):
            self.assertEqual(self.words("client", "get", str(os.getpid()), field), [value])
        self.assertEqual(self.words("client", "terminate", "1", status=1), ["Client 1 not found"])
        self.assertEqual(self.words("client", "terminate", str(os.getpid())), ["0"])

    def test_devices(self):
        rows = list(csv.reader(self.words("device", "list", "--format=csv")))
        self.assertEqual(rows[0], ["Ordinal", "Server", "PCI ID", "Device UUID", "Name", "Total SMs",
                                   "Total Chunks", "Attributes"])
        self.assertEqual([row[5:7] for row in rows[1:]], [["132", "16"], ["66", "8"]])

    def test_wrong_command_lines(self):
        for words in (["server"], ["server", "crate", "x"], ["server", "list", "a b"],
                      ["-d", "server", "list"], ["server", "list", "x" * 5000]):
            done = self.run_program("nvidia-cuda-mps-control", *words, input="")
            self.assertIn(done.returncode, (1, 2))
            self.assertTrue(done.stdout + done.stderr, words)


if __name__ == "__main__":
    harness.main()

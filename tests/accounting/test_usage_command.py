# SPDX-License-Identifier: Apache-2.0
"""funnel usage: sums over usage.jsonl and the older files beside it, checked against the lines."""
import csv
import io
import json
import os
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../control"))

import harness  # noqa: E402  (found through the path above)
from harness import wait_until  # noqa: E402

HOUR = 3600
DAY = 24 * HOUR


def line(user, group, ended, gpu=1.0, sm=8.0, **more):
    return {"since": ended - 60, "ended": ended, "clients": 1, "failed": 0, "status": 0, "pid": 7,
            "id": 1, "uid": 1000, "user": user, "server_name": "uid_1000", "command": "x",
            "group": group, "namespace": "", "launches": 10, "copies": 1,
            "copied_to_device_bytes": 100, "copied_from_device_bytes": 20, "copied_within_bytes": 3,
            "stalls": 0, "stalled_seconds": 0.5,
            "devices": [{"ordinal": 0, "uuid": "GPU-1", "gpu_seconds": gpu, "sm_seconds": sm,
                         "memory_peak": 1 << 20}], **more}


class UsageCommandTest(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.now = int(time.time())
        os.makedirs(self.log)

    def write(self, lines, suffix=""):
        with open(os.path.join(self.log, "usage.jsonl" + suffix), "w") as file:
            file.writelines(one if isinstance(one, str) else json.dumps(one) + "\n" for one in lines)

    def usage(self, *arguments):
        return self.funnel_json("usage", *arguments)["usage"]

    def users(self, *arguments):
        return {row["user"]: row["clients"] for row in self.usage(*arguments)}

    def test_sums(self):
        self.write([line("alice", "batch", self.now - 10, gpu=2, sm=16),
                    line("bob", "", self.now - 9, failed=1, status=700),
                    line("alice", "batch", self.now - 8, gpu=1, sm=4),
                    line("alice", "a,\"b", self.now - 7, clients=5)])
        alice, bob = self.usage()
        self.assertEqual(alice, {"user": "alice", "clients": 7, "failed": 0, "gpu_seconds": 4,
                                 "sm_seconds": 28, "memory_peak": 1 << 20, "launches": 30,
                                 "copied_bytes": 369, "stalled_seconds": 1.5})
        self.assertEqual((bob["user"], bob["failed"]), ("bob", 1))
        rows = self.usage("--by", "group,user")
        self.assertEqual([(row["group"], row["user"], row["clients"]) for row in rows],
                         [("batch", "alice", 2), ("", "bob", 1), ("a,\"b", "alice", 5)])
        done = self.funnel("usage", "--by", "user,group", "--csv")
        table = list(csv.DictReader(io.StringIO(done.stdout)))
        self.assertEqual({(row["user"], row["group"], row["clients"]) for row in table},
                         {("alice", "batch", "2"), ("bob", "", "1"), ("alice", "a,\"b", "5")})
        self.assertEqual(list(table[0])[2:], list(alice)[1:])
        text = self.funnel("usage", "--by", "user,group").stdout.splitlines()
        self.assertEqual(len({len(row) for row in text}), 1, text)  # figures are right-aligned
        self.assertEqual(text[0].split()[:4], ["USER", "GROUP", "PROGRAMS", "FAILED"])
        self.assertEqual(text[-1].split()[:3], ["all", "8", "1"])

    def test_period(self):
        self.write([line(f"h{hours}", "", self.now - hours * HOUR) for hours in (1, 30, 24 * 8)])
        self.assertEqual(set(self.users()), {"h1", "h30", "h192"})
        for since, users in (("7d", {"h1", "h30"}), ("2w", {"h1", "h30", "h192"}), ("12h", {"h1"}),
                             ("5m", set())):
            self.assertEqual(set(self.users("--since", since)), users, since)
        self.assertEqual(set(self.users("--since", "7d", "--until", "12h")), {"h30"})
        day = time.strftime("%Y-%m-%d", time.localtime(self.now - 30 * HOUR))
        after = time.strftime("%Y-%m-%d", time.localtime(self.now + DAY))
        self.assertIn("h30", self.users("--since", day))
        self.assertIn("h30", [row["user"] for row in self.usage("--by", "user,day")
                              if row["day"] == day])
        self.assertEqual(self.users("--since", after, "--until", "2200-01-01"), {})
        for wrong in (["--since", "7"], ["--since", "7y"], ["--since", "-1d"], ["--since", "d"],
                      ["--since", "2026-02-31"], ["--since", "2026-01-01x"],
                      ["--since", "999999999999d"], ["--since", "1h", "--until", "2h"],
                      ["--by", "color"], ["--by", ""], ["--by", "user,"], ["--by", "user,user"],
                      ["--csv", "--json"], ["x"], ["--since"]):
            self.assertEqual(self.funnel("usage", *wrong).returncode, 2, wrong)

    def test_files(self):
        """Older ones count, and neither a line that is damaged nor one that is being written ends it."""
        self.write([line("old", "", self.now - 50)], ".4")
        self.write([line("older", "", self.now - 60), "{\"ended\": 5", "\n", "[]\n"], ".1")
        self.write([line("new", "", self.now - 5), json.dumps(line("half", "", self.now))])
        done = self.funnel("usage", "--csv")
        self.assertEqual(done.returncode, 0)
        self.assertEqual({row.split(",")[0] for row in done.stdout.splitlines()[1:]},
                         {"old", "older", "new"})
        self.assertIn("2 lines of the journal in", done.stderr)

    def test_hostile_names(self):
        self.write([line("\u001b[2Jevil", "\n\r\u0007x", self.now - 5)])
        done = self.funnel("usage", "--by", "user,group")
        self.assertNotIn("\x1b", done.stdout)
        self.assertEqual(len(done.stdout.splitlines()), 3)

    def test_of_the_daemon(self):
        self.start()
        client = self.client()
        self.assertEqual(client.welcome()[0], 0)
        client.close()
        wait_until(self.usage, "the line")
        row, = self.usage()
        self.assertEqual((row["clients"], row["gpu_seconds"], row["sm_seconds"]), (1, 0.5, 30))
        self.assertEqual(self.funnel("usage", "--by", "user,server").returncode, 0)

    def test_nothing_yet(self):
        self.assertEqual(self.usage(), [])
        self.assertEqual(self.funnel("usage", "--csv").stdout.count("\n"), 1)

    @unittest.skipIf(os.geteuid() != 0, "needs root, to be another user")
    def test_another_user(self):
        self.write([line("alice", "", self.now - 5)])
        os.chmod(os.path.join(self.log, "usage.jsonl"), 0o600)
        done = subprocess.run([os.path.join(self.root, "bin/funnel"), "usage"], text=True, user=65534,
                              env=self.environment, capture_output=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("only the daemon's user (root) may read", done.stderr)


if __name__ == "__main__":
    harness.main()

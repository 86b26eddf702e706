# SPDX-License-Identifier: Apache-2.0
"""The specification that `funnel cdi` writes, by the rules of CDI 0.5, and what it names:
test_cdi.py BUILD. tests/fleet/scene_containers.py has podman read it."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else pathlib.Path("build")


def cdi(*arguments, pipe="/run/somewhere"):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("CUDA_", "FUNNEL_"))}
    return subprocess.run([BUILD / "bin/funnel", "cdi", *arguments], stdout=subprocess.PIPE,
                          env={**clean, "CUDA_MPS_PIPE_DIRECTORY": pipe}, stderr=subprocess.STDOUT,
                          text=True, timeout=60)


class Specification(unittest.TestCase):
    def test_rules(self):
        done = cdi("--shares", "25,50")
        self.assertEqual(done.returncode, 0, done.stdout)
        text = json.loads(done.stdout)
        self.assertRegex(text["kind"], r"^[a-zA-Z][\w.-]*[a-zA-Z0-9]/[a-zA-Z][\w-]*$")
        self.assertEqual([row["name"] for row in text["devices"]], ["all", "share-25", "share-50"])
        self.assertIn("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25",
                      text["devices"][1]["containerEdits"]["env"])
        self.assertIn("FUNNEL_DAEMON_UID=65534", text["containerEdits"]["env"])
        for row in [text, *text["devices"]]:
            for variable in row["containerEdits"].get("env", []):
                self.assertTrue(re.match(r"^[A-Z_]+=.", variable), variable)
        for mount in text["containerEdits"]["mounts"]:
            self.assertTrue(os.path.isabs(mount["containerPath"]))
            self.assertIn("ro", mount["options"])
        sources = {mount["hostPath"] for mount in text["containerEdits"]["mounts"]}
        self.assertEqual(sources, {str(BUILD / "lib/funnel/libcuda.so.1"), "/run/somewhere"})

    def test_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "etc/cdi/funnel.json")
            done = cdi("-o", path)
            self.assertEqual((done.returncode, done.stdout), (0, ""))
            with open(path) as file:
                self.assertEqual(file.read(), cdi().stdout)

    def test_wrong_arguments(self):
        for arguments in (["--shares", "0"], ["--shares", "101"], ["--shares", "a"], ["x"], ["--y"]):
            self.assertEqual(cdi(*arguments).returncode, 2, arguments)

    def test_a_path_that_json_would_have_to_escape(self):
        done = cdi(pipe='/tmp/a"b')
        self.assertEqual(done.returncode, 1)
        self.assertIn("escape", done.stdout)


if __name__ == "__main__":
    unittest.main()

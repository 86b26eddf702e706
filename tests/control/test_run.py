# SPDX-License-Identifier: Apache-2.0
"""funnel run and its limits, and what start and stop refuse. With the real server on the software GPU."""
import os
import pathlib
import subprocess

import harness
from harness import wait_until

LIMITS = {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "25", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=100M",
          "CUDA_MPS_CLIENT_PRIORITY": "1"}


class Run(harness.TestCase):
    def install(self):
        os.symlink(os.path.join(harness.BUILD, "bin"), os.path.join(self.root, "bin"))

    def setUp(self):
        super().setUp()
        self.environment["FUNNEL_SOFT_DEVICES"] = "2:sms=8,mem=2G"

    def begin(self, *options, **environment):
        """n_body without an end, as the daemon sees it once it works."""
        process = subprocess.Popen(
            [os.path.join(self.root, "bin/funnel"), "run", "-q", "--device", "soft", *options, "--",
             os.path.join(harness.BUILD, "examples/n_body"), "-n", "256", "-r", "100000000"],
            env={**self.environment, **environment}, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)
        self.processes.append(process)
        wait_until(self.daemon_pid, "the daemon")
        found = []

        def works():
            listed = self.funnel("ps", "--json", "--filter", f"pid={process.pid}")
            found[:] = [listed] if '"launches"' in listed.stdout else []
            return found and self.client_of(process)["launches"] > 0

        wait_until(works, "the first launch")
        return process

    def client_of(self, process):
        client, = self.funnel_json("ps", "--filter", f"pid={process.pid}")
        return client

    def limits_of(self, process):
        client = self.client_of(process)
        return (client["sm_percent"], client["devices"][0]["memory_limit"], client["priority"],
                client["group"])

    def assert_refused(self, status, message, *arguments, **environment):
        done = self.funnel(*arguments, environment=environment)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertIn(message, done.stderr)
        return done

    # ---- tools ----

    def note_of(self, *command, **environment):
        done = self.funnel("run", "--device", "soft", *command, environment=environment)
        return [line for line in done.stderr.splitlines() if "kernels" in line]

    def test_tools_that_need_the_driver(self):
        for name in ("nsys", "compute-sanitizer", "cuda-gdb", "ncu"):
            tool = os.path.join(self.root, name)
            os.symlink("/bin/true", tool)
            note, = self.note_of("--", tool, "--set", "full")
            self.assertIn(f"{name} sees none of the program's kernels", note)
            self.assertIn("funnel run --direct", note)
        note, = self.note_of("--", "true", CUDA_INJECTION64_PATH="/opt/nsight/libToolsInjection64.so")
        self.assertIn("libToolsInjection64.so sees none", note)
        note, = self.note_of("--", "true", CUDA_INJECTION64_PATH="/opt/tools/libtrace.so")
        self.assertIn("libtrace.so is loaded", note)
        self.assertIn("funnel run --profile", note)
        self.assertEqual(self.note_of("--profile", "--", "true", CUDA_INJECTION64_PATH="libtrace.so"), [])
        self.assertEqual(self.note_of("-q", "--", tool) + self.note_of("--direct", "--", tool), [])
        self.assertEqual(self.note_of("--", "true"), [])

    # ---- limits ----

    def test_limits(self):
        process = self.begin("--sm", "25%", "--memory", "512M", "--priority", "1", "--group", "batch")
        self.assertEqual(self.limits_of(process), (25.0, 512 << 20, 1, "batch"))
        self.assertEqual(self.limits_of(self.begin("--sm", "12.5")), (12.5, None, 0, ""))
        process = self.begin("--sms", "6")
        self.assertEqual(self.limits_of(process), (75.0, None, 0, ""))
        self.assertEqual(self.client_of(process)["devices"][0]["sm_granted"], 6)
        self.assertEqual(self.funnel("limit", "--group", "batch", "--sm", "50%").returncode, 0)

    def test_a_number_of_multiprocessors_starts_a_server(self):
        """A daemon whose servers do not run yet does not know the devices."""
        self.start("--device", "soft")
        self.assertEqual(self.limits_of(self.begin("--sms", "1"))[0], 12.5)
        self.assert_refused(1, "no device has 9 multiprocessors: the largest has 8",
                            "run", "--sms", "9", "--", "true")

    def test_wrong_limits(self):
        for options, message in ((["--sm", "0"], "--sm takes a percentage"),
                                 (["--sm", "101"], "--sm takes a percentage"),
                                 (["--sm", "%"], "--sm takes a percentage"),
                                 (["--sm", "1", "--sms", "1"], "use one of them"),
                                 (["--sms", "0"], "--sms takes a number"),
                                 (["--sms", "10%"], "--sms takes a number"),
                                 (["--memory", "12"], "--memory takes a size"),
                                 (["--priority", "2"], "--priority is 0"),
                                 (["--direct", "--sm", "5"], "--direct runs without Funnel")):
            self.assert_refused(2, message, "run", *options, "--", "true")
        self.assertIsNone(self.daemon_pid())

    def test_isolation(self):
        first, second = self.begin("--isolate", "program"), self.begin()
        self.assertRegex(self.client_of(first)["lane"], r"^program_[0-9a-f]{16}$")
        self.assertEqual(self.client_of(second)["lane"], "main")

    # ---- the daemon that funnel run starts ----

    def test_settings_of_the_program_are_not_the_daemons(self):
        process = self.begin(**LIMITS, CUDA_VISIBLE_DEVICES="1", FUNNEL_SHOW_LIMIT="1",
                             CUDA_INJECTION64_PATH="/nonexistent/libtrace.so")
        self.assertEqual(self.limits_of(process)[:3], (25.0, None, 1))
        self.assertEqual([d["ordinal"] for d in self.client_of(process)["devices"]], [1])
        default, = [row for row in self.funnel_json("limits")["limits"]
                    if row["scope"] == "daemon"]
        self.assertEqual((default["sm_percent"], default["priority"]), (100.0, 0))
        given = pathlib.Path(f"/proc/{self.daemon_pid()}/environ").read_bytes()
        self.assertNotIn(b"CUDA_INJECTION64_PATH", given)
        self.assertIn("totals that show the limit", self.control_log())
        self.assertEqual(self.limits_of(self.begin()), (100.0, None, 0, ""))
        self.assertEqual(self.control_log().count("totals that show the limit"), 1)

    def test_settings_of_a_daemon_that_is_started(self):
        self.assertEqual(self.funnel("start", "--device", "soft", environment=LIMITS).returncode, 0)
        self.assertEqual(self.limits_of(self.begin()), (25.0, 100 << 20, 1, ""))

    def test_device_of_the_environment(self):
        for command in (["start"], ["run", "--", "true"], ["run", "--direct", "--", "true"]):
            self.assert_refused(2, "FUNNEL_DEVICE is auto, cuda or soft, not bad", *command,
                                FUNNEL_DEVICE="bad")
        self.assertIsNone(self.daemon_pid())
        done = self.funnel("start", environment={"FUNNEL_DEVICE": "soft"})
        self.assertIn("(device: soft)", done.stdout)

    def test_several_pipe_directories(self):
        """A daemon that is started for the program has the first; then it is found in any place."""
        second = os.path.join(self.root, "none")
        process = self.begin(CUDA_MPS_PIPE_DIRECTORY=f"{self.pipe}:{second}")
        self.assertFalse(os.path.exists(second))
        pipes = {"CUDA_MPS_PIPE_DIRECTORY": f"{second}:{self.pipe}"}
        self.assertIn(str(process.pid), self.funnel("ps", environment=pipes).stdout)
        self.assert_refused(1, "names several directories, and a daemon has one", "start", **pipes)

    def test_relative_pipe_directory(self):
        """It is that of the process that names it, and the daemon and the program have another one."""
        relative = {"CUDA_MPS_PIPE_DIRECTORY": "pipe"}
        done = self.funnel("run", "--device", "soft", "--", "sh", "-c",
                           f"cd / && {harness.BUILD}/examples/vector_add -n 1000", cwd=self.root,
                           environment=relative)
        self.assertIn("correct", done.stdout, done.stderr)
        self.assertIn(f"started one in {self.pipe} on", done.stderr)
        self.assertTrue(self.funnel_json("servers"))

    # ---- start and stop ----

    def test_metrics(self):
        done = self.assert_refused(1, "--metrics takes ADDRESS:PORT, a PORT of 127.0.0.1 or the path "
                                      "of a Unix socket, not foo", "start", "--metrics", "foo")
        self.assertNotIn(self.pipe, done.stderr)
        self.assert_refused(1, "Metrics cannot be served at 192.0.2.1:9400: ", "start", "--metrics",
                            "192.0.2.1:9400")
        for address, page in (("", "127.0.0.1"), (":", "127.0.0.1"), ("127.0.0.1:", "127.0.0.1"),
                              ("0.0.0.0:", "localhost")):
            port, done = harness.with_free_port(lambda port: self.start_with_page(f"{address}{port}"))
            self.assertIn(f"http://{page}:{port}/", done.stdout, done.stderr)
            self.assertEqual(self.funnel("stop").returncode, 0)
        done = self.start_with_page(f"{self.root}/page")
        self.assertIn(f"curl --unix-socket {self.root}/page", done.stdout, done.stderr)
        self.assertEqual(self.funnel("stop").returncode, 0)

    def start_with_page(self, address):
        return self.funnel("start", "--device", "soft", "--metrics", address)

    def test_stop_by_force(self):
        process = self.begin()
        for wrong in (["--force", "--wait"], ["--wait", "--timeout", "1"], ["-f", "-t", "1"]):
            self.assert_refused(2, "contradict each other", "stop", *wrong)
        self.assertEqual(self.funnel("stop", "--force").returncode, 0)
        out, _ = process.communicate(timeout=harness.TIMEOUT)
        self.assertIn("(806)", out)
        self.assertIn("funnel stop --force", self.funnel("why", "806").stdout)
        self.assertNotIn("stop", self.funnel("why", "810").stdout)


if __name__ == "__main__":
    harness.main()

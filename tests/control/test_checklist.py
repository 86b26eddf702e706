# SPDX-License-Identifier: Apache-2.0
"""What public tools take for granted of nvidia-cuda-mps-control, each as the tool does it."""
import os
import subprocess
import unittest

import harness
from harness import wait_until


class Checklist(harness.TestCase):
    def daemon(self, *arguments):
        done = self.run_program("nvidia-cuda-mps-control", "-d", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)

    def sh(self, script):
        """A batch script, with the programs in its PATH."""
        path = os.path.join(self.root, "bin") + ":" + os.environ["PATH"]
        return subprocess.run(["sh", "-c", script], env={**self.environment, "PATH": path},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=harness.TIMEOUT)

    def server_with_a_client(self):
        client = self.client()
        self.assertEqual(client.welcome(), (0, ""))
        return self.mps("get_server_list\n")[0]

    def test_kubernetes_device_plugin(self):
        """Directories of its own, limits for each device, a health probe, and a log to follow."""
        for name in ("pipe", "log"):
            os.makedirs(os.path.join(self.root, "resource", name))
        self.pipe = os.path.join(self.root, "resource/pipe")
        self.log = os.path.join(self.root, "resource/log")
        self.environment.update(CUDA_MPS_PIPE_DIRECTORY=self.pipe, CUDA_MPS_LOG_DIRECTORY=self.log)
        self.daemon()
        for line in ("set_default_device_pinned_mem_limit 0 8192M",
                     "set_default_device_pinned_mem_limit 1 8192M",
                     "set_default_active_thread_percentage 25"):
            self.assertEqual(self.sh(f"echo {line} | nvidia-cuda-mps-control").returncode, 0)
        probe = self.sh("echo get_default_active_thread_percentage | nvidia-cuda-mps-control")
        self.assertEqual((probe.returncode, probe.stdout), (0, "25.0\n"))
        self.assertIn("set_default_active_thread_percentage 25", self.control_log())
        self.server_with_a_client()
        told, = self.server_events("client")
        self.assertEqual((told["share"], told["memory"]), (2500, [8 << 30, 8 << 30]))

    @unittest.skipIf(os.geteuid() != 0, "needs root")
    def test_resource_driver_starts_it_for_all_users(self):
        self.daemon("-M")
        self.assertTrue(self.server_with_a_client().isdigit())

    def test_inference_server(self):
        """It finds the daemon by its pid file and checks whose it is in /proc."""
        self.environment["CUDA_VISIBLE_DEVICES"] = "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"
        self.daemon("-S")
        with open(os.path.join(self.pipe, "nvidia-cuda-mps-control.pid")) as file:
            pid = int(file.read())
        with open(f"/proc/{pid}/cmdline") as file:
            arguments = file.read().split("\0")
        self.assertEqual(os.path.basename(arguments[0]), "nvidia-cuda-mps-control")
        self.assertIn("-S", arguments)
        with open(f"/proc/{pid}/environ") as file:
            self.assertIn(f"CUDA_MPS_PIPE_DIRECTORY={self.pipe}", file.read().split("\0"))
        self.assertGreaterEqual(int(self.run_program("nvidia-cuda-mps-control", "-v").stdout),
                                13010)
        created, = self.mps("sm_partition add GPU-0001 2\n")
        self.assertRegex(created,
                         "^Partition GPU-00010203-0405-0607-0809-0a0b0c0d0e0f/[^ ]+ created$")
        client = self.client(partition=created.split()[1].encode())
        self.assertEqual(client.welcome(), (0, ""))
        start, = self.server_events("start")
        self.assertEqual(start["environment"]["CUDA_VISIBLE_DEVICES"],
                         self.environment["CUDA_VISIBLE_DEVICES"])
        server = self.mps("get_server_list\n")
        self.assertTrue(all(line.isdigit() for line in server))
        clients = self.mps(f"get_client_list {server[0]}\n")
        self.assertEqual(clients, [str(os.getpid())])
        listed = self.mps("lspart\n")
        self.assertEqual(listed[0].split(), "GPU Partition free used free used clients".split())
        self.assertEqual(listed[3].split()[1:],
                         [created.split("/")[1].split()[0], "-", "2", "-", "16",
                          "Yes"])
        self.assertEqual(self.mps(f"terminate_client {server[0]} {clients[0]}\n"), ["0"])

    def test_monitor(self):
        """It reads the header of ps, and takes certain words for a refusal."""
        self.daemon()
        self.server_with_a_client()
        header = self.sh("echo ps | nvidia-cuda-mps-control").stdout.splitlines()[0]
        for word in ("PID", "SERVER", "NAMESPACE"):
            self.assertIn(word, header)
        done = self.sh("echo nonsense | nvidia-cuda-mps-control")
        self.assertEqual(done.returncode, 0)
        self.assertIn("unknown command", done.stdout.lower())

    def test_batch_system(self):
        """A prologue starts the server of the job's user, an epilogue ends everything."""
        done = self.sh("nvidia-cuda-mps-control -d 2>/dev/null && "
                       f"echo 'start_server -uid {os.getuid()}' | nvidia-cuda-mps-control && "
                       "echo get_server_list | nvidia-cuda-mps-control")
        self.assertEqual(done.returncode, 0)
        self.assertTrue(done.stdout.strip().isdigit())
        with open(f"/proc/{self.daemon_pid()}/comm") as file:
            self.assertEqual(file.read().strip(),
                             "nvidia-cuda-mps")  # all that ps knows of the name
        again = self.sh("nvidia-cuda-mps-control -d")
        self.assertNotEqual(again.returncode, 0)
        self.assertIn("An instance of this daemon is already running", again.stdout)
        self.assertEqual(self.sh("echo quit | nvidia-cuda-mps-control").returncode, 0)
        wait_until(lambda: self.daemon_pid() is None)
        gone = self.sh("echo quit | nvidia-cuda-mps-control")
        self.assertEqual((gone.returncode, gone.stdout),
                         (1, "Cannot find MPS control daemon process\n"))


if __name__ == "__main__":
    harness.main()

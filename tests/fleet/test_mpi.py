# SPDX-License-Identifier: Apache-2.0
"""Ranks of an MPI program share a device: test_mpi.py BUILD [DEVICE]."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else pathlib.Path("build")
DEVICE = sys.argv.pop(1) if sys.argv[1:] in (['soft'], ['cuda']) else "soft"
RANKS = 4




def is_cuda_aware():
    done = subprocess.run(["ompi_info", "--parsable", "--all"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=False)
    return "built_with_cuda_support:value:true" in done.stdout


@unittest.skipUnless(shutil.which("mpirun"), "there is no mpirun on this machine")
class Ranks(unittest.TestCase):
    """All start at once, without a daemon; one starts it, and all are its clients."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="fnl-", dir="/tmp")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        clean = {k: v for k, v in os.environ.items()
                 if not k.startswith(("CUDA_", "FUNNEL_", "LD_", "XDG_"))}
        # The loader's path is kept for an MPI that is not the system's.
        kept = {"LD_LIBRARY_PATH": os.environ["LD_LIBRARY_PATH"]} if DEVICE == "cuda" and \
            "LD_LIBRARY_PATH" in os.environ else {}
        self.environment = {**clean, **kept, "CUDA_MPS_PIPE_DIRECTORY": folder.name + "/pipe",
                            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

    def run_ranks(self, *command):
        """What the ranks print, and the daemon's log."""
        done = subprocess.run(
            ["mpirun", "--oversubscribe", "-np", str(RANKS), BUILD / "bin/funnel", "run", "-q",
             "--device", DEVICE, "--", *command],
            env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=100)
        log = (self.folder / "pipe/log/control.log").read_text()
        subprocess.run([BUILD / "bin/funnel", "stop", "--force"], env=self.environment, check=True,
                       stdout=subprocess.DEVNULL, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout, log

    def build_exchange(self):
        program = self.folder / "mpi_exchange"
        done = subprocess.run(["mpicc", HERE / "mpi_exchange.c", "-O1", "-o", program, "-ldl"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False) if shutil.which("mpicc") else None
        if done is None or "mpi.h" in done.stdout:
            self.skipTest("the headers of MPI are not installed")
        self.assertEqual(done.returncode, 0, done.stdout)
        return program

    def test_four(self):
        text, log = self.run_ranks(sys.executable, HERE / "probe.py", "20", "0.1")
        self.assertEqual(text.count("sum ok"), RANKS, text)
        self.assertGreaterEqual(log.count("probe.py"), RANKS)

    def test_exchange(self):
        text, _ = self.run_ranks(self.build_exchange())
        self.assertIn(f"{RANKS} ranks on 1 host: exchanged and summed", text)

    def test_device_buffers(self):
        """MPI itself copies device memory, between processes by CUDA IPC."""
        if not is_cuda_aware():
            self.skipTest("this MPI is not CUDA-aware")
        text, _ = self.run_ranks(self.build_exchange(), "--device-buffers", "--mib", "4")
        self.assertIn(f"{RANKS} ranks on 1 host: exchanged and summed", text)


if __name__ == "__main__":
    unittest.main()

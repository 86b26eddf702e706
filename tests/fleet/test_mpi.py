# SPDX-License-Identifier: Apache-2.0
"""Ranks of an MPI program share a device: test_mpi.py BUILD."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else pathlib.Path("build")
RANKS = 4


@unittest.skipUnless(shutil.which("mpirun"), "there is no mpirun on this machine")
class Ranks(unittest.TestCase):
    def test_four(self):
        """All start at once, without a daemon; one starts it, and all are its clients."""
        with tempfile.TemporaryDirectory(prefix="fnl-", dir="/tmp") as folder:
            clean = {k: v for k, v in os.environ.items()
                     if not k.startswith(("CUDA_", "FUNNEL_", "LD_", "XDG_"))}
            environment = {**clean, "CUDA_MPS_PIPE_DIRECTORY": folder + "/pipe",
                           "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
            done = subprocess.run(
                ["mpirun", "--oversubscribe", "-np", str(RANKS), BUILD / "bin/funnel", "run",
                 "--device", "soft", "--", sys.executable, HERE / "probe.py", "20", "0.1"],
                env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                timeout=100)
            log = pathlib.Path(folder, "pipe/log/control.log").read_text()
            subprocess.run([BUILD / "bin/funnel", "stop", "--force"], env=environment, check=True,
                           stdout=subprocess.DEVNULL, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(done.stdout.count("sum ok"), RANKS, done.stdout)
        self.assertGreaterEqual(log.count("probe.py"), RANKS)


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""The ways of sharing a device that are compared: native, NVIDIA's MPS, Funnel."""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def gpu_memory_used_mib():
    """MiB in use on the first GPU, or None without nvidia-smi."""
    try:
        out = subprocess.run(["nvidia-smi", "--query-gpu=memory.used",
                              "--format=csv,noheader,nounits"],
                             capture_output=True, text=True, timeout=20, check=True).stdout
        return float(out.splitlines()[0])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return None


def device_name(device):
    if device == "soft":
        return "Funnel software GPU"
    out = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                         capture_output=True, text=True).stdout.splitlines()
    return out[0] if out else "unknown GPU"


def cpu_seconds_of(pid):
    """CPU time that a process has used so far; 0 once it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


class Native:
    """Each process on the driver by itself; several take turns. What NVIDIA's driver compiles it
    keeps in a folder: each mode has its own, which is empty at its start."""
    name = "native"

    def __init__(self, funnel, device):
        by_hand = [str(funnel), "run", "--direct", "--device", device, "--"]
        self.prefix = by_hand if device == "soft" else []
        self.directory = None
        self.compiled = tempfile.mkdtemp(prefix="bench-native-")

    def environment(self):
        env = dict(os.environ, CUDA_CACHE_PATH=self.compiled)
        env.pop("CUDA_MPS_PIPE_DIRECTORY", None)
        return env

    def start(self):
        os.makedirs(self.compiled, exist_ok=True)

    def stop(self):
        shutil.rmtree(self.compiled, ignore_errors=True)

    def restart(self):
        self.stop()
        self.start()

    def service_pids(self):
        """Daemons and servers of this mode: those whose pipe directory is its own, or below that as
        the one of Funnel's servers is."""
        if not self.directory:
            return []
        wanted = f"CUDA_MPS_PIPE_DIRECTORY={self.directory}/".encode()
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
                if any((word + b"/").startswith(wanted) for word in environment_of(pid))
                and name_of(pid).startswith(("funnel", "nvidia-cuda-mps"))]


def environment_of(pid):
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def name_of(pid):
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return ""


class Mps(Native):
    """NVIDIA's MPS with a daemon in directories of its own."""
    name = "mps"

    def __init__(self):
        self.prefix = []
        self.directory = tempfile.mkdtemp(prefix="bench-mps-")
        self.compiled = self.directory + "/compiled"
        self.control = shutil.which("nvidia-cuda-mps-control")

    def environment(self):
        return dict(os.environ, CUDA_MPS_PIPE_DIRECTORY=self.directory,
                    CUDA_MPS_LOG_DIRECTORY=self.directory, CUDA_CACHE_PATH=self.compiled)

    def command(self, text, timeout=60):
        return subprocess.run([self.control], input=text + "\n", text=True, env=self.environment(),
                              capture_output=True, timeout=timeout)

    def start(self):
        os.makedirs(self.compiled, exist_ok=True)
        subprocess.run([self.control, "-d"], env=self.environment(), check=True, timeout=60,
                       stdout=subprocess.DEVNULL)
        self.command(f"start_server -uid {os.getuid()}")

    def stop(self):
        with contextlib.suppress(subprocess.SubprocessError):
            self.command("quit -t 5", 15)
        for pid in self.service_pids():  # it hangs when a kernel does not end
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.directory, ignore_errors=True)


class Funnel(Native):
    name = "funnel"

    def __init__(self, funnel, device, *options):
        self.options = options
        self.funnel = str(funnel)
        self.device = device
        self.directory = tempfile.mkdtemp(prefix="bench-funnel-")
        self.compiled = self.directory + "/compiled"
        self.prefix = [self.funnel, "run", "-q", "--device", device, "--"]

    def environment(self):
        return dict(os.environ, CUDA_MPS_PIPE_DIRECTORY=self.directory,
                    CUDA_MPS_LOG_DIRECTORY=self.directory + "/log", CUDA_CACHE_PATH=self.compiled,
                    FUNNEL_CACHE_PATH=self.directory + "/code")

    def start(self):
        os.makedirs(self.compiled, exist_ok=True)
        subprocess.run([self.funnel, "start", "--device", self.device, *self.options], env=self.environment(),
                       check=True, timeout=60, stdout=subprocess.DEVNULL)

    def await_standby(self, timeout=30):
        """Until the standby of each server is ready: without it the first programs meet a lane that starts."""
        until = time.monotonic() + timeout
        while not all(server["standby_ready"] for server in self.servers()):
            if time.monotonic() > until:
                raise TimeoutError(f"no standby server after {timeout} s")
            time.sleep(0.05)

    def servers(self):
        done = subprocess.run([self.funnel, "status", "--json"], env=self.environment(), check=True, timeout=60,
                              stdout=subprocess.PIPE)
        return json.loads(done.stdout)["servers"]

    def stop(self):
        with contextlib.suppress(subprocess.SubprocessError):
            subprocess.run([self.funnel, "stop", "--force"], env=self.environment(), timeout=60,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        shutil.rmtree(self.directory, ignore_errors=True)


def available(funnel, device, with_mps):
    modes = [Native(funnel, device)]
    if device == "cuda" and with_mps and shutil.which("nvidia-cuda-mps-control"):
        modes.append(Mps())
    return modes + [Funnel(funnel, device)]

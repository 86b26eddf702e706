# SPDX-License-Identifier: Apache-2.0
"""Builds the programs on the runtime API (runtime/) with nvcc, each in several variants: with static
and with shared cudart, and some with other flags. Variants with the same flags of the compiler share
objects, as compiling takes the time. What was built before is taken as it is, also where there is no
nvcc."""
import contextlib
import dataclasses
import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import subprocess

SOURCES = pathlib.Path(__file__).resolve().parent / "runtime"
# Large headers: one variant is enough.
STATIC_ONLY = {"algorithms", "halves", "hopper_matmul", "intrinsics", "tensor_tiles", "warp_edges"}
EXTRA_FLAGS = {"streams": {"per_thread": ["--default-stream", "per-thread"]}}
# Programs with NVIDIA's C++ libraries, which need C++17; its standard headers take twice as long as C++14's.
CXX17 = {"algorithms", "atomics", "barriers", "clusters", "groups", "hopper_matmul", "settings",
         "tensor_tiles"}
# Programs that call the driver as well; nvcc brings a library to link them with.
DRIVER_CALLS = {"pointers"}
# Programs whose kernels launch kernels; nvcc brings the runtime on the device.
DEVICE_RUNTIME = {"device_launches"}
# What a program needs of the GPU, where that is more than nvcc's default.
ARCHITECTURES = {"tensor": "sm_80", "barriers": "sm_80", "clusters": "sm_90",
                 "device_launches": "sm_90", "hopper_matmul": "sm_90a", "settings": "sm_90",
                 "sparse": "sm_90", "tensor_tiles": "sm_90", "warp_edges": "sm_90"}
# ptxas takes seconds for these. All GPUs but nvcc's default, which is the oldest, run the PTX anyway.
PTX_ONLY = {"algorithms": "compute_75"}


class BuildError(Exception):
    """The message is nvcc's."""


@dataclasses.dataclass(frozen=True)
class Variant:
    name: str
    flags: tuple  # of the compiler
    cudart: str = "static"


def find_nvcc():
    nvcc = os.environ.get("NVCC") or shutil.which("nvcc")
    if not nvcc and os.path.exists("/usr/local/cuda/bin/nvcc"):
        nvcc = "/usr/local/cuda/bin/nvcc"
    return os.path.realpath(nvcc) if nvcc else None


def run_nvcc(nvcc, *arguments):
    try:
        done = subprocess.run([nvcc, *map(str, arguments)], capture_output=True, text=True)
    except OSError as error:
        raise BuildError(f"nvcc failed:\n{error}") from error
    if done.returncode:
        raise BuildError(f"nvcc failed:\n{done.stdout}{done.stderr}")


def architecture_flags(program):
    if program in PTX_ONLY:
        virtual = PTX_ONLY[program]
        return [f"-gencode=arch={virtual},code={virtual}"]
    return machine_code_flags(ARCHITECTURES.get(program))


def machine_code_flags(name):
    """For one whose features no later GPU has, nvcc keeps no PTX unless it is told to."""
    if name and name.endswith("a"):
        virtual = name.replace("sm", "compute")
        return [f"-gencode=arch={virtual},code=[{name},{virtual}]"]
    return [f"-arch={name}"] if name else []


def variants_of(name):
    """nvcc optimizes kernels by default. To optimize the host's code would take a sixth of its time."""
    flags = architecture_flags(name)
    for cudart in ("static",) if name in STATIC_ONLY else ("static", "shared"):
        yield Variant(cudart, tuple(flags), cudart)
    for variant, extra in EXTRA_FLAGS.get(name, {}).items():
        yield Variant(variant, (*flags, *extra))


class RuntimeProgram:
    def __init__(self, name, folder, sources=SOURCES):
        self.name, self.folder = name, folder
        source = sources / f"{name}.cu"
        # A folder of its name holds further sources, compiled separately.
        self.units = [source, *sorted((sources / name).glob("*.cu"))]
        separate = len(self.units) > 1 or name in DEVICE_RUNTIME
        self.common = ["-std=c++17" if name in CXX17 else "-std=c++14", "--extended-lambda",
                       *(["-rdc=true"] if separate else [])]
        self.libraries = ["-Xlinker", "-rpath=$ORIGIN",
                          *(["-lcuda"] if name in DRIVER_CALLS else []),
                          *(["-lcudadevrt"] if name in DEVICE_RUNTIME else [])]
        self.objects = {}  # flags of the compiler -> paths

    def path(self, variant):
        return self.folder / f"{self.name}_{variant.name}"

    def fingerprint(self, variant):
        headers = sorted(SOURCES.glob("*.cuh"))
        text = b"".join(path.read_bytes() for path in [*self.units, *headers])
        words = [*self.common, *variant.flags, variant.cudart, *self.libraries]
        return hashlib.sha256(text + " ".join(words).encode()).hexdigest()

    def compile(self, nvcc, variant):
        if variant.flags not in self.objects:
            paths = [self.path(variant).with_suffix(f".{unit.stem}.o") for unit in self.units]
            for unit, path in zip(self.units, paths):
                run_nvcc(nvcc, *self.common, *variant.flags, "-c", "-o", path, unit)
            self.objects[variant.flags] = paths
        return self.objects[variant.flags]

    def link(self, nvcc, variant):
        stamp, wanted = self.path(variant).with_suffix(".stamp"), self.fingerprint(variant)
        if self.path(variant).exists() and stamp.exists() and stamp.read_text() == wanted:
            return
        if not nvcc:
            raise BuildError("no nvcc")
        run_nvcc(nvcc, *self.common, *variant.flags, "-cudart", variant.cudart, "-o",
                 self.path(variant), *self.compile(nvcc, variant), *self.libraries)
        stamp.write_text(wanted)

    @contextlib.contextmanager
    def alone(self):
        """No other process builds the same program at the same time."""
        with open(self.folder / f"{self.name}.lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def build(self, nvcc, variants):
        """For each variant why it could not be built, or None."""
        if not variants:
            return []
        with self.alone():
            reasons = [self.reason(nvcc, variant) for variant in variants]
            for paths in self.objects.values():
                for path in paths:
                    path.unlink()
        return reasons

    def reason(self, nvcc, variant):
        try:
            self.link(nvcc, variant)
        except BuildError as error:
            return str(error)
        return None


def keep_shared_cudart(nvcc, folder):
    """Beside the programs that use it, so that they run where there is no toolkit."""
    lib = pathlib.Path(nvcc).parent.parent / "lib64"
    for library in sorted(lib.glob("libcudart.so.*")):
        named_so = re.fullmatch(r"libcudart\.so\.\d+(\.0)?", library.name)  # .13, .12, .11.0
        if named_so and not (folder / library.name).exists():
            copy = folder / f"{library.name}.{os.getpid()}"
            shutil.copy(library.resolve(), copy)
            copy.rename(folder / library.name)  # another process may look for it

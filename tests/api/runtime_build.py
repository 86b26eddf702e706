# SPDX-License-Identifier: Apache-2.0
"""Builds the programs on the runtime API (runtime/) with nvcc, each in several variants: with static
and with shared cudart, and some with other flags. Programs with the same flags of the compiler are
compiled together (joint_unit.py), as compiling takes the time. What was built before is taken as it
is, also where there is no nvcc."""
import concurrent.futures
import contextlib
import dataclasses
import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import subprocess

from joint_unit import joint_unit

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
# Not compiled together with others: "algorithms" has macros for its headers. The module of "lifetime" must
# have no managed variables, as the others then outlive a reset (docs/managed-memory.md). And no other
# program's module shall have kernels that print or fault.
ALONE = {"algorithms", "fault", "language", "lifetime", "prints"}
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
        self.source = sources / f"{name}.cu"
        # A folder of its name holds further sources, compiled separately.
        self.sources = [self.source, *sorted((sources / name).glob("*.cu"))]
        separate = len(self.sources) > 1 or name in DEVICE_RUNTIME
        self.is_alone = separate or name in ALONE or sources != SOURCES
        self.common = ("-std=c++17" if name in CXX17 else "-std=c++14", "--extended-lambda",
                       *(["-rdc=true"] if separate else []))
        self.libraries = ("-Xlinker", "-rpath=$ORIGIN",
                          *(["-lcuda"] if name in DRIVER_CALLS else []),
                          *(["-lcudadevrt"] if name in DEVICE_RUNTIME else []))

    def path(self, variant):
        return self.folder / f"{self.name}_{variant.name}"

    def stamp(self, variant):
        return self.path(variant).with_suffix(".stamp")

    def fingerprint(self, variant):
        headers = sorted(SOURCES.glob("*.cuh"))
        text = b"".join(path.read_bytes() for path in [*self.sources, *headers])
        words = [*self.common, *variant.flags, variant.cudart, *self.libraries]
        return hashlib.sha256(text + " ".join(words).encode()).hexdigest()

    def is_current(self, variant):
        stamp = self.stamp(variant)
        return (self.path(variant).exists() and stamp.exists() and
                stamp.read_text() == self.fingerprint(variant))

    def take(self, variant, executable):
        """Perhaps one that other programs take as well."""
        self.path(variant).unlink(missing_ok=True)
        os.link(executable, self.path(variant))
        self.stamp(variant).write_text(self.fingerprint(variant))


class Unit:
    """Programs that nvcc compiles together, since their flags are the same: (program, variant) pairs."""

    def __init__(self, pairs):
        self.pairs = pairs
        self.program, self.variant = pairs[0]
        self.flags = [*self.program.common, *self.variant.flags]
        self.programs = list(dict.fromkeys(program for program, _ in pairs))
        self.made = []  # files that are of no use later

    def make(self, suffix):
        self.made.append(self.program.path(self.variant).with_suffix(suffix))
        return self.made[-1]

    def sources(self):
        if len(self.programs) == 1:
            return self.program.sources
        joint = self.make(".joint.cu")
        joint.write_text(joint_unit({program.path(variant).name: program.source
                                     for program, variant in self.pairs}))
        return [joint]

    def compile(self, nvcc):
        for source in self.sources():
            target = self.make(f".{source.stem}.o")
            run_nvcc(nvcc, *self.flags, "-c", "-o", target, source)
            yield target

    def link(self, nvcc, objects, cudart):
        """For each pair that wants this cudart why there is no program, or None."""
        pairs = [pair for pair in self.pairs if pair[1].cudart == cudart]
        executable = self.make(f".{cudart}.new")
        try:
            run_nvcc(nvcc, *self.flags, "-cudart", cudart, "-o", executable, *objects,
                     *self.program.libraries)
        except BuildError as error:
            return dict.fromkeys(pairs, str(error))
        for program, variant in pairs:
            program.take(variant, executable)
        return dict.fromkeys(pairs)

    def build(self, nvcc):
        """For each pair why there is no program, or None."""
        if not nvcc:
            return dict.fromkeys(self.pairs, "no nvcc")
        reasons = {}
        try:
            objects = list(self.compile(nvcc))
            for cudart in {variant.cudart for _, variant in self.pairs}:
                reasons.update(self.link(nvcc, objects, cudart))
        except BuildError as error:
            reasons = dict.fromkeys(self.pairs, str(error))
        finally:
            for path in self.made:
                path.unlink(missing_ok=True)
        if len(self.programs) > 1 and any(reasons.values()):
            return self.build_each(nvcc)
        return reasons

    def build_each(self, nvcc):
        """An older toolkit may be able to compile some of the programs."""
        reasons = {}
        for program in self.programs:
            reasons.update(Unit([pair for pair in self.pairs if pair[0] is program]).build(nvcc))
        return reasons


def units_of(pairs):
    together = {}
    for program, variant in pairs:
        key = (program.name if program.is_alone else None, program.common, variant.flags,
               program.libraries)
        together.setdefault(key, []).append((program, variant))
    return [Unit(one) for one in together.values()]


@contextlib.contextmanager
def alone(folder):
    """No other process builds in the folder at the same time."""
    with open(folder / "build.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build(nvcc, folder, pairs, jobs=os.cpu_count()):
    """For each (program, variant) pair why it could not be built, or None."""
    reasons = dict.fromkeys(pairs)
    if not pairs:  # It would wait until another process has built all.
        return reasons
    with alone(folder), concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        units = units_of([(program, variant) for program, variant in pairs
                          if not program.is_current(variant)])
        for built in pool.map(lambda unit: unit.build(nvcc), units):
            reasons.update(built)
    return reasons


def keep_shared_cudart(nvcc, folder):
    """Beside the programs that use it, so that they run where there is no toolkit."""
    lib = pathlib.Path(nvcc).parent.parent / "lib64"
    for library in sorted(lib.glob("libcudart.so.*")):
        named_so = re.fullmatch(r"libcudart\.so\.\d+(\.0)?", library.name)  # .13, .12, .11.0
        if named_so and not (folder / library.name).exists():
            copy = folder / f"{library.name}.{os.getpid()}"
            shutil.copy(library.resolve(), copy)
            copy.rename(folder / library.name)  # another process may look for it

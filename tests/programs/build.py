# SPDX-License-Identifier: Apache-2.0
"""Builds a sample of NVIDIA's cuda-samples with nvcc alone.

The sample's own CMakeLists.txt names its sources, the libraries and the kernel image that it loads
at run time; CMake itself is not needed, and only PTX or one GPU's code is compiled, which takes a
tenth of the time that all architectures of the original rules take.
"""
import hashlib
import os
import pathlib
import re
import shutil
import subprocess

COMMON_FLAGS = ["-std=c++17", "-O2", "--extended-lambda", "-Wno-deprecated-gpu-targets", "-w"]


class BuildError(Exception):
    """The message is what the compiler or the sample's rules said."""


def find_nvcc():
    nvcc = os.environ.get("NVCC") or shutil.which("nvcc")
    if not nvcc and os.path.exists("/usr/local/cuda/bin/nvcc"):
        nvcc = "/usr/local/cuda/bin/nvcc"
    return nvcc


def code_flags(architecture, machine_code):
    """PTX alone compiles quickest; with machine code, a GPU need not translate it on each start."""
    virtual = f"arch=compute_{architecture},code=compute_{architecture}"
    real = f"arch=compute_{architecture},code=sm_{architecture}"
    return ["-gencode", virtual] + (["-gencode", real] if machine_code else [])


class Rules:
    """What the CMakeLists.txt of a sample says about it."""

    def __init__(self, folder):
        text = re.sub(r"#.*", "", (folder / "CMakeLists.txt").read_text())
        executable = re.search(r"add_executable\(\s*(\S+)\s+([^)]*)\)", text)
        if not executable:
            raise BuildError("its CMakeLists.txt has no add_executable")
        self.sources = [folder / name for name in executable.group(2).split()]
        self.libraries = [library for library in re.findall(r"CUDA::(\w+)", text)
                          if library not in ("cudart", "cuda_driver")]
        self.driver = "CUDA::cuda_driver" in text
        image = re.search(r'set\(CUDA_(FATBIN|PTX)_FILE\s+"[^"]*/([^"/]+)"\)', text)
        self.image = image and (image.group(1).lower(), image.group(2))
        kernel = re.search(r'set\(CUDA_KERNEL_SOURCE\s+"[^"]*/([^"/]+)"\)', text)
        self.kernel = kernel and folder / kernel.group(1)
        self.headers = re.findall(r"\$\{CUDA_INCLUDE_DIR\}/(\S+)", text)

    def libraries_flags(self):
        names = self.libraries + (["cuda"] if self.driver else []) + ["dl", "pthread"]
        return [f"-l{name}" for name in names]


def run_compiler(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          check=False)
    if done.returncode:
        lines = (done.stderr + done.stdout).strip().splitlines()
        errors = [line for line in lines if "error" in line] or lines or ["no message"]
        raise BuildError(errors[0])


def fingerprint(folder, commands):
    """Of the sources and commands, so that a second run compiles what has changed and no more."""
    digest = hashlib.sha256(repr(commands).encode())
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".cu", ".cuh", ".cpp", ".c", ".h", ".hpp"):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def build_sample(sample, samples, work, architecture, machine_code):
    """Makes work/NAME/ with the program and its kernel image; returns the program's path."""
    nvcc = find_nvcc()
    if not nvcc:
        raise BuildError("there is no nvcc; install the CUDA toolkit or name it in NVCC")
    folder = samples / "Samples" / sample.folder
    if not folder.is_dir():
        raise BuildError(f"{folder} does not exist")
    rules, out = Rules(folder), work / sample.name
    commands = list(commands_of(sample, rules, nvcc, samples, folder, out, architecture,
                                machine_code))
    stamp, wanted = out / "stamp", fingerprint(folder, commands)
    if not stamp.exists() or stamp.read_text() != wanted:
        out.mkdir(parents=True, exist_ok=True)
        for command in commands:
            run_compiler(command)
        link_headers(rules, nvcc, out)
        stamp.write_text(wanted)
    return out / sample.name


def link_headers(rules, nvcc, out):
    """Those of the toolkit that the program compiles its kernels with at run time."""
    toolkit = pathlib.Path(nvcc).resolve().parent.parent / "include"
    for name in rules.headers:
        link = out / pathlib.Path(name).name
        link.unlink(missing_ok=True)
        link.symlink_to(toolkit / name)


def commands_of(sample, rules, nvcc, samples, folder, out, architecture, machine_code):
    include = ["-I", samples / "Common", "-I", folder, "-I", folder / "inc"]
    # A program of several device units has to be linked from machine code.
    separate = "separate" in sample.needs
    flags = [*COMMON_FLAGS, *code_flags(architecture, machine_code or separate), *include]
    flags += ["-rdc=true", "-lcudadevrt"] if separate else []
    flags += ["-Xcompiler", "-fopenmp"] if "openmp" in sample.needs else []
    if "mpi" in sample.needs:
        flags += ["-ccbin", "mpicxx"]
    yield [nvcc, *flags, "-o", out / sample.name, *rules.sources, *rules.libraries_flags()]
    if rules.image:
        kind, name = rules.image
        target = [f"-arch=compute_{architecture}"] if kind == "ptx" else code_flags(
            architecture, machine_code)
        yield [nvcc, *COMMON_FLAGS, *target, *include, f"-{kind}", "-o", out / name, rules.kernel]


def prepare_folder(sample, samples, work, folder):
    """Fills the folder that a run starts in: the sample's files, and links to image and program.
    The files are copies, because some samples write beside what they read, and the copies of a
    program that run at once would overwrite each other's results."""
    shutil.copytree(samples / "Samples" / sample.folder, folder, dirs_exist_ok=True)
    for path in (work / sample.name).iterdir():
        link = folder / path.name
        if not link.exists():
            link.symlink_to(path)
    return pathlib.Path(folder, sample.name)

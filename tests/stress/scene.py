# SPDX-License-Identifier: Apache-2.0
"""The programs of scene.c, which say what has happened and are told when to go on."""
import select
import shutil
import subprocess
import tempfile

import harness


def executable(funnel, name, is_copy):
    """One that is to fault is a copy, since its executable will be in quarantine. So is one whose
    code the daemon shall not believe to be in the server."""
    program = str(funnel.build / "tests" / name)
    return shutil.copy(program, tempfile.mkdtemp(dir=funnel.folder)) if is_copy else program


class Program:
    def __init__(self, funnel, *arguments, is_copy=False, **variables):
        command = [funnel.binary, "run", "-q", "--device", funnel.device, "--",
                   executable(funnel, "stress/scene", is_copy), *map(str, arguments)]
        self.name = arguments[0]
        self.process = subprocess.Popen(command, env={**funnel.environment, **variables}, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def tell(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def expect(self, line):
        said = self.process.stdout.readline().strip()
        assert said == line, f"the {self.name} says {said!r} instead of {line!r}"

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(timeout=harness.TIMEOUT) == 0, f"the {self.name} fails"

    def kill(self):
        self.process.kill()
        self.process.wait()

    def has_said(self, seconds):
        """Whether it says something within this time."""
        return bool(select.select([self.process.stdout], [], [], seconds)[0])


class Probe:
    """A client without work in flight between questions, which continues with another server."""

    def __init__(self, funnel, is_copy=False):
        command = [funnel.binary, "run", "-q", "--device", funnel.device, "--",
                   executable(funnel, "recovery/recovery_probe", is_copy)]
        self.process = subprocess.Popen(command, env=funnel.environment, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        said = self.process.stdout.readline()
        assert said == "open CUDA_SUCCESS\n", said
        self.ask("round")

    def tell(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def ask(self, word):
        self.tell(word)
        said = self.process.stdout.readline()
        assert said == f"{word} CUDA_SUCCESS\n", f"{word}: {said!r}"

    def kill(self):
        self.process.kill()
        self.process.communicate()

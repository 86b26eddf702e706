# SPDX-License-Identifier: Apache-2.0
"""Runs one program in one way (natively, on the software GPU, through Funnel) and judges it."""
import concurrent.futures
import dataclasses
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

import report

HERE = pathlib.Path(__file__).resolve().parent
WAIVED = 2  # NVIDIA's samples exit with this status where the device lacks what they show
TELLING = re.compile(r"error|fail|mismatch|waiv|not support|illegal|unable|invalid|corrupt", re.I)


@dataclasses.dataclass
class Result:
    verdict: str  # passed, failed, timeout, waived, skipped or not built
    seconds: float
    remark: str = ""
    cpu: float = 0  # seconds of CPU time of the program itself; a server's are not among them
    output: str = ""


def telling_line(output):
    """The line that says what went wrong: the first that sounds like it, else the last."""
    lines = [" ".join(line.split()) for line in output.splitlines() if line.strip()]
    telling = [line for line in lines if TELLING.search(line)]
    return (telling or lines[-1:] or ["no output"])[0][:200]


def prepare_folder(sample, options, folder):
    """Fills the folder that a run starts in: the sample's files, and links to what its build has made.
    The files are copies, because some samples write beside what they read. The copies of a program
    that run at once would overwrite each other's results."""
    shutil.copytree(options.samples / "Samples" / sample.folder, folder, dirs_exist_ok=True)
    for path in (options.built / "Samples" / sample.folder).iterdir():
        link = folder / path.name
        if path.is_file() and not link.exists():
            link.symlink_to(path)


def end_group(child):
    """Ends the program with all that it has started; waiting for the program is left to others."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def wait_for(child, timeout):
    """The CPU time that the program has used, or None if it has not ended in time."""
    deadline = time.monotonic() + timeout
    while True:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        if pid:
            child.returncode = os.waitstatus_to_exitcode(status)
            return usage.ru_utime + usage.ru_stime
        if time.monotonic() > deadline:
            return None
        time.sleep(0.005)


def run_command(command, folder, environment, timeout, waived=WAIVED):
    with tempfile.TemporaryFile() as output:
        start = time.monotonic()
        child = subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                 stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        cpu = wait_for(child, timeout)
        seconds = time.monotonic() - start
        end_group(child)
        if cpu is None:
            cpu = wait_for(child, float("inf"))
            return Result("timeout", timeout, f"no end within {timeout:.0f} s", cpu)
        output.seek(0)
        text = output.read().decode(errors="replace")
    status = child.returncode
    if status == 0:
        return Result("passed", seconds, cpu=cpu, output=text)
    verdict = "waived" if status == waived else "failed"
    ended = f"signal {-status}: " if status < 0 else ""
    return Result(verdict, seconds, ended + telling_line(text), cpu, text)


class Way:
    """One way to run a program: the words before its name, its environment, how many at once."""

    def __init__(self, title, words, environment, clients, options):
        self.title, self.words, self.environment = title, words, environment
        self.clients, self.options = clients, options
        self.parallel = clients == 1

    def run(self, sample):
        with concurrent.futures.ThreadPoolExecutor(self.clients) as pool:
            results = list(pool.map(lambda _: self.run_once(sample), range(self.clients)))
        worst = [result for result in results if result.verdict != "passed"]
        slowest = max(result.seconds for result in results)
        cpu = max(result.cpu for result in results)
        if not worst:
            return Result("passed", slowest, cpu=cpu)
        remark = f"{len(worst)} of {self.clients}: " if self.clients > 1 else ""
        return Result(worst[0].verdict, slowest, remark + worst[0].remark, cpu)

    def timeout(self, sample):
        """Copies at once share the GPU: each may take as long as all would one after the other,
        and half as long again."""
        alone = [result.seconds for result in sample.runs.values() if result.verdict == "passed"]
        return max(self.options.timeout, *(1.5 * self.clients * seconds for seconds in alone), 0)

    def run_once(self, sample):
        with tempfile.TemporaryDirectory(prefix="funnel-program-") as folder:
            prepare_folder(sample, self.options, pathlib.Path(folder))
            ranks = ["mpirun", "--allow-run-as-root", "-n", "2"] if "mpi" in sample.needs else []
            command = [*ranks, *self.words, f"./{sample.name}", *sample.arguments]
            return run_command(command, folder, self.environment, self.timeout(sample))


class SayingWay(Way):
    """What a program says in its first run, it has to say in all others: the lines that `said` finds."""
    said = re.compile("")

    def compare(self, program, result):
        said = "\n".join(self.said.findall(result.output))
        program.said = program.said or said
        if result.verdict == "passed" and said != program.said:
            result.verdict, result.remark = "failed", f"{said}, not {program.said}"
        return result


@dataclasses.dataclass
class SayingProgram:
    name: str
    command: list
    said: str = ""  # in its first run
    runs: dict = dataclasses.field(default_factory=dict)  # title of a way to run it -> Result


def funnel_environment(scratch):
    return dict(os.environ, CUDA_MPS_PIPE_DIRECTORY=str(scratch / "pipe"),
                CUDA_MPS_LOG_DIRECTORY=str(scratch / "log"))


def share_list(text):
    """The shares of the multiprocessors that an option names, in percent: "10,25"."""
    return [float(share) for share in text.split(",")]


def ways(options, scratch, kind=Way):
    """The first is the measure; the others have to agree with it. `kind` says how a program runs."""
    funnel = str(options.build / "bin/funnel")
    if options.device == "cuda":
        yield kind("native", [], dict(os.environ), 1, options)
    else:
        soft = dict(os.environ, LD_LIBRARY_PATH=str(options.build / "lib/funnel/softgpu"))
        yield kind("direct", [], soft, 1, options)
    if options.first_only:
        return
    words = [funnel, "run", "-q", "--device", options.device, "--"]
    for share in [100, *options.shares]:
        environment = funnel_environment(scratch)
        if share < 100:
            environment["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = str(share)
        for clients in options.clients:
            title = "funnel" if clients == 1 else f"funnel x{clients}"
            yield kind(title if share == 100 else f"{title} {share:g}%", words, environment,
                       clients, options)


def add_way_options(parser):
    """The options of a test that runs a program natively and through Funnel."""
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent.parent / "build",
                        help="Funnel's build folder")
    parser.add_argument("--device", choices=["soft", "cuda"], default="soft")
    parser.add_argument("--clients", default="1,4", help="copies at once through Funnel")
    parser.add_argument("--timeout", type=int, default=120, help="seconds for each run")


def parse_way_options(parser):
    parsed = parser.parse_args()
    parsed.clients = [int(number) for number in parsed.clients.split(",")]
    parsed.build, parsed.first_only, parsed.shares = parsed.build.resolve(), False, []
    return parsed


def compare_ways(programs, options, scratch, kind):
    """Runs the programs in all ways, and prints the results. The exit status is 0 when all agree."""
    said_ways = list(ways(options, pathlib.Path(scratch), kind))
    try:
        for program in programs:
            for way in said_ways:
                program.runs[way.title] = way.run(program)
    finally:
        stop_daemon(options, scratch)
    print(report.table(programs, [way.title for way in said_ways]))
    for program in programs:
        print(program.said)
    passed = all(result.verdict == "passed" for program in programs for result in program.runs.values())
    return 0 if passed and all(program.said for program in programs) else 1


def stop_daemon(options, scratch):
    subprocess.run([options.build / "bin/funnel", "stop", "--force"], check=False, timeout=60,
                   env=funnel_environment(pathlib.Path(scratch)), stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)

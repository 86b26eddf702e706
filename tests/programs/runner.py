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
import sys
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
        self.mixed = 1  # how many different programs run at a time

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
        """Programs at once share the GPU: each may take as long as all would one after the other,
        and half as long again."""
        alone = [result.seconds for result in sample.runs.values() if result.verdict == "passed"]
        return max(self.options.timeout, *(1.5 * self.clients * self.mixed * seconds for seconds in alone), 0)

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
    for mixed in options.mixed:
        way = kind(f"funnel {mixed} mixed", words, funnel_environment(scratch), 1, options)
        way.mixed = mixed
        yield way


def add_way_options(parser, device="soft", clients="1,4", timeout=120):
    """The options of a test that runs a program natively and through Funnel, with their defaults."""
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent.parent / "build",
                        help="Funnel's build folder")
    parser.add_argument("--device", choices=["soft", "cuda"], default=device)
    parser.add_argument("--clients", default=clients, help="copies at once through Funnel: 1,4")
    parser.add_argument("--timeout", type=int, default=timeout, help="seconds for each run")


def add_table_options(parser):
    """The options of a test that runs many programs, also in shares of the GPU."""
    parser.add_argument("--shares", type=share_list, default=[],
                        help="shares of the multiprocessors to run in as well, in percent: 10,25")
    parser.add_argument("--table", type=pathlib.Path, help="file for the results, Markdown")


def add_mixed_option(parser):
    """The option of a test whose programs may also run beside each other."""
    parser.add_argument("--mixed", type=lambda text: [int(number) for number in text.split(",")],
                        help="different programs at once through Funnel, as well: 2,8")


def parse_way_options(parser):
    parser.set_defaults(shares=[], mixed=[], first_only=False)
    parsed = parser.parse_args()
    parsed.clients = [int(number) for number in parsed.clients.split(",")]
    parsed.build = parsed.build.resolve()
    return parsed


def parse_model_options(parser, tokens):
    """Those of a test that runs a language model, by a package for Node.js."""
    parser.add_argument("--modules", type=pathlib.Path, required=True, help="a node_modules folder")
    parser.add_argument("--libraries", default="", help="folders of CUDA's libraries, with colons")
    parser.add_argument("--tokens", default="8", help=tokens)
    add_way_options(parser)
    parsed = parse_way_options(parser)
    parsed.modules = parsed.modules.resolve()
    return parsed


def print_run(way, program):
    """One write, as others print at the same time."""
    result = program.runs[way.title]
    sys.stdout.write(f"{way.title:14} {result.verdict:10} {result.seconds:6.1f} s  "
                     f"CPU {result.cpu:5.1f} s  {program.name}  {result.remark}\n")
    sys.stdout.flush()


def run_in_way(way, program):
    program.runs[way.title] = way.run(program)
    print_run(way, program)


def run_each(programs, said_ways):
    for way in said_ways:
        with concurrent.futures.ThreadPoolExecutor(way.mixed) as pool:
            list(pool.map(lambda program, its=way: run_in_way(its, program), programs))


def run_ways(options, scratch, kind, run):
    """Has `run` run the programs in all ways, and gives the ways' titles."""
    said_ways = list(ways(options, pathlib.Path(scratch), kind))
    try:
        run(said_ways)
    finally:
        stop_daemon(options, scratch)
    return [way.title for way in said_ways]


def report_runs(programs, titles, options):
    """Whether all that pass in the first way pass in the others, after a summary."""
    if options.table:
        options.table.write_text(report.table(programs, titles))
    print(report.summary(programs, titles))
    return not report.differing(programs, titles)


def compare_ways(programs, options, scratch, kind):
    """Runs the programs in all ways, and prints the results. The exit status is 0 when all agree."""
    titles = run_ways(options, scratch, kind, lambda said_ways: run_each(programs, said_ways))
    print(report.table(programs, titles))
    for program in programs:
        print(program.said)
    passed = all(result.verdict == "passed" for program in programs for result in program.runs.values())
    return 0 if passed and all(program.said for program in programs) else 1


def stop_daemon(options, scratch):
    subprocess.run([options.build / "bin/funnel", "stop", "--force"], check=False, timeout=60,
                   env=funnel_environment(pathlib.Path(scratch)), stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)

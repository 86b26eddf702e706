#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Limits, priorities and terminate_client beside NVIDIA's MPS: what was asked for, what was
granted, and what programs then really had.

Runs without MPS, too, and on the software GPU. Ends with status 1 when Funnel grants what its
programs do not get, or get beyond it.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import modes
from limit_ways import NoAnswer, Way

ROOT = Path(__file__).resolve().parent.parent
MIB = 1 << 20
PERCENT = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
MEMORY = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"
PRIORITY = "CUDA_MPS_CLIENT_PRIORITY"

PERCENTAGES = (5, 10, 25, 33, 50, 75, 99)
COUNTS = (1, 2, 3, 8, 9, 10, 16, 33, 64, 100, 131, 132, 133)
NAMES = {"mps": "MPS", "funnel": "Funnel"}


class Table:
    """Rows of one kind, in the order in which they were first asked for."""

    def __init__(self, title, *columns):
        self.title, self.columns = title, columns or ("granted", "measured")
        self.rows = {}  # asked: {way: cells}
        self.wrong = []

    def add(self, way, asked, *cells, right=True):
        self.rows.setdefault(asked, {})[way.name] = [str(cell) for cell in cells]
        if not right and way.name == "funnel":
            self.wrong.append(asked)

    def text(self, ways):
        head = ["asked",
                *(f"{NAMES[way.name]} {column}" for way in ways for column in self.columns)]
        lines = [f"## {self.title}", "", "| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
        for asked, cells in self.rows.items():
            blank = ["-"] * len(self.columns)
            words = [asked, *(cell for way in ways for cell in cells.get(way.name, blank))]
            lines.append("| " + " | ".join(words)
                         + (" | **differs** |" if asked in self.wrong else " |"))
        return "\n".join(lines) + "\n"


class Comparison:
    def __init__(self, args):
        self.brief = args.brief
        self.pace = 0.4 if args.brief else 1  # of the seconds for which programs work
        self.build = Path(args.build)
        funnel = self.build / "bin/funnel"
        self.funnel = Way(modes.Funnel(funnel, args.device),
                          str(self.build / "bin/nvidia-cuda-mps-control"), self.build)
        self.ways = [self.funnel]
        if args.device == "cuda" and not args.no_mps and shutil.which("nvidia-cuda-mps-control"):
            mps = modes.Mps()
            self.ways.insert(0, Way(mps, mps.control, self.build))
        self.tables = []
        self.notes = []

    def each_way(self, part, *tables):
        """A part that does not come to its end is said below the tables, and the next one is
        begun."""
        for way in self.ways:
            began = time.monotonic()
            try:
                part(way, *tables)
            except (NoAnswer, OSError, ValueError, IndexError, subprocess.SubprocessError) as error:
                self.notes.append(f"{part.__name__} ({NAMES[way.name]}): {type(error).__name__} "
                                  f"{error}")
                way.restart()
            print(f"{part.__name__} {way.name}: {time.monotonic() - began:.0f} s", file=sys.stderr,
                  flush=True)

    # ---- shares ----

    def shares(self, way, by_client, by_default, by_command, numbers):
        for percent in PERCENTAGES[1::2] if self.brief else PERCENTAGES:
            self.share(way, by_client, percent, **{PERCENT: str(percent)})
            way.command(f"set_active_thread_percentage {way.server()} {percent}")
            self.share(way, by_command, percent)
            way.command(f"set_active_thread_percentage {way.server()} 100")
        for percent in PERCENTAGES[1::2]:  # a server each
            way.command(f"set_default_active_thread_percentage {percent}")
            way.end_server()
            self.share(way, by_default, percent)
        way.command("set_default_active_thread_percentage 100")
        way.end_server()
        self.numbers(way, numbers)

    @staticmethod
    def share(way, table, percent, **environment):
        (said,), default, own = way.ask("sms", "smid", "new-smid", **environment)
        right = len(default) == said and len(own) == said
        both = len(default) if len(default) == len(own) else f"{len(default)} and {len(own)}"
        table.add(way, f"{percent} %", said, both, right=right)

    @staticmethod
    def numbers(way, table):
        """Two at a time: which numbers their SMs have."""
        pair = [way.spawn("limits_probe", "smid", "wait", **{PERCENT: "25"}) for _ in range(2)]
        for which, client in zip(("the first", "the second"), pair):
            seen = [int(word) for word in client.answer()]
            table.add(way, which, f"{min(seen)} to {max(seen)}")
        way.end(*pair)

    def affinity(self, way, by_v3, by_v4):
        sms = way.ask("sms")[0][0]
        for table, question in ((by_v3, "context3"), (by_v4, "context")):
            counts = [count for count in COUNTS if count <= sms]
            questions = [word for n in counts for word in (f"{question}={n}", "smid", "close")]
            answers = way.ask(*questions)
            for i, count in enumerate(counts):
                (result, granted, _), seen = answers[3 * i], answers[3 * i + 1]
                table.add(way, str(count), granted, len(seen),
                          right=result == 0 and len(seen) == granted)
            for count in [count for count in COUNTS if count > sms][:1]:
                result = way.ask(f"{question}={count}")[0][0]
                table.add(way, str(count), f"error {result}", "-", right=result == 224)

    # ---- memory ----

    def memory(self, way, table):
        limits = ("64M", "256M") if self.brief else ("1G", "4G")
        for limit in limits:
            size = 16 if self.brief else 64
            (free, total), (pieces, error), _, (again, _) = way.ask("info", f"fill={size}", "drop",
                                                                    "info",
                                                                    **{MEMORY: f"0={limit}"})
            table.add(way, limit, f"free {free // MIB} of {total // MIB} MiB",
                      f"{pieces} x {size} MiB, then error {error}; free again {again // MIB}",
                      right=pieces == free // (size * MIB) and error == 2)

    # ---- priority ----

    def priority(self, way, ranges, effect):
        for which, environment in (("normal", {}), ("below normal", {PRIORITY: "1"})):
            least, greatest = way.ask("priorities", **environment)[0]
            ranges.add(way, which, f"{least} to {greatest}")
        self.small_beside(way, effect, "alone", None)
        self.small_beside(way, effect, "beside a normal client that floods the GPU", "0")
        self.small_beside(way, effect, "beside one below normal", "1")

    def small_beside(self, way, table, which, priority):
        rate, median, p99 = way.small_beside_flood(priority, self.pace)
        table.add(way, which, f"{rate:.0f}", median, p99)

    # ---- ending clients ----

    def ending(self, way, table):
        self.end_one(way, table, "steady", "short kernels")
        self.end_one(way, table, "endless", "an endless kernel")
        if way is self.funnel:
            self.end_one(way, table, "queued", "an endless kernel with 5000 kernels behind it")
        self.kill_one(way, table)

    def end_one(self, way, table, role, after):
        """terminate_client, beside a client that is not meant."""
        reporter, victim = way.begin("steady", 600), way.begin(role, 600)
        reporter.go()
        victim.go()
        if role != "steady":
            victim.answer()  # launched
        time.sleep(0.5 * self.pace)
        server, began = way.server(), time.monotonic()
        try:
            answer = " ".join(way.command(f"terminate_client {server} {victim.pid}", 12))
        except NoAnswer as error:
            answer = str(error)
        took = time.monotonic() - began
        self.tell_end(way, table, f"terminate_client, {after}", (reporter, victim),
                      f"{answer} after {took:.2f} s")

    def kill_one(self, way, table):
        reporter, victim = way.begin("steady", 600), way.begin("endless", 600)
        reporter.go()
        victim.go()
        victim.answer()
        time.sleep(0.5 * self.pace)
        victim.kill()
        self.tell_end(way, table, "kill -9, an endless kernel", (reporter, None), "-")

    def tell_end(self, way, table, which, clients, answer):
        """What the two report, whether a new client is accepted; then restarts everything."""
        reporter, victim = clients
        reported = self.words_of(victim, 4) if victim else "-"
        new_client = self.new_client(way)
        going = self.words_of(reporter, self.pace)
        table.add(way, which, answer, reported, "goes on" if going == "nothing" else going, new_client,
                  right=going == "nothing" and new_client == "works")
        way.restart()

    @staticmethod
    def words_of(client, timeout):
        try:
            return " ".join(client.answer(timeout)) or "ended without a word"
        except NoAnswer:
            return "nothing"

    def new_client(self, way):
        client = way.spawn("limits_load", "steady", 0.5 * self.pace)
        try:
            client.ready().go()
            count, result, _ = client.answer(30)
            return "works" if result == "0" and int(count) else f"error {result}"
        except (NoAnswer, ValueError) as error:
            return str(error)
        finally:
            way.end(client)

    def oversubscribed(self, way, table):
        """More clients than are taken."""
        wanted = 6 if self.brief else 66
        way.restart(FUNNEL_MAX_CLIENTS="4" if self.brief else "60")
        way.ask("sms")
        way.await_no_clients()  # the one that has asked counts until the server knows of its end
        clients = [way.spawn("limits_probe", "sms", "wait") for _ in range(wanted)]
        ends = time.monotonic() + 40
        first = []
        for client in clients:
            try:
                first.append(" ".join(client.answer(max(0.1, ends - time.monotonic()))))
            except NoAnswer as error:
                first.append(str(error))
        taken = sum(1 for words in first if words.isdigit())
        said = ", ".join(sorted({words for words in first if not words.isdigit()}))
        table.add(way, f"{wanted} clients at once", taken, said or "-",
                  right="808" in said and taken == (4 if self.brief else 60))
        way.restart()

    # ---- changes while a program runs ----

    def limit(self, client, *words):
        subprocess.run([str(self.build / "bin/funnel"), "limit", "--client", str(client.pid),
                        *words], check=True,
                       env=self.funnel.mode.environment(), stdout=subprocess.DEVNULL, timeout=60)

    def changes(self, way, table):
        """Funnel's alone: shares of programs that run."""
        if way is not self.funnel:
            return
        steps = (4, 12, 2) if self.brief else (32, 66, 8, 100)
        questions = ("smid", "new-smid", "kept-smid")
        all_sms = int(way.ask("sms")[0][0])
        later = [[f"{question}={sms}" for question in questions] for sms in (*steps, all_sms)]
        client = way.spawn("limits_probe", *questions,
                           *(word for words in later for word in ("wait", *words)))
        for _ in questions:
            client.answer()
        for sms in (*steps, all_sms):
            self.limit(client, "--sms", str(sms))
            client.go()
            client.answer()  # on
            seen = [len(client.answer()) for _ in questions]
            table.add(way, f"{sms} SMs", sms, " ".join(map(str, seen)), right=seen == [sms] * 3)
        way.end(client)
        self.changes_at_work(way, table, steps)

    def changes_at_work(self, way, table, steps):
        """No kernel may overtake another one, or get lost, when its stream moves."""
        client = way.begin("order", 2 * self.pace)
        client.go()
        changed, ends = 0, time.monotonic() + 1.5 * self.pace
        while time.monotonic() < ends:
            self.limit(client, "--sms", str(steps[changed % len(steps)]), "--priority",
                       str(changed & 1))
            changed += 1
        count, result, right = client.answer()
        table.add(way, f"{changed} changes under queued kernels", f"{count} in order",
                  f"{right}, error {result}", right=(result, right) == ("0", count))
        way.end(client)

    def new_clients(self, way, table):
        """Shares that no client had before, made while others work."""
        for which, percent in (("the whole device", 100), ("a share: 37 %", 37),
                               ("again 37 %", 37)):
            flood, reporter = (way.begin("flood", 2 * self.pace),
                               way.begin("steady", 1.2 * self.pace))
            flood.go()
            reporter.go()
            time.sleep(0.3 * self.pace)
            began = time.monotonic()
            way.ask("sms", **{PERCENT: str(percent)})
            took = time.monotonic() - began
            count, result, worst = reporter.answer()
            table.add(way, which, f"{took * 1e3:.0f}", worst, right=result == "0")
            way.end(flood, reporter)

    # ---- all of it ----

    PARTS = {
        "shares": (("A client's percentage, in SMs",), ("The server's default",),
                   ("Set for a running server",), ("%smid of two clients with 25 %", "numbers")),
        "affinity": (("cuCtxCreate_v3 with a number of SMs",),
                     ("cuCtxCreate_v4 with a number of SMs",)),
        "memory": (("Memory limits",),),
        "priority": (("Priorities of streams", "least to greatest"),
                     ("Kernels of 50 us and 16 blocks, each waited for", "a second", "median us",
                      "p99 us")),
        "changes": (("Shares of a program that runs",),),
        "new_clients": (("A client comes while the GPU is full", "ms until it ended",
                       "ms, worst kernel of another"),),
        "oversubscribed": (("More clients than are taken", "taken", "the others get"),),
        "ending": (("Ending a client at work", "answer", "the client", "another", "new client"),),
    }

    def run(self, wanted):
        """Each part in each way; its tables are printed at once, as a time limit may end us."""
        for way in self.ways:
            way.start()
        for name, tables in self.PARTS.items():
            if not wanted or name in wanted:
                tables = [Table(*words) for words in tables]
                self.each_way(getattr(self, name), *tables)
                self.tables += tables
                print("\n".join(table.text(self.ways) for table in tables), flush=True)

    def verdict(self):
        """Prints it, and returns whether something is wrong."""
        for note in self.notes:
            print(f"* {note}")
        wrong = [f"{table.title}: {asked}" for table in self.tables for asked in table.wrong]
        wrong += [note for note in self.notes if f"({NAMES['funnel']})" in note]
        print("Funnel differs in:\n  " + "\n  ".join(wrong) if wrong
              else "Funnel gives what it grants.")
        return bool(wrong)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=str(ROOT / "build"),
                        help="build directory (default: build)")
    parser.add_argument("--device", choices=("auto", "cuda", "soft"), default="auto")
    parser.add_argument("--no-mps", action="store_true", help="leave NVIDIA's MPS out")
    parser.add_argument("--part", action="append", choices=Comparison.PARTS,
                        help="only this; may be repeated")
    parser.add_argument("--brief", action="store_true",
                        help="fewer values and shorter runs, as the software GPU is slow")
    args = parser.parse_args()
    if args.device == "auto":
        args.device = "cuda" if modes.gpu_memory_used_mib() is not None else "soft"
    return args


def main():
    args = parse_arguments()
    if args.device == "soft":
        os.environ.setdefault("FUNNEL_SOFT_DEVICES", "1:sms=16,mem=1G")
        args.brief = True
    comparison = Comparison(args)
    try:
        comparison.run(args.part)
    finally:
        for way in comparison.ways:
            way.stop()
    sys.exit(comparison.verdict())


if __name__ == "__main__":
    main()

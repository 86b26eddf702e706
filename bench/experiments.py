#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The experiments that Funnel is judged by, as one command of some two minutes. They are n-body
with 1, 2 and 4 processes, and LeNet in PyTorch with 1 and 4. And a program is stopped by Ctrl-C, by
kill -9, by a command to the service, or by a fault of its own: what do its neighbors notice?
Natively, under NVIDIA's MPS and through Funnel, as far as the machine has them.
"""
import argparse
import importlib.util
import json
import os
import platform
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.sax.saxutils import escape

import clients
import modes
from clients import BenchError, Client, Skipped

ROOT = Path(__file__).resolve().parent.parent
TORCH = Path(__file__).resolve().parent / "torch_client.py"
# The row of client.cu, and its title. A step of n-body takes the software GPU a minute.
WORK = {"cuda": ("nbody", "n-body"), "soft": ("small", "kernels of 16 blocks")}
COLORS = {"native": "#b8b8b8", "mps": "#8fbfdd", "funnel": "#1b5e8c"}


def say(text):
    print(text, file=sys.stderr, flush=True)


# ---- how fast ----


def total_rate(mode, command, count, seconds):
    """Units per second of all clients together."""
    reports = clients.run_together(mode, [command] * count, seconds)[0]
    return sum(report["rate"] for report in reports)


def rates(mode, program, options):
    found = {}
    row, title = WORK[options.device]
    for count in (1, 2, 4):
        found[f"{title}, {count}"] = lambda n=count: total_rate(
            mode, [program, row, options.seconds], n, options.seconds)
    if has_torch(options.device):
        for count in (1, 4):
            found[f"LeNet, {count}"] = lambda n=count: total_rate(
                mode, [sys.executable, TORCH, "lenet", options.seconds], n, options.seconds)
    return found


def has_torch(device):
    """To import it takes seconds, so that is left to the programs that need it."""
    return device == "cuda" and importlib.util.find_spec("torch") is not None


# ---- stopping a program ----


def stop_by_signal(number):
    def stop(mode, victim):
        os.kill(victim.pid, number)
    return stop


def stop_by_command(mode, victim):
    """Natively there is no service to ask."""
    if mode.name == "funnel":
        command = [mode.funnel, "terminate", str(victim.pid)]
        subprocess.run(command, env=mode.environment(), check=True, timeout=30,
                       stdout=subprocess.DEVNULL)
    elif mode.name == "mps":
        server = mode.command("get_server_list").stdout.split()[0]
        mode.command(f"terminate_client {server} {victim.pid}")
    else:
        raise Skipped("no service")


WAYS = {
    "Ctrl-C": (None, stop_by_signal(signal.SIGINT)),
    "kill -9": (None, stop_by_signal(signal.SIGKILL)),
    "command": (None, stop_by_command),
    "fault": ("fault", lambda mode, victim: None),
}


def neighbor_outcome(neighbor, seconds):
    """(whether it computed on to its end, its worst launch and wait in ms)"""
    try:
        report = neighbor.report(seconds * 10 + 30)
    except BenchError:
        return False, None
    return True, report["max_us"] / 1e3


def newcomer_seconds(mode, program):
    """From the start of a program to its end, tried until one works."""
    begin = time.monotonic()
    while time.monotonic() - begin < 30:
        try:
            clients.run_together(mode, [[program, "launch_sync", 0.01]], 1)
            return time.monotonic() - begin
        except BenchError:
            continue
    return None


def stopped(mode, program, way, options):
    row, stop = WAYS[way]
    row, seconds = row or WORK[options.device][0], options.seconds + 2
    with Client(mode, [program, "launch_sync", seconds]) as neighbor, \
            Client(mode, [program, row, 60]) as victim:
        neighbor.await_ready()
        victim.await_ready()
        neighbor.go()
        time.sleep(0.2)
        victim.go()
        time.sleep(0.5)
        begin = time.monotonic()
        stop(mode, victim)
        try:
            victim.process.wait(20)
        except subprocess.TimeoutExpired:
            raise BenchError("the program does not end") from None
        ended = time.monotonic() - begin
        newcomer = newcomer_seconds(mode, program)
        survived, worst = neighbor_outcome(neighbor, seconds)
    return {"ended_s": ended, "neighbor_survived": survived, "neighbor_worst_ms": worst,
            "newcomer_s": newcomer}


# ---- all of it ----


def measure(what, function):
    """What was found, or why nothing was."""
    try:
        found = function()
    except Skipped:
        return None
    except (BenchError, subprocess.SubprocessError, OSError, IndexError) as error:
        say(f"  {what}: {error}")
        return {"error": str(error)}
    say(f"  {what}: {found}")
    return found


def run_mode(mode, program, options):
    say(f"{mode.name}:")
    mode.start()
    try:
        clients.run_together(mode, [[program, "launch_sync", 0.05]], 1)  # a server's first client
        found = {name: measure(name, function)
                 for name, function in rates(mode, program, options).items()}
        stops = {}
        for way in WAYS:
            stops[way] = measure(way, lambda: stopped(mode, program, way, options))
            if way == "fault":
                mode.restart()
    finally:
        mode.stop()
    return {"rates": found, "stops": stops}


# ---- what is written ----


def number(value):
    return "-" if not isinstance(value, (int, float)) else f"{value:.3g}" if value < 1000 \
        else f"{value:.0f}"


def describe_stop(found):
    if not found:
        return "-"
    if "error" in found:
        return found["error"]
    neighbor = (f"goes on, worst wait {number(found['neighbor_worst_ms'])} ms"
                if found["neighbor_survived"] else "ends")
    return f"{neighbor}; next program {number(found['newcomer_s'])} s"


def table(heading, section, results, describe):
    names = list(results)
    rows = list(dict.fromkeys(row for name in names for row in results[name][section]))
    lines = [f"| {heading} | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    for row in rows:
        cells = [describe(results[name][section].get(row)) for name in names]
        lines.append(f"| {row} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def markdown(about, results):
    return "\n\n".join([
        f"{about['device']}, {about['date']}, {about['cpus']} CPUs. Steps per second of all processes "
        "together:", table("processes", "rates", results, number),
        "What the neighbor of a program notices when that is stopped, and how long the next program "
        "takes from its start to its end:",
        table("stopped by", "stops", results, describe_stop)]) + "\n"


def plot(about, results):
    """A group of bars for each experiment, each relative to the highest of its group."""
    rows = list(dict.fromkeys(row for found in results.values() for row in found["rates"]))
    height = 60 + len(rows) * (len(results) * 16 + 14)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="760" height="{height}" '
             f'font-family="sans-serif" font-size="11"><rect width="760" height="{height}" '
             f'fill="white"/><text x="10" y="20" font-size="14">Steps per second, all processes '
             f'together: {escape(about["device"])}, {about["date"]}</text>']
    y = 40
    for row in rows:
        values = {name: found["rates"].get(row) for name, found in results.items()}
        values = {name: value for name, value in values.items() if isinstance(value, float)}
        most = max(values.values(), default=1)
        parts.append(f'<text x="10" y="{y + 12}">{escape(row)}</text>')
        for name, value in values.items():
            parts.append(f'<rect x="110" y="{y}" width="{460 * value / most:.1f}" height="13" '
                         f'fill="{COLORS[name]}"/><text x="{120 + 460 * value / most:.1f}" '
                         f'y="{y + 11}">{name} {number(value)}</text>')
            y += 16
        y += 14
    return "\n".join(parts) + "\n</svg>\n"


def write(folder, about, results):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "experiments.json").write_text(
        json.dumps({"about": about, "modes": results}, indent=1) + "\n")
    (folder / "experiments.md").write_text(markdown(about, results))
    (folder / "experiments.svg").write_text(plot(about, results))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--device", choices=["cuda", "soft"], default="cuda")
    parser.add_argument("--mode", action="append", choices=["native", "mps", "funnel"])
    parser.add_argument("--seconds", type=float, default=3, help="each client's work")
    parser.add_argument("--output", type=Path, default=None,
                        help="folder for experiments.json, .md and .svg; default: BUILD/bench")
    options = parser.parse_args()
    options.build = options.build.resolve()  # programs run in folders of their own
    return options


def main():
    options = parse_arguments()
    program = clients.build("client", options.build / "bench")
    about = {"device": modes.device_name(options.device), "cpus": os.cpu_count(),
             "date": time.strftime("%Y-%m-%d"), "host": platform.machine()}
    results = {}
    for mode in modes.available(options.build / "bin/funnel", options.device, True):
        if options.mode and mode.name not in options.mode:
            continue
        try:
            results[mode.name] = run_mode(mode, program, options)
        except (BenchError, subprocess.SubprocessError, OSError) as error:
            say(f"{mode.name} does not come up: {error}")
    write(options.output or options.build / "bench", about, results)
    print(markdown(about, results), end="")
    failed = [name for found in results.values() for section in found.values()
              for name, value in section.items() if isinstance(value, dict) and "error" in value]
    return 1 if failed or not results else 0


sys.exit(main())

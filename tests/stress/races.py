#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Chaos and hostile sequences of commands over the pool of workers, under ThreadSanitizer.

    tests/stress/races.py [--build build-tsan] [--seconds N] [--seed N] [chaos] [sequences]

`make races` builds what it needs. Each part takes so many seconds. It fails when a process reports a
race, when its own checks fail, or when no worker of a pool has served. The reports stay in the
folder that is named.
"""
import argparse
import collections
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import guardian  # noqa: E402  (found through the path above)

# Programs that launch and wait all the time, beside those of chaos.
BUSY = 8
# Sixteen programs fill them, and so do the four clients of a hostile sequence.
CPUS = {"chaos": 8, "sequences": 4}
# The threads of the software GPU stand for a GPU's. A kernel's `st.release.sys` is a fence and a store, and
# ThreadSanitizer knows no fences.
KERNELS = ["softgpu/exec/memory/"]
# Hostile clients copy to the same memory in streams that nothing orders.
COPIES = ["softgpu/device/copy/", "softgpu/device/stream/value_calls.c"]
SUPPRESSED = {"chaos": KERNELS, "sequences": KERNELS + COPIES}
# A server that is told to end leaves threads behind whose sessions have just ended (report_thread_leaks).
STAYS = re.compile(r"workers of a pool served clients (\d+) times")


def command_of(part, options):
    if part == "chaos":
        return ["python3", "-B", str(ROOT / "tests/stress/chaos.py"), "--build", options.build,
                "--seconds", str(options.seconds), "--seed", str(options.seed), "--busy", str(BUSY)]
    return [options.build + "/tests/hostile/test_hostile_sequences", str(options.seconds),
            str(options.seed)]


def environment_of(part, options, folder):
    rules = folder / "suppressed"
    rules.write_text("".join(f"race:{place}\n" for place in SUPPRESSED[part]))
    return dict(os.environ, FUNNEL_CPUS=str(CPUS[part]), FUNNEL_SOFT_DEVICES="1:sms=8,mem=2G",
                FUNNEL_SOFT_STALLS="1", FUNNEL_TEST_TIMEOUT="600",
                FUNNEL_TEST_SERVER=options.build + "/bin/funnel-server",
                TSAN_OPTIONS=f"exitcode=0 report_thread_leaks=0 suppressions={rules} log_path={folder}/report")


def reports_in(folder):
    """How often which report came."""
    return collections.Counter(
        line for file in folder.glob("report.*") for line in file.read_text(errors="replace").splitlines()
        if line.startswith("SUMMARY:"))


def play(part, options):
    """Whether all went well."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"funnel-races-{part}-"))
    done = subprocess.run(command_of(part, options), env=environment_of(part, options, folder), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    reports = reports_in(folder)
    stays = sum(map(int, STAYS.findall(done.stdout)))
    print(done.stdout, end="")
    for line, count in reports.most_common():
        print(f"{count} x {line}")
    print(f"{part}: {sum(reports.values())} reports, in {folder}; status {done.returncode}", flush=True)
    return not reports and done.returncode == 0 and stays > 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=str(ROOT / "build-tsan"), type=os.path.abspath)
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 20))
    parser.add_argument("parts", nargs="*", metavar="part")
    options = parser.parse_args()
    parts = options.parts or list(CPUS)
    if set(parts) - set(CPUS):
        parser.error(f"a part is one of {', '.join(CPUS)}")
    guardian.protect()
    return 0 if all([play(part, options) for part in parts]) else 1


sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""No two threads of a process take two locks in opposite orders (docs/design/locks.md). Programs
run through Funnel with lock_tracer.c preloaded, in the daemon and its servers as well:
test_lock_order.py BUILD."""
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else ROOT / "build"
# Together they enter each subsystem that has locks.
PROGRAMS = ["callbacks", "conditionals", "contexts", "events", "forks", "graph_memory", "graphs", "green", "ipc",
            "managed_moves", "managed_variables", "modules", "pools", "prints", "registers", "streams", "threads",
            "vmm"]
# Locks that code in several files takes, by the end of the expression for them; others are their file's.
SHARED = {"client->lock": "client->lock", "socket_lock": "client->socket_lock", "server->lock": "server->lock",
          "streams->lock": "streams->lock", "gate->lock": "gate->lock", "members[i]->lock": "gate->lock",
          "waits_lock": "gate->waits_lock", "soft_lock": "soft_lock",
          "store->lock": "store->lock", "client_graph_lock": "client_graph_lock", "vmm.lock": "vmm.lock",
          "graph_backend.lock": "client_graph_lock", "managed_allocations.lock": "managed_allocations.lock",
          "managed_allocations_lock": "managed_allocations.lock",
          "managed.lock": "managed.lock", "managed_lock": "managed.lock"}
# Where the lines of a function that takes a lock for its caller are.
TAKERS = ("src/base/cleanup.h", "src/base/deferred_signals.h", "src/base/lock.h", "src/client/core/client_call.h",
          "src/graph/model/graph_objects.h")
TAKEN = re.compile(r"(?:hold|_lock|rdlock|wrlock)\(&?([\w>.\[\]-]+)\)|\b([A-Z]+_LOCKED)\b|\b(\w+_lock)\(\)")


def lines_of(path):
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


class Places:
    """From an offset in a library or program to the name of the lock that is taken there."""

    def __init__(self):
        self.known = {}
        self.macros = {}
        for path in (ROOT / "src").rglob("*.[ch]"):
            self.macros.update(re.findall(r"^#define ([A-Z]+_LOCKED)\b[^\n]*(?:\\\n[^\n]*)?hold\(&?([\w>.-]+)\)",
                                          path.read_text(), re.M))

    def learn(self, module, offsets):
        """Names the locks at all offsets; addr2line reads a program's debug information once for them."""
        file = BUILD / "bin/funnel-server" if module == "funnel-server" else module
        text = subprocess.run(["addr2line", "-a", "-i", "-e", file, *(hex(int(offset, 16) - 1) for offset in offsets)],
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        for offset, frames in zip(offsets, re.split(r"^0x\w+\n", text, flags=re.M)[1:]):
            lines = [(path, int(line)) for path, line in re.findall(r"\b(src/\S+?):(\d+)", frames)]
            self.known[module, offset] = self.find_name(module, lines)

    def find_name(self, module, frames):
        """Of the innermost of the functions at a place that is not a taker's."""
        for file, line in frames:
            if file not in TAKERS:
                taken = TAKEN.search(" ".join(lines_of(ROOT / file)[line - 1:line + 2]))
                expression = taken and (taken.group(1) or self.macros.get(taken.group(2)) or taken.group(3))
                if not expression:
                    return None
                for end, name in SHARED.items():
                    if expression.endswith(end):
                        return "soft_lock" if name == "client_graph_lock" and "softgpu" in module else name
                return f"{file}: {expression}"
        return None


def circle(edges):
    """A list of names in which each is taken inside the one before it, and the first inside the last."""
    done = set()

    def search(name, path):
        if name in path:
            return path[path.index(name):] + [name]
        if name in done:
            return None
        for inner in sorted(edges.get(name, ())):
            found = search(inner, path + [name])
            if found:
                return found
        done.add(name)
        return None

    for name in sorted(edges):
        found = search(name, [])
        if found:
            return found
    return None


class LockOrder(unittest.TestCase):
    def run_programs(self, folder):
        environment = {key: value for key, value in os.environ.items()
                       if not key.startswith(("CUDA_", "FUNNEL_", "LD_", "XDG_"))}
        environment.update(HOME=folder, FUNNEL_DEVICE="soft", CUDA_MPS_PIPE_DIRECTORY=folder + "/pipe",
                           CUDA_MPS_LOG_DIRECTORY=folder + "/log", FUNNEL_TEST_LOCKS=folder + "/locks",
                           LD_PRELOAD=str(BUILD / "tests/api/liblock_tracer.so"))
        funnel = BUILD / "bin/funnel"
        subprocess.run([funnel, "start", "--spare"], env=environment, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=60)
        self.addCleanup(subprocess.run, [funnel, "stop", "--force"], env=environment, timeout=60,
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for name in PROGRAMS:
            done = subprocess.run([funnel, "run", "-q", "--", BUILD / "tests/api" / name], env=environment,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=100)
            self.assertIn(done.returncode, (0, 77), f"{name}: {done.stderr.decode()}")

    def test_orders(self):
        """Each pair of locks has one order, and so has each circle of them."""
        folder = tempfile.mkdtemp(prefix="fnl-", dir="/tmp")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        self.run_programs(folder)
        places, edges, seen = Places(), collections.defaultdict(set), set()
        pairs = {tuple(line.split()) for line in lines_of(pathlib.Path(folder) / "locks")}
        offsets = collections.defaultdict(set)
        for outer, outer_offset, inner, inner_offset in pairs:
            offsets[outer].add(outer_offset)
            offsets[inner].add(inner_offset)
        for module in offsets:
            places.learn(module, sorted(offsets[module]))
        for pair in pairs:
            outer, inner = places.known.get(pair[:2]), places.known.get(pair[2:])
            if outer and inner and outer != inner:
                edges[outer].add(inner)
                seen |= {outer, inner}
        self.assertIsNone(circle(edges), "each is taken inside the one before it")
        # What shows that client, server and software GPU were seen.
        self.assertLessEqual({"client->lock", "server->lock", "streams->lock", "soft_lock"}, seen)
        self.assertGreater(sum(map(len, edges.values())), 50)

    def test_a_circle_is_found(self):
        self.assertIsNone(circle({"a": {"b", "c"}, "b": {"c"}}))
        self.assertEqual(circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}), ["b", "c", "b"])


if __name__ == "__main__":
    unittest.main()

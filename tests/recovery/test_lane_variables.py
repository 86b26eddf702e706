#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Moves between lanes of programs whose modules have variables. Run as: test_lane_variables.py BUILD
[--device cuda]."""
import os
import signal
import subprocess
import sys
import threading

import test_lanes
import test_recovery
from harness import wait_until
from test_recovery import FINE, GONE


class Variables(test_lanes.MoveTestCase):
    def test_there_and_back(self):
        """Kernels have changed some, others hold addresses from the load."""
        probe = self.enter("main")
        self.check(probe, "count", "count")
        for program_class, lane in (("batch", "batch"), ("normal", "main"), ("batch", "batch")):
            self.follow(probe, program_class, lane)
            self.check(probe, "count", "round", "module", "count")
        self.check(probe, "reload", "count", "count")
        self.follow(probe, "normal", "main")
        self.check(probe, "count", "round")

    def test_memory_that_holds_an_address(self):
        probe = self.enter("main")
        for word in ("point", "point_pinned"):
            self.check(probe, "count", word)
            self.stays(probe, "its memory holds the address of a variable")
            self.check(probe, "count", "clear")
        self.assertRegex(self.log("server"), "its memory holds the address 0x.*, which is inside variable untouched")
        self.follow(probe, "batch", "batch")
        self.check(probe, "count")

    def test_a_kernel_that_fills_the_device(self):
        """The search for addresses would wait for it, so the program is not moved now. The batch lane
        is there before: on an H200 its start waits for that kernel as well."""
        self.enter("batch")
        probe, busy = self.enter("main"), self.enter("main")
        self.check(probe, "count")
        self.check(busy, "fill")
        self.stays(probe, "it was in the middle of a call")
        self.assertIn("have filled the device", self.log("server"))
        self.check(busy, "release", "synchronize", "look")
        self.follow(probe, "batch", "batch")
        self.check(probe, "count")

    def test_variables_that_hold_addresses(self):
        for word, reason in (("point_end", "its memory holds the address of a variable"),
                             ("point_link", "its memory holds the address of a variable"),
                             ("set_pair", "it has changed a variable that holds addresses"),
                             ("ask", "it has asked for the address of a variable")):
            with self.subTest(word):
                probe = self.enter("main")
                self.check(probe, "count", word)
                self.stays(probe, reason)
                self.assertEqual(probe.ask("round"), FINE)

    def test_symbols(self):
        """Copies as cudaMemcpyToSymbol makes them, by libcudart 12 and 13."""
        for again in ({}, {"ASKS_AGAIN": "1"}):
            with self.subTest(**again):
                probe = self.enter("main", **again)
                self.check(probe, "count", "symbol_to", "symbol_from", "constant")
                for program_class, lane in (("batch", "batch"), ("normal", "main"), ("batch", "batch")):
                    self.follow(probe, program_class, lane)
                    self.check(probe, "symbol_from", "count", "symbol_from", "symbol_to", "constant",
                               "count", "round", "module")
                self.check(probe, "reload", "symbol_to", "count", "symbol_from")
                self.follow(probe, "normal", "main")
                self.check(probe, "count", "symbol_from", "symbol_to", "constant")
                self.check(probe, "symbol_address", "count", "symbol_struct", "symbol_from", "symbol_to")
                self.stays(probe, "it has asked for the address of a variable")
                self.check(probe, "count", "symbol_address", "symbol_to")

    def test_a_module_without_kernels(self):
        """Addresses of its variables, as cuBLAS keeps them, do not keep the program from a move."""
        probe = self.enter("main")
        self.check(probe, "lonely", "lonely")
        for program_class, lane in (("batch", "batch"), ("normal", "main")):
            self.follow(probe, program_class, lane)
            self.check(probe, "lonely", "count", "lonely")
        self.check(probe, "end_lonely", "lonely", "end_lonely", "lonely")
        self.follow(probe, "batch", "batch")
        self.check(probe, "lonely", "count", "round")

    def test_symbols_whose_addresses_stay(self):
        """With the program, or in a graph."""
        for word in ("symbol_address", "symbol_struct", "symbol_captured"):
            with self.subTest(word):
                probe = self.enter("main")
                self.check(probe, "count", "symbol_to", "symbol_from", word)
                self.stays(probe, "it has asked for the address of a variable")
                self.assertRegex(probe.said(), "the address of a variable: (count|link|scale)")
                self.check(probe, "count", "symbol_to", "symbol_from")

    def test_symbols_after_a_fault(self):
        """The contents of constants are lost with the server, so the program ends."""
        probe, server = self.enter("main"), self.servers()["main"]
        self.check(probe, "constant")
        os.kill(server, signal.SIGKILL)
        self.end_server("main", server)
        self.assertEqual(probe.ask("look"), GONE, probe.said())

    def test_target_that_ends_meanwhile(self):
        """One that is killed before it has taken the program costs the program nothing."""
        probe, anchor = self.enter("main"), self.enter("batch")
        batch, granted, seen = self.servers()["batch"], threading.Event(), []

        def count():
            while not granted.is_set():
                seen.append(probe.ask("count"))

        os.kill(batch, signal.SIGSTOP)
        program = threading.Thread(target=count)
        program.start()
        try:
            with subprocess.Popen(
                    [self.funnel_path(), "limit", "--client", str(probe.process.pid),
                     "--class", "batch"], env=self.environment, stdout=subprocess.DEVNULL):
                wait_until(lambda: "moves to another lane" in self.log("server"), "the grant")
                os.kill(batch, signal.SIGKILL)
        finally:
            granted.set()
            program.join()
        self.assertEqual(set(seen), {FINE}, probe.said() + self.logs())
        self.check(probe, "count", "round")
        self.assertEqual(anchor.ask("round"), FINE, anchor.said())


class VariableMovesOff(test_lanes.MoveTestCase):
    more = {"FUNNEL_OFF": "variable-moves"}

    def test_symbols(self):
        probe = self.enter("main")
        self.check(probe, "constant")
        self.stays(probe, "it has asked for the address of a variable")
        self.check(probe, "constant", "round")


if __name__ == "__main__":
    test_recovery.main(sys.argv)

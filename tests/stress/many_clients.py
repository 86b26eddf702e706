#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sixteen programs at once, three times over; all results as directly, and nothing is left."""
import harness


def run_sixteen(funnel, expected):
    names = list(harness.PROGRAMS) * 3
    programs = [(name, funnel.start_program(name, *harness.PROGRAMS[name])) for name in names[:16]]
    for name, program in programs:
        harness.check_end(name, program, expected[name])


def check_nothing_grows(before, after):
    for what in before:
        assert after[what] <= before[what], f"{what}: {before[what]} before, {after[what]} after"


def main():
    options = harness.arguments_of(__doc__)
    with harness.running_funnel(options.build, options.device) as funnel:
        expected = harness.expect_lines(funnel)
        run_sixteen(funnel, expected)
        run_sixteen(funnel, expected)
        funnel.await_no_clients(2)
        server, before = funnel.server_pid(), funnel.holdings()
        run_sixteen(funnel, expected)
        funnel.await_no_clients(2)
        assert funnel.server_pid() == server, "the server was replaced"
        harness.say(f"the server holds {funnel.holdings()}")
        check_nothing_grows(before, funnel.holdings())
    harness.say("48 programs, 16 at a time: all results as directly")


harness.finish(main)

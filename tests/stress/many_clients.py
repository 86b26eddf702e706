#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sixteen programs at once, three times over, at last with windows that had been given back; all
results as directly, and nothing is left."""
import harness


def run_sixteen(funnel, expected):
    names = list(harness.PROGRAMS) * 3
    programs = [(name, funnel.start_program(name, *harness.PROGRAMS[name])) for name in names[:16]]
    for name, program in programs:
        harness.check_end(name, program, expected[name])


def main():
    options = harness.arguments_of(__doc__)
    with harness.running_funnel(options.build, options.device) as funnel:
        expected = harness.expect_lines(funnel)
        run_sixteen(funnel, expected)
        server, before = funnel.server_pid(), funnel.await_idle()
        run_sixteen(funnel, expected)
        funnel.await_trimmed()
        run_sixteen(funnel, expected)
        harness.check_nothing_grew(before, funnel.await_idle())
        assert funnel.server_pid() == server, "the server was replaced"
    harness.say("48 programs, 16 at a time: all results as directly")


harness.finish(main)

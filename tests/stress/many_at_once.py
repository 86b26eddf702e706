#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sixty-four programs at once, far more than there are cores: all come to their end, all right."""
import harness

PROGRAMS = 64


def run_programs(funnel, expected):
    names = list(harness.PROGRAMS) * PROGRAMS
    programs = [(name, funnel.start_program(name, *harness.PROGRAMS[name]))
                for name in names[:PROGRAMS]]
    try:
        for name, program in programs:
            harness.check_end(name, program, expected[name], timeout=300)
    finally:
        for _, program in programs:
            program.kill()


def main():
    options = harness.arguments_of(__doc__)
    with harness.running_funnel(options.build, options.device) as funnel:
        expected = harness.expect_lines(funnel)
        run_programs(funnel, expected)
        server = funnel.server_pid()
        run_programs(funnel, expected)
        funnel.await_idle()
        assert funnel.server_pid() == server, "the server was replaced"
    harness.say(f"{PROGRAMS} programs at once, twice: all results as directly")


harness.finish(main)

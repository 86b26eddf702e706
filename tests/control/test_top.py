# SPDX-License-Identifier: Apache-2.0
"""funnel top, in its plain form and on a terminal, and the columns and filters of funnel ps."""
import os
import re
import subprocess

import harness
from harness import wait_until, waits
from terminal import Terminal


def has_screen():
    """A build without ncurses is plain everywhere, and says nothing of it."""
    with open(os.path.join(harness.BUILD, "bin/funnel"), "rb") as program:
        return b"libncurses" in program.read()


class Top(harness.TestCase):
    def install(self):
        os.symlink(os.path.join(harness.BUILD, "bin"), os.path.join(self.root, "bin"))

    def setUp(self):
        super().setUp()
        self.start("--device", "soft")
        self.slow = self.program("slow", "50000", "32")
        self.busy = self.program("worker", "2000", "2")

    def program(self, group, *arguments):
        """One with longer kernels makes fewer launches."""
        process = subprocess.Popen(
            [os.path.join(self.root, "bin/funnel"), "run", "-q", "--group", group, "--",
             os.path.join(harness.BUILD, "tests/control/at_work"), *arguments],
            env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.processes.append(process)
        wait_until(lambda: any(row.startswith(f"{process.pid} ") and int(row.split()[1]) > 2
                               for row in self.rows("--columns", "pid,launches")[1:]))
        return process.pid

    def rows(self, *arguments):
        done = self.funnel("ps", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()

    def pids(self, *arguments):
        return [int(row) for row in self.rows("--columns", "pid", *arguments)[1:]]

    # ---- ps ----

    def test_filters_and_order(self):
        self.assertEqual(self.pids("--sort", "pid"), sorted([self.slow, self.busy]))
        self.assertEqual(self.pids("--sort", "pid", "--reverse"),
                         sorted([self.slow, self.busy], reverse=True))
        self.assertEqual(self.pids("--filter", "group=worker"), [self.busy])
        self.assertEqual(self.pids("--filter", "group=work"), [])
        self.assertEqual(self.pids("--filter", "ORKER at_work"), [self.busy])
        self.assertEqual(self.pids("--filter", "at_work", "--filter", "group=slow"), [self.slow])
        client, = self.funnel_json("ps", "--filter", f"pid={self.busy}")
        self.assertEqual((client["pid"], client["group"]), (self.busy, "worker"))
        for wrong in (["--columns", "pid,color"], ["--sort", "color"], ["--filter", "color=1"]):
            done = self.funnel("ps", *wrong)
            self.assertEqual(done.returncode, 2)
            self.assertIn("there is no column color", done.stderr)
        self.assertEqual(self.funnel("servers", "--sort", "pid").returncode, 2)

    def test_width_of_the_terminal(self):
        for columns in (200, 80, 50):
            terminal = Terminal([os.path.join(self.root, "bin/funnel"), "ps"], self.environment,
                                columns=columns)
            self.assertEqual(terminal.wait_for_end(), 0)
            titles, *rows = [line for line in terminal.lines() if line]
            self.assertEqual(len(rows), 2, rows)  # nothing has wrapped
            for title in ("PID", "COMMAND"):
                self.assertIn(title, titles)
            self.assertEqual("COPIES" in titles, columns == 200)

    def test_documented_names(self):
        """docs/json.md, or the page that it points to, has every name that the listings have."""
        documented = set()
        for page in ("json.md", "accounting.md", "operating.md"):
            with open(os.path.join(harness.HERE, "../../docs", page)) as text:
                documented |= set(re.findall(r"`(\w+)`", text.read()))

        def names(json):
            for value in json.values() if isinstance(json, dict) else json:
                if isinstance(value, (dict, list)):
                    yield from names(value)
            if isinstance(json, dict):
                yield from json

        self.funnel("limit", "--group", "worker", "--sm", "50", "--memory", "1G")
        for listing in ("status", "limits"):
            used = set(names(self.funnel_json(listing)))
            self.assertGreater(len(used), 20)
            self.assertEqual(used - documented, set())

    # ---- plain ----

    def test_plain(self):
        def shows_the_busy_one_first():
            done = self.funnel("top", "-n", "2", "--delay", "0.5", "--sort", "launch_rate")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout.count("funnel top: 2 programs of 1 user on 1 server"), 2)
            self.assertIn("Funnel Software GPU, 8 SMs, memory [", done.stdout)
            titles, first, second = done.stdout.splitlines()[-3:]
            self.assertIn("LAUNCH/S", titles)
            return first.startswith(f"{self.busy} ") and second.startswith(f"{self.slow} ")

        # On a machine that is busy enough neither of them launches for a while.
        wait_until(shows_the_busy_one_first, "the order of the programs")

    def test_rate_is_that_of_the_interval(self):
        """And not the one since the start: it is compared with what ps counts meanwhile."""
        def launches():
            client, = self.funnel_json("ps", "--filter", f"pid={self.busy}")
            return client["launches"]

        def is_plausible():
            before = launches()
            shown = self.funnel("top", "-n", "1", "--delay", "1", "--columns", "launch_rate",
                                "--filter", "group=worker").stdout.splitlines()[-1]
            counted = launches() - before  # which lasted for longer than a second
            rate = float(shown.rstrip("kM")) * {"k": 1e3, "M": 1e6}.get(shown[-1], 1)
            return 0 < rate <= counted * 1.1 + 64

        # A machine that is busy enough answers late, now and then.
        wait_until(is_plausible, "a plausible rate")

    def test_use_of_the_device(self):
        """Two programs that launch all the time: each is seen to take a part, and not more than
        there is."""
        def is_plausible():
            rows = self.funnel("top", "-n", "1", "--delay", "2", "--columns",
                               "sm_use,gpu_use,command").stdout.splitlines()[-2:]
            use = [[float(cell) for cell in row.split()[:2]] for row in rows]
            self.assertGreaterEqual(use[0][0], use[1][0])  # which is how they are sorted
            return (min(sm for sm, _ in use) > 0 and max(gpu for _, gpu in use) < 130 and
                    sum(sm for sm, _ in use) < 130)

        wait_until(is_plausible, "plausible shares")

    def tree(self):
        return self.funnel("top", "-n", "1", "--delay", "0.2", "--tree", "group", "--sort",
                           "launch_rate", "--columns", "memory,command").stdout.splitlines()[-4:]

    def test_tree(self):
        """On a busy machine the faster program may rest while it is looked at."""
        rows = self.tree()

        def is_sorted():
            rows[:] = self.tree()
            groups = [row.split()[2] for row in rows][::2]
            return groups == ["worker:", "slow:"]

        wait_until(is_sorted, "the faster program first")
        self.assertIn("worker: 1 program", rows[0])
        self.assertIn("  " + os.path.join(harness.BUILD, "tests/control/at_work"), rows[1])
        self.assertEqual(rows[2].split()[:2], rows[3].split()[:2])  # the sum of one

    def test_group_has_the_time_of_its_busiest_program(self):
        """Kernels overlap, so the times of two programs with kernels are not a time with kernels."""
        def is_shown():
            rows = self.funnel("top", "-n", "1", "--delay", "1", "--tree", "user", "--columns",
                               "gpu_use,command").stdout.splitlines()[-3:]
            self.assertIn(": 2 programs", rows[0])
            group, *programs = [float(row.split()[0]) for row in rows]
            self.assertEqual(group, max(programs))
            return min(programs) > 0

        wait_until(is_shown, "two programs with kernels")

    def test_wrong_options(self):
        for wrong in (["-n", "0"], ["-n", "x"], ["--delay", "0"], ["--delay", "nan"],
                      ["--tree", "pid"], ["--columns", "color"], ["--filter", "color=1"], ["x"],
                      ["--sort", "color"], ["--color"]):
            self.assertEqual(self.funnel("top", *wrong).returncode, 2, wrong)
        self.funnel("stop", "--force")
        self.assertEqual(self.funnel("top", "-n", "1").returncode, 1)

    # ---- on a terminal ----

    def open(self, *arguments, **size):
        if not has_screen():
            self.skipTest("built without ncurses")
        terminal = Terminal([os.path.join(self.root, "bin/funnel"), "top", "--delay", "0.5",
                             *arguments], self.environment, **size)
        terminal.wait_for("q quit")
        return terminal

    def open_colored(self, columns, locale, *arguments):
        self.environment["LC_ALL"] = locale
        return self.open("--sort", "pid", "--delay", "0.2", *arguments, columns=columns,
                         kind="xterm-256color")

    def quit(self, terminal):
        terminal.type("q")
        self.assertEqual(terminal.wait_for_end(), 0)

    def rows_of(self, terminal):
        """Process ids from the top down."""
        words = [line.split() for line in terminal.lines()[3:-1]]
        return [int(row[0]) for row in words if row and row[0].isdigit()]

    def test_screen(self):
        terminal = self.open("--sort", "launch_rate")
        self.assertIn("funnel top: 2 programs of 1 user", terminal.lines()[0])
        self.assertIn("Funnel Software GPU", terminal.lines()[1])
        self.assertTrue(terminal.highlighted()[0].startswith("PID"))
        terminal.wait(lambda _: self.rows_of(terminal) == [self.busy, self.slow])
        terminal.type("r")
        terminal.wait(lambda _: self.rows_of(terminal) == [self.slow, self.busy])
        terminal.wait_for("[-launch_rate")
        terminal.type("/group=worker\n")
        terminal.wait(lambda _: self.rows_of(terminal) == [self.busy])
        terminal.type("/color=1\n")
        terminal.wait_for("There is no column color")
        terminal.type("/\n")
        terminal.wait(lambda _: len(self.rows_of(terminal)) == 2)
        terminal.type("?")
        terminal.wait_for("Any key goes back")
        terminal.type("x")
        terminal.wait_for("q quit")
        terminal.type("t")
        terminal.wait_for(": 2 programs")
        self.quit(terminal)

    def assert_aligned(self, terminal, title):
        """Figures end where their title does, and stand whole."""
        titles, *rows = [line for line in terminal.lines()
                         if re.match(rf"PID |{self.slow} |{self.busy} ", line)]
        self.assertEqual(len(rows), 2)
        end = titles.index(title) + len(title)
        for row in rows:
            self.assertRegex(row[:end], r"\S$", row)
            self.assertEqual(row[end], " ", row)

    @waits
    def test_widths(self):
        for columns in (80, 120, 200):
            terminal = self.open_colored(columns, "C.UTF-8")
            terminal.wait(lambda t: sum("\u2588" in line for line in t.lines()) >= 3)
            terminal.wait(lambda t: len(self.rows_of(t)) == 2)
            lines = terminal.lines()
            self.assertRegex(lines[1],
                             r"^GPU 0 .*SM \[[^]]*\] +[0-9.]+%  MEM \[[^]]*\] .*iB of .*iB$")
            self.assertRegex(lines[2], "^user  \u25a0 \\w+")
            for title in ("MEMORY", "SM%", "LAUNCH/S", "SMS"):
                self.assert_aligned(terminal, title)
            text = "\n".join(lines)
            for command in ("at_work 50000 32", "at_work 2000 2"):
                self.assertIn(command[:22], text)  # the folder is left out before it is cut
            self.assertEqual("SINCE" in text, columns == 200)
            self.assertEqual("MEM BAR" in text, columns > 80)
            self.assertEqual("CLASS" in text and "LANE" in text, columns == 200)
            if columns == 200:
                self.assertRegex(text, r"(?m)^[0-9]+ .* normal +main ")
            self.assertRegex(lines[-1], r"k end$")
            for label in ("100\u2524", " 50\u2524", "  0\u2524"):  # of both graphs
                self.assertEqual([line.count(label) for line in lines if label in line], [2])
            self.quit(terminal)

    def test_ascii(self):
        terminal = self.open_colored(80, "C")
        terminal.wait(lambda t: sum("#####" in line for line in t.lines()) >= 3)
        self.assertTrue("\n".join(terminal.lines()).isascii())
        self.assertTrue(any(line.startswith("100|") for line in terminal.lines()))
        self.quit(terminal)

    def test_graph_of_the_selected_program(self):
        terminal = self.open_colored(100, "C.UTF-8")
        first, second = sorted([self.slow, self.busy])
        terminal.wait_for(f"Program {first}, SM%")
        terminal.type("\x1bOB")  # down
        terminal.wait_for(f"Program {second}, SM%")
        self.quit(terminal)

    def test_graph_of_the_selected_group(self):
        """At first the group at the top is selected, whichever works more now."""
        terminal = self.open_colored(100, "C.UTF-8", "--tree", "group")
        terminal.wait(lambda t: any(re.search(r"group (worker|slow), SM%", line) for line in t.lines()))
        terminal.wait(lambda t: any(re.search(r"0\u2524.*0\u2524.*\S$", line) for line in t.lines()))
        self.quit(terminal)

    def test_colors(self):
        """One for each user, or for each group where programs are shown by group, and a legend."""
        def colors():
            return {text.split()[-1]: color for row, line in enumerate(terminal.lines())
                    if line.startswith(("user  ", "group  "))
                    for _, text, color, _ in terminal.runs(row)
                    if color is not None and text.strip() != "\u25a0"}

        terminal = self.open_colored(120, "C.UTF-8")
        terminal.wait(lambda t: len(colors()) == 1)
        terminal.type("tt")
        terminal.wait(lambda t: {"slow", "worker"} <= set(colors()))
        self.assertEqual(len({colors()["slow"], colors()["worker"]}), 2)
        self.quit(terminal)

    def test_mouse(self):
        terminal = self.open_colored(100, "C.UTF-8")
        first, second = sorted([self.slow, self.busy])
        terminal.wait(lambda t: self.selects(t, first))

        def click(text):
            row, line = next((row, line) for row, line in enumerate(terminal.lines())
                             if re.search(text, line))
            column = re.search(text, line).start()
            terminal.type(f"\x1b[<0;{column + 1};{row + 1}M\x1b[<0;{column + 1};{row + 1}m")

        click(rf"^{second} ")
        terminal.wait(lambda t: self.selects(t, second))
        click("^PID")  # it is sorted by that column, and reverses
        terminal.wait(lambda t: self.rows_of(t) == [second, first] and self.selects(t, second))
        click("LAUNCH/S")
        terminal.wait_for("[launch_rate")
        self.quit(terminal)

    @staticmethod
    def selects(terminal, pid):
        """While the screen is drawn anew, the second line in reverse video may be missing."""
        return any(line.startswith(f"{pid} ") for line in terminal.highlighted()[1:2])

    def test_selection_follows_the_program(self):
        terminal = self.open("--sort", "pid")
        first, second = sorted([self.slow, self.busy])
        terminal.wait(lambda t: self.selects(t, first))
        terminal.type("\x1bOB")  # down
        terminal.wait(lambda t: self.selects(t, second))
        terminal.type("r")
        terminal.wait(lambda t: self.rows_of(t) == [second, first] and self.selects(t, second))
        self.quit(terminal)

    def test_limits_from_within(self):
        terminal = self.open("--filter", "group=worker", columns=140)
        terminal.wait(lambda _: self.rows_of(terminal) == [self.busy])
        terminal.type("s")
        terminal.wait_for(f"of program {self.busy}:")
        terminal.type("25\n")
        terminal.wait_for("25%")
        terminal.type("m")
        terminal.wait_for("Memory limit")
        terminal.type("512M\n")
        terminal.wait_for("512 MiB")
        terminal.type("p")
        terminal.wait_for("25% below")
        terminal.type("s")
        terminal.wait_for(f"of program {self.busy}:")
        terminal.type("101\n")
        terminal.wait_for("Refused: ")
        client, = self.funnel_json("ps", "--filter", "group=worker")
        self.assertEqual((client["sm_percent"], client["priority"],
                          client["devices"][0]["memory_limit"]), (25.0, 1, 512 << 20))
        terminal.type("k")
        terminal.wait_for("Take the GPU from program")
        terminal.type("no\n")
        terminal.wait_for("q quit")
        self.assertEqual(len(self.pids()), 2)
        terminal.type("k")
        terminal.wait_for("Take the GPU from program")
        terminal.type("yes\n")
        wait_until(lambda: self.pids() == [self.slow], "the end of the program")
        self.quit(terminal)

    def test_daemon_that_ends(self):
        terminal = self.open()
        self.funnel("stop", "--force")
        terminal.wait_for("No daemon listens")
        self.quit(terminal)

    def test_small_terminal(self):
        terminal = self.open(rows=6, columns=40)
        self.assertIn("PID", terminal.highlighted()[0])
        self.quit(terminal)


class Sensors(harness.TestCase):
    """Servers on the software GPU that ask a management library of the tests'."""

    def install(self):
        os.symlink(os.path.join(harness.BUILD, "bin"), os.path.join(self.root, "bin"))

    def start_with(self, behavior, **more):
        folder = os.path.join(harness.BUILD, "tests/unit/driver")
        if not os.path.exists(os.path.join(folder, "libnvidia-ml.so.1")):
            self.skipTest("built without unit tests")
        self.environment.update(FUNNEL_SOFT_NVML="1", FUNNEL_SOFT_DEVICES="2:sms=8,mem=2G",
                                FAKE_NVML=behavior, LD_LIBRARY_PATH=folder, **more)
        self.start("--device", "soft")
        self.mps(f"start_server -uid {os.getuid()}\n")
        wait_until(lambda: len(self.funnel_json("devices")) == 2, "the server")

    def power(self):
        return [device["power_watts"] for device in self.funnel_json("devices")]

    def server_log(self):
        self.settle_logs()
        return harness.texts_of(os.path.join(self.log, "server.log"))

    def test_values(self):
        self.start_with("")
        wait_until(lambda: self.funnel_json("devices")[1]["temperature_celsius"] == 30, "the values")
        first, second = self.funnel_json("status")["devices"]
        self.assertEqual((first["power_watts"], first["temperature_celsius"], first["utilization_ratio"],
                          first["sm_clock_hertz"], first["memory_in_use_bytes"]),
                         (320.5, 51, 0.87, 1980000000, 16 << 30))
        self.assertEqual((second["power_watts"], second["utilization_ratio"]), (None, None))
        self.assertNotIn("libnvidia-ml", self.server_log())
        self.assertIn(", 51 C, 320 of 700 W", self.funnel("top", "-n", "1", "--delay", "0.1").stdout)
        terminal = Terminal([os.path.join(self.root, "bin/funnel"), "top"], self.environment, columns=120)
        terminal.wait_for("51 C, 320 of 700 W")
        terminal.type("q")
        self.assertEqual(terminal.wait_for_end(), 0)

    def test_library_that_hangs(self):
        """Programs come and go, and the server ends when it is told to."""
        self.start_with("hang")
        wait_until(lambda: self.power() == [320.5, None], "the values of the first device")
        done = self.funnel("run", "-q", "--", os.path.join(harness.BUILD, "examples/vector_add"), "-n", "1000")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.funnel("stop").returncode, 0)

    def test_library_that_does_not_start(self):
        self.start_with("dead")
        wait_until(lambda: "cannot start" in self.server_log(), "the line of the log")
        self.assertEqual(self.power(), [None, None])

    def test_switched_off(self):
        self.start_with("dead", FUNNEL_OFF="sensors")
        done = self.funnel("run", "-q", "--", os.path.join(harness.BUILD, "examples/vector_add"), "-n", "1000")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.funnel("stop").returncode, 0)
        self.assertNotIn("libnvidia-ml", self.server_log())


if __name__ == "__main__":
    harness.main()

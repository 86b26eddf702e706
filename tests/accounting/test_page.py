# SPDX-License-Identifier: Apache-2.0
"""The status page in headless Chromium: what it shows against what the daemon says, in light and dark,
on a wall and on a phone. With FUNNEL_TEST_SCREENSHOTS=FOLDER it makes the pictures of docs/."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../control"))

import harness  # noqa: E402  (found through the path above)
import wire  # noqa: E402
from browser import Browser  # noqa: E402
from harness import wait_until  # noqa: E402
from test_metrics import ServedTest, needs  # noqa: E402
from test_usage_command import line as usage_line  # noqa: E402

PAGE_BYTES = 150_000
PICTURES = os.environ.get("FUNNEL_TEST_SCREENSHOTS")
READY = "document.body.dataset.ready === '1' && page.history"

# A program with a command line of its own, which attaches and waits.
PROGRAM = """import os, signal, socket, wire
client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
client.connect(os.environ["FUNNEL"])
client.send(wire.hello(group=os.environ["GROUP"].encode()))
signal.pause()
"""
PROGRAMS = (("train.py --model llama-8b --batch 64", 0, "training"),
            ("finetune.py --lora --rank 16", 0, "training"),
            ("serve.py --port 8000 --model mistral", 33, "serving"),
            ("embed.py --corpus wiki --workers 4", 33, "serving"),
            ("sweep.py --config grid.yaml --trial 17", 34, ""),
            ("notebook.py --kernel analysis", 34, ""))


@needs("chromium")
class PageTest(ServedTest):
    variables = {"FUNNEL_FAKE_SMS": "22",
                 "FUNNEL_FAKE_SENSORS": "[320500, 700000, 51, 87, 12, 1980, 2619, 17179869184]"}

    options = ("--stall-timeout", "0")  # the fake servers send no heartbeat

    @classmethod
    def setUpClass(cls):
        cls.profile = tempfile.mkdtemp(prefix="fnl-", dir="/tmp")
        cls.addClassCleanup(shutil.rmtree, cls.profile, ignore_errors=True)
        cls.browser = cls.enterClassContext(Browser(cls.profile))

    def go(self, **how):
        self.browser.go(self.url, **how)
        self.browser.wait(READY)

    def sign_in(self, token=None):
        self.browser.value(f"at('access').click(); at('token').value = '{token or self.token()}';"
                           "at('operator').requestSubmit()")

    def value(self, expression):
        return self.browser.value(expression)

    def rows(self):
        return self.value("[...document.querySelectorAll('#rows tr.program')].map(row => row.innerText)")

    def attach_many(self, count):
        for i in range(count):
            self.assertEqual(self.client(group=b"g%d" % (i % 3)).welcome()[0], 0)

    # ---- what is shown ----

    def test_axes_and_values(self):
        """The axes end with what the GPU has, and the areas are those of the history."""
        self.attach_many(2)
        self.go()
        self.browser.wait("page.history.samples.length > 1 && page.history.samples.at(-1)[1].length === 2")
        found = json.loads(self.value("""(() => {
            const [sms, memory] = [...page.charts.values()][0].charts;
            const last = chart => chart.u.data.slice(1).map(line => line.at(-1));
            return JSON.stringify({
                scales: [sms.u.scales.y.max, memory.u.scales.y.max], span: sms.u.scales.x.max - sms.u.scales.x.min,
                ticks: [sms.u.axes[1]._values, memory.u.axes[1]._values], times: sms.u.axes[0]._values,
                sms: last(sms), memory: last(memory), samples: page.history.samples, gpus: page.state.gpus,
                label: sms.plot.getAttribute("aria-label"), head: document.querySelector(".gpu-head").innerText,
            });})()"""))
        gpu, sample = found["gpus"][0], found["samples"][-1]
        self.assertEqual(found["scales"], [132, gpu["memory_total"]])
        self.assertAlmostEqual(found["span"], 300)
        self.assertEqual(found["ticks"][0], ["0", "33", "66", "99", "132"])
        self.assertEqual(found["ticks"][1], ["0", "4.0 GiB", "8.0 GiB", "12.0 GiB", "16.0 GiB"])
        self.assertGreater(len(found["times"]), 3)
        self.assertAlmostEqual(found["sms"][0], sum(entry[2] for entry in sample[1]), 3)
        self.assertEqual(found["memory"][0], sum(entry[3] for entry in sample[1]))
        told = json.loads(self.get("/api/history?range=300")[1])["samples"]
        self.assertIn(sample, told)
        self.assertIn("of 132", found["label"])
        self.assertIn("of 16.0 GiB", found["head"])

    def test_ranges(self):
        """The last hour and the last day, by the keyboard, too."""
        self.attach_many(1)
        self.go()
        self.value("document.querySelector('#ranges input').focus()")
        for seconds in 3600, 86400:
            self.browser.key("ArrowRight")
            self.browser.wait("page.history && [...page.charts.values()][0].charts.every(chart => "
                              f"Math.abs(chart.u.scales.x.max - chart.u.scales.x.min - {seconds}) < 1)")

    def test_tooltip_by_keys(self):
        self.attach_many(2)
        self.go()
        self.browser.wait("page.history.samples.at(-1)?.[1].filter(entry => entry[2] > 0).length === 2")
        self.value("document.querySelector('.plot').focus()")
        self.browser.key("ArrowLeft")
        self.browser.wait("document.querySelector('.tip').innerText.includes('g0')")
        self.assertEqual(self.value("document.querySelectorAll('.tip')[0].querySelectorAll('.swatch').length"), 2)

    def test_table(self):
        """64 programs: sorted, filtered, folded by group; colors stay when other programs come."""
        self.attach_many(64)
        self.go()
        self.browser.wait("page.state.servers[0].clients.every(c => c.color !== undefined)")
        self.browser.wait("document.querySelectorAll('#rows tr.program').length === 64")
        colors = self.value("page.state.servers[0].clients.map(c => c.color)")
        self.assertEqual(sorted(colors), sorted(list(range(16)) * 4))
        self.value("document.querySelectorAll('#heads button')[4].click()")
        self.assertEqual(self.value("document.querySelectorAll('#heads th')[4].getAttribute('aria-sort')"),
                         "descending")
        memory = self.value("[...document.querySelectorAll('#rows tr')].map(r => r.children[4].innerText)")
        self.assertEqual(memory, sorted(memory, reverse=True))
        self.value("at('filter').value = 'g1'; at('filter').oninput()")
        self.assertEqual(len(self.rows()), 21)
        self.value("at('filter').value = ''; at('fold').value = 'group'; at('fold').onchange()")
        self.value("document.querySelector('tr.group button').click()")
        self.assertEqual(len(self.rows()), 64 - 22)
        self.assertEqual(self.value("document.querySelector('tr.group button').getAttribute('aria-expanded')"),
                         "false")
        self.assertEqual(self.value("page.state.servers[0].clients.map(c => c.color)"), colors)

    def test_classes_and_lanes(self):
        """Each program has its class and its lane, by which the table is filtered and folded."""
        for program_class in wire.NORMAL, wire.BATCH, wire.CRITICAL:
            self.assertEqual(self.client(program_class=program_class).welcome()[0], 0)
        self.go(width=1400)
        self.browser.wait("document.querySelectorAll('#rows tr.program').length === 3")
        cells = self.value("[...document.querySelectorAll('#rows tr.program')].map(row => ['Class', 'Lane']"
                           ".map(name => row.querySelector(`[data-name=${name}]`).innerText))")
        self.assertEqual(sorted(cells), [["batch", "batch"], ["critical", "main"], ["normal", "main"]])
        self.value("at('filter').value = 'batch'; at('filter').oninput()")
        self.assertEqual(len(self.rows()), 1)
        self.value("document.querySelector('#rows button').click()")
        facts = self.value("at('facts').innerText.replace(/\\s+/g, ' ')")
        self.assertIn("Class batch Lane batch", facts)
        self.value("at('filter').value = ''; at('fold').value = 'class'; at('fold').onchange()")
        self.assertEqual(self.value("[...document.querySelectorAll('tr.group button')].map(b => b.textContent.trim())"),
                         ["batch · 1", "critical · 1", "normal · 1"])

    @unittest.skipIf(os.geteuid() != 0, "needs root, to be two users")
    def test_two_users(self):
        """Their servers share the GPUs: each GPU is shown once, with the programs of both."""
        self.attach_many(1)
        self.start_program("serve.py --port 8000", 33, "serving")
        self.go()
        self.browser.wait("document.querySelectorAll('#rows tr.program').length === 2")
        self.assertEqual(self.value("document.querySelectorAll('.gpu').length"), 2)
        self.assertIn("by 2 users", self.value("document.querySelector('.gpu-head').innerText"))
        self.value("at('fold').value = 'user'; at('fold').onchange()")
        self.assertEqual(self.value("document.querySelectorAll('tr.group').length"), 2)

    def test_sensors(self):
        """The first GPU tells power and temperature. Of the second one, which tells none, nothing is said."""
        self.attach_many(1)
        self.go()
        first, second = self.value("[...document.querySelectorAll('.gpu-head')].map(head => head.innerText.replace(/\\s+/g, ' '))")
        for text in "Busy 87 % at 1980 MHz", "Power 321 W of 700 W", "Temperature 51 °C":
            self.assertIn(text, first)
        for text in "Busy", "Power", "Temperature":
            self.assertNotIn(text, second)

    # ---- operators ----

    def test_wrong_token(self):
        self.attach_many(1)
        self.go()
        self.assertNotIn(os.path.basename(sys.argv[0]), self.value("document.documentElement.outerHTML"))
        self.sign_in("0" * 48)
        self.browser.wait("at('wrong').textContent.includes('token is wrong')")
        self.assertTrue(self.value("at('sign').open"))
        self.sign_in()
        self.browser.wait("!at('sign').open && page.state.operator")
        self.assertIn(os.path.basename(sys.argv[0]), self.rows()[0])

    def test_limits(self):
        """A program's drawer: by keys, with sliders, and with the lines of the log about it."""
        self.attach_many(1)
        self.go()
        self.value("document.querySelector('#rows button').focus()")
        self.value("document.querySelector('#rows button').click()")
        self.assertFalse(self.value("at('drawer').hidden"))
        self.assertTrue(self.value("at('limits').hidden"))
        self.browser.key("Escape")
        self.assertTrue(self.value("at('drawer').hidden"))
        self.sign_in()
        self.browser.wait("page.state.operator")
        self.value("document.querySelector('#rows button').click()")
        self.value("at('share').value = 30; at('memory').value = 1; at('memory').oninput();"
                   "at('limits').requestSubmit()")
        self.browser.wait("at('done').textContent === 'The limits are set.'")
        client = json.loads(self.get("/api/state")[1])["servers"][0]["clients"][0]
        self.assertEqual((client["sm_percent"], client["devices"][0]["memory_limit"]), (30, 1 << 28))
        self.browser.wait("at('client-log').textContent.includes('NEW CLIENT')")

    def write_usage(self):
        now = int(time.time())
        with open(os.path.join(self.log, "usage.jsonl"), "w") as file:
            for user, group, age, gpu, sm in (("alice", "training", 60, 7200, 475200), ("alice", "sweep", 7200, 1800, 39600),
                                              ("bob", "serving", 3600, 5400, 158400), ("carol", '<b>"x",', 20 * 86400, 60, 60)):
                file.write(json.dumps(usage_line(user, group, now - age, gpu=gpu, sm=sm)) + "\n")

    def usage_rows(self):
        return self.value("[...document.querySelectorAll('#usage-rows tr')].map(row => "
                          "[...row.children].map(cell => cell.innerText.trim()))")

    def choose(self, days, by):
        self.value(f"at('usage-days').value = {days}; at('usage-by').value = '{by}'; at('usage-by').onchange()")

    def test_usage(self):
        """What ended programs used, as the command says it: shown, and as a file."""
        if "without the jansson" in self.funnel("usage").stderr:
            self.skipTest("built without jansson")
        self.go()
        self.assertTrue(self.value("at('usage').hidden"))
        self.sign_in()
        self.browser.wait("page.state.operator && !at('usage').hidden")
        self.value("at('usage').open = true")
        self.browser.wait("!at('usage-none').hidden && at('usage-none').textContent === 'No program has ended in this time.'")
        self.assertTrue(self.value("at('usage-csv').disabled"))
        self.write_usage()
        self.choose(7, "user")
        self.browser.wait("document.querySelectorAll('#usage-rows tr').length === 3")
        self.assertEqual([(row[0], row[1], row[3], row[4]) for row in self.usage_rows()],
                         [("alice", "2", "2.50", "143.00"), ("bob", "1", "1.50", "44.00"), ("All", "3", "4.00", "187.00")])
        self.choose(30, "user,group")
        self.browser.wait("document.querySelectorAll('#usage-rows tr').length === 5")
        self.assertEqual([tuple(row[:2]) for row in self.usage_rows()],
                         [("alice", "training"), ("bob", "serving"), ("alice", "sweep"), ("carol", '<b>"x",'), ("All", "")])
        self.browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=self.root)
        self.value("at('usage-csv').click()")
        path = os.path.join(self.root, "funnel-usage-by-user-group-30d.csv")
        told = self.funnel("usage", "--by", "user,group", "--since", "30d", "--csv").stdout

        def is_saved():
            if not os.path.exists(path):
                return False
            with open(path, newline="") as file:
                return file.read() == told

        wait_until(is_saved, "the file")

    # ---- the daemon ----

    def test_a_daemon_that_comes_back(self):
        self.attach_many(1)
        self.go()
        port, start = self.port, self.value("page.state.since")
        os.kill(self.daemon_pid(), signal.SIGTERM)
        self.browser.wait("at('trouble').textContent.includes('does not answer')")
        wait_until(lambda: not os.path.exists(self.socket_path), "the end of the daemon")
        time.sleep(1)  # the start of a daemon is told in seconds
        self.start("--metrics", str(port))
        self.browser.wait(f"at('trouble').hidden && page.state.since !== {start}")
        self.browser.wait("at('none').textContent === 'No program uses a GPU.'")

    # ---- looks ----

    def contrast(self):
        """The least contrast of text with what lies behind it, as WCAG reckons it."""
        return self.value("""(() => {
            const light = name => { const [r, g, b] = color(name).match(/[\\d.]+/g).slice(0, 3).map(v => v / 255)
                .map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b; };
            const pairs = [["text", "back"], ["text", "panel"], ["dim", "panel"], ["dim", "back"], ["accent", "panel"],
                ["on-accent", "accent"], ["warn", "warn-back"], ["bad", "panel"], ["dim", "grid"]];
            return Math.min(...pairs.map(([a, b]) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
                return (x + .05) / (y + .05); })); })()""")

    def test_light_and_dark(self):
        self.go()
        backs = set()
        for scheme in "light", "dark":
            self.browser.look(scheme=scheme)
            backs.add(self.value("getComputedStyle(document.body).backgroundColor"))
            self.assertGreater(self.contrast(), 4.5, scheme)
        self.value("at('theme').click()")
        backs.add(self.value("getComputedStyle(document.body).backgroundColor"))
        self.assertEqual((len(backs), self.value("at('theme').textContent")), (2, "Light"))
        self.value("localStorage.clear()")

    def test_every_width(self):
        self.attach_many(3)
        self.go()
        self.sign_in()
        self.browser.wait("page.state.operator && document.querySelectorAll('.plot canvas').length === 4")
        for width in 360, 700, 761, 1000, 1001, 1201, 1400:
            self.browser.look(width=width)
            self.assertLessEqual(self.value("document.documentElement.scrollWidth"), width)

    # ---- files ----

    def test_files(self):
        """All of it is small and comes from here; HEAD has the headers of GET."""
        whole = 0
        for path in "/", "/page.css", "/page.js", "/uplot.css", "/uplot.js":
            got, head = (self.raw(f"{method} {path} HTTP/1.1\r\n\r\n".encode()) for method in ("GET", "HEAD"))
            self.assertTrue(got.startswith(b"HTTP/1.1 200 OK\r\n"), path)
            headers, _, body = got.partition(b"\r\n\r\n")
            self.assertEqual(head, headers + b"\r\n\r\n")
            policy, = [line for line in headers.splitlines() if line.startswith(b"Content-Security-Policy")]
            self.assertNotIn(b"unsafe", policy)
            whole += len(body)
        self.assertLess(whole, PAGE_BYTES)
        self.assertTrue(self.raw(b"HEAD /nowhere HTTP/1.1\r\n\r\n").endswith(b"\r\n\r\n"))
        self.assertEqual(self.get("/", method="POST")[0], 405)

    # ---- pictures ----

    def start_program(self, command, uid, group):
        name, *arguments = command.split()
        for file, text in ((name, PROGRAM), ("wire.py", None)):
            path = os.path.join(self.root, file)
            if text is None:
                shutil.copy(os.path.join(harness.HERE, file), path)
            else:
                with open(path, "w") as script:
                    script.write(text)
            os.chmod(path, 0o644)
        python = shutil.which("python3", path="/usr/bin:/bin") or sys.executable
        self.processes.append(subprocess.Popen(
            [python, "-B", name, *arguments], cwd=self.root, user=uid, group=uid, extra_groups=[],
            env={"FUNNEL": self.socket_path, "GROUP": group}))

    def picture(self, name):
        path = os.path.join(PICTURES, name)
        self.browser.picture(path)
        if shutil.which("pngquant"):
            subprocess.run(["pngquant", "--force", "--output", path, path], check=True)

    @unittest.skipUnless(PICTURES, "FUNNEL_TEST_SCREENSHOTS=FOLDER asks for them; it takes five minutes")
    def test_pictures(self):
        signal.alarm(900)
        self.browser.call("Emulation.setScrollbarsHidden", hidden=True)
        for program in PROGRAMS:
            self.start_program(*program)
            time.sleep(25)
        time.sleep(100)
        for name, how in (("status-page.png", {"height": 960}), ("status-page-dark.png", {"height": 960, "scheme": "dark"}),
                          ("status-page-usage.png", {"height": 640}), ("status-page-phone.png", {"width": 400, "height": 860})):
            self.go(**how)
            self.browser.wait("page.state.servers.every(server => server.responding) &&"
                              "document.querySelectorAll('.plot canvas').length === 4")
            if "phone" not in name:
                self.sign_in()
                self.browser.wait("page.state.operator && !at('sign').open")
                time.sleep(5)
            if "dark" in name:
                self.value("document.querySelectorAll('#rows button')[1].click()")
                time.sleep(1)
            elif "usage" in name:
                self.write_usage()
                self.value("at('usage').open = true; at('usage-by').value = 'user,group'; at('usage-days').value = 7;"
                           "at('usage-by').onchange()")
                self.browser.wait("document.querySelectorAll('#usage-rows tr').length > 2")
                self.value("scrollTo(0, document.body.scrollHeight)")
                time.sleep(1)
            elif "phone" not in name:
                self.browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=420, y=250)
                time.sleep(0.5)
            self.picture(name)


if __name__ == "__main__":
    harness.main()

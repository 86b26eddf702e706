# SPDX-License-Identifier: Apache-2.0
"""Metrics and what the status page asks for: what is served, to whom, and that bad input does no harm.
Against promtool and Prometheus where they are installed. test_page.py looks at the page."""
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../control"))

import harness  # noqa: E402  (found through the path above)
from harness import wait_until, waits  # noqa: E402

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
PACKAGING = os.path.join(ROOT, "packaging/prometheus")


def start_with_metrics(test, host="", options=()):
    """The port that the daemon serves."""
    port, done = harness.with_free_port(
        lambda port: test.run_program("funneld", "-d", "--metrics", f"{host}{port}", *options))
    test.assertEqual(done.returncode, 0, done.stderr)
    return port


def needs(program):
    return unittest.skipUnless(shutil.which(program), f"{program} is not installed")


class ServedTest(harness.TestCase):
    """A daemon that serves metrics and the page."""
    variables = {}
    options = ()

    def setUp(self):
        super().setUp()
        self.environment.update(self.variables)
        self.port = start_with_metrics(self, options=self.options)
        self.url = f"http://127.0.0.1:{self.port}"

    def token(self):
        with open(os.path.join(self.pipe, "http-token")) as file:
            return file.read()

    def get(self, path, token=None, **headers):
        if token:
            headers["Authorization"] = f"Bearer {token}"
        method = headers.pop("method", "GET")
        request = urllib.request.Request(self.url + path, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=harness.TIMEOUT) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def is_served(self):
        """False also where the daemon has not noticed yet that other connections have ended."""
        try:
            return self.get("/metrics")[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def attach(self):
        client = self.client(group=b"night")
        self.assertEqual(client.welcome()[0], 0)
        return client

    def raw(self, data):
        with socket.create_connection(("127.0.0.1", self.port), timeout=harness.TIMEOUT) as peer:
            peer.sendall(data)
            answer = b""
            while part := peer.recv(65536):
                answer += part
            return answer

    def restart(self):
        self.mps("quit -t 0\n")
        wait_until(lambda: not os.path.exists(self.socket_path), "the end of the first daemon")
        self.port = start_with_metrics(self, getattr(self, "host", ""))
        self.url = f"http://127.0.0.1:{self.port}"


class MetricsTest(ServedTest):
    # ---- metrics ----

    def test_values(self):
        self.attach()
        _, text = self.get("/metrics")
        labels = rf'server="uid_{os.getuid()}",pid="{os.getpid()}",id="1",user="[^"]+",group="night"'
        self.assertRegex(text, rf'funnel_client_sm_seconds_total{{{labels},gpu="(GPU-[0-9a-f-]+)",UUID="\1"}} 30\n')
        self.assertRegex(text, rf"funnel_client_launches_total{{{labels}}} 7\n")
        self.assertRegex(text, r'funnel_user_gpu_seconds_total{[^}]+group="night"} 0.5\n')
        self.assertTrue(text.endswith("# EOF\n"))

    def attach_to_named(self, name):
        """A client of a server of its own, which has the same two GPUs as the others."""
        self.mps(f"server create {name}\n")
        client = harness.Client(os.path.join(self.pipe, name, "funnel"))
        self.addCleanup(client.close)
        self.assertEqual(client.welcome()[0], 0)

    def test_a_shared_gpu_counts_once(self):
        self.attach()
        for name in "day", "night":
            self.attach_to_named(name)
        self.assertEqual(len(json.loads(self.get("/api/state")[1])["servers"]), 3)
        gpus = json.loads(self.get("/api/state")[1])["gpus"]
        self.assertEqual([gpu["multiprocessors"] for gpu in gpus], [132, 66])
        _, text = self.get("/metrics")
        for name in "multiprocessors", "memory_size_bytes", "memory_free_bytes", "info":
            uuids = re.findall(rf'^funnel_gpu_{name}{{.*UUID="([^"]+)".*}} ', text, re.M)
            self.assertEqual(uuids, [gpu["uuid"] for gpu in gpus], name)
        self.assertRegex(text, r'funnel_gpu_info{.*modelName="Test GPU",pci_bus_id="0000:01:00.0",'
                               rf'Hostname="{socket.gethostname()}"}} 1\n')

    @waits
    def test_utilization_of_a_shared_gpu(self):
        """Two servers whose clients want 90 and 90 of 132 multiprocessors get them all, half each."""
        self.environment["FUNNEL_FAKE_SMS"] = "90"
        self.restart()
        self.attach()
        self.attach_to_named("day")
        share = r'^funnel_client_sm_utilization_ratio{.*id="1".*gpu="(GPU-00[^"]+)",UUID="\1"} (.*)$'

        def shares(text):
            return [float(value) for _, value in re.findall(share, text, re.M)]

        wait_until(lambda: all(found := shares(self.get("/metrics")[1])) and len(found) == 2,
                   "two figures")
        text = self.get("/metrics")[1]
        whole = re.search(r"^funnel_gpu_sm_utilization_ratio{.*GPU-00[^}]+} (.*)$", text, re.M)
        self.assertAlmostEqual(sum(shares(text)), float(whole[1]), 3)
        self.assertLessEqual(float(whole[1]), 1)
        state = json.loads(self.get("/api/state")[1])
        self.assertLessEqual(sum(gpu["sms"] for gpu in state["gpus"]), 132)

    def test_sums_keep_what_clients_used(self):
        client = self.attach()
        client.close()
        ended = r'funnel_user_clients_ended_total{[^}]+group="night"} 1\n'
        wait_until(lambda: re.search(ended, self.get("/metrics")[1]), "the end of the client")
        text = self.get("/metrics")[1]
        self.assertRegex(text, r'funnel_user_sm_seconds_total{[^}]+group="night"} 30\n')
        self.assertNotIn("funnel_client_info{", text)

    def test_formats(self):
        self.assertIn("# TYPE funnel_faults_total counter", self.get("/metrics")[1])
        _, text = self.get("/metrics", Accept="application/openmetrics-text;version=1.0.0")
        self.assertIn("# TYPE funnel_faults counter", text)
        self.assertIn("\nfunnel_faults_total 0\n", text)

    @needs("promtool")
    def test_promtool(self):
        self.attach()
        for text in self.get("/metrics")[1], self.funnel("metrics").stdout:
            done = subprocess.run(["promtool", "check", "metrics"], input=text, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertIn("funnel_client_launches_total{", text)

    @needs("promtool")
    def test_alert_rules(self):
        rules = os.path.join(PACKAGING, "funnel-alerts.yml")
        done = subprocess.run(["promtool", "check", "rules", rules], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_rules_and_dashboard_name_what_there_is(self):
        self.attach()
        names = set(re.findall(r"^# TYPE (\S+)", self.get("/metrics")[1], re.M))
        for name in os.listdir(PACKAGING):
            with open(os.path.join(PACKAGING, name)) as file:
                text = file.read()
            if name.endswith(".json"):
                json.loads(text)
            used = set(re.findall(r"\bfunnel_[a-z_]+", text))
            self.assertTrue(used)
            self.assertEqual(used - names, set(), name)

    @needs("prometheus")
    def test_prometheus_scrapes_it(self):
        self.attach()
        folder, port = tempfile.mkdtemp(dir=self.root), harness.free_port()
        with open(os.path.join(folder, "prometheus.yml"), "w") as file:
            file.write("global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: funnel\n"
                       f"  static_configs: [{{targets: ['127.0.0.1:{self.port}']}}]\n"
                       f"rule_files: ['{os.path.abspath(PACKAGING)}/funnel-alerts.yml']\n")
        self.processes.append(subprocess.Popen(
            ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}",
             f"--web.listen-address=127.0.0.1:{port}"], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL))

        def found():
            question = urllib.parse.quote('sum(funnel_client_sm_seconds_total{group="night"})')
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?query={question}",
                                            timeout=5) as answer:
                    return [r["value"][1] for r in json.load(answer)["data"]["result"]]
            except OSError:
                return []

        wait_until(lambda: found() == ["30"], "the scrape")

    # ---- who sees what ----

    def test_command_lines_are_for_operators(self):
        self.attach()
        mine = os.path.basename(__file__)
        for path in "/metrics", "/api/state", "/api/history":
            status, text = self.get(path)
            self.assertEqual(status, 200)
            self.assertNotIn(mine, text, path)
            self.assertNotIn(mine, self.get(path, token="0" * 48)[1], path)
        for path in "/metrics", "/api/state":
            self.assertIn(mine, self.get(path, token=self.token())[1], path)
        self.assertEqual(os.stat(os.path.join(self.pipe, "http-token")).st_mode & 0o777, 0o600)

    def test_logs_and_orders_are_for_operators(self):
        self.attach()
        server = json.loads(self.get("/api/state")[1])["servers"][0]
        order = f"/api/terminate?server={server['pid']}&id=1&pid={os.getpid()}"
        self.assertEqual(self.get("/api/log")[0], 401)
        self.assertEqual(self.get(order, method="POST")[0], 401)
        self.assertEqual(self.get(order, token=self.token())[0], 405)
        self.assertIn("NEW CLIENT", self.get("/api/log", token=self.token())[1])
        log = f"/api/log?server={server['pid']}"
        self.assertEqual(self.get(log)[0], 401)
        self.assertIn('"event": "client"', self.get(log, token=self.token())[1])
        for wrong, status in (("1", 404), ("x", 400), ("-1", 400), ("99999999999", 400)):
            self.assertEqual(self.get(f"/api/log?server={wrong}", token=self.token())[0], status, wrong)
        self.assertEqual(self.get(order, token=self.token(), method="POST"), (200, '{"status":0}'))

    def limits(self):
        client = json.loads(self.get("/api/state")[1])["servers"][0]["clients"][0]
        return client["sm_percent"], client["devices"][0]["memory_limit"], client["priority"]

    def test_limits_are_for_operators(self):
        self.attach()
        server = json.loads(self.get("/api/state")[1])["servers"][0]
        whole = self.limits()
        order = f"/api/limit?server={server['pid']}&id=1&pid={os.getpid()}"
        self.assertEqual(self.get(order + "&memory=4096", method="POST")[0], 401)
        self.assertEqual(self.get(order + "&memory=4096", token=self.token())[0], 405)
        self.assertEqual(self.limits(), whole)
        for change, then in (("&sm_centipercent=2500", (25, whole[1], 0)),
                             ("&memory=1048576&priority=1", (25, 1048576, 1)),
                             ("&sm_centipercent=10000&memory=0&priority=0", (100, 0, 0))):
            done = self.get(order + change, token=self.token(), method="POST")
            self.assertEqual(done, (200, '{"status":0}'))
            self.assertEqual(self.limits(), then, change)
        for wrong in ("", "&sm_centipercent=0", "&sm_centipercent=10001", "&memory=x", "&priority=2",
                      "&memory=", "&sm_centipercent=-1"):
            self.assertEqual(self.get(order + wrong, token=self.token(), method="POST")[0], 400, wrong)
        gone = order.replace("&id=1&", "&id=99&") + "&memory=1"
        self.assertEqual(self.get(gone, token=self.token(), method="POST")[0], 404)

    def test_usage_is_for_operators(self):
        path = "/api/usage?by=user,group&days=7"
        self.assertEqual(self.get(path)[0], 401)
        self.assertEqual(self.get(path, token=self.token(), method="POST")[0], 405)
        for wrong in ("", "?by=user", "?days=7", "?by=user&days=0", "?by=user&days=3661", "?by=user,&days=7",
                      "?by=user,user&days=7", "?by=pid&days=7", "?by=--csv&days=7", "?by=&days=7", "?by=user&days=-1",
                      "?by=user&days=7&csv=2", "?by=" + "user," * 40 + "day&days=7"):
            self.assertEqual(self.get("/api/usage" + wrong, token=self.token())[0], 400, wrong)
        if "without the jansson" in self.funnel("usage").stderr:
            self.assertEqual(self.get(path, token=self.token())[0], 503)
            return
        told = self.funnel_json("usage", "--by", "user,group", "--since", "7d")
        self.assertEqual(json.loads(self.get(path, token=self.token())[1])["usage"], told["usage"])
        status, text = self.get(path + "&csv=1", token=self.token())
        self.assertEqual((status, text), (200, self.funnel("usage", "--by", "user,group", "--since", "7d", "--csv").stdout))

    def sensors(self, *values):
        """Those of the first GPU, as a server says it."""
        self.environment["FUNNEL_FAKE_SENSORS"] = json.dumps(values)
        self.restart()
        self.attach()
        return re.findall(r'^funnel_gpu_(\w+_(?:watts|celsius|hertz)|utilization_ratio|memory_activity_ratio|'
                          r'memory_in_use_bytes){[^}]*UUID="GPU-00010203[^}]*} (\S+)$', self.get("/metrics")[1], re.M)

    def test_sensors(self):
        """By names with their units, once for each GPU that tells, in all listings."""
        told = self.sensors(320500, 700000, 51, 87, 0, 1980, 2619, 4096)
        self.assertEqual(told, [("power_watts", "320.5"), ("power_limit_watts", "700"), ("temperature_celsius", "51"),
                                ("utilization_ratio", "0.87"), ("memory_activity_ratio", "0"),
                                ("sm_clock_hertz", "1980000000"), ("memory_clock_hertz", "2619000000"),
                                ("memory_in_use_bytes", "4096")])
        self.attach_to_named("day")
        self.assertEqual(self.get("/metrics")[1].count("\nfunnel_gpu_power_watts{"), 1)
        first, second = json.loads(self.get("/api/state")[1])["gpus"]
        self.assertEqual((first["power_watts"], first["temperature_celsius"]), (320.5, 51))
        self.assertNotIn("power_watts", second)
        first, second = [device for device in self.funnel_json("devices") if device["server_name"] == "day"]
        self.assertEqual((first["power_watts"], first["sm_clock_hertz"], second["power_watts"]), (320.5, 1980000000, None))
        self.assertIn(", 51 C, 320 of 700 W\n", self.funnel("status").stdout)

    def test_sensors_without_values(self):
        self.assertEqual(self.sensors(), [])
        self.assertNotIn("funnel_gpu_power", self.get("/metrics")[1])

    def test_sensors_with_nonsense(self):
        self.assertEqual(self.sensors(10**9, 2**63, 201, 101, 2**64 - 2, 10**6, 12, 2**60),
                         [("memory_clock_hertz", "12000000")])

    # ---- bad input ----

    @waits
    def test_history_begins_without_a_server(self):
        """A daemon that has been idle for some samples shows the programs that come then."""
        def samples():
            return json.loads(self.get("/api/history?range=300")[1])["samples"]

        wait_until(lambda: len(samples()) > 1, "samples of the idle daemon")
        self.assertEqual(self.client().welcome()[0], 0)
        wait_until(lambda: samples()[-1][1], "a sample with the program")

    def test_bad_requests(self):
        for request, status in ((b"GET /metrics\r\n\r\n", 400), (b"\r\n\r\n", 400),
                                (b"PUT / HTTP/1.1\r\n\r\n", 405), (b"GET * HTTP/1.1\r\n\r\n", 400),
                                (b"GET /\0 HTTP/1.1\r\n\r\n", 400),
                                (b"GET /../etc/passwd HTTP/1.1\r\n\r\n", 404),
                                (b"GET / HTTP/1.1\r\nnonsense\r\n\r\n", 400),
                                (b"GET /" + b"a" * 500 + b" HTTP/1.1\r\n\r\n", 400),
                                (b"GET / HTTP/1.1\r\nA: " + b"a" * 9000, 431)):
            answer = self.raw(request)
            self.assertTrue(answer.startswith(b"HTTP/1.1 %d " % status), (request[:40], answer[:40]))
        for query in "", "?server=x&id=1&pid=1", "?server=1&id=99999999999999999999999&pid=1":
            self.assertEqual(self.get("/api/terminate" + query, token=self.token(),
                                      method="POST")[0], 400)
        for query in "range=299", "range=x", "range=", "since=-1", "since=x":
            self.assertEqual(self.get("/api/history?" + query)[0], 400, query)
        self.assertEqual(self.get("/metrics")[0], 200)

    def connect(self, count, data, address="127.0.0.1"):
        """So many connections that send this and read nothing."""
        peers = []
        for _ in range(count):
            peers.append(socket.create_connection((address, self.port), timeout=harness.TIMEOUT))
            self.addCleanup(peers[-1].close)
            peers[-1].sendall(data)
        return peers

    @waits
    def test_idle_connections(self):
        begin = time.monotonic()
        idle = self.connect(60, b"GET /metrics HTTP/1.1\r\n")
        self.assertEqual(self.get("/metrics")[0], 200)
        with contextlib.suppress(ConnectionResetError):  # the oldest gave way
            self.assertEqual(idle[0].recv(1), b"")
        self.assertLess(time.monotonic() - begin, harness.TIMEOUT)
        self.assertEqual(idle[-1].recv(1), b"")  # it had its ten seconds
        self.assertGreater(time.monotonic() - begin, 5)

    def test_slow_readers(self):
        self.connect(60, b"GET / HTTP/1.1\r\n\r\n")
        self.assertEqual(self.get("/metrics")[0], 200)

    def test_nothing_is_left_to_the_next_daemon(self):
        self.assertTrue(os.path.exists(os.path.join(self.pipe, "http-token")))
        self.mps("quit -t 0\n")
        self.assertFalse(os.path.exists(os.path.join(self.pipe, "http-token")))
        self.assertRaises(OSError, self.get, "/metrics")

    def test_questions_that_wait(self):
        """However many wait for a server that does not answer, the token's owner does not."""
        self.environment["FUNNEL_FAKE"] = "silent"
        self.restart()
        self.attach()
        self.connect(60, b"GET /api/state HTTP/1.1\r\n\r\n")
        self.assertEqual(self.get("/api/history")[0], 503)
        self.assertEqual(self.get("/api/log", token=self.token())[0], 200)

    def test_others_do_not_take_the_machines_own_places(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect(("192.0.2.1", 9))
            except OSError:
                self.skipTest("this machine has no other address than its own")
            address = probe.getsockname()[0]
        self.host = "0.0.0.0:"
        self.restart()
        begun = self.connect(1, b"GET /metrics HTTP/1.1\r\n")
        self.connect(60, b"GET /metrics HTTP/1.1\r\n", address)
        begun[0].sendall(b"\r\n")
        self.assertIn(b"200 OK", begun[0].recv(100))
        self.assertEqual(self.get("/metrics")[0], 200)

    # ---- names ----

    def status_for(self, host, path="/metrics"):
        return int(self.raw(f"GET {path} HTTP/1.1\r\n{host}\r\n\r\n".encode()).split()[1])

    def test_names_that_lead_here(self):
        """The page of a web site whose name was made to resolve to this machine."""
        for path in "/", "/metrics", "/api/state", "/api/history":
            for name in (f"rebound.example:{self.port}", "localhost.example", "127.0.0.1.example",
                         "2130706433", ":9400", "x@127.0.0.1"):
                self.assertEqual(self.status_for(f"Host: {name}", path), 421, name)
            for name in (f"127.0.0.1:{self.port}", "localhost", f"LOCALHOST.:{self.port}", "[::1]:80",
                         "page.localhost", socket.gethostname(), "10.1.2.3"):
                self.assertEqual(self.status_for(f"Host: {name}", path), 200, name)
        self.assertEqual(self.status_for("Accept: */*"), 200)
        self.assertEqual(self.status_for("Host: localhost\r\nHost: localhost"), 400)
        self.assertEqual(self.status_for("Host: " + "a" * 300), 400)
        self.assertEqual(self.get("/api/log", token=self.token(), Host="rebound.example")[0], 200)
        self.assertIn("FUNNEL_METRICS_HOSTS", self.get("/", Host="rebound.example")[1])

    def test_names_of_an_operators(self):
        self.environment["FUNNEL_METRICS_HOSTS"] = "gpu.example,metrics.example"
        self.restart()
        for name, status in (("gpu.example", 200), ("metrics.example:9400", 200), ("example", 421),
                             ("gpu.example,metrics.example", 421), ("gpu", 421)):
            self.assertEqual(self.status_for(f"Host: {name}"), status, name)

    def leave(self):
        for _ in range(100):
            with socket.create_connection(("127.0.0.1", self.port)) as peer:
                peer.sendall(b"GET /api/state HTTP/1.1\r\n\r\n")

    def test_readers_that_leave(self):
        self.leave()
        wait_until(self.is_served, "an answer")

    def test_readers_that_leave_a_silent_server(self):
        """They keep their places until the daemon does not wait for its answer any longer."""
        self.attach()
        server = self.servers()[0]
        os.kill(server, signal.SIGSTOP)
        try:
            self.leave()
            wait_until(self.is_served, "an answer")
        finally:
            os.kill(server, signal.SIGCONT)

    def test_page_asks_no_other_host(self):
        text = self.get("/")[1]
        self.assertIn("<title>Funnel</title>", text)
        self.assertEqual(set(re.findall(r'(?:src|href)="([^"]*)"', text)),
                         {"#programs", "data:,", "uplot.css", "page.css", "uplot.js", "page.js"})
        for path in "/page.js", "/page.css":
            self.assertEqual(re.findall(r"https?://|@import|url\(", self.get(path)[1]), [], path)


class AddressTest(harness.TestCase):
    def test_unix_socket(self):
        path = os.path.join(self.root, "metrics")
        self.start("--metrics", path)
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(path)
            peer.sendall(b"GET /metrics HTTP/1.1\r\nHost: whatever\r\n\r\n")
            self.assertIn(b"200 OK", peer.recv(100))

    def test_default_is_the_machine_itself(self):
        port = start_with_metrics(self, ":")
        with open("/proc/net/tcp") as file:
            self.assertIn(f"0100007F:{port:04X}", file.read())

    def test_bad_addresses(self):
        for address in "nonsense", "1.2.3.4", "127.0.0.1:99999", "":
            done = self.run_program("funneld", "-d", "--metrics", address)
            self.assertEqual(done.returncode, 1, address)
            self.assertRegex(done.stderr, "--metrics takes|Metrics cannot be served")


if __name__ == "__main__":
    harness.main()

# SPDX-License-Identifier: Apache-2.0
"""Servers: started on demand, told about clients, replaced when they die, ended when asked."""
import json
import os
import signal
import subprocess
import sys
import unittest

import harness
from harness import alive, wait_until


class Servers(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.start("--device", "soft")

    def attach(self, **hello):
        client = self.client(**hello)
        self.assertEqual(client.welcome(), (0, ""))
        return client

    def test_started_for_the_first_client(self):
        self.assertEqual(self.servers(), [])
        self.attach()
        self.attach()
        servers = self.servers()
        self.assertEqual(len(servers), 1)
        self.assertEqual(self.mps(f"get_server_status {servers[0]}\n"), ["ACTIVE"])
        log = self.control_log()
        self.assertIn(f"Starting new server {servers[0]} for user {os.getuid()}", log)
        self.assertIn("Server is not ready, push client to pending list", log)
        self.assertIn(f"NEW SERVER {servers[0]}: Ready", log)
        self.assertIn(f"NEW CLIENT {os.getpid()} from user {os.getuid()}: Server already exists",
                      log)

    def test_clean_process(self):
        self.attach()
        start, = self.server_events("start")
        self.assertEqual(start["argv"][1:], ["--device", "soft"])
        # 6 is what lists the directory.
        self.assertEqual(start["descriptors"], [0, 1, 2, 3, 4, 5, 6, 7])
        empty = start["environment"]["CUDA_MPS_PIPE_DIRECTORY"]
        self.assertEqual(os.listdir(empty), [])

    @unittest.skipIf(subprocess.call(["unshare", "--net", "true"], stderr=subprocess.DEVNULL),
                     "no right to make a network namespace")
    def test_no_network(self):
        self.attach()
        server, = self.servers()
        self.assertNotEqual(os.readlink(f"/proc/{server}/ns/net"), os.readlink("/proc/self/ns/net"))

    def test_affinity_is_inherited(self):
        cpu = min(os.sched_getaffinity(0))
        os.sched_setaffinity(self.daemon_pid(), {cpu})
        self.attach()
        self.assertEqual(self.server_events("start")[0]["affinity"], [cpu])

    def test_the_server_hears_who_the_client_is(self):
        self.attach()
        event, = self.server_events("client")
        self.assertEqual((event["pid"], event["uid"]), (os.getpid(), os.getuid()))
        self.assertIn("test_servers.py", event["command"])

    def test_lists(self):
        self.attach()
        server, = self.servers()
        self.assertEqual(self.mps(f"get_client_list {server}\n"), [str(os.getpid())])
        header, row = self.mps("ps\n")
        self.assertEqual(header.split(), ["PID", "ID", "SERVER", "DEVICE", "NAMESPACE", "COMMAND"])
        fields = row.split(maxsplit=5)
        self.assertEqual(fields[:4], [str(os.getpid()), "1", str(server), "GPU-00010203-0405-0607"])
        self.assertEqual(fields[4], str(os.stat("/proc/self/ns/pid").st_ino))
        self.assertEqual(self.mps(f"ps -p {os.getpid()}\n")[1:], [row])
        self.assertEqual(self.mps("ps -p 1\n")[1:], [])
        query = self.mps(f"device_query {server} --csv\n")
        self.assertEqual(len(query), 3)
        self.assertIn("GPU-00010203-0405-0607-0809-0a0b0c0d0e0f", query[1])

    def test_json(self):
        self.attach()
        done = self.funnel("status", "--json")
        if "without the jansson library" in done.stderr:
            self.assertEqual(done.returncode, 1)
            self.skipTest("built without jansson")
        status = json.loads(done.stdout)
        self.assertEqual(status["clients"][0]["pid"], os.getpid())
        self.assertEqual(status["clients"][0]["devices"][0]["memory_used"], 1 << 20)
        self.assertEqual(status["servers"][0]["state"], "active")
        self.assertEqual([d["sm_count"] for d in status["devices"]], [132, 66])
        for view in ("ps", "clients", "servers", "devices"):
            done = self.funnel(view, "--json")
            self.assertEqual(done.returncode, 0)
            self.assertIsInstance(json.loads(done.stdout), list)
        self.assertEqual(sorted(json.loads(self.funnel("limits", "--json").stdout)),
                         ["clients", "limits", "quotas"])

    def test_tables(self):
        self.attach()
        self.assertIn(str(os.getpid()), self.funnel("ps").stdout)
        self.assertIn("active", self.funnel("servers").stdout)
        self.assertIn("Test GPU", self.funnel("devices").stdout)

    def test_terminate_client(self):
        client = self.attach()
        server, = self.servers()
        self.assertEqual(self.mps(f"terminate_client {server} 1\n"), ["201"])
        self.assertEqual(self.mps(f"terminate_client {server} {os.getpid()}\n"), ["0"])
        self.assertEqual(client.socket.recv(1), b"")
        self.assertEqual(self.mps(f"terminate_client {server} {os.getpid()}\n"), ["201"])

    def test_next_client_after_a_crash(self):
        client = self.attach()
        server, = self.servers()
        os.kill(server, signal.SIGKILL)
        self.assertEqual(client.socket.recv(1), b"")
        self.attach()
        self.assertNotEqual(self.servers(), [server])
        wait_until(lambda: f"Server {server} was killed by signal 9" in self.control_log())

    def attached_process(self):
        """A client that is a process of its own."""
        program = ("import sys, time; sys.path.insert(0, sys.argv[1]); import harness; "
                   "c = harness.Client(sys.argv[2]); c.welcome(); print(flush=True); "
                   "time.sleep(60)")
        process = subprocess.Popen([sys.executable, "-B", "-c", program, harness.HERE,
                                    self.socket_path],
                                   stdout=subprocess.PIPE)
        self.processes.append(process)
        process.stdout.readline()
        wait_until(lambda: f"Client {process.pid} attached" in self.control_log())
        return process

    def test_next_client_after_a_fault(self):
        survivor = self.attached_process()
        server, = self.servers()
        os.kill(server, signal.SIGUSR1)
        wait_until(lambda: "fatal GPU error 700" in self.control_log())
        self.assertEqual(self.mps(f"get_server_status {server}\n"), ["FAULT"])
        self.assertEqual(self.client().welcome()[0], 807)
        moving = self.client(window_base=1 << 44)
        wait_until(lambda: "moves to the next" in self.control_log())
        survivor.kill()
        survivor.wait()
        waiting = self.client()
        wait_until(lambda: self.control_log().count("pending list") == 3)
        os.kill(server, signal.SIGUSR2)
        self.assertEqual(waiting.welcome(), (0, ""))
        self.assertEqual(moving.welcome(), (0, ""))
        self.assertNotEqual(self.servers(), [server])
        self.assertIn("Client 1234 wrote where nothing is", self.control_log())

    def test_shutdown_waits_for_clients(self):
        client = self.attach()
        server, = self.servers()
        self.assertEqual(self.mps(f"shutdown_server {server}\n"), [])
        waiting = self.client()
        self.assertEqual(self.mps(f"get_client_list {server}\n"), [str(os.getpid())])
        client.close()
        self.assertEqual(waiting.welcome(), (0, ""))
        self.assertNotEqual(self.servers(), [server])

    def test_shutdown_by_force(self):
        client = self.attach()
        server, = self.servers()
        self.assertEqual(self.mps(f"shutdown_server {server} -f\n"), [])
        self.assertEqual(client.socket.recv(1), b"")
        wait_until(lambda: not alive(server))
        wait_until(lambda: self.servers() == [])

    def test_start_server(self):
        self.assertEqual(self.mps(f"start_server -uid {os.getuid()}\n"), [])
        server, = self.servers()
        self.assertIn("already exists", self.mps(f"start_server -uid {os.getuid()}\n")[0])
        self.assertEqual(self.mps(f"get_server_status {server}\n"), ["ACTIVE"])

    def test_limits_reach_the_server(self):
        self.mps("set_default_active_thread_percentage 50\n"
                 "set_default_device_pinned_mem_limit 0 2G\n"
                 "set_default_device_pinned_mem_limit GPU-10111213 3G\n")
        self.attach()
        self.attach(sm_centipercent=2500, priority=1, memory=[1 << 30, 4 << 30])
        server, = self.servers()
        self.mps(f"set_active_thread_percentage {server} 20\nset_default_client_priority 1\n"
                 f"set_device_pinned_mem_limit {server} 0 4G\n"
                 "set_default_active_thread_percentage 70\n")
        self.attach()
        self.attach(sm_centipercent=9000, priority=0)
        told = [(e["share"], e["priority"], e["memory"]) for e in self.server_events("client")]
        gib = 1 << 30
        self.assertEqual(told, [(5000, 0, [2 * gib, 3 * gib]), (2500, 1, [1 * gib, 3 * gib]),
                                (2000, 1, [4 * gib, 3 * gib]), (2000, 0, [4 * gib, 3 * gib])])

    def test_quit_waits(self):
        client = self.attach()
        refused = self.funnel("stop")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("1 program still runs", refused.stderr)
        process = self.start_mps("quit\n")
        wait_until(lambda: "Cmd:quit" in self.control_log())
        self.assertIsNone(process.poll())
        self.assertTrue(alive(self.daemon_pid()))
        client.close()
        self.assertEqual(process.wait(timeout=harness.TIMEOUT), 0)

    def test_a_daemon_that_is_quitting_answers(self):
        client = self.attach()
        process = self.start_mps("quit\n")
        wait_until(lambda: "Cmd:quit" in self.control_log())
        self.assertIn(str(os.getpid()), self.funnel("ps").stdout)
        self.assertIn("is ending", self.funnel("status").stdout)
        late = self.client()
        self.assertEqual(late.welcome(), (805, "The daemon is quitting"))
        second = self.start_mps("quit -t 100\n")
        wait_until(lambda: "Cmd:quit -t 100" in self.control_log())
        self.assertIsNone(second.poll())
        stopped = self.funnel("stop", "--force")
        self.assertEqual((stopped.returncode, stopped.stderr), (0, ""))
        self.assertEqual(client.socket.recv(1), b"")
        for waiting in (process, second):
            self.assertEqual(waiting.wait(timeout=harness.TIMEOUT), 1)

    def test_quit_with_a_limit(self):
        self.attach()
        process = self.start_mps("quit -t 1\n")
        self.assertNotEqual(process.wait(timeout=harness.TIMEOUT), 0)

    def test_stop_by_force(self):
        client = self.attach()
        self.assertEqual(self.funnel("stop", "--force").returncode, 0)
        self.assertEqual(client.socket.recv(1), b"")

    def start_mps(self, commands):
        process = subprocess.Popen([os.path.join(self.root, "bin/nvidia-cuda-mps-control")],
                                   stdin=subprocess.PIPE, text=True, env=self.environment)
        self.processes.append(process)
        process.stdin.write(commands)
        process.stdin.close()
        return process


class Environment(harness.TestCase):
    """What servers have of the daemon's."""

    def of_server(self):
        self.start("--device", "soft")
        self.assertEqual(self.client().welcome(), (0, ""))
        return self.server_events("start")[0]["environment"]

    def test_the_clients_library_is_not_preloaded(self):
        self.environment["LD_PRELOAD"] = "/nowhere/libcuda.so.1"
        self.assertNotIn("LD_PRELOAD", self.of_server())

    def test_memory_comes_in_huge_pages(self):
        self.environment.pop("GLIBC_TUNABLES", None)
        self.assertEqual(self.of_server()["GLIBC_TUNABLES"], "glibc.malloc.hugetlb=1")

    def test_own_tunables_stay(self):
        self.environment["GLIBC_TUNABLES"] = "glibc.malloc.arena_max=4"
        self.assertEqual(self.of_server()["GLIBC_TUNABLES"], "glibc.malloc.arena_max=4")


class Trouble(harness.TestCase):
    def begin(self, how):
        self.environment["FUNNEL_FAKE"] = how
        self.start("--device", "cuda")

    def test_clients_queue_while_it_starts(self):
        self.begin("slow")
        clients = [self.client() for _ in range(5)]
        leaving = self.client()
        leaving.close()
        self.assertEqual([c.welcome() for c in clients], [(0, "")] * 5)
        self.assertEqual(len(self.servers()), 1)

    def test_reason_of_a_failed_start(self):
        self.begin("fail")
        first, second = self.client(), self.client()
        for client in (first, second):
            self.assertEqual(client.welcome(), (100, "No device: load the driver's module"))
        self.assertEqual(self.servers(), [])
        self.assertIn("No device: load the driver's module", self.control_log())

    def test_start_server_says_why_it_failed(self):
        self.begin("fail")
        answer, = self.mps(f"start_server -uid {os.getuid()}\n")
        self.assertIn("No device: load the driver's module", answer)

    def test_start_server_by_one_that_dies(self):
        self.begin("slow")
        process = subprocess.Popen([os.path.join(self.root, "bin/nvidia-cuda-mps-control")],
                                   stdin=subprocess.PIPE, text=True, env=self.environment)
        process.stdin.write(f"start_server -uid {os.getuid()}\n")
        process.stdin.flush()
        wait_until(lambda: self.server_events("start"))
        process.kill()
        process.communicate()
        self.assertEqual(self.client().welcome(), (0, ""))

    def test_crash_while_starting(self):
        self.begin("crash")
        status, text = self.client().welcome()
        self.assertEqual(status, 805)
        self.assertIn("signal 11", text)
        self.assertIn("server.log", text)

    def test_no_server_program(self):
        os.unlink(os.path.join(self.root, "bin/funnel-server"))
        self.begin("ready")
        status, text = self.client().welcome()
        self.assertEqual(status, 805)
        self.assertIn("No such file", text)

    def test_quit_while_it_starts(self):
        self.begin("hang")
        client = self.client()
        wait_until(lambda: self.server_events("start"))
        self.assertEqual(self.mps("quit\n"), [])
        self.assertEqual(client.welcome()[0], 805)

    def test_a_silent_server_does_not_hold_the_daemon(self):
        self.begin("silent")
        self.assertEqual(self.client().welcome(), (0, ""))
        self.assertIn("silent", self.funnel("servers").stdout)

    def test_nonsense_from_a_server(self):
        server = os.path.join(self.root, "bin/funnel-server")
        with open(server, "w") as file:
            file.write("#!/bin/sh\nprintf nonsense >&3\nsleep 1000\n")
        self.begin("ready")
        self.assertEqual(self.client().welcome()[0], 805)
        self.assertEqual(self.servers(), [])


if __name__ == "__main__":
    harness.main()

# SPDX-License-Identifier: Apache-2.0
"""Programs that come to the daemon's own socket get the namespace of their control group. Groups that this process
may not make are not tested: the kernel decides that, not Funnel."""
import ctypes
import os
import socket
import subprocess
import sys
import unittest

import harness
import wire
from harness import Client

PEER = """import sys
sys.path.insert(0, sys.argv[1])
import harness
named = {"group": sys.argv[3].encode()} if len(sys.argv) > 3 else {}
clients = [harness.Client(sys.argv[2], **named)]
print(*clients[0].welcome(), flush=True)
while sys.stdin.readline():
    clients.append(harness.Client(sys.argv[2]))
    print(*clients[-1].welcome(), flush=True)
"""
POD = "pod_0f1e2d3c4b5a"
CLONE_NEWCGROUP = 0x02000000
NOT_READY = 807
DEVICE = "0000:01:00.0"  # the first one of fake_server.py


def hierarchies():
    """(directory of the hierarchy, path of this process's group there)."""
    with open("/proc/self/cgroup") as lines:
        for _, controllers, path in (line.rstrip("\n").split(":", 2) for line in lines):
            if controllers:
                yield "/sys/fs/cgroup/" + controllers.removeprefix("name="), path
            else:
                yield "/sys/fs/cgroup", path
                yield "/sys/fs/cgroup/unified", path


def own_group():
    for root, path in hierarchies():
        if root != "/sys/fs/cgroup" or path != "/":
            return root + path.rstrip("/")
    raise unittest.SkipTest("this process is in the root of the only hierarchy of control groups")


def join(group):
    with open(os.path.join(group, "cgroup.procs"), "w") as processes:
        processes.write("0")


def can_be_joined(group):
    child = os.fork()
    if child == 0:
        try:
            join(group)
            os._exit(0)
        except OSError:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def remove(group, parent=None):
    try:
        os.rmdir(group, dir_fd=parent)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


class Maker:
    """Part of a test: it makes control groups."""

    def make_group(self, group):
        os.mkdir(group)
        self.addCleanup(harness.wait_until, lambda: remove(group), "the end of a control group")

    def new_group(self):
        """A group that processes of this test can join."""
        for root, path in hierarchies():
            group = os.path.join(root + path.rstrip("/"), f"funnel-test-{os.getpid()}")
            if not os.path.exists(os.path.join(os.path.dirname(group), "cgroup.procs")):
                continue
            try:
                self.make_group(group)
            except OSError:
                continue
            if can_be_joined(group):
                return group
        raise unittest.SkipTest("no control group can be made here")


class Groups(Maker, harness.TestCase):
    def words(self, line, status=0):
        done = self.run_program("nvidia-cuda-mps-control", *line.split())
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout.splitlines()

    def begin(self, text):
        path = os.path.join(self.root, "mps.toml")
        with open(path, "w") as file:
            file.write(text)
        self.start("-a", path)

    def peer(self, group, *named, own_namespace=False):
        """A program in that group; what it is told is on its output."""
        def enter():
            join(group)
            if own_namespace and ctypes.CDLL(None).unshare(CLONE_NEWCGROUP):
                os._exit(1)

        process = subprocess.Popen([sys.executable, "-c", PEER, harness.HERE, self.socket_path,
                                    *named],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                   preexec_fn=enter)
        self.processes.append(process)
        self.assertEqual(process.stdout.readline(), "0 \n")
        return process

    def again(self, process):
        process.stdin.write("\n")
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), "0 \n")

    def whereabouts(self, process):
        """Servers and namespaces of its connections, in the order in which they were made."""
        rows = [row.split(",") for row in self.words("client list --all --format=csv,noheader")]
        return [f"{row[1]}/{row[3]}" for row in rows if row[0] == str(process.pid)]

    def test_the_group_chooses(self):
        self.begin(f'[servers.day.namespaces.here]\ncgroup = "{own_group()}"\n'
                   '[servers.day.namespaces.nowhere]\ncgroup = "/sys/fs/cgroup/nowhere"\n'
                   '[servers.night.namespaces.plain]\n')
        client = self.client()
        self.assertEqual(client.welcome(), (0, ""))
        rows = self.words("client list --server=day --format=csv,noheader")
        self.assertEqual([row.split(",")[3] for row in rows], ["here"])
        self.assertEqual(self.words("namespace get here day cgroup"), [own_group()])
        self.assertEqual(self.words("namespace get here day cgroup-depth"), ["all"])
        self.words("namespace set here --server=day --cgroup=none")
        self.assertEqual(self.words("namespace get here day cgroup"), ["-"])
        client = self.client()
        self.assertEqual(client.welcome(), (0, ""))
        self.assertEqual(len(self.words(f"client list --server=uid_{os.getuid()} "
                                        "--format=csv,noheader")), 1)

    def test_the_socket_counts_more(self):
        self.begin(f'[servers.day.namespaces.here]\ncgroup = "{own_group()}"\n'
                   '[servers.night.namespaces.plain]\n')
        client = Client(os.path.join(self.pipe, "night", "plain", "funnel"))
        self.addCleanup(client.close)
        self.assertEqual(client.welcome(), (0, ""))
        rows = self.words("client list --server=night --format=csv,noheader")
        self.assertEqual([row.split(",")[3] for row in rows], ["plain"])

    def test_nearest_and_depth(self):
        group = self.new_group()
        self.make_group(os.path.join(group, "b"))
        self.make_group(os.path.join(group, "b", "c"))
        self.begin(f'[servers.s.namespaces.outer]\ncgroup = "{group}"\ncgroup_depth = 1\n'
                   f'[servers.s.namespaces.inner]\ncgroup = "{group}/b"\ncgroup_depth = 0\n')
        for path, expected in (("", "s/outer"), ("b", "s/inner"),
                               ("b/c", f"uid_{os.getuid()}/default")):
            process = self.peer(os.path.join(group, path))
            self.assertEqual(self.whereabouts(process), [expected])
        self.words("namespace set outer --server=s --cgroup-depth=all")
        self.assertEqual(self.whereabouts(self.peer(os.path.join(group, "b/c"))), ["s/outer"])

    def test_a_program_that_moves(self):
        """It stays where it was served, and its next connection is of its new group."""
        group = self.new_group()
        self.make_group(os.path.join(group, "b"))
        self.begin(f'[servers.s.namespaces.outer]\ncgroup = "{group}"\n'
                   f'[servers.s.namespaces.inner]\ncgroup = "{group}/b"\n')
        process = self.peer(group)
        with open(os.path.join(group, "b", "cgroup.procs"), "w") as processes:
            processes.write(str(process.pid))
        self.again(process)
        self.assertEqual(sorted(self.whereabouts(process)), ["s/inner", "s/outer"])

    def test_a_path_that_the_kernel_cuts(self):
        """A program cannot leave by making so many groups that their names do not fit."""
        group, name = self.new_group(), "d" * 250
        self.begin(f'[servers.s.namespaces.outer]\ncgroup = "{group}"\n')
        inner = os.open(group, os.O_RDONLY | os.O_DIRECTORY)
        for _ in range(20):
            self.addCleanup(os.close, inner)
            os.mkdir(name, dir_fd=inner)
            self.addCleanup(harness.wait_until, lambda parent=inner: remove(name, parent),
                            "the end of a control group")
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=inner)
        self.addCleanup(os.close, inner)
        process = self.peer(f"/proc/self/fd/{inner}")
        self.assertEqual(self.whereabouts(process), ["s/outer"])

    @unittest.skipIf(os.geteuid(), "a cgroup namespace needs root")
    def test_a_container(self):
        """To itself such a program is in the root of all groups; what the daemon sees counts."""
        group = self.new_group()
        self.begin(f'[servers.s.namespaces.here]\ncgroup = "{group}"\n')
        process = self.peer(group, own_namespace=True)
        self.assertEqual(self.whereabouts(process), ["s/here"])

    def test_the_connection_of_one_that_has_ended(self):
        """The kernel cannot tell whose it is now, so it cannot be used to leave a group."""
        self.begin(f'[servers.s.namespaces.here]\ncgroup = "{own_group()}"\n')
        mine, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        child = os.fork()
        if child == 0:
            client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            client.connect(self.socket_path)
            socket.send_fds(other, [b"x"], [client.fileno()])
            os._exit(0)
        _, (fd,), _, _ = socket.recv_fds(mine, 1, 1)
        os.waitpid(child, 0)
        with mine, other, socket.socket(fileno=fd) as client:
            client.settimeout(harness.TIMEOUT)
            client.send(wire.hello())
            status, message = wire.welcome(client.recv(8192))
        self.assertEqual(status, NOT_READY)
        self.assertIn("The control groups of the program cannot be read (No such process)",
                      message)

    @unittest.skipIf(os.geteuid(), "only root's daemon serves other users")
    def test_the_server_of_another_user(self):
        self.begin(f'[servers.s]\nuid = 12345\n'
                   f'[servers.s.namespaces.here]\ncgroup = "{own_group()}"\n')
        status, message = self.client().welcome()
        self.assertEqual(status, NOT_READY)
        self.assertIn("The server s serves user 12345 only, not user 0", message)

    @unittest.skipIf(os.geteuid(), "a mount namespace needs root")
    def test_memory_of_a_group(self):
        """Where the kernel limits device memory by group, the server is told the limit."""
        with open("/proc/self/cgroup") as lines:
            path = next(line[3:].strip() for line in lines if line.startswith("0::"))
        kernel = os.path.join(self.root, "kernel")
        os.makedirs(kernel + path)
        for name, text in (("dmem.capacity", ""), (path + "/dmem.max", f"x/{DEVICE}/vram0 4096\n"),
                           (path + "/dmem.min", f"x/{DEVICE}/vram0 1024\n")):
            with open(os.path.join(kernel, name.lstrip("/")), "w") as file:
                file.write(text)
        done = subprocess.run(["unshare", "--mount", "sh", "-c",
                               f"mount --bind {kernel} /sys/fs/cgroup && exec {self.root}/bin/funneld -d"],
                              env=self.environment, stderr=subprocess.PIPE, text=True)
        if "unshare" in done.stderr or "mount" in done.stderr:
            self.skipTest(done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.client(memory=[1 << 30]).welcome(), (0, ""))
        event = self.server_events("client")[-1]
        self.assertEqual((event["memory"], event["soft"]), ([4096, 0], [1024, 0]))

    # ---- groups of programs ----

    def group_of(self, process):
        client, = [row for row in self.funnel_json("ps") if row["pid"] == process.pid]
        return client["group"]

    def make_pod(self, container="9f" * 32):
        """The control groups that a kubelet makes, below one of this test."""
        pod = os.path.join(self.new_group(), "kubepods-pod0f1e2d3c_4b5a_6978_8796_a5b4c3d2e1f0.slice")
        self.make_group(pod)
        self.make_group(os.path.join(pod, f"cri-containerd-{container}.scope"))
        return os.path.join(pod, f"cri-containerd-{container}.scope")

    def test_pods_are_groups(self):
        """Without any variable, in a namespace of control groups as containers have one, too."""
        container = self.make_pod()
        self.start()
        programs = [self.peer(container), self.peer(os.path.dirname(container))]
        if os.geteuid() == 0:
            programs.append(self.peer(container, own_namespace=True))
        for program in programs:
            self.assertEqual(self.group_of(program), POD)
        self.assertEqual([row["container"] for row in self.funnel_json("ps")],
                         ["9f" * 6, "", "9f" * 6][:len(programs)])
        self.assertEqual(self.funnel("metrics").stdout.count('container_id="9f9f9f9f9f9f"'),
                         len(programs) - 1)
        shown = self.funnel("ps").stdout
        self.assertEqual(shown.count(POD), len(programs), shown)
        done = self.funnel("limit", "--group", POD, "--sm", "25")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.peer(container)
        self.assertEqual([event["share"] for event in self.server_events("client")],
                         [10000] * len(programs) + [2500])
        outside = self.client()
        self.assertEqual(outside.welcome(), (0, ""))
        self.assertEqual(self.server_events("client")[-1]["share"], 10000)

    def test_a_group_that_a_pod_names(self):
        """It counts, until an operator has limited the pod."""
        container = self.make_pod()
        self.start()
        self.assertEqual(self.group_of(self.peer(container, "batch")), "batch")
        done = self.funnel("limit", "--group", POD, "--sm", "25")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.group_of(self.peer(container, "batch")), POD)
        self.assertEqual(self.server_events("client")[-1]["share"], 2500)

    def test_containers_and_jobs_are_groups(self):
        outer = self.new_group()
        self.start()
        for path, group in ((f"docker-{'9f' * 32}.scope", f"container_{'9f' * 6}"),
                            ("slurmstepd.scope/job_7/step_0", "job_7")):
            inner = outer
            for part in path.split("/"):
                inner = os.path.join(inner, part)
                self.make_group(inner)
            self.assertEqual(self.group_of(self.peer(inner)), group)

    def test_groups_of_programs_switched_off(self):
        container = self.make_pod()
        self.start(environment={"FUNNEL_OFF": "control-groups"})
        self.assertFalse(self.group_of(self.peer(container)))

    def test_the_daemons_own_group_is_none(self):
        """Such as that of the container that daemon and programs are in together."""
        container = self.make_pod()
        done = subprocess.run([os.path.join(self.root, "bin/funneld"), "-d"], env=self.environment,
                              preexec_fn=lambda: join(container), timeout=harness.TIMEOUT)
        self.assertEqual(done.returncode, 0)
        self.assertFalse(self.group_of(self.peer(container)))

    def test_wrong_groups(self):
        self.start()
        self.words("server create a")
        self.words("namespace create n --server=a")
        for group in ("/etc", "training", "/sys/fs/cgroup", "/sys/fs/cgroup/", "/sys/fs/cgroup/a/",
                      "/sys/fs/cgroup/a/../b", "/sys/fs/cgroup/..", "/sys/fs/cgroup/a/.",
                      "/sys/fs/cgroup//a", "/sys/fs/cgroup/" + "a" * 400, ""):
            with self.subTest(group):
                answer, = self.words(f"namespace set n --server=a --cgroup={group}", 2)
                self.assertIn("expected a directory below /sys/fs/cgroup", answer)
        for depth in ("-1", "65", "deep"):
            answer, = self.words(f"namespace set n --server=a --cgroup-depth={depth}", 2)
            self.assertIn("expected a number of levels of control groups, or all", answer)


if __name__ == "__main__":
    harness.main()

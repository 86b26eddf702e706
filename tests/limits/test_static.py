# SPDX-License-Identifier: Apache-2.0
"""Static partitions: cut, used, refused and given back."""
import os
import unittest

import limits_harness


NAMESPACES_WITH_PARTITIONS = """
[[servers.a.namespaces.first.devices]]
uuid = "0"
sm_partition = "small"

[[servers.a.namespaces.second.devices]]
uuid = "0"
sm_partition = "large"

[servers.a.namespaces.third]

[[servers.a.devices]]
uuid = "0"

[[servers.a.devices.sm_partitions]]
name = "small"
chunks = 1

[[servers.a.devices.sm_partitions]]
name = "large"
chunks = 2
"""


class StaticDaemon(limits_harness.TestCase):
    devices = "1:sms=36,mem=1G"

    def setUp(self):
        super().setUp()
        environment = {"FUNNEL_DEVICE": "soft"}
        done = self.run_program("nvidia-cuda-mps-control", "-d", "-S", environment=environment)
        self.assertEqual(done.returncode, 0, done.stderr)

    def add(self, chunks, device="0"):
        answer, = self.mps(f"sm_partition add {device} {chunks}\n")
        self.assertRegex(answer, r"^Partition GPU-[0-9a-f-]{36}/\S+ created$")
        return answer.split()[1]

    def within(self, partition, *questions):
        return self.ask(*questions, environment={"CUDA_MPS_SM_PARTITION": partition})


class Static(StaticDaemon):
    def test_partitions_are_exclusive(self):
        first, second = self.add(1), self.add(2)
        one = self.within(first, "sms", "smid", "new-smid")
        two = self.within(second, "sms", "smid", "new-smid")
        self.assertEqual((one[0], two[0]), ([8], [16]))
        self.assertEqual((len(one[1]), len(two[1])), (8, 16))
        self.assertEqual((one[1], two[1]), (one[2], two[2]))
        self.assertFalse(set(one[1]) & set(two[1]))

    def test_clusters_run_in_partitions(self):
        first, second = self.add(1), self.add(3)
        self.assertEqual(self.within(first, "cluster=8"), [[0, 0, 8, 8]])
        self.assertEqual(self.within(second, "cluster=8"), [[0, 0, 24, 8]])
        self.assertEqual(self.within(second, "context=12", "cluster=8")[1], [0, 0, 8, 8])

    def test_a_client_has_to_name_one(self):
        partition = self.add(1)
        for wrong in ({}, {"CUDA_MPS_SM_PARTITION": partition + "x"},
                      {"CUDA_MPS_SM_PARTITION": "GPU-ffff/" + partition.split("/")[1]}):
            done = self.funnel("run", "--no-start", "--",
                               os.path.join(limits_harness.harness.BUILD,
                                            "tests/limits/limits_probe"),
                               environment=wrong)
            self.assertIn("cuDevicePrimaryCtxRetain: error 915", done.stdout)
            self.assertEqual(self.ask("nothing=0", "sms", environment=wrong), [[915, 915], [36]])
        self.assertIn("cannot have a context (915)", self.control_log())
        prefix = partition[:12] + "/" + partition.split("/")[1]
        self.assertEqual(self.within(prefix, "sms"), [[8]])

    def test_percentages_do_not_count(self):
        partition = self.add(2)
        environment = {"CUDA_MPS_SM_PARTITION": partition,
                       "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "10"}
        self.assertEqual(self.ask("sms", environment=environment), [[16]])

    def test_contexts_with_a_number_stay_inside(self):
        self.add(1)
        partition = self.add(2)
        whole, part, other = self.within(partition, "smid", "context=4", "smid", "context3=16",
                                         "smid")[::2]
        self.assertEqual(len(whole), 16)
        self.assertEqual(len(part), 8)
        self.assertLessEqual(set(part), set(whole))
        self.assertEqual(other, whole)
        self.assertEqual(self.within(partition, "context=17"), [[224]])

    def test_percentages_of_contexts_do_not_count(self):
        partition = self.add(2)
        environment = {"CUDA_MPS_SM_PARTITION": partition,
                       "CUDA_MPS_ENABLE_PER_CTX_DEVICE_MULTIPROCESSOR_PARTITIONING": "1"}
        whole, (result, granted, _), part = self.ask("smid", "percent=25", "smid",
                                                     environment=environment)
        self.assertEqual((result, granted, part), (0, 16, whole))

    def test_shares_of_those_that_run_do_not_count(self):
        partition = self.add(2)
        program = self.begin("smid", "wait", "smid",
                             environment={"CUDA_MPS_SM_PARTITION": partition})
        whole = program.answer()
        done = self.funnel("limit", "--client", str(program.pid), "--sm", "10", "--priority", "1")
        self.assertRegex(done.stdout, f": a static partition of {len(whole)} SMs on device 0, "
                                      "below normal priority\n")
        program.go_on()
        self.assertEqual(program.answer(), whole)

    def test_shortage(self):
        self.add(3)
        self.assertEqual(self.mps("sm_partition add 0 2\n"),
                         ["Failed to fulfill the requested SM partition of 2 chunks, error "
                          "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION"])
        self.add(1)

    def test_list_and_remove(self):
        partition = self.add(2)
        uuid, name = partition.split("/")
        program = self.begin("info", "wait", environment={"CUDA_MPS_SM_PARTITION": partition})
        program.answer()
        header, units, device, row = self.mps("lspart\n")
        self.assertEqual(header.split(), "GPU Partition free used free used clients".split())
        self.assertEqual(units.split(), "chunks chunks SM SM".split())
        self.assertEqual(device.split(), [uuid, "-", "2", "2", "20", "16", "-"])
        self.assertEqual(row.split(), [uuid, name, "-", "2", "-", "16", "Yes"])
        self.assertIn("in use", self.mps(f"sm_partition rm {uuid} {name}\n")[0])
        program.process.kill()
        program.process.wait()
        limits_harness.wait_until(lambda: self.mps("lspart\n")[3].endswith("No"))
        self.assertIn("removed", self.mps(f"sm_partition rm {uuid} {name}\n")[0])
        self.assertIn("not found", self.mps(f"sm_partition rm {uuid} {name}\n")[0])
        self.assertEqual(len(self.mps("lspart\n")), 3)

    def test_wrong_words(self):
        for words in ("", "add", "add 0", "add 9 1", "add 0 x", "add 0 0", "add 0 -1", "rm 0 x",
                      "cut 0 1", "add 0 99999999999"):
            answer = self.mps(f"sm_partition {words}\n")
            self.assertEqual(len(answer), 1, words)
        self.assertIn("CHUNKS is a number from 1", self.mps("sm_partition add 0 0\n")[0])
        self.assertEqual(len(self.mps("lspart\n")), 3)


class OfAServer(limits_harness.TestCase):
    """sm-partition of MPS 3: any daemon, and partitions of one named server."""
    devices = "1:sms=36,mem=1G"

    def setUp(self):
        super().setUp()
        self.start()
        self.words("server create a")

    def words(self, line, status=0):
        done = self.run_program("nvidia-cuda-mps-control", *line.split())
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout.splitlines()

    def rows(self, *options):
        return [row.split(",") for row in
                self.words(" ".join(["sm-partition list --format=csv,noheader", *options]))]

    def create(self, name, chunks, *options):
        said = self.words(f"sm-partition create {name} --server=a --device=0 --chunks={chunks} " +
                          " ".join(options))
        return said[0], said[1].removeprefix("CUDA_MPS_SM_PARTITION=")

    def within(self, partition, *questions):
        environment = {"CUDA_MPS_PIPE_DIRECTORY": os.path.join(self.pipe, "a"),
                       "CUDA_MPS_SM_PARTITION": partition}
        return self.ask(*questions, environment=environment)

    def refused(self, partition):
        environment = {"CUDA_MPS_PIPE_DIRECTORY": os.path.join(self.pipe, "a"),
                       "CUDA_MPS_SM_PARTITION": partition}
        done = self.funnel("run", "--no-start", "--", *self.command("sms")[5:],
                           environment=environment)
        return "915" in done.stdout

    def test_configured_then_created(self):
        """Before the server runs, its devices are not known; the printed name holds before and
        after."""
        said, small = self.create("small", 1)
        self.assertIn("configured on device 0", said)
        said, rest = self.create("rest", 2, "--include-remainder=true")
        self.assertEqual([row[:7] for row in self.rows()],
                         [["a", "0", "small", "1", "-", "false", "configured"],
                          ["a", "0", "rest", "2", "-", "true", "configured"]])
        self.assertEqual(self.within(rest, "cluster=8"), [[0, 0, 16, 8]])
        one, two = self.within(small, "sms", "smid"), self.within(rest, "sms", "smid")
        self.assertEqual((one[0], two[0]), ([8], [20]))
        self.assertEqual((len(one[1]), len(two[1])), (8, 20))
        self.assertFalse(set(one[1]) & set(two[1]))
        uuid = self.rows()[0][1]
        self.assertRegex(uuid, "^GPU-[0-9a-f-]{36}$")
        self.assertEqual([row[:7] for row in self.rows()],
                         [["a", uuid, "small", "1", "8", "false", "created"],
                          ["a", uuid, "rest", "2", "20", "true", "created"],
                          ["a", uuid, "-", "1", "8", "-", "unallocated"]])
        self.assertEqual(self.within(self.rows()[0][7], "sms"), [[8]])

    def test_created_at_once(self):
        self.create("small", 1)
        self.assertTrue(self.refused(""))  # which starts the server
        said, other = self.create("other", 2)
        self.assertRegex(said, r"^SM partition 'other' created on device GPU-[0-9a-f-]{36} "
                               r"\(sm-count=16\)$")
        self.assertEqual(self.within(other, "sms"), [[16]])
        answer, = self.words("sm-partition create more --server=a --device=0 --chunks=2", status=1)
        self.assertIn("CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION", answer)
        self.assertIn("not just one device", self.words(
            "sm-partition create more --server=a --device=3 --chunks=1", status=1)[0])
        self.assertEqual(len(self.rows()), 3)

    def test_a_program_outside_partitions_is_named(self):
        environment = {"CUDA_MPS_PIPE_DIRECTORY": os.path.join(self.pipe, "a")}
        outside = self.begin("info", "wait", environment=environment)
        outside.answer()
        command = "sm-partition create x --server=a --device=0 --chunks=1"
        self.assertIn("1 client outside", self.words(command, status=1)[0])
        outside.process.kill()
        outside.process.wait()
        limits_harness.wait_until(lambda: not self.words("client list --server=a "
                                                         "--format=csv,noheader"))
        partition = self.words(command)[1].removeprefix("CUDA_MPS_SM_PARTITION=")
        inside = self.begin("info", "wait",
                            environment={**environment, "CUDA_MPS_SM_PARTITION": partition})
        inside.answer()
        self.assertIn("1 client;",
                      self.words("sm-partition delete x --server=a --device=0", status=1)[0])
        self.create("y", 1)
        inside.process.kill()
        inside.process.wait()
        limits_harness.wait_until(lambda: not self.words("client list --server=a "
                                                         "--format=csv,noheader"))
        for name in "xy":
            self.assertIn(f"SM partition '{name}' deleted from device GPU-",
                          self.words(f"sm-partition delete {name} --server=a --device=0")[0])
        self.assertTrue(self.words("sm-partition delete x --server=a --device=0", status=1))
        self.assertEqual(self.within("", "sms"), [[36]])

    def test_granted(self):
        """What funnel shows that a client gets."""
        _, small = self.create("small", 2)
        program = self.begin("info", "wait", environment={
            "CUDA_MPS_PIPE_DIRECTORY": os.path.join(self.pipe, "a"),
            "CUDA_MPS_SM_PARTITION": small})
        program.answer()
        client, = self.funnel_json("ps")
        self.assertEqual([d["sm_granted"] for d in client["devices"]], [16])
        self.assertIn("16 of 36, its own", self.funnel("limits").stdout)

    def test_one_server_only(self):
        self.create("small", 1)
        self.words("server create b")
        self.assertEqual(self.ask("sms"), [[36]])
        self.assertEqual(self.ask("sms", environment={"CUDA_MPS_PIPE_DIRECTORY": self.pipe + "/b"}),
                         [[36]])
        self.assertTrue(self.refused(""))
        self.assertTrue(self.refused("GPU-ffff/" + self.rows()[0][7].split("/")[1]))
        self.assertEqual({row[0] for row in self.rows()}, {"a"})
        self.assertEqual({row[0] for row in self.rows("--all")},
                         {"a", "b", f"uid_{os.getuid()}"})
        self.assertEqual([row[6] for row in self.rows("--server=b")], ["unallocated"])
        self.assertEqual(self.rows("--device=1"), [])

    def test_next_server(self):
        """The partitions, and their names, outlive the process."""
        _, small = self.create("small", 1)
        self.create("gone", 1)
        _, large = self.create("large", 2)
        self.assertEqual(self.within(large, "sms"), [[16]])
        self.words("sm-partition delete gone --server=a --device=0")
        self.mps(f"shutdown_server {self.servers()[0]}\n")
        limits_harness.wait_until(lambda: not self.servers())
        self.assertEqual([row[6] for row in self.rows()[:2]], ["configured"] * 2)
        self.assertEqual(self.within(large, "sms", "smid")[0], [16])
        self.assertEqual(self.within(small, "sms"), [[8]])

    def test_no_room_at_the_start(self):
        self.create("small", 3)
        _, large = self.create("large", 2)
        self.assertTrue(self.refused(large))
        self.assertEqual([row[6] for row in self.rows()], ["created", "failed", "unallocated"])

    def test_wrong_words(self):
        for line in ("create x --server=b --device=0 --chunks=1", "delete x --server=a --device=0",
                     "delete x --server=b --device=0", "list --server=b"):
            self.assertEqual(len(self.words("sm-partition " + line, status=1)), 1, line)
        self.create("x", 1)
        self.assertEqual(self.words("sm-partition create x --server=a --device=0 --chunks=1",
                                    status=1),
                         ["SM partition 'x' exists already on device 0"])


class OfANamespace(limits_harness.TestCase):
    """A namespace of the configuration file may have a partition, which its programs need not name."""
    devices = "1:sms=36,mem=1G"

    def begin_with(self, text):
        path = os.path.join(self.root, "mps.toml")
        with open(path, "w") as file:
            file.write(text)
        self.start("-a", path)

    def within(self, namespace, *questions, partition=""):
        return self.ask(*questions, environment={
            "CUDA_MPS_PIPE_DIRECTORY": os.path.join(self.pipe, "a", namespace),
            "CUDA_MPS_SM_PARTITION": partition})

    def refused(self, namespace):
        done = self.funnel("run", "--no-start", "--", *self.command("sms")[5:], environment={
            "CUDA_MPS_PIPE_DIRECTORY": os.path.join(self.pipe, "a", namespace)})
        return "915" in done.stdout

    def partitions(self):
        done = self.run_program("nvidia-cuda-mps-control", "sm-partition", "list",
                                "--format=csv,noheader")
        return [row.split(",") for row in done.stdout.splitlines()]

    def test_programs_of_a_namespace_have_its_partition(self):
        self.begin_with(NAMESPACES_WITH_PARTITIONS)
        small = self.within("first", "sms", "smid")
        large = self.within("second", "sms", "smid")
        self.assertEqual((small[0], large[0]), ([8], [16]))
        self.assertFalse(set(small[1]) & set(large[1]))
        # What a program names itself does not count there, and has to be named elsewhere.
        name = next(row[7] for row in self.partitions() if row[2] == "large")
        self.assertEqual(self.within("first", "smid", partition=name), [small[1]])
        self.assertEqual(self.within("third", "sms", partition=name), [[16]])
        self.assertTrue(self.refused("third"))

    def test_a_partition_that_is_gone(self):
        """Its programs do not get the whole device."""
        self.begin_with(NAMESPACES_WITH_PARTITIONS)
        self.assertEqual(self.within("first", "sms"), [[8]])
        limits_harness.wait_until(lambda: not self.run_program(
            "nvidia-cuda-mps-control", "client", "list", "--server=a",
            "--format=csv,noheader").stdout)
        for name in ("small", "large"):
            done = self.run_program("nvidia-cuda-mps-control", "sm-partition", "delete", name,
                                    "--server=a", "--device=0")
            self.assertEqual(done.returncode, 0, done.stdout)
        self.assertTrue(self.refused("first"))
        with open(os.path.join(self.log, "control.log")) as log:
            self.assertIn("its namespace has the SM partition small on the device 0", log.read())


class Devices(StaticDaemon):
    """A partition of one device gives nothing of another."""
    devices = "2:sms=36,mem=1G"

    def test_the_other_device(self):
        partition = self.add(1, device="1")
        self.assertEqual(self.within(partition, "nothing=0", "nothing=1"), [[915, 915], [0, 0]])


if __name__ == "__main__":
    limits_harness.main()

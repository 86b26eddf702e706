# SPDX-License-Identifier: Apache-2.0
"""Static partitions: cut, used, refused and given back."""
import os
import unittest

import limits_harness


class Static(limits_harness.TestCase):
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

    def test_partitions_are_exclusive(self):
        first, second = self.add(1), self.add(2)
        one = self.within(first, "sms", "smid", "new-smid")
        two = self.within(second, "sms", "smid", "new-smid")
        self.assertEqual((one[0], two[0]), ([8], [16]))
        self.assertEqual((len(one[1]), len(two[1])), (8, 16))
        self.assertEqual((one[1], two[1]), (one[2], two[2]))
        self.assertFalse(set(one[1]) & set(two[1]))

    def test_a_client_has_to_name_one(self):
        partition = self.add(1)
        for wrong in ({}, {"CUDA_MPS_SM_PARTITION": partition + "x"},
                      {"CUDA_MPS_SM_PARTITION": "GPU-ffff/" + partition.split("/")[1]}):
            done = self.funnel("run", "--no-start", "--",
                               os.path.join(limits_harness.harness.BUILD, "tests/limits/limits_probe"),
                               environment=wrong)
            self.assertIn("915", done.stdout)
        prefix = partition[:12] + "/" + partition.split("/")[1]
        self.assertEqual(self.within(prefix, "sms"), [[8]])

    def test_percentages_do_not_count(self):
        partition = self.add(2)
        environment = {"CUDA_MPS_SM_PARTITION": partition, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "10"}
        self.assertEqual(self.ask("sms", environment=environment), [[16]])

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
        self.assertEqual(len(self.mps("lspart\n")), 3)


if __name__ == "__main__":
    limits_harness.main()

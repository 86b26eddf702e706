# SPDX-License-Identifier: Apache-2.0
"""Programs that move to another lane without an order of an operator."""
import json
import os
import signal
import subprocess

import harness
import test_lanes
import wire
from harness import wait_until, waits


class Automatic(test_lanes.TestCase):
    """A program whose long kernels make others wait moves without an order."""
    variables = {}
    LONG, SHORT, WAITS = [60, 0, 5], [60, 0, 600], [60, 60, 1]  # busy ms, ms beside others, launches
    tokens = {1: bytes(range(16)), 2: bytes(range(1, 17))}

    def setUp(self):
        harness.TestCase.setUp(self)
        self.environment.update(self.variables)
        self.start("--device", "soft")

    def set_paces(self, main, batch):
        path = os.path.join(self.root, "bin/paces.json")
        with open(path + ".new", "w") as file:
            json.dump({"main": main, "batch": batch}, file)
        os.replace(path + ".new", path)

    def moves(self):
        return [event["number"] for event in self.server_events("move")]

    def begin(self, **hello):
        """The first is known to have long kernels, and then the second waits for them."""
        self.set_paces({1: self.LONG}, {})
        offender = self.enter(token=self.tokens[1], **hello)
        victim = self.enter(token=self.tokens[2])
        self.seen = 0
        wait_until(self.rows_busy, "reports")
        return offender, victim

    def rows_busy(self):
        """Some reports more have come."""
        self.reports = self.reports if self.seen else len(self.server_events("pace"))
        self.seen = 1
        return len(self.server_events("pace")) >= self.reports + 8

    def move(self, client, count):
        wait_until(lambda: len(self.moves()) == count, "the order to the server")
        after = self.enter(token=self.tokens[1], window_base=1)
        client.close()
        return after

    @waits
    def test_the_others_gain(self):
        offender, _ = self.begin()
        self.set_paces({1: [60, 55, 5], 2: self.WAITS}, {1: self.LONG})
        offender = self.move(offender, 1)
        self.set_paces({2: self.SHORT}, {1: self.LONG})
        self.assertIn(("normal", "batch"), self.placed())
        self.assertIn("a launch of client", self.control_log())
        self.assertIn("because its kernels take 12.0 ms",
                      self.funnel("why", "--client", str(os.getpid())).stdout)
        self.set_paces({2: self.SHORT}, {1: self.SHORT})
        self.move(offender, 2)
        self.assertIn("its kernels are short now", self.control_log())
        wait_until(lambda: self.placed() == [("normal", "main")] * 2, "its return")

    @waits
    def test_the_others_gain_nothing(self):
        """The second has long kernels itself. The first is not moved again."""
        offender, _ = self.begin()
        self.set_paces({1: [60, 55, 5], 2: self.WAITS}, {1: self.LONG})
        offender = self.move(offender, 1)
        self.move(offender, 2)
        self.assertIn("take as long as before", self.control_log())
        wait_until(lambda: self.placed() == [("normal", "main")] * 2, "its return")
        self.seen = 0
        wait_until(self.rows_busy, "more reports")
        self.assertEqual(len(self.moves()), 2)

    def test_a_program_that_would_lose_too_much_stays(self):
        """The others gain, and the first hardly gets the GPU any more."""
        offender, _ = self.begin()
        self.set_paces({1: [60, 55, 5], 2: self.WAITS}, {1: [100, 0, 1]})
        offender = self.move(offender, 1)
        self.set_paces({2: self.SHORT}, {1: [100, 0, 1]})
        self.move(offender, 2)
        self.assertIn("its own launches take more than four times as long", self.control_log())

    def test_a_program_that_has_never_been_alone(self):
        """The second has, and so the first has the long kernels."""
        self.set_paces({2: self.SHORT}, {})
        offender, _ = self.enter(token=self.tokens[1]), self.enter(token=self.tokens[2])
        self.seen = 0
        wait_until(self.rows_busy, "reports")
        self.set_paces({1: [60, 60, 5], 2: self.WAITS}, {1: self.LONG})
        self.move(offender, 1)
        wait_until(lambda: ("normal", "batch") in self.placed(), "its move")

    def test_a_process_of_a_job_stays_with_the_others(self):
        self.begin(job=1)
        self.set_paces({1: [60, 55, 5], 2: self.WAITS}, {1: self.LONG})
        self.seen = 0
        wait_until(self.rows_busy, "more reports")
        self.assertEqual(self.moves(), [])

    def test_the_order_is_gentle(self):
        """One that has work for long is asked again later."""
        self.begin()
        self.set_paces({1: [60, 55, 5], 2: self.WAITS}, {1: self.LONG})
        wait_until(self.moves, "the order to the server")
        self.assertEqual(self.server_events("move")[0]["gentle"], 1)

    def test_two_with_short_kernels_stay_together(self):
        self.begin()
        self.set_paces({1: [60, 55, 600], 2: [60, 55, 600]}, {})
        self.seen = 0
        wait_until(self.rows_busy, "more reports")
        self.assertEqual(self.moves(), [])


class Switched(Automatic):
    """Nothing moves."""
    variables = {"FUNNEL_OFF": "lane-moves"}

    def test_the_others_gain(self):
        self.begin()
        self.set_paces({1: [60, 55, 5], 2: self.WAITS}, {1: self.LONG})
        self.seen = 0
        wait_until(self.rows_busy, "more reports")
        self.assertEqual(self.moves(), [])

    test_the_others_gain_nothing = test_two_with_short_kernels_stay_together = None
    test_a_program_that_would_lose_too_much_stays = test_a_program_that_has_never_been_alone = None
    test_a_process_of_a_job_stays_with_the_others = test_the_order_is_gentle = None


class Join(test_lanes.TestCase):
    """A program has a name of cuIpc from another server."""
    token = bytes(range(16))

    def begin(self, program_class=wire.NORMAL, server=None, owner=wire.BATCH):
        """The program asks for the lane of that server, without one for that of the owner."""
        self.enter(owner)
        self.program = self.enter(program_class, token=self.token)
        number = self.told()["number"]
        server = server or self.lanes()[self.user + (":batch" if owner == wire.BATCH else "")]
        with open(os.path.join(self.root, "bin/load.new"), "w") as file:
            json.dump({"main": 0, "batch": 0, "wish": number, "server": server}, file)
        os.rename(file.name, os.path.join(self.root, "bin/load.json"))
        wait_until(lambda: self.server_events("move"), "the answer")
        return self.server_events("move")[0]["withdrawn"]

    def test_a_normal_program_moves(self):
        self.assertEqual(self.begin(), 0)
        self.assertIn("moves to the lane batch, because it has a name of cuIpc", self.control_log())
        moved = self.enter(wire.NORMAL, token=self.token, window_base=1 << 44)
        self.program.close()
        wait_until(lambda: "has moved to the server" in self.control_log(), "the end of the move")
        self.assertIn(("normal", "batch"), self.placed())
        moved.close()

    def test_a_class_decides(self):
        self.assertEqual(self.begin(wire.CRITICAL), 1)

    def test_a_batch_program_stays(self):
        self.assertEqual(self.begin(wire.BATCH, owner=wire.NORMAL), 1)

    def test_a_server_that_is_not_there(self):
        self.assertEqual(self.begin(server=0x7fffffff), 1)

    def test_a_process_that_is_no_server(self):
        self.assertEqual(self.begin(server=os.getpid()), 1)

    def test_an_order_of_an_operator(self):
        self.program = self.enter(wire.NORMAL, token=self.token)
        self.funnel("limit", "--client", str(os.getpid()), "--class", "normal")
        self.program.close()
        self.assertEqual(self.begin(), 1)


class Migration(test_lanes.TestCase):
    def order(self, *words):
        """The front end."""
        done = subprocess.Popen([os.path.join(self.root, "bin/funnel"), *words], env=self.environment,
                                text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.processes.append(done)
        return done

    def migrate(self, device, count):
        """The front end, when the server has its order."""
        done = self.order("migrate", str(os.getpid()), "--device", str(device))
        wait_until(lambda: len(self.server_events("move")) == count, "the order to the server")
        return done


class Between(Migration):
    """A program that has left its server is with none until it attaches to the next."""
    token, pid = bytes(range(16)), str(os.getpid())

    def depart(self, program):
        program.close()
        wait_until(lambda: "has left" in self.control_log(), "the word of the server")

    def arrive(self):
        return self.enter(token=self.token, window_base=1 << 44)

    def check_ends(self, *orders):
        for order, said in orders:
            self.assertIn(said, order.communicate(timeout=harness.TIMEOUT)[0])
            self.assertEqual(order.returncode, 0)

    def test_orders_wait(self):
        program = self.enter(token=self.token)
        move = self.migrate(1, 1)
        self.depart(program)
        orders = [(self.order("limit", "--client", self.pid, "--sm", "20"), "20.0 %"),
                  (self.order("suspend", self.pid), "is suspended"), (self.order("evict", self.pid), "is evicted"),
                  (self.order("resume", self.pid), "is resumed")]
        wait_until(lambda: self.control_log().count("waits: it is on its way") == len(orders), "the orders")
        self.assertEqual([order.poll() for order, _ in orders], [None] * len(orders))
        self.arrive()
        self.check_ends((move, "is on device 1"), *orders)
        self.assertEqual(self.server_events("limits")[0]["share"], 2000)

    def test_an_order_at_the_last_server_goes_to_the_next(self):
        program = self.enter(token=self.token)
        self.migrate(1, 1)
        order = self.order("suspend", self.pid)
        wait_until(lambda: self.server_events("suspend"), "the order to the server")
        self.depart(program)
        self.arrive()
        self.check_ends((order, "is suspended"))
        self.assertEqual(len(self.server_events("suspend")), 2)

    def test_an_ended_program_is_not_found(self):
        """And has not moved."""
        self.depart(self.enter(token=self.token))
        done = self.funnel("suspend", self.pid)
        self.assertEqual((done.returncode, done.stderr), (1, f"funnel suspend: Client {self.pid} not found\n"))

    def test_its_own_limits_go_with_it(self):
        program = self.enter(token=self.token)
        self.check_ends((self.order("limit", "--client", self.pid, "--sm", "20"), "20.0 %"))
        number = self.told()["number"]
        self.migrate(1, 1)
        self.depart(program)
        self.arrive()
        self.assertEqual((self.told()["share"], self.told()["number"]), (2000, number))

    def test_its_own_limits_outlive_its_server(self):
        self.enter(token=self.token)
        self.check_ends((self.order("limit", "--client", self.pid, "--sm", "20"), "20.0 %"))
        server, = self.servers()
        os.kill(server, signal.SIGKILL)
        wait_until(lambda: self.servers() and self.servers() != [server], "the next server")
        self.arrive()
        self.assertEqual(self.told()["share"], 2000)


class TakenBack(Migration):
    """An order to another device, by one to the device on which the program is."""

    def take_back(self):
        """The program, and the front end that takes an order back."""
        program = self.enter(token=bytes(range(16)))
        first, second = self.migrate(1, 1), self.migrate(0, 2)
        self.assertIn("another order came", first.communicate()[0])
        return program, second

    def test_the_answer_to_the_order(self):
        _, done = self.take_back()
        self.assertIn("stays on device 0: its move is withdrawn", done.communicate()[0])
        self.assertEqual(done.returncode, 0)


class TakenBackTooLate(TakenBack):
    """The program moves all the same."""
    fake = "leaving"

    def test_the_answer_to_the_order(self):
        program, done = self.take_back()
        self.assertIsNone(done.poll())
        program.close()
        self.assertIn("has moved: it was on its way already", done.communicate()[0])
        self.assertEqual(done.returncode, 1)
        self.assertIn("has moved to device 1", self.control_log())


if __name__ == "__main__":
    harness.main()

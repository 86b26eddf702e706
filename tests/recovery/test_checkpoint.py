#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of programs: the directory, what goes on, and what comes back after the end of the
server. Run as: test_checkpoint.py BUILD [--device cuda]."""
import contextlib
import glob
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import test_recovery  # noqa: E402  (found through the path above)
import test_suspend  # noqa: E402
from harness import TIMEOUT, wait_until  # noqa: E402
from test_recovery import FINE  # noqa: E402


class Checkpoint(test_suspend.MovedMemory):
    devices = "1:sms=24,mem=256M"

    def place(self):
        return os.path.join(self.directory(), "checkpoint")

    def checkpoint(self, probe, place, *options):
        self.fine("checkpoint", *options, probe.process.pid, place)
        self.assertEqual(sorted(os.listdir(place)), ["manifest", "memory"])
        self.assertEqual(os.listdir(os.path.dirname(place)), [os.path.basename(place)])

    def manifest(self, place):
        with open(place + "/manifest") as file:
            return dict(line.rstrip("\n").split("=", 1) for line in file)

    def test_the_program_goes_on(self):
        probe = self.held()
        for _ in range(2):
            used, _ = self.memory(probe)
            place = self.place()
            self.checkpoint(probe, place)
            self.assertEqual(self.memory(probe), (used, 0))
            self.assertFalse(self.row(probe)["suspended"])
            self.assertGreaterEqual(os.path.getsize(place + "/memory"), 20 << 20)
            self.assertEqual(self.manifest(place)["state"], "running")
            self.assertEqual(self.manifest(place)["pid"], str(probe.process.pid))
            self.assertEqual(probe.ask("check"), FINE)
            self.assertEqual(probe.ask("work 5 40"), FINE)
            self.refused("went on", "restore", place)
        self.kill_server()
        self.assertEqual(probe.ask("check"), FINE, probe.said() + self.logs())

    def held(self):
        probe = self.suspend_probe()
        self.assertEqual(probe.ask("work 3 40"), FINE)
        self.assertEqual(probe.ask("hold 20 7"), FINE)
        return probe

    def test_the_program_stops_until_it_is_restored(self):
        probe, place = self.held(), self.place()
        used, _ = self.memory(probe)
        self.checkpoint(probe, place, "--stop")
        self.assertEqual(self.memory(probe), (0, used))
        self.refused("already", "checkpoint", probe.process.pid, self.place())
        self.fine("restore", place)
        self.assertEqual(self.memory(probe), (used, 0))
        self.assertEqual(probe.ask("check"), FINE)
        self.refused("not suspended", "restore", place)

    def test_restored_in_the_next_server(self):
        probe, other, place = self.held(), self.suspend_probe(), self.place()
        self.checkpoint(probe, place, "--stop")
        self.kill_server()
        self.assertEqual(other.ask("work 1 5"), FINE, other.said() + self.logs())
        asker, answers = probe.ask_later("check")
        wait_until(lambda: (self.row(probe) or {}).get("suspended"), "the move")
        self.fine("restore", place)
        asker.join(TIMEOUT)
        self.assertEqual(answers, [FINE], probe.said() + self.logs())
        self.assertEqual(probe.ask("work 4 40"), FINE)

    def test_a_detached_program_comes_back_by_itself(self):
        probe, place = self.held(), self.place()
        self.checkpoint(probe, place, "--detach")
        wait_until(lambda: self.row(probe) is None, "the end of the session")
        self.fine("restore", place)
        self.kill_server()
        self.assertEqual(probe.ask("check"), FINE, probe.said() + self.logs())
        self.assertEqual(probe.ask("work 4 40"), FINE)
        again = self.place()
        self.checkpoint(probe, again, "--detach")
        self.assertEqual(probe.ask("check"), FINE, probe.said() + self.logs())

    def test_modules_that_a_detached_program_would_lose(self):
        for word in ("variable", "pointer"):
            with self.subTest(word):
                probe = self.probe()
                self.assertEqual((probe.opened(), probe.ask(word)), (FINE, FINE))
                self.refused("which --detach would lose", "checkpoint", "--detach",
                             probe.process.pid, self.place())
                self.assertEqual((probe.ask(word), probe.ask("look")), (FINE, FINE))

    def test_memory_that_a_detached_program_would_lose(self):
        self.assertEqual(self.funnel("limit", "--quota", "kept-memory=0").returncode, 0)
        probe, place = self.suspend_probe(CUDA_MPS_PINNED_DEVICE_MEM_LIMIT="0=512M"), self.place()
        self.assertEqual(probe.ask("hold 20 7"), FINE)
        self.refused("without a descriptor", "checkpoint", "--detach", probe.process.pid, place)
        self.assertEqual(probe.ask("check"), FINE)
        self.checkpoint(probe, place, "--stop")
        self.fine("restore", place)
        self.assertEqual(probe.ask("check"), FINE)

    def unchanged(self):
        """Of the last checkpoint: the MiB that were written before it stood still, and all."""
        found = re.findall(r"has (\d+) of (\d+) MiB in the file", self.log("server"))
        return tuple(map(int, found[-1]))

    def test_most_is_written_while_the_program_runs(self):
        """All but memory of cuMemCreate, which this program has none of."""
        probe = self.suspend_probe()
        self.assertEqual(probe.ask("hold 20 7"), FINE)
        self.checkpoint(probe, self.place())
        written, there = self.unchanged()
        self.assertEqual(written, there)
        self.assertGreaterEqual(there, 20)

    def test_changes_of_a_busy_program_meanwhile(self):
        """What comes back is what is in the file."""
        probe, other = self.held(), self.suspend_probe()
        for seed in range(2):
            place, answers = self.place(), []
            worker = threading.Thread(target=lambda: answers.append(
                probe.ask(f"work {seed} 150")))  # noqa: B023
            worker.start()
            wait_until(lambda: self.is_at_work(probe) or answers, "work")  # noqa: B023
            self.checkpoint(probe, place, "--stop")
            self.fine("restore", place)
            worker.join(TIMEOUT)
            self.assertEqual(answers, [FINE], probe.said() + self.logs())
            self.assertEqual(probe.ask("check"), FINE)
        self.assertEqual(other.ask("work 1 10"), FINE)

    def words(self, place, chunk):
        """The first word of each chunk in a checkpoint, by address."""
        with open(place + "/memory", "rb") as file:
            _, count, _ = struct.unpack("<3Q", file.read(24))
            entries = [struct.unpack("<5Q", file.read(40)) for _ in range(count)]
            places = [at for _, size, begin, _, _ in sorted(entries)
                      for at in range(begin, begin + size, chunk)]
            for at in places:
                file.seek(at)
                yield struct.unpack("<I", file.read(4))[0]

    def test_a_checkpoint_is_of_one_moment(self):
        """Though the program has changed all of its memory again before the file is complete."""
        chunk, probe = 2 << 20, self.suspend_probe()
        self.assertEqual(probe.ask("hold 40 7"), FINE)
        probe.tell(f"count {chunk}")
        for _ in range(2):
            place = self.place()
            self.checkpoint(probe, place)
            words = list(self.words(place, chunk))
            self.assertEqual(words, sorted(words, reverse=True))
            self.assertLessEqual(words[0] - words[-1], 1)
        probe.tell("enough")
        self.assertEqual(probe.receive("count"), FINE)

    def test_a_program_ends_meanwhile(self):
        """What is said to be a checkpoint has all contents."""
        for _ in range(2):
            probe, place, done, before = self.suspend_probe(), self.place(), [], self.log("server")
            self.assertEqual(probe.ask("hold 40 7"), FINE)
            probe.tell(f"count {2 << 20}")
            maker = threading.Thread(target=lambda: done.append(self.funnel(
                "checkpoint", str(probe.process.pid), place)))  # noqa: B023
            maker.start()
            wait_until(lambda: "for a checkpoint" in self.log("server")[len(before):]
                       or done, "the rest of the file")  # noqa: B023
            os.kill(probe.process.pid, signal.SIGKILL)
            maker.join(TIMEOUT)
            if done[0].returncode:
                self.assertEqual(os.listdir(os.path.dirname(place)), [])
            else:
                self.assertTrue(is_whole(place), done[0].stdout + self.logs())

    def later(self, *words):
        """A command that ends some time, with what it says then."""
        order = subprocess.Popen([os.path.join(test_recovery.BUILD, "bin/funnel"), *map(str, words)],
                                 env=self.environment, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True)
        self.addCleanup(order.stdout.close)
        self.addCleanup(order.kill)
        return order

    def has_begun(self, place):
        """Whether the server has the order: the file gets what can be written before it stands still."""
        found = glob.glob(os.path.dirname(place) + "/.checkpoint.*/memory")
        return found and os.path.getsize(found[0]) > 0

    def test_another_order_comes_meanwhile(self):
        """What is said to be a checkpoint is not what the other order has made of the program."""
        for options in (("--stop",), ()):
            probe, place = self.probes(1)[0], self.place()
            self.assertEqual(probe.ask("hold"), FINE)
            checkpoint = self.later("checkpoint", *options, probe.process.pid, place)
            wait_until(lambda: self.has_begun(place), "the order")  # noqa: B023
            self.refused("not done yet", "suspend", probe.process.pid)
            eviction = self.later("evict", probe.process.pid)
            said, _ = checkpoint.communicate(timeout=TIMEOUT)
            self.assertIn("another order", said, self.logs())
            self.assertEqual(checkpoint.returncode, 1)
            self.assertEqual(os.listdir(os.path.dirname(place)), [])
            self.assertEqual(probe.ask("release"), FINE)
            self.assertEqual(eviction.wait(TIMEOUT), 0)
            for word in ("synchronize", "round"):
                self.assertEqual(probe.ask(word), FINE, self.logs())

    def is_at_work(self, probe):
        return self.row(probe)["usage"]["launches"] > 0

    def test_places_that_cannot_be_used(self):
        probe, place = self.held(), self.place()
        os.mkdir(place)
        for path, reason in ((place, "exists already"), ("/nowhere/at/all", "No such file"),
                             ("/proc/checkpoint", "/proc"), ("/dev/shm/" + "n" * 300, "too long")):
            self.refused(reason, "checkpoint", probe.process.pid, path)
        self.refused("no program", "checkpoint", 1, self.place())
        self.assertEqual(probe.ask("check"), FINE)

    def test_the_file_system_is_full(self):
        directory = self.small_file_system()
        probe = self.held()
        self.refused("is full", "checkpoint", probe.process.pid, directory + "/checkpoint")
        self.assertEqual(os.listdir(directory), [])
        self.assertEqual(probe.ask("check"), FINE)

    def test_wrong_checkpoints_are_not_restored(self):
        probe, place = self.held(), self.place()
        self.checkpoint(probe, place, "--stop")
        with open(place + "/manifest") as file:
            text = file.read()
        changes = ((text.replace("funnel-checkpoint=1", "funnel-checkpoint=9"), "format 9"),
                   (text.replace("pid=", "pid=1"), "not as it was written"),
                   (self.signed(text.replace("device=GPU-", "device=GPU-f")), "does not have"),
                   (self.signed(text.replace("started=", "started=1")), "another one"),
                   (self.signed(text.replace("memory_size=", "memory_size=1")), "its manifest says"),
                   ("nonsense", "not that of a checkpoint"))
        for changed, reason in changes:
            self.write(place, changed)
            self.refused(reason, "restore", place)
        os.unlink(place + "/manifest")
        self.refused("is no checkpoint", "restore", place)
        self.write(place, text)
        self.fine("restore", place)
        self.assertEqual(probe.ask("check"), FINE)

    def write(self, place, text):
        with open(place + "/manifest", "w") as file:
            file.write(text)

    def signed(self, text):
        """With the right checksum, as src/base/hash.c makes it."""
        text = text[:text.index("\nchecksum=") + 1]
        return f"{text}checksum={hash_bytes(text.encode()):016x}\n"

    def test_a_chunk_is_damaged(self):
        probe, place = self.held(), self.place()
        self.checkpoint(probe, place, "--stop")
        self.damage(place + "/memory")
        self.refused("not as it was written", "restore", place)
        self.assertTrue(self.row(probe)["suspended"])


    # Checkpoints in chunks.

    def chunks(self, store):
        return {os.path.relpath(os.path.join(folder, name), store)
                for folder, _, names in os.walk(store) for name in names}

    def is_packed(self, place):
        self.assertEqual(sorted(os.listdir(place)), ["chunk-list", "chunks", "manifest"])
        self.assertEqual(self.manifest(place)["funnel-checkpoint"], "2")

    def read(self, path):
        with open(path, "rb") as file:
            return file.read()

    def store(self, place):
        return os.path.dirname(place) + "/store"

    def test_chunks_are_shared(self):
        """The second checkpoint adds a chunk that has changed, and the one with the table."""
        probe, first = self.suspend_probe(), self.place()
        store, second = self.store(first), first + "2"
        self.assertEqual(probe.ask("hold 20 7"), FINE)
        self.fine("checkpoint", "--store", store, probe.process.pid, first)
        self.is_packed(first)
        before = self.chunks(store)
        self.assertEqual({name[3:] for name in before}, set(os.listdir(first + "/chunks")))
        self.assertGreaterEqual(len(before), 11)
        self.assertEqual(probe.ask("change 3 4"), FINE)
        self.fine("checkpoint", probe.process.pid, second)
        self.fine("pack", "--zstd", store, second)
        self.assertEqual(len(self.chunks(store) - before), 2)
        shutil.rmtree(first)
        self.fine("pack", "--clean", store)
        self.assertEqual(len(self.chunks(store)), len(before))
        shutil.rmtree(second)
        self.fine("pack", "--clean", store)
        self.assertEqual(self.chunks(store), set())
        self.assertEqual(probe.ask("check"), FINE)

    def test_a_packed_checkpoint_is_restored(self):
        probe, place = self.held(), self.place()
        store = self.store(place)
        self.checkpoint(probe, place, "--detach")
        contents = self.read(place + "/memory")
        self.refused("is in use", "pack", store, place)
        self.assertEqual(probe.ask("check"), FINE, probe.said() + self.logs())
        self.fine("pack", "--zstd", store, place)
        self.is_packed(place)
        shutil.rmtree(store)
        for _ in range(2):
            self.fine("restore", place)
            self.assertEqual(self.read(place + "/memory"), contents)
            self.fine("pack", store, place)
            self.is_packed(place)

    def test_a_short_last_chunk(self):
        """Its contents with a zero behind them are those of another chunk."""
        probe, place = self.held(), self.place()
        self.fine("checkpoint", probe.process.pid, place)
        chunk = bytes(range(1, 129)) * (2 ** 14)
        contents = chunk[:-1] + b"\0" + chunk[:-1]
        with open(place + "/memory", "wb") as file:
            file.write(contents)
        manifest = re.sub("memory_size=.*", f"memory_size={len(contents)}",
                          self.read(place + "/manifest").decode())
        self.write(place, self.signed(manifest.replace("state=running", "state=detached")))
        self.fine("pack", self.store(place), place)
        self.fine("restore", place)
        self.assertEqual(self.read(place + "/memory"), contents)

    def test_damaged_chunks(self):
        probe, place = self.held(), self.place()
        store = self.store(place)
        for name in (place, place + "2"):  # with the same contents
            self.fine("checkpoint", "--detach", probe.process.pid, name)
            self.assertEqual(probe.ask("check"), FINE, probe.said() + self.logs())
        self.fine("pack", store, place)
        name = sorted(os.listdir(place + "/chunks"))[0]
        self.damage(f"{place}/chunks/{name}")
        self.refused(f"{name} is damaged", "restore", place)
        self.fine("pack", store, place + "2")
        self.fine("restore", place + "2")
        os.unlink(f"{place}2/chunks/{name}")
        self.refused(f"{name} is missing", "restore", place + "2")
        with open(place + "2/chunk-list", "a") as file:
            file.write("0\n")
        self.refused("chunk-list is not as it was written", "restore", place + "2")

    def test_hostile_files(self):
        """What another user may have put into a store or a checkpoint is neither shared nor written to."""
        probe, place = self.held(), self.place()
        store, other = self.store(place), os.path.dirname(place) + "/other"
        for name in (place, place + "2"):  # with the same contents
            self.fine("checkpoint", "--detach", probe.process.pid, name)
            self.assertEqual(probe.ask("check"), FINE, probe.said() + self.logs())
        contents = self.read(place + "2/memory")
        with open(other, "w") as file:
            file.write("another file")
        for name in ("chunk-list.new", "manifest.new"):
            os.symlink(other, f"{place}/{name}")
            os.link(other, f"{place}2/{name}")
        self.fine("pack", store, place)
        self.forge(store)
        self.fine("pack", store, place + "2")
        shared = [name for name in os.listdir(place + "2/chunks")
                  if os.stat(f"{place}2/chunks/{name}").st_mode & 0o22]
        self.assertEqual(shared, [])
        os.link(other, place + "2/memory.new")
        self.fine("restore", place + "2")
        self.assertEqual(self.read(place + "2/memory"), contents)
        self.assertEqual(self.read(other), b"another file")

    def forge(self, store):
        """Makes of three chunks a file that others may write, a symbolic link, and a pipe."""
        first, second, third = [f"{store}/{name}" for name in sorted(self.chunks(store))[:3]]
        os.chmod(first, 0o666)
        os.rename(second, store + "/moved")
        os.symlink(store + "/moved", second)
        os.unlink(third)
        os.mkfifo(third)

    def test_names_of_chunks_lead_nowhere_else(self):
        probe, place = self.held(), self.place()
        self.fine("checkpoint", "--detach", probe.process.pid, place)
        self.assertEqual(probe.ask("check"), FINE, probe.said() + self.logs())
        self.fine("pack", self.store(place), place)
        manifest = self.read(place + "/manifest").decode()
        name = sorted(os.listdir(place + "/chunks"))[0]
        os.rename(f"{place}/chunks/{name}", f"{place}/outside")
        text = self.read(place + "/chunk-list").replace(name.encode(), b"../outside")
        with open(place + "/chunk-list", "wb") as file:
            file.write(text)
        was = re.search("list_checksum=.*", manifest).group()
        self.write(place, self.signed(
            manifest.replace(was, f"list_checksum=0x{hash_bytes(text):016x}")))
        self.refused("../outside is damaged", "restore", place)
        self.write(place, self.signed(re.sub("memory_size=.*", f"memory_size={2 ** 62}", manifest)))
        self.refused("", "restore", place)
        self.assertFalse(os.path.lexists(place + "/memory.new"))

    def test_a_store_that_others_may_write(self):
        probe, directory = self.held(), self.directory()
        for mode in (0o775, 0o757):
            os.chmod(directory, mode)
            self.refused("others may write to it", "pack", "--clean", directory)
        os.chmod(directory, 0o755)
        self.fine("pack", "--clean", directory)
        if os.geteuid() == 0:
            os.chown(directory, 2001, 2001)
            self.refused("another user's", "pack", "--clean", directory)

    def clean(self, store, done):
        """As funnel pack --clean, again and again. It leaves the CPU to the checkpoint in between."""
        while not done.wait(0.001):
            for folder, _, names in os.walk(store):
                for name in names:
                    with contextlib.suppress(FileNotFoundError):
                        if os.stat(f"{folder}/{name}").st_nlink == 1:
                            os.unlink(f"{folder}/{name}")

    def test_a_store_is_cleaned_meanwhile(self):
        probe, place, done = self.suspend_probe(), self.place(), threading.Event()
        store = self.store(place)
        self.assertEqual(probe.ask("hold 30 7"), FINE)
        cleaner = threading.Thread(target=self.clean, args=(store, done))
        cleaner.start()
        try:
            for _ in range(3):
                self.fine("checkpoint", "--store", store, probe.process.pid, place)
                self.is_packed(place)
                shutil.rmtree(place)
        finally:
            done.set()
            cleaner.join(TIMEOUT)

    def test_a_manifest_that_cannot_be_replaced(self):
        probe, place = self.suspend_probe(), self.place()
        store = self.store(place)
        self.assertEqual(probe.ask("hold 1 7"), FINE)
        self.fine("checkpoint", probe.process.pid, place)
        os.mkdir(place + "/manifest.new")
        self.refused("directory", "pack", store, place)
        self.assertEqual(sorted(os.listdir(place)), ["manifest", "manifest.new", "memory"])
        os.rmdir(place + "/manifest.new")
        self.fine("pack", store, place)
        self.is_packed(place)

    def test_no_room_for_chunks(self):
        directory, probe = self.small_file_system(), self.suspend_probe()
        self.assertEqual(probe.ask("hold 1 7"), FINE)
        place, store = directory + "/checkpoint", directory + "/store"
        status, said = self.order("checkpoint", "--store", store, probe.process.pid, place)
        self.assertEqual(status, 1)
        self.assertIn("is full", said)
        self.assertNotIn("is checkpointed", said)
        self.assertEqual(os.listdir(directory), ["store"])
        before = self.log("server").count("stood still")
        self.refused("same file system", "checkpoint", "--store", self.store(self.place()),
                     probe.process.pid, place)
        self.assertEqual(self.log("server").count("stood still"), before)
        self.assertEqual(os.listdir(directory), ["store"])
        self.fine("pack", "--clean", store)
        self.fine("checkpoint", "--store", store, "--zstd", probe.process.pid, place)
        self.is_packed(place)
        shutil.rmtree(place)
        self.fine("checkpoint", "--detach", probe.process.pid, place)
        self.assertEqual(probe.ask("check"), FINE, self.logs())
        contents = self.read(place + "/memory")
        self.refused("is full", "pack", store, place)
        self.refused("same file system", "pack", self.store(self.place()), place)
        self.assertEqual(self.manifest(place)["funnel-checkpoint"], "1")
        self.assertEqual(sorted(os.listdir(place)), ["manifest", "memory"])
        self.fine("restore", place)
        self.assertEqual(self.read(place + "/memory"), contents)
        self.fine("pack", "--zstd", store, place)
        self.is_packed(place)


def is_whole(place):
    with open(place + "/memory", "rb") as file:
        return file.read(8) == b"FunSwap2"


def hash_bytes(data):
    mask = (1 << 64) - 1

    def mix(value, word):
        value = (value ^ word) * 0x9e3779b97f4a7c15 & mask
        return value ^ value >> 29

    lanes, size, at = [len(data), 1, 2, 3], len(data), 0
    while size - at >= 32:
        for lane in range(4):
            lanes[lane] = mix(lanes[lane], int.from_bytes(data[at:at + 8], "little"))
            at += 8
    value = lanes[0]
    for lane in lanes[1:]:
        value = mix(value, lane)
    while at < size:
        value = mix(value, int.from_bytes(data[at:at + 8], "little"))
        at += 8
    return value ^ value >> 32


if __name__ == "__main__":
    test_recovery.main(sys.argv)

# SPDX-License-Identifier: Apache-2.0
"""Each command of the list with each of its arguments missing, wrong, huge and negative: a message
answers, and nothing has changed. The cases are made from the grammar, so no command is left out."""
import pathlib
import re

import harness

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

HUGE = "9" * 30
LONG = "x" * 200

NUMBER = ["x", "-1", "1.5e", HUGE, "0x", "1,2"]

# What is right for a kind of argument, and what is wrong.
KINDS = {
    "SERVER": ("1", NUMBER + ["0"]),
    "CLIENT": ("1", NUMBER + ["0"]),
    "UID": ("1", NUMBER + ["4294967295"]),
    "PERCENT": ("50", ["x", "-1", "0", "nan", "inf", "10%", "0x20"]),
    "DEVICE": ("0", [LONG]),
    "CEILING": ("1G", NUMBER + ["1", "0G", "-1G", "1T", HUGE + "G", "17179869184G", "nothing"]),
    "SHARE": ("50", ["x", "-1", "0", "nan", "inf", "10%", "0x20", "100.1", "none"]),
    "CHANGES": ("waits=7", ["waits", "waits=0", "waits=x", "=7", "nothing=1", "waits=7,waits"]),
    "QUOTA": ("50", ["x", "-1", "0", "nan", "inf", "10%", "0x20", "100.1", "nothing"]),
    "PRIORITY": ("1", NUMBER + ["2"]),
    "SECONDS": ("1", NUMBER),
    "GROUP": ("batch", ["a-b", "a.b", "x" * 32]),
    "SMS": ("8", NUMBER + ["0", "65537"]),
    "VERB": ("add", ["cut", LONG]),
    "NAME": ("unknown", ["a-b", "a/b", "../x", "x" * 65]),
    "NAMESPACE": ("nothing", ["a-b", "a/b", "../x", "x" * 65]),
    "FIELD": ("pid", [LONG]),
    "FORMAT": ("csv", ["", "xml", "csv,", HUGE]),
    "DEVICES": ("0,GPU-1", ["", ",", "0,", "x", "-1", "MIG-1", "0 1,", LONG * 2]),
    "SIZE": ("1K", NUMBER + ["1", "0G", "-1G", "1T", HUGE + "G"]),
    "BOOLEAN": ("false", ["", "yes", "1", LONG]),
    "SHOWN": ("true", ["", "yes", "1", LONG]),
    "LENT": ("true", ["", "yes", "1", LONG]),
    "IDLE": ("600", ["", "0", "-1", "x", "1.5", "99999999999"]),
    "JOINT": ("1G", ["", "1", "1K", "G", "-1G", "1T", LONG]),
    "OVERSUBSCRIBED": ("true", ["", "yes", "1", LONG]),
    "MOST": ("1", NUMBER + ["0", "4097"]),
    "PARTITION": ("large", ["a-b", "a/b", "../x", "x" * 65]),
    "CHUNKS": ("1", NUMBER + ["0", "4097"]),
    "TIMESLICE": ("75", NUMBER + ["101", "1.5"]),
    "CGROUP": ("/sys/fs/cgroup/a", ["", "x", "/etc", "/sys/fs/cgroup", "/sys/fs/cgroup/a/..", LONG * 2]),
    "LEVELS": ("1", NUMBER + ["65", "none"]),
    "CLASS": ("batch", ["", "fast", "Batch", "1", LONG]),
    "FEATURE": ("memacct", ["memory", "-1", HUGE, LONG]),
    "OBJECT": ("1", NUMBER + ["0", LONG]),
}


def commands():
    listed = (ROOT / "src/control/command_list.h").read_text()
    for name, grammar in re.findall(r'^COMMAND\(\s*(\w+),\s*\w+,\s*((?:"[^"]*"\s*)+)', listed, re.M):
        strings = re.findall(r'"([^"]*)"', grammar)
        # The last string is the help, unless the comma between the two ended the match.
        yield name, "".join(strings)
    listed = (ROOT / "src/control/command_list_v3.h").read_text()
    for name, grammar in re.findall(
            r'^COMMAND_V3\(\s*\w+, "([^"]+)", \w+,\s*((?:"[^"]*"\s*)+),', listed, re.M):
        yield name, "".join(re.findall(r'"([^"]*)"', grammar))


def slots(grammar):
    """(option or None, kind or None, optional) of each part."""
    for part in re.findall(r"\[[^]]*\]|--[\w-]+=[A-Z]+|-\w+ [A-Z]+|--?\w+|[A-Z]+", grammar):
        words = part.strip("[]").replace("=", "= ").split()
        option = words.pop(0) if words[0].startswith("-") else None
        yield option, words[0] if words else None, part.startswith("[")


def words_of(slot, value):
    option, kind, _ = slot
    if option and option.endswith("="):
        return [option + value]
    return [option] * bool(option) + [value] * bool(kind)


def wrong_lines(name, grammar):
    """Every one of them has exactly one thing wrong."""
    parts = list(slots(grammar))
    right = [words_of(part, KINDS[part[1]][0] if part[1] else "") for part in parts]
    needed = [i for i, part in enumerate(parts) if not part[2]]

    def line(chosen):
        return " ".join([name] + [word for i in sorted(chosen) for word in chosen[i]])

    for i in needed:
        yield line({j: right[j] for j in needed if j != i})
    for i, part in enumerate(parts):
        base = {j: right[j] for j in needed}
        if part[1]:
            for wrong in KINDS[part[1]][1]:
                yield line({**base, i: words_of(part, wrong)})
        if part[0]:
            yield line({**base, i: [part[0].rstrip("=") + "x"]})
            if part[1] and not part[0].endswith("="):
                yield line({j: right[j] for j in needed if j != i} | {len(parts): [part[0]]})
            yield line({**base, i: right[i] * 2})
    yield line({j: right[j] for j in needed}) + " --nonsense"
    yield line(dict(enumerate(right))) + " one too many"
    yield name + " 1" * 40


class Arguments(harness.TestCase):
    def setUp(self):
        super().setUp()
        self.start("--device", "soft", "-S")

    def state(self):
        return self.mps("get_default_active_thread_percentage\nget_default_device_pinned_mem_limit "
                        "0\n"
                        "get_default_client_priority\nget_server_list\n")

    def test_each_command_with_each_wrong_argument(self):
        """One front end for all lines of a command: hundreds of them took most of the time."""
        count = 0
        for name, grammar in commands():
            lines = list(wrong_lines(name, grammar))
            answers = self.mps("".join(line + "\n" for line in lines))
            self.assertEqual(len(answers), len(lines), (lines, answers))
            for line, answer in zip(lines, answers):
                with self.subTest(line[:100]):
                    self.assertRegex(answer, r"[A-Za-z]{3}.* ")
            count += len(lines)
        self.assertGreater(count, 200)
        self.assertEqual(self.state(), ["100.0", "0"])

    def test_the_list_is_read_whole(self):
        names = {name for name, _ in commands()}
        listed = (ROOT / "src/control/command_list.h").read_text()
        version3 = (ROOT / "src/control/command_list_v3.h").read_text()
        self.assertEqual(names, set(re.findall(r"^COMMAND\(\s*(\w+)", listed, re.M)) |
                         set(re.findall(r'^COMMAND_V3\(\s*\w+, "([^"]+)"', version3, re.M)))
        kinds = {kind for _, grammar in commands() for _, kind, _ in slots(grammar) if kind}
        self.assertEqual(kinds, set(KINDS))


if __name__ == "__main__":
    harness.main()

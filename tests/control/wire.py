# SPDX-License-Identifier: Apache-2.0
"""The messages of src/ipc/hello.h and src/control/server_protocol.h, for tests that play a client
or a server. They are written down a second time on purpose: a change of the layout must be
noticed."""
import struct

HELLO_MAGIC = 0x314C4E46
WELCOME_MAGIC = 0x31574E46
SERVER_MAGIC = 0x31534E46
COMMAND_MAGIC = 0x31434E46
VERSION = 17
HELLO_VERSION = 6
HELLO_CLIENT, HELLO_COMMAND, HELLO_AHEAD = 1, 2, 3
UNSET = 0xFFFFFFFF
CRITICAL, NORMAL, BATCH = 1, 2, 3
ISOLATE_GROUP, ISOLATE_NEW, ISOLATE_PROGRAM = 4, 5, 6
DEVICES = 32

CLIENT, STATUS, SHUTDOWN, TERMINATE_CLIENT, SET_LIMITS, TRACE, SET_QUOTAS, DEPART, \
    SET_TIMESLICE, CLAIMS, RESUME, CLIENT_NOTED, MOVE_CLIENT, SUSPEND_CLIENT = \
    range(1, 15)
HELD = 8  # what quotas bound of a client
(READY, FAILED, CLIENT_ATTACHED, CLIENT_GONE, STATUS_ROW, STATUS_END, RESULT, FAULT, ABANDONED,
 HEARTBEAT, CLIENT_USAGE, RESUMED, MOVE_WISH) = range(64, 77)

OUTPUT, COMMAND_DAEMON, COMMAND_SERVER, COMMAND_CLIENT, COMMAND_LIMIT, COMMAND_TRACE, COMMAND_DONE, \
    COMMAND_QUOTA = range(64, 72)

HELLO = struct.Struct(f"<IHHQII{DEVICES}Q64s32s" + "48sQ" * 8 + "32s96sIIIIIIQ16s256s")
WELCOME = struct.Struct("<Ii472s")
HEADER = struct.Struct("<IHHII")
CLIENT_HEAD = struct.Struct("<II")
IDENTITY = struct.Struct("<iIIIQq256s32s32s128s")
LIMITS = struct.Struct(f"<II{DEVICES}Q" + "IIIIIIIIQ" + f"{DEVICES}QII" + f"{DEVICES + 1}Q" * 4)
DEVICE = struct.Struct("<128s16s16sQIIIII4x")
CODE_CACHE = struct.Struct("<IIIIQ104s")
UNKNOWN = (1 << 64) - 1  # of a sensor
SENSORS = struct.Struct("<8Q")
CLIENTS = 1024
RESUMED_BODY = struct.Struct(f"<II{CLIENTS}I")
USAGE = struct.Struct(f"<{2 * DEVICES}Q15Q64s")
GONE = struct.Struct(f"<Ii216s{DEVICES + 1}Q{USAGE.size}s")
ROW = struct.Struct(f"<{HEADER.size}x{IDENTITY.size}s{LIMITS.size}sIIQ{DEVICES}Q{DEVICES}QQ{DEVICES}I"
                    f"{USAGE.size}s{HELD}QQ48sQ")
COMMAND_SERVER_BODY = struct.Struct(f"<iIq10I128s64s112s{DEVICES}Q{DEVICE.size * DEVICES}s" "IIiIIIII768s"
                                    f"{CODE_CACHE.size}s16s{DEVICES * SENSORS.size}s")


def hello(kind=HELLO_CLIENT, sm_centipercent=0, priority=UNSET, memory=(), magic=HELLO_MAGIC,
          version=HELLO_VERSION, group=b"", program_class=0, partition=b"", window_base=0, token=b"",
          command=None, isolation=0, job=0, of_container=False):
    if command is None:
        with open("/proc/self/cmdline", "rb") as file:
            command = file.read(256)
    memory = list(memory) + [0] * (DEVICES - len(memory))
    return HELLO.pack(magic, version, kind, 0, sm_centipercent, priority, *memory, b"test",
                      b"0.2.0", *(b"", 0) * 8, group, partition, 0, program_class, isolation, job, int(of_container), 0, window_base, token, command)


def welcome(data):
    """(status, message)"""
    magic, status, text = WELCOME.unpack_from(data)
    assert magic == WELCOME_MAGIC
    return status, text.split(b"\0")[0].decode()


def message(kind, body=b"", request=0):
    return HEADER.pack(SERVER_MAGIC, VERSION, kind, HEADER.size + len(body), request) + body


def answer(kind, body=b""):
    return struct.pack("<II", COMMAND_MAGIC, kind) + body


def command_line(text):
    return struct.pack("<II", COMMAND_MAGIC, 1) + text.encode()

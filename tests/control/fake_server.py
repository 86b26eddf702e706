#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A stand-in for funnel-server that has no GPU. It welcomes clients, and writes one JSON line to its
log for each message. FUNNEL_FAKE says how it behaves:

    ready        as a server should; this is the default
    slow         it starts slowly
    fail, crash, hang
                 it says that it cannot start, dies at its start, or never starts
    silent       it answers no question about its status
    rude         its texts have escape sequences for terminals
    no-slices    its driver has no time slices
    endless      it sends far too many rows of status
    exclusive    it fails while another one has the device
    liar         it lies about its clients
    forgetful    it forgets them when a daemon takes it over
    flood        it floods its log
    puppet       another process speaks for it
    arrays       its clients cannot move
    leaving      its clients are on their way when an order to move is withdrawn

Other variables:

    FUNNEL_FAKE_BLAMES   it blames the first of its clients for each fault
    FUNNEL_FAKE_OWN_MIB  the size of its contexts
    FUNNEL_FAKE_DRIVER   the kind of driver that it reports
    FUNNEL_FAKE_SENSORS  the values of the first device's sensors
    FUNNEL_FAKE_SMS      how many multiprocessors each client keeps busy on average
"""
import array
import fcntl
import json
import math
import os
import select
import selectors
import signal
import socket
import struct
import sys
import time

import wire

sms = float(os.environ.get("FUNNEL_FAKE_SMS", 0))
if sms:  # what each server uses of the first device, for the others
    memory_table = os.open(os.path.join(os.path.dirname(sys.argv[0]), "memory"), os.O_CREAT | os.O_RDWR, 0o600)
if "--user" in sys.argv:
    os.setresuid(*[int(sys.argv[sys.argv.index("--user") + 1])] * 3)
control = socket.socket(fileno=3)
returned = socket.socket(fileno=6)  # where the next daemon connects
how = os.environ.get("FUNNEL_FAKE", "ready")
# A rude server tries to write to the terminals of those who look at it.
RUDE = b"\033[2J\xc2\x9b31m\xe2\x80\xae\xff" if how == "rude" else b""
GPU_NAME = b"Test GPU" + RUDE
PAUSE = 0.1  # seconds between two reports
STRANGER = 424242424  # a client or user that it was never given, and no number of a process
since = {}  # number of a client -> when it was first seen
clients = {}  # socket -> (pid, id, limits)
moving = {}  # number of a client -> the order to move it
held = {}  # number of a client that is about to move -> the order to suspend it
stopping = False
alone = False  # its daemon has died


def log(**what):
    os.write(4, (json.dumps({**what, "server": os.getpid()}) + "\n").encode())


def send(kind, body=b"", request=0):
    try:
        control.send(wire.message(kind, body, request))
    except OSError:
        pass


def take_device():
    """The lock goes with the process."""
    lock = os.open(os.path.join(os.path.dirname(sys.argv[0]), "device"), os.O_CREAT | os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        log(event="refused")
        send(wire.FAILED, struct.pack("<i468s", 46, b"Another process has the device"))
        sys.exit(1)


def ready():
    device = wire.DEVICE.pack(GPU_NAME, bytes(range(16)), b"0000:01:00.0", 1 << 34, 132, 9, 0,
                              int(os.environ.get("FUNNEL_FAKE_OWN_MIB", 0)), 0)
    second = wire.DEVICE.pack(b"Test GPU", bytes(range(16, 32)), b"0000:02:00.0", 1 << 33, 66, 9, 0, 0, 0)
    empty = bytes(wire.DEVICE.size * (wire.DEVICES - 2))
    return struct.pack("<IIII", int(os.environ.get("FUNNEL_FAKE_DRIVER", 2)), 13000, 2, 512) + device + second + empty


def start():
    log(event="start", argv=sys.argv, uid=os.getuid(), gid=os.getgid(), groups=os.getgroups(),
        environment=dict(os.environ),
        descriptors=sorted(int(n) for n in os.listdir("/proc/self/fd")),
        affinity=sorted(os.sched_getaffinity(0)))
    if how == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if how == "hang":
        time.sleep(1000)
    if how == "fail":
        send(wire.FAILED, struct.pack("<i468s", 100, b"No device: load the driver's module"))
        sys.exit(1)
    if how == "exclusive":
        take_device()
    if how == "slow":
        time.sleep(0.5)
    log(event="ready")
    send(wire.READY, ready())


def resumed(count=None, strangers=()):
    mine = [number for _, number, _ in clients.values()] + list(strangers)
    return wire.RESUMED_BODY.pack(0, len(mine) if count is None else count, *mine,
                                  *[0] * (wire.CLIENTS - len(mine)))


def on_resume():
    """A liar has clients that it never got, and says that they have used the GPU and have gone. It
    has more clients than fit, and says all of it twice. A forgetful one has none."""
    send(wire.READY, ready())
    if how == "liar":
        for number in (0, STRANGER, 0xFFFFFFFF):
            send(wire.CLIENT_ATTACHED, struct.pack("<IIQ", number, 0, 0))
            send(wire.CLIENT_GONE, gone(number))
        for _ in range(2):
            send(wire.RESUMED, resumed(0xFFFFFFFF, (STRANGER, STRANGER + 1)))
    elif how == "forgetful":
        send(wire.RESUMED, wire.RESUMED_BODY.pack(0, 0, *[0] * wire.CLIENTS))
    else:
        for _, number, _ in clients.values():
            send(wire.CLIENT_ATTACHED, struct.pack("<IIQ", number, 0, 0))
        send(wire.RESUMED, resumed())


def on_client(data, descriptor):
    number, is_main_lane = wire.CLIENT_HEAD.unpack_from(data, 16)
    identity = data[24:24 + wire.IDENTITY.size]
    limits = data[24 + wire.IDENTITY.size:][:wire.LIMITS.size]
    pid, uid = struct.unpack_from("<iI", identity)
    share, priority, *rest = wire.LIMITS.unpack(limits)
    soft_at = wire.DEVICES + 9
    memory, soft, program_class = rest[:wire.DEVICES], rest[soft_at:], rest[wire.DEVICES + 5]
    connection = socket.socket(fileno=descriptor)
    clients[connection] = (pid, number, limits)
    log(event="client", pid=pid, uid=uid, share=share, priority=priority, memory=memory[:2], soft=soft[:2],
        number=number, program_class=program_class, is_main_lane=is_main_lane,
        command=wire.IDENTITY.unpack(identity)[6].split(b"\0")[0].decode())
    selector.register(connection, selectors.EVENT_READ)
    if how == "flood":
        flood()
    try:
        connection.send(wire.WELCOME.pack(wire.WELCOME_MAGIC, 0, b""))
    except OSError:
        pass
    send(wire.CLIENT_ATTACHED, struct.pack("<IIQ", number, 0, 0))
    if how == "liar":
        lie(number)
    if how == "puppet" and os.fork() == 0:
        for _ in range(10):
            send(wire.CLIENT_GONE, gone(number))
        os._exit(0)


def busy_seconds(number):
    """How long multiprocessors were busy together: more and less in turn, each client in its own."""
    seconds, swing = time.monotonic() - since.setdefault(number, time.monotonic()), 3 + number % 5
    sway = math.cos(number) - math.cos(number + seconds / swing)
    return sms * (seconds + 0.6 * swing * sway)


def memory_used(number):
    return (1 << 20) if not sms else (1 + number % 4) << 30


def runs(pid):
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return True


def memory_free():
    """Of each device; only servers whose clients are busy keep account of it."""
    if not sms:
        return bytes(8 * wire.DEVICES)
    own = sum(memory_used(number) for _, number, _ in clients.values())
    os.pwrite(memory_table, struct.pack("<QQ", os.getpid(), own), 16 * (os.getpid() % 4096))
    table = struct.iter_unpack("<QQ", os.pread(memory_table, 16 * 4096, 0))
    used = sum(size for pid, size in table if pid and runs(pid))
    return struct.pack(f"<{wire.DEVICES}Q", max(0, (1 << 34) - used), 1 << 33, *[0] * (wire.DEVICES - 2))


def sensors():
    """Of all devices; a second one tells nothing."""
    first = json.loads(os.environ.get("FUNNEL_FAKE_SENSORS", "[]"))
    first += [wire.UNKNOWN] * (8 - len(first))
    return b"".join(wire.SENSORS.pack(*(first if i == 0 else [wire.UNKNOWN] * 8)) for i in range(wire.DEVICES))


def launches(number):
    return 7 + int(sms * 10 * (time.monotonic() - since.setdefault(number, time.monotonic())))


def usage(number):
    """0.5 s of GPU time, 30 SM seconds, 7 launches, 3 copies of 4096 bytes up. The daemon believes no
    more of a client that has just come. A liar says a year."""
    ms = 10**6 * (365 * 86400 * 2 if how == "liar" else 1)
    return wire.USAGE.pack(500 * ms, *[0] * 31, 30000 * ms + int(busy_seconds(number) * 10**9), *[0] * 31, 250 * ms, 0, 0, 5000, 64, launches(number), 3,
                           4096, 0, 0, 1, 500, 0, 0, 0, b"cuModuleLoadData of PID 1" + RUDE)


wished = set()  # numbers of clients
paced = {}  # number of a client -> what it has used by its pace: busy and shared ns, launches


def report_paces():
    """Ten times a second, where a test has written down for the lanes main and batch what each
    client does in such an interval. That is busy ms, ms beside others, launches."""
    try:
        with open(os.path.join(os.path.dirname(sys.argv[0]), "paces.json")) as file:
            paces = json.load(file)["batch" if "--batch" in sys.argv else "main"]
    except (OSError, ValueError):
        return
    for _, number, _ in clients.values():
        if str(number) not in paces:
            continue
        busy, shared, count = paces[str(number)]
        sums = paced.setdefault(number, [0, 0, 0])
        paced[number] = [sums[0] + busy * 10**6, sums[1] + shared * 10**6, sums[2] + count]
        busy, shared, count = paced[number]
        log(event="pace", number=number)
        send(wire.CLIENT_USAGE, wire.GONE.pack(number, 0, b"", *[0] * wire.DEVICES, 0, wire.USAGE.pack(
            busy, *[0] * 31, 100 * busy, *[0] * 31, shared, 0, 0, 0, 0, count, *[0] * 9, b"")))


def report_load():
    """A heartbeat, where a test has written down in how many percent of the time the lanes main and
    batch have kernels. Also whether a long one runs. The program that the test names asks for another
    lane once in each server, or for that of a server. Returns the seconds until the next one, which
    the test may shorten."""
    try:
        with open(os.path.join(os.path.dirname(sys.argv[0]), "load.json")) as file:
            loads = json.load(file)
            load = loads["batch" if "--batch" in sys.argv else "main"]
    except (OSError, ValueError):
        return PAUSE
    log(event="heartbeat")
    held = loads.get("held", 0) if "--batch" not in sys.argv else 0
    send(wire.HEARTBEAT, struct.pack("<IIIII768s", 0, 0, load, loads.get("long", 0), held, b""))
    wish = loads.get("wish")
    if wish not in wished and any(number == wish for _, number, _ in clients.values()):
        wished.add(wish)
        send(wire.MOVE_WISH, struct.pack("<II", wish, loads.get("server", 0)))
    return loads.get("pause", PAUSE)


def gone(number, status=0, text=b""):
    peak = 1 << 60 if how == "liar" else 3 << 20
    return wire.GONE.pack(number, status, text, peak, *[0] * (wire.DEVICES - 1), 5, usage(number))


def lie(number):
    """Of clients that it was never given, and that one that it has has gone, for the first time."""
    for stranger in (0, number + 1, STRANGER, 0xFFFFFFFF):
        send(wire.CLIENT_ATTACHED, struct.pack("<IIQ", stranger, 0, 0))
        send(wire.CLIENT_USAGE, gone(stranger))
        for _ in range(100):
            send(wire.CLIENT_GONE, gone(stranger, 700, b"of a stranger"))


def stranger():
    """A server has no say in who a client is."""
    return wire.IDENTITY.pack(1, STRANGER, STRANGER, 0, 0, 0, b"sudo rm" + RUDE, b"forged" + RUDE, b"forged" + RUDE,
                              b"forged" + RUDE)


def flood():
    """Some 30 MiB into everything that leads to the log, for as long as it takes them."""
    line, left, end = b"x" * 999 + b"\n", 30 << 20, time.monotonic() + 3
    while left > 0 and time.monotonic() < end:
        for descriptor in (1, 2, 4):
            try:
                left -= os.write(descriptor, line * 4)
            except BlockingIOError:
                time.sleep(0.001)


def on_status(request):
    if how == "silent":
        return
    rows = [(number, limits) for _, number, limits in clients.values()]
    if how == "liar":
        rows += [(STRANGER, rows[0][1])] * bool(rows)
    for number, limits in rows * (6000 if how == "endless" else 1):
        tail = struct.pack("<IIQ", number, 1,
                           1) + struct.pack(f"<{2 * wire.DEVICES + 1}Q{wire.DEVICES}I", memory_used(number),
                                       *[0] * 31, 2 * memory_used(number), *[0] * 31, 5, 33, *[0] * 31)
        send(wire.STATUS_ROW, stranger() + limits + tail + usage(number) +
             struct.pack(f"<{wire.HELD + 1}Q48sQ", *range(1, wire.HELD + 1), 6, RUDE, 0) +
             bytes(8 * wire.DEVICES + 24 + wire.USAGE.size), request)
    send(wire.STATUS_END, struct.pack("<IIII", 1, len(clients), how == "no-slices", 0) +
         memory_free() + bytes(wire.CODE_CACHE.size) + bytes(24) + sensors(), request)


def drop(connection, status=0):
    _, number, _ = clients.pop(connection)
    if number in held:
        send(wire.RESULT, struct.pack("<iI", 201, 0), held.pop(number))
    if number in moving:
        send(wire.RESULT, struct.pack("<iI", 0, 0), moving.pop(number))
    selector.unregister(connection)
    connection.close()
    for _ in range(100 if how == "liar" else 1):
        send(wire.CLIENT_GONE, gone(number, status))
    leave_if_done()


def on_terminate(body, request):
    wanted = struct.unpack_from("<iI", body)
    found = [c for c, (pid, number, _) in clients.items()
             if pid == wanted[0] and wanted[1] in (0, number)]
    for connection in found:
        drop(connection, 810)
    send(wire.RESULT, struct.pack("<iI", 0 if found else 201, 0), request)


def on_set_limits(body, request):
    pid, number, share = struct.unpack_from("<iII", body)
    found = [c for c, (p, n, _) in clients.items() if p == pid and number in (0, n)]
    log(event="limits", pid=pid, id=number, share=share)
    for connection in found:
        clients[connection] = (*clients[connection][:2], body[8:8 + wire.LIMITS.size])
    send(wire.RESULT, struct.pack("<iI", 0 if found else 201, 0), request)


def on_move(body, request):
    """A client moves by leaving. One of a server of arrays stays, for enum move_obstacle's reason."""
    number, withdrawn, gentle = struct.unpack_from("<III", body)
    log(event="move", number=number, withdrawn=withdrawn, gentle=gentle)
    if withdrawn:
        if number in moving and how != "leaving":
            send(wire.RESULT, struct.pack("<iI", 10, 0), moving.pop(number))
    elif how == "arrays":
        send(wire.RESULT, struct.pack("<iI", 10, 0), request)
    elif any(number == one for _, one, _ in clients.values()):
        moving[number] = request
    else:
        send(wire.RESULT, struct.pack("<iI", 201, 0), request)


def on_suspend(wanted, request):
    """One that is about to move stands still elsewhere, if at all."""
    for pid, number, _ in clients.values():
        if pid == wanted and number in moving:
            held[number] = request
            return
    send(wire.RESULT, struct.pack("<iI", 0, 0), request)


def has_next_daemon():
    return bool(select.select([returned], [], [], 0)[0])


def leave_if_done():
    """A real one waits some time for the next daemon, as a slow one does."""
    if (stopping or alone and how != "slow" and not has_next_daemon()) and not clients:
        sys.exit(0)


def on_daemon():
    """What the daemon before has sent is still there, programs with it."""
    global control, alone
    while not alone and select.select([control], [], [], 0)[0]:
        on_control()
    control, _ = returned.accept()
    alone = False
    log(event="daemon")
    selector.register(control, selectors.EVENT_READ)


def on_control():
    global stopping, alone
    try:
        data, control_data, _, _ = control.recvmsg(8192, socket.CMSG_SPACE(4))
    except ConnectionResetError:  # the daemon has not read all; what it has sent comes now
        data, control_data, _, _ = control.recvmsg(8192, socket.CMSG_SPACE(4))
    descriptors = array.array("i")
    for _, _, part in control_data:
        descriptors.frombytes(part)
    if not data:
        alone = True
        selector.unregister(control)
        return leave_if_done()
    _, _, kind, _, request = wire.HEADER.unpack_from(data)
    log(event="message", kind=kind)
    if kind == wire.CLIENT:
        on_client(data, descriptors[0])
    elif kind == wire.STATUS:
        on_status(request)
    elif kind == wire.RESUME:
        on_resume()
    elif kind == wire.SHUTDOWN:
        stopping = True
        if struct.unpack_from("<I", data, 16)[0]:
            sys.exit(0)
        leave_if_done()
    elif kind == wire.TERMINATE_CLIENT:
        on_terminate(data[16:], request)
    elif kind == wire.SET_LIMITS:
        on_set_limits(data[16:], request)
    elif kind == wire.MOVE_CLIENT:
        on_move(data[16:], request)
    elif kind == wire.SUSPEND_CLIENT:
        pid, _, suspend, evict = struct.unpack_from("<iIII", data, 16)
        log(event="suspend", pid=pid, suspend=suspend, evict=evict)
        on_suspend(pid, request)
    elif kind == wire.SET_QUOTAS:
        log(event="quotas", values=[value for value, in struct.iter_unpack("<Q", data[16:])])
    elif kind == wire.SET_TIMESLICE:
        us, beside_batch, share = struct.unpack_from("<QII", data, 16)
        log(event="timeslice", us=us, beside_batch=beside_batch, share=share)


def blamed():
    if "FUNNEL_FAKE_BLAMES" in os.environ:
        return min(number for _, number, *_ in clients.values())
    return STRANGER if how == "liar" else 0


def fault(*_):
    send(wire.FAULT,
         struct.pack("<iII236s", 700, 0, blamed(), b"Client 1234 wrote where nothing is"))
    while signal.SIGUSR2 not in signal.sigpending():
        if select.select([control], [], [], 0.01)[0]:
            data = control.recv(8192)
            if data and wire.HEADER.unpack_from(data)[2] == wire.DEPART:
                log(event="departure")
    os._exit(3)


signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
signal.signal(signal.SIGUSR1, fault)
start()
selector = selectors.DefaultSelector()
selector.register(control, selectors.EVENT_READ)
selector.register(returned, selectors.EVENT_READ)
while True:
    pause = None
    if clients:
        report_paces()
        pause = report_load()
    for key, _ in selector.select(pause):
        if key.fileobj is control:
            on_control()
        elif key.fileobj is returned:
            on_daemon()
        elif key.fileobj in clients:
            drop(key.fileobj)

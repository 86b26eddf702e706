# SPDX-License-Identifier: Apache-2.0
"""A monitor as nvidia-smi, nvitop, gpustat and pynvml are: prints what libnvidia-ml.so.1 answers,
as JSON. Its options are nvml_monitor.py [--as-client] [--fork] [--threads] [--smi] [--torch]. With
--watch it answers once for each line that it reads."""
import ctypes
import json
import os
import sys
import threading

nvml = ctypes.CDLL("libnvidia-ml.so.1")
nvml.nvmlErrorString.restype = ctypes.c_char_p
INSUFFICIENT_SIZE = 7
U32, U64 = ctypes.c_uint, ctypes.c_ulonglong


def structure(*fields):
    return type("Structure", (ctypes.Structure,), {"_fields_": fields})


PROCESS_V1 = structure(("pid", U32), ("memory", U64))
PROCESS = structure(("pid", U32), ("memory", U64), ("gi", U32), ("ci", U32))
DETAIL = structure(("pid", U32), ("memory", U64), ("gi", U32), ("ci", U32), ("protected", U64))
DETAILS = structure(("version", U32), ("mode", U32), ("count", U32), ("list", ctypes.POINTER(DETAIL)))
SAMPLE = structure(("pid", U32), ("time", U64), ("sm", U32), ("memory", U32), ("enc", U32), ("dec", U32))
USE = structure(("time", U64), ("pid", U32), ("sm", U32), ("memory", U32), ("enc", U32), ("dec", U32),
                ("jpg", U32), ("ofa", U32))
USES = structure(("version", U32), ("count", U32), ("after", U64), ("list", ctypes.POINTER(USE)))
STATS = structure(("gpu", U32), ("memory", U32), ("peak", U64), ("time", U64), ("start", U64),
                  ("running", U32), ("reserved", U32 * 5))
MEMORY = structure(("total", U64), ("free", U64), ("used", U64))
MEMORY_V2 = structure(("version", U32), ("total", U64), ("reserved", U64), ("free", U64), ("used", U64))
RATES = structure(("gpu", U32), ("memory", U32))
PCI = structure(("legacy", ctypes.c_char * 16), ("domain", U32), ("bus", U32), ("device", U32),
                ("id", U32), ("subsystem", U32), ("bus_id", ctypes.c_char * 32))

# What the tools ask for and the software GPU does not have: (name, arguments behind the device).
# The module pynvml looks each name up, and calls it with these kinds of arguments.
ONE, TWO = [U32()], [U32(), U32()]
UNSUPPORTED = {
    "nvmlDeviceGetTemperature": (U32(0), *ONE), "nvmlDeviceGetPowerUsage": ONE,
    "nvmlDeviceGetEnforcedPowerLimit": ONE, "nvmlDeviceGetPowerManagementLimit": ONE,
    "nvmlDeviceGetFanSpeed": ONE, "nvmlDeviceGetEncoderUtilization": TWO,
    "nvmlDeviceGetDecoderUtilization": TWO, "nvmlDeviceGetPerformanceState": ONE,
    "nvmlDeviceGetPersistenceMode": ONE, "nvmlDeviceGetDisplayActive": ONE,
    "nvmlDeviceGetDisplayMode": ONE, "nvmlDeviceGetMigMode": TWO, "nvmlDeviceGetClockInfo": (U32(0), *ONE),
    "nvmlDeviceGetMaxClockInfo": (U32(0), *ONE), "nvmlDeviceGetPcieThroughput": (U32(0), *ONE),
    "nvmlDeviceGetTotalEccErrors": (U32(0), U32(0), *ONE), "nvmlDeviceGetBAR1MemoryInfo": [MEMORY()],
    "nvmlDeviceGetMaxMigDeviceCount": ONE,
}


def call(name, *arguments):
    """As pynvml does: by a pointer for what is an answer."""
    passed = [ctypes.byref(a) if isinstance(a, (ctypes.Structure, U32)) and i + 1 == len(arguments) else a
              for i, a in enumerate(arguments)]
    return getattr(nvml, name)(*passed)


def record(value):
    return {name: getattr(value, name) for name, _ in value._fields_ if name not in ("reserved", "list")}


def text(name, *arguments):
    buffer = ctypes.create_string_buffer(96)
    result = getattr(nvml, name)(*arguments, buffer, U32(96))
    return buffer.value.decode() if result == 0 else result


def answer(name, device, kind):
    value = kind()
    if kind is MEMORY_V2:
        value.version = ctypes.sizeof(kind) | 2 << 24
    result = getattr(nvml, name)(device, ctypes.byref(value))
    return record(value) if result == 0 else result


def listing(name, device, kind, *more, takes_count_last=False):
    """As pynvml does: the count first, and then more capacity than that."""
    count = U32(0)

    def ask(array):
        pointers = (array, ctypes.byref(count)) if takes_count_last else (ctypes.byref(count), array)
        return getattr(nvml, name)(device, *pointers, *more)

    result = ask(None)
    if result == INSUFFICIENT_SIZE:
        count.value = count.value * 2 + 5
        array = (kind * count.value)()
        result = ask(array)
    if result:
        return result
    return [array[i] if kind is U32 else record(array[i]) for i in range(count.value)] if count.value else []


def versioned_listing(name, device, outer, kind, **fields):
    value = outer(version=ctypes.sizeof(outer) | 1 << 24, **fields)
    result = getattr(nvml, name)(device, ctypes.byref(value))
    if result == INSUFFICIENT_SIZE:
        value.list = (kind * value.count)()
        result = getattr(nvml, name)(device, ctypes.byref(value))
    return [record(value.list[i]) for i in range(value.count)] if result == 0 else result


def look_at_processes(device):
    found = {}
    for group in ("Compute", "Graphics", "MPSCompute"):
        for version, kind in (("", PROCESS_V1), ("_v2", PROCESS), ("_v3", PROCESS)):
            name = f"nvmlDeviceGet{group}RunningProcesses{version}"
            found[group + version] = listing(name, device, kind)
    found["details"] = versioned_listing("nvmlDeviceGetRunningProcessDetailList", device, DETAILS, DETAIL)
    found["samples"] = listing("nvmlDeviceGetProcessUtilization", device, SAMPLE, U64(0),
                               takes_count_last=True)
    found["uses"] = versioned_listing("nvmlDeviceGetProcessesUtilizationInfo", device, USES, USE)
    found["accounted"] = listing("nvmlDeviceGetAccountingPids", device, U32)
    found["names"], found["stats"] = {}, {}
    for pid in found["accounted"] if isinstance(found["accounted"], list) else []:
        found["names"][pid] = text("nvmlSystemGetProcessName", U32(pid))
        stats = STATS()
        found["stats"][pid] = nvml.nvmlDeviceGetAccountingStats(device, U32(pid), ctypes.byref(stats)) \
            or record(stats)
    return found


def look_at_device(index):
    device, again, number = ctypes.c_void_p(), ctypes.c_void_p(), U32()
    result = nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device))
    if result:
        return result
    found = {"uuid": text("nvmlDeviceGetUUID", device), "name": text("nvmlDeviceGetName", device),
             "pci": answer("nvmlDeviceGetPciInfo_v3", device, PCI),
             "memory": answer("nvmlDeviceGetMemoryInfo", device, MEMORY),
             "memory_v2": answer("nvmlDeviceGetMemoryInfo_v2", device, MEMORY_V2),
             "rates": answer("nvmlDeviceGetUtilizationRates", device, RATES),
             "accounting": nvml.nvmlDeviceGetAccountingMode(device, ctypes.byref(number)) or number.value}
    if isinstance(found["pci"], dict):
        found["pci"] = {k: v.decode() if isinstance(v, bytes) else v for k, v in found["pci"].items()}
        found["same"] = [
            nvml.nvmlDeviceGetHandleByUUID(found["uuid"].encode(), ctypes.byref(again)) or again.value == device.value,
            nvml.nvmlDeviceGetHandleByPciBusId_v2(found["pci"]["bus_id"].encode(), ctypes.byref(again))
            or again.value == device.value,
            nvml.nvmlDeviceGetIndex(device, ctypes.byref(number)) or number.value == index]
    found["unsupported"] = {name: call(name, device, *arguments) for name, arguments in UNSUPPORTED.items()}
    sent, received = U64(), U64()
    found["five_arguments"] = nvml.nvmlDeviceGetNvLinkUtilizationCounter(
        device, 11, 22, ctypes.byref(received), ctypes.byref(sent)) or [received.value, sent.value]
    degrees = U32()
    found["temperature"] = nvml.nvmlDeviceGetTemperature(device, 2, ctypes.byref(degrees)) or degrees.value
    return {**found, **look_at_processes(device)}


def look():
    count, version = U32(), U32()
    result = nvml.nvmlInit_v2()
    if result:
        return {"init": result}
    found = {"init": 0, "count": nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) or count.value,
             "driver": text("nvmlSystemGetDriverVersion"),
             "cuda": nvml.nvmlSystemGetCudaDriverVersion_v2(ctypes.byref(version)) or version.value,
             "device": look_at_device(0), "beyond": look_at_device(1000)}
    found["shutdown"] = nvml.nvmlShutdown()
    return found


def become_client():
    cuda = ctypes.CDLL("libcuda.so.1")
    context, memory = ctypes.c_void_p(), ctypes.c_void_p()
    for result in (cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0),
                   cuda.cuCtxSetCurrent(context),
                   cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(16 << 20))):
        assert result == 0, result


def look_in_child():
    """As forked workers of a program that has used NVML."""
    look()
    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, json.dumps(look()).encode())
        os._exit(0)
    os.close(write)
    with open(read) as pipe:
        found = json.load(pipe)
    os.wait()
    return found


def look_in_threads():
    found = []
    threads = [threading.Thread(target=lambda: found.append(look())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def look_as_torch():
    """torch.cuda.device_count(), utilization(), list_gpu_processes() and mem_get_info()."""
    count, device, utilization = U32(), ctypes.c_void_p(), RATES()
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    results = [nvml.nvmlInit(), nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)),
               nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)),
               nvml.nvmlDeviceGetUtilizationRates(device, ctypes.byref(utilization)),
               ctypes.CDLL("libcuda.so.1").cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))]
    return {"results": results, "count": count.value, "uuid": text("nvmlDeviceGetUUID", device),
            "utilization": utilization.gpu, "memory": [free.value, total.value],
            "processes": listing("nvmlDeviceGetComputeRunningProcesses_v3", device, PROCESS)}


SMI_TABLE = bytes.fromhex("c4fe3e6cc98f6c4ea327ee696e12f7c4")
SMI_PROCESS = structure(("pid", U32), ("memory", U64), ("gi", U32), ("ci", U32), ("protected", U64),
                        ("name", ctypes.c_char * 4096))


def look_as_smi():
    """nvidia-smi takes its lists of processes from a table of functions."""
    table, device = ctypes.POINTER(ctypes.c_void_p)(), ctypes.c_void_p()
    nvml.nvmlInit_v2()
    nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device))
    result = nvml.nvmlInternalGetExportTable(ctypes.byref(table), SMI_TABLE)
    if result:
        return result
    found = {"other": ctypes.CFUNCTYPE(ctypes.c_int)(table[1])(), "lists": []}
    for slot in (213, 214, 215):
        count, array = U32(16), (SMI_PROCESS * 16)()
        ask = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(U32), ctypes.c_void_p)(table[slot])
        found["lists"].append(ask(device, ctypes.byref(count), array) or [
            [array[i].pid, array[i].memory, array[i].name.decode()] for i in range(count.value)])
    return found


def main():
    if "--as-client" in sys.argv:
        become_client()
    if "--before-init" in sys.argv:
        print(json.dumps([nvml.nvmlDeviceGetCount_v2(ctypes.byref(U32())), nvml.nvmlShutdown(),
                          nvml.nvmlErrorString(3).decode()]))
    elif "--torch" in sys.argv:
        print(json.dumps(look_as_torch()))
    elif "--smi" in sys.argv:
        print(json.dumps(look_as_smi()))
    elif "--fork" in sys.argv:
        print(json.dumps(look_in_child()))
    elif "--threads" in sys.argv:
        print(json.dumps(look_in_threads()))
    elif "--watch" in sys.argv:
        for _ in sys.stdin:
            print(json.dumps(look()), flush=True)
    else:
        print(json.dumps(look()))


main()

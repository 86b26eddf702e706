# SPDX-License-Identifier: Apache-2.0
"""The exported entry points of both of our driver libraries, client_entry.c and soft_entry.c, and
the prototypes of the functions behind them."""

from dataclasses import dataclass

from ctext import header, head, prototype, wrap

NUMBERS = {"int": "%d", "unsigned int": "%u", "unsigned": "%u", "unsigned char": "%u",
           "unsigned short": "%u", "float": "%g", "size_t": "%zu", "CUdevice": "%d",
           "cuuint32_t": "%u", "CUdeviceptr_v1": "%#x", "CUlogIterator": "%u"}
LONG_NUMBERS = {"CUdeviceptr", "CUtexObject", "CUsurfObject", "CUmemGenericAllocationHandle",
                "unsigned long long", "cuuint64_t", "CUgraphConditionalHandle"}
BY_VALUE = {"CUipcEventHandle", "CUipcMemHandle", "CUmemLocation"}
HANDLES = {"CUcontext", "CUgreenCtx", "CUmodule", "CUlibrary", "CUkernel", "CUfunction",
           "CUlinkState", "CUstream", "CUevent", "CUdevResourceDesc", "CUgraph", "CUgraphNode",
           "CUgraphExec", "CUuserObject", "CUarray", "CUmipmappedArray", "CUtexref", "CUsurfref",
           "CUmemoryPool", "CUgraphicsResource", "CUexternalMemory", "CUexternalSemaphore",
           "CUasyncCallbackHandle", "CUlogsCallbackHandle"}
CALLBACKS = {"CUhostFn", "CUstreamCallback", "CUoccupancyB2DSize", "CUasyncCallback",
             "CUlogsCallback"}


@dataclass
class Side:
    """What differs between the client and the software GPU."""
    prefix: str
    passthrough: bool

    def carries(self, call):
        return call.cls != "unsupported" if self.prefix == "client" else "soft" in call.tags

    def not_ready(self, call):
        """Lines that answer while the library cannot."""
        early = "early" in call.tags
        if not self.passthrough:
            return "" if early else "    if (!soft_ready())\n        return soft_not_ready();\n"
        return "" if early else ("    if (how != CLIENT_FUNNEL)\n"
                                 "        return client_not_ready(how);\n")

    def turn(self, work):
        """On the software GPU a call waits outside while another stalls (device_sync.h)."""
        if self.passthrough or "lock" not in work.tags:
            return ""
        return ("    if (atomic_load_explicit(&soft_device_syncs, memory_order_relaxed))\n"
                "        soft_device_sync_wait();\n")

    def inside(self, call, edge):
        """The client library counts the threads inside it, from its attach on."""
        if not self.passthrough:
            return ""
        early = "    if (how == CLIENT_FUNNEL)\n    " if "early" in call.tags else ""
        return f"{early}    call_{edge}();\n"

    def note_error(self, symbol):
        """Both libraries log the errors that a program has got."""
        return (f"    if (__builtin_expect(answer != CUDA_SUCCESS, 0))\n"
                f'        {self.prefix}_error_returned("{symbol}", answer);\n')


CLIENT = Side("client", True)
SOFT = Side("soft", False)


def emit_client(api):
    return {"client_entry.c": entries(api, CLIENT), "client_prototypes.h": prototypes(api, CLIENT)}


def emit_soft(api):
    return {"soft_entry.c": entries(api, SOFT), "soft_prototypes.h": prototypes(api, SOFT)}


def target(api, call):
    """The call that does the work: an alias has another's."""
    return api.call(call.alias) if call.alias else call


def prototypes(api, side):
    body = "\n".join(prototype(c, f"{side.prefix}_{c.name}") for c in api.calls
                     if not c.alias and side.carries(c))
    return header(['"cuda_abi.h"'], body + "\n")


def entries(api, side):
    includes = [f'"{side.prefix}_entry.h"', "", '"clock.h"', '"cuda_prototypes.h"',
                f'"{side.prefix}_prototypes.h"']
    if side.passthrough:
        includes.append('"passthrough_table.h"')
        includes.insert(1, '"client_call.h"')
    text = head(*includes)
    text += '#define EXPORT __attribute__((visibility("default")))\n'
    for call in api.calls:
        for symbol in call.symbols:
            text += "\n" + entry(api, side, call, symbol)
    return text


def entry(api, side, call, symbol):
    work = target(api, call)
    names = [p.name for p in call.params]
    text = prototype(call, symbol, "", "EXPORT ") + "\n{\n"
    if side.passthrough:
        text += "    enum client_mode how = client_mode();\n\n    if (how == CLIENT_PASSTHROUGH)\n"
        text += passthrough(symbol, names)
    text += side.not_ready(call)
    if not side.carries(work):
        return text + (f'    {side.prefix}_unsupported("{symbol}");\n'
                       f"    return {work.error};\n}}\n")
    text += null_checks(call, work)
    text += side.turn(work) + side.inside(call, "begin")
    return text + do_the_work(side, call, symbol, work, names) + "}\n"


def passthrough(symbol, names):
    return (f'        return client_passed_on("{symbol}", passthrough.{symbol}\n'
            + wrap(f"                   ? passthrough.{symbol}(", names, ")")
            + "\n                   : CUDA_ERROR_NOT_SUPPORTED);\n")


def null_checks(call, work):
    """A pointer that may not be NULL is checked here, once for both libraries."""
    must = [mine.name for mine, described in zip(call.params, work.params)
            if mine.pointer and described.words and not described.nullable
            and ("one" in described.words or "string" in described.words)]
    if not must:
        return ""
    condition = wrap("    if (", [f"!{name} ||" for name in must[:-1]] + [f"!{must[-1]}"], ")")
    return condition.replace("||,", "||") + "\n        return CUDA_ERROR_INVALID_VALUE;\n"


def do_the_work(side, call, symbol, work, names):
    prefix = side.prefix
    text = begin_trace(side, call, symbol)
    if symbol != call.name:
        text += (f"    CUstream before = {prefix}_default_stream_swap(CU_STREAM_PER_THREAD);\n")
    text += wrap(f"    CUresult answer = {prefix}_{work.name}(", names, ");") + "\n"
    if symbol != call.name:
        text += f"    {prefix}_default_stream_swap(before);\n"
    text += side.inside(call, "end")
    text += side.note_error(symbol)
    text += f"    if ({prefix}_tracing)\n"
    text += tell_arguments(call, f"        {prefix}_trace(", [f'"{symbol}"', "began", "answer"])
    return text + "    return answer;\n"


def begin_trace(side, call, symbol):
    """A profiler of the program is told of the arguments before the call, too."""
    if not side.passthrough:
        return f"    uint64_t began = {side.prefix}_tracing ? clock_ns() : 0;\n"
    return ("    uint64_t began = 0;\n"
            f"    if (__builtin_expect({side.prefix}_tracing, 0))\n"
            + tell_arguments(call, f"        began = {side.prefix}_call_began(", [f'"{symbol}"']))


def tell_arguments(call, start, before):
    formats, values = trace_arguments(call)
    return wrap(start, before + [literals(formats, len(start))] + values, ");") + "\n"


def trace_arguments(call):
    """A format and its values, for the tracer."""
    formats, values = [], []
    for param in call.params:
        form, value = trace_one(param)
        formats.append(f"{param.name}={form}")
        if value:
            values.append(value)
    return (formats, values) if formats else (["%s"], ['""'])


def literals(formats, indent):
    """The format as one string literal, or as several side by side if it is long."""
    lines = [""]
    for form in formats:
        if len(lines[-1]) + len(form) + indent > 92 and lines[-1]:
            lines.append("")
        lines[-1] += form + " "
    lines[-1] = lines[-1].rstrip()
    return ("\n" + " " * indent).join(f'"{line}"' for line in lines)


def trace_one(param):
    name, ctype = param.name, param.type
    if param.words and "string" in param.words:
        return "%s", name
    if param.pointer or ctype in CALLBACKS:
        return "%p", f"(void *){name}" if not ctype.startswith("const") else f"(const void *){name}"
    if ctype in HANDLES:
        return "%p", f"(void *){name}"
    if ctype in BY_VALUE:
        return "{...}", None
    if ctype in LONG_NUMBERS:
        return "%#llx", f"(unsigned long long){name}"
    if ctype in NUMBERS:
        return NUMBERS[ctype], name
    return "%d", f"(int){name}"

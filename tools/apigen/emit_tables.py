# SPDX-License-Identifier: Apache-2.0
"""Lists of entry points: prototypes, the two tables filled by dlsym, the version script and what
cuGetProcAddress looks in."""

from ctext import comment, declare, head, header, prototype, wrap


def symbols(api):
    """(symbol, call) of everything exported, in the order of the description."""
    return [(symbol, call) for call in api.calls for symbol in call.symbols]


def pointer(call, name, indent="    "):
    return wrap(f"{indent}CUresult (*{name})(",
                [declare(p.type, p.name) for p in call.params] or ["void"], ");")


def emit_cuda(api):
    body = "\n".join(prototype(call, symbol) for symbol, call in symbols(api))
    return {"cuda_prototypes.h": header(['"cuda_abi.h"'], body + "\n")}


# What NVTX calls of a library that it loads.
CLIENT_EXTENSION = ("InitializeInjectionNvtx2",)

# Declared in src/cuda/soft_extension.h.
SOFT_EXTENSION = ("funnelAbortLaunches", "funnelErrorsAreLogged", "funnelForgetLaunchOwner",
                  "funnelSetLaunchOwner")


def version_script(names):
    text = "/* SPDX-License-Identifier: Apache-2.0 */\n{\n    global:\n"
    text += "".join(f"        {name};\n" for name in sorted(names))
    return text + "    local:\n        *;\n};\n"


def emit_map(api):
    return {"libcuda.map": version_script([*api.symbols, *CLIENT_EXTENSION]),
            "softgpu.map": version_script([*api.symbols, *SOFT_EXTENSION])}


def emit_passthrough(api):
    body = comment("The real driver, for when there is no server. NULL: it does not have that one.")
    body += "struct passthrough_table {\n"
    body += "\n".join(pointer(call, symbol) for symbol, call in symbols(api)) + "\n};\n\n"
    body += "extern struct passthrough_table passthrough;\n\n"
    body += comment("Fills the table from a library that dlopen() gave.")
    body += "void passthrough_load(void *library);\n"
    source = head('"passthrough_table.h"', "", "<dlfcn.h>", "<stddef.h>")
    source += "struct passthrough_table passthrough;\n\n"
    source += "static const struct {\n    const char *name;\n    size_t offset;\n} entries[] = {\n"
    source += "".join(f'    {{"{symbol}", offsetof(struct passthrough_table, {symbol})}},\n'
                      for symbol, _ in symbols(api))
    source += ("};\n\nvoid passthrough_load(void *library)\n{\n"
               "    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++)\n"
               "        *(void **)((char *)&passthrough + entries[i].offset) =\n"
               "            dlsym(library, entries[i].name);\n}\n")
    return {"passthrough_table.h": header(['"cuda_abi.h"'], body),
            "passthrough_table.c": source}


def emit_driver(api):
    wanted = [(c.name, c) for c in api.calls if "driver" in c.tags]
    body = comment("What the server calls of a driver library. Those that are optional may be "
                   "NULL.")
    body += "struct driver_table {\n"
    for name, call in wanted:
        text = pointer(call, name)
        body += text + (" /* optional */" if call.tags["driver"] == "optional" else "") + "\n"
    body += "};\n\n"
    body += comment("Fills the table from a library that dlopen() gave: 0, or -ENOSYS and a "
                    "message that names the first required call that is missing.")
    body += ("int driver_table_load(struct driver_table *table, void *library, char *why, "
             "size_t why_size);\n")
    source = head('"driver_table.h"', "", "<dlfcn.h>", "<errno.h>", "<stdbool.h>", "<stdio.h>")
    source += ("static const struct {\n    const char *name;\n    size_t offset;\n"
               "    bool required;\n} entries[] = {\n")
    source += "".join(
        f'    {{"{name}", offsetof(struct driver_table, {name}), '
        f'{str(call.tags["driver"] != "optional").lower()}}},\n' for name, call in wanted)
    source += DRIVER_LOAD
    return {"driver_table.h": header(["<stddef.h>", '"cuda_abi.h"'], body),
            "driver_table.c": source}


DRIVER_LOAD = """};

int driver_table_load(struct driver_table *table, void *library, char *why, size_t why_size)
{
    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        void *function = dlsym(library, entries[i].name);

        if (!function && entries[i].required) {
            snprintf(why, why_size, "it has no %s", entries[i].name);
            return -ENOSYS;
        }
        *(void **)((char *)table + entries[i].offset) = function;
    }
    return 0;
}
"""


def emit_entry_points(api):
    """Sorted as cudart_get_proc_address() wants: by name, flag, version. Flag 1 repeats flag 0."""
    rows = sorted(row[:4] for row in api.lookups if row[1] != 1)
    body = comment("What cuGetProcAddress looks in.")
    body += ("extern const struct entry_point entry_points[];\n"
             "extern const size_t entry_point_count;\n")
    source = head('"entry_points.h"', "", '"cuda_prototypes.h"')
    source += "const struct entry_point entry_points[] = {\n"
    source += "".join(f'    {{"{name}", {flag}, {version}, (void *){symbol}}},\n'
                      for name, flag, version, symbol in rows)
    source += ("};\n\nconst size_t entry_point_count = "
               "sizeof(entry_points) / sizeof(entry_points[0]);\n")
    return {"entry_points.h": header(["<stddef.h>", '"cudart.h"'], body),
            "entry_points.c": source}

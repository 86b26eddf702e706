# SPDX-License-Identifier: Apache-2.0
"""The calls that src/graph answers: prototypes of its functions, and the functions of the client
and of the software GPU that do nothing but call them."""

from ctext import head, header, prototype, wrap


def graph_calls(api):
    return [call for call in api.calls if "graph" in call.tags]


def emit_model(api):
    body = "\n".join(prototype(call, f"graph_{call.name}") for call in graph_calls(api))
    return {"graph_prototypes.h": header(['"cuda_abi.h"'], body + "\n")}


def emit_client(api):
    return {"client_graph_calls.c": forwarders(api, "client")}


def emit_soft(api):
    return {"soft_graph_calls.c": forwarders(api, "soft")}


def forwarders(api, prefix):
    text = head(f'"{prefix}_prototypes.h"', '"graph_prototypes.h"')
    return text + "\n".join(forwarder(call, prefix) for call in graph_calls(api))


def forwarder(call, prefix):
    answer = wrap(f"    return graph_{call.name}(", [p.name for p in call.params], ");")
    return f"{prototype(call, f'{prefix}_{call.name}', '')}\n{{\n{answer}\n}}\n"

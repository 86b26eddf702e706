# SPDX-License-Identifier: Apache-2.0
"""The calls that a model answers, a folder that client and software GPU share. These are prototypes
of its functions, and functions of client and software GPU that do nothing but call them."""

from ctext import head, header, prototype, wrap

MODELS = ("graph", "reference")  # src/graph, src/reference


def model_calls(api, model):
    return [call for call in api.calls if model in call.tags]


def prototypes_of(model):
    def emit(api):
        body = "\n".join(prototype(call, f"{model}_{call.name}")
                         for call in model_calls(api, model))
        return {f"{model}_prototypes.h": header(['"cuda_abi.h"'], body + "\n")}
    return emit


def emit_client(api):
    return {f"client_{model}_calls.c": forwarders(api, model, "client") for model in MODELS}


def emit_soft(api):
    return {f"soft_{model}_calls.c": forwarders(api, model, "soft") for model in MODELS}


def forwarders(api, model, prefix):
    text = head(f'"{prefix}_prototypes.h"', f'"{model}_prototypes.h"')
    return text + "\n".join(forwarder(call, model, prefix) for call in model_calls(api, model))


def forwarder(call, model, prefix):
    answer = wrap(f"    return {model}_{call.name}(", [p.name for p in call.params], ");")
    return f"{prototype(call, f'{prefix}_{call.name}', '')}\n{{\n{answer}\n}}\n"

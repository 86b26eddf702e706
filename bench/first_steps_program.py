#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The first step of each kind in a framework, and how many milliseconds it takes.

    first_steps_program.py torch|cupy|jax

prints one line of JSON, {step: milliseconds}, in the order of the steps. Each ends with a wait for
the device, and importing the framework does not count. A stock program: it knows nothing of Funnel.
"""
import json
import sys
import time


def torch_steps():
    import torch
    functional = torch.nn.functional
    sync = torch.cuda.synchronize

    def attend(length):
        query = torch.randn(1, 8, length, 64, device="cuda", dtype=torch.half)
        return functional.scaled_dot_product_attention(query, query, query, is_causal=True)

    def convolve(size):
        layer = torch.nn.Conv2d(3, 16, 3).cuda()
        layer(torch.randn(8, 3, size, size, device="cuda")).square().sum().backward()

    def learn():
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    yield "first use of the device", lambda: torch.zeros(1, device="cuda"), sync
    yield "randn", lambda: torch.randn(1024, 1024, device="cuda"), sync
    a = torch.randn(1024, 1024, device="cuda")
    yield "product of matrices", lambda: a @ a, sync
    half = a.half()
    yield "the same in half precision", lambda: half @ half, sync
    yield "convolution with its gradient", lambda: convolve(32), sync
    yield "the same with another size", lambda: convolve(48), sync
    yield "softmax", lambda: torch.softmax(a, 1), sync
    yield "sort", lambda: torch.sort(a.flatten()), sync
    yield "scaled dot product attention", lambda: attend(128), sync
    yield "the same with another length", lambda: attend(160), sync
    yield "linear system", lambda: torch.linalg.solve(a[:256, :256], a[:256, :1]), sync
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(),
                                torch.nn.Linear(512, 10)).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    x = torch.randn(64, 256, device="cuda")
    yield "step with Adam", learn, sync
    yield "the next step", learn, sync


def cupy_steps():
    import cupy
    sync = cupy.cuda.Device(0).synchronize

    yield "first array", lambda: cupy.zeros(1), sync
    a = cupy.arange(1 << 20, dtype=cupy.float32)
    yield "sum", a.sum, sync
    yield "sort", lambda: cupy.sort(a), sync
    matrix = a[:1 << 18].reshape(512, 512) / (1 << 18) + 512 * cupy.eye(512, dtype=cupy.float32)
    yield "product of matrices", lambda: matrix @ matrix, sync
    yield "linear system", lambda: cupy.linalg.solve(matrix, matrix[:, 0]), sync


def jax_steps():
    import jax
    from jax import numpy

    def convolve(pictures):
        out = jax.lax.conv(pictures, numpy.ones((16, 16, 3, 3)), (1, 1), "SAME")
        return (out * out).sum()

    def scan(x):
        return jax.lax.scan(lambda carry, _: (carry * 0.5 + 1, carry), x, None, length=100)[0]

    yield "devices", jax.devices, lambda: None
    yield "zeros", lambda: numpy.zeros(1).block_until_ready(), lambda: None
    x = numpy.ones((512, 512))
    yield "compiled function", lambda: jax.jit(lambda m: (m @ m).sum())(x).block_until_ready(), \
        lambda: None
    pictures = numpy.ones((8, 16, 32, 32))
    yield "convolution with its gradient", \
        lambda: jax.grad(convolve)(pictures).block_until_ready(), lambda: None
    yield "scan", lambda: jax.jit(scan)(numpy.ones(4)).block_until_ready(), lambda: None


def main():
    steps = {"torch": torch_steps, "cupy": cupy_steps, "jax": jax_steps}[sys.argv[1]]
    times = {}
    for name, step, wait in steps():
        began = time.perf_counter()
        step()
        wait()
        times[name] = (time.perf_counter() - began) * 1e3
    print(json.dumps(times))


if __name__ == "__main__":
    main()

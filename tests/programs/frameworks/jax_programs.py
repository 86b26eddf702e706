# SPDX-License-Identifier: Apache-2.0
"""JAX: a convolution with its gradient, and a scan, against NumPy's results."""
import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import sys  # noqa: E402  (JAX reads the environment when it is imported)

import verdict  # noqa: E402

numpy, jax = verdict.need("numpy", "jax")
if jax.default_backend() != "gpu":
    print("waived: JAX without its GPU part")
    sys.exit(verdict.WAIVED)
jax.config.update("jax_default_matmul_precision", "highest")
random = numpy.random.default_rng(1)
x = random.standard_normal((4, 3, 16, 16)).astype("f4")
w = random.standard_normal((8, 3, 3, 3)).astype("f4")


def convolve(x, w):
    return jax.lax.conv(x, w, (1, 1), "VALID")


windows = numpy.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
expected = numpy.einsum("nchwij,ocij->nohw", windows, w)
verdict.close("convolution", jax.jit(convolve)(x, w), expected, 1e-4)
gradient = jax.jit(jax.grad(lambda w: (convolve(x, w) ** 2).sum() / 2))(w)
verdict.close("its gradient", gradient, numpy.einsum("nchwij,nohw->ocij", windows, expected), 1e-4)
carry, _ = jax.jit(lambda c: jax.lax.scan(lambda c, i: (c * 0.5 + i, c), c,
                                          jax.numpy.arange(32.0)))(numpy.float32(3))
value = 3.0
for i in range(32):
    value = value * 0.5 + i
verdict.close("scan", carry, value, 1e-5)

# SPDX-License-Identifier: Apache-2.0
"""What the programs here share: they end with status 0 when the GPU's results are right."""
import importlib
import sys

WAIVED = 2  # as NVIDIA's samples: the machine lacks what the program needs


def need(*names):
    """The modules, or the end of the program where one is not installed."""
    try:
        modules = [importlib.import_module(name) for name in names]
    except ImportError as error:
        print(f"waived: {error}")
        sys.exit(WAIVED)
    return modules[0] if len(modules) == 1 else modules


def close(what, got, expected, tolerance):
    """Ends the program when the largest difference is beyond `tolerance` of the largest number."""
    import numpy
    got, expected = numpy.asarray(got, dtype="f8"), numpy.asarray(expected, dtype="f8")
    if got.shape != expected.shape:
        sys.exit(f"failed: {what} has shape {got.shape}, and not {expected.shape}")
    bound = tolerance * max(float(numpy.abs(expected).max()), 1e-30)
    worst = float(numpy.abs(got - expected).max())
    if not worst <= bound:  # a NaN is not
        sys.exit(f"failed: {what} differs by {worst:g}, and {bound:g} is allowed")
    print(f"right: {what}")

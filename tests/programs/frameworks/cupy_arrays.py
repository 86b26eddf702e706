# SPDX-License-Identifier: Apache-2.0
"""CuPy: products, sorting, sums, and a kernel in CUDA C++, against NumPy's results."""
import verdict

numpy, cupy = verdict.need("numpy", "cupy")

random = numpy.random.default_rng(1)
a, b = random.standard_normal((200, 300)), random.standard_normal((300, 100))
on_gpu = cupy.asarray(a)
verdict.close("matrix product", cupy.asnumpy(on_gpu @ cupy.asarray(b)), a @ b, 1e-10)
verdict.close("sort", cupy.asnumpy(cupy.sort(on_gpu, axis=1)), numpy.sort(a, axis=1), 0)
verdict.close("sum", cupy.asnumpy(on_gpu.sum(axis=0)), a.sum(axis=0), 1e-10)
verdict.close("Fourier transform", cupy.asnumpy(abs(cupy.fft.fft(on_gpu))), abs(numpy.fft.fft(a)),
              1e-10)
triple = cupy.RawKernel("""
extern "C" __global__ void triple(const double *in, double *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        out[i] = 3 * in[i];
}
""", "triple")
out = cupy.empty_like(on_gpu)
triple(((a.size + 255) // 256,), (256,), (on_gpu, out, numpy.int32(a.size)))
verdict.close("a kernel of our own", cupy.asnumpy(out), 3 * a, 0)

# SPDX-License-Identifier: Apache-2.0
"""Triton: a sum of vectors and a product of matrices against PyTorch's results on the CPU."""
import verdict

torch, triton = verdict.need("torch", "triton")
import triton.language as tl  # noqa: E402  (only where Triton is installed)


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def multiply(a, b, out, K: tl.constexpr, N: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, K, BLOCK):
        inner = start + tl.arange(0, BLOCK)
        total += tl.dot(tl.load(a + row[:, None] * K + inner[None, :]),
                        tl.load(b + inner[:, None] * N + column[None, :]))
    tl.store(out + row[:, None] * N + column[None, :], total)


torch.manual_seed(1)
x, y = torch.randn(5000), torch.randn(5000)
out = torch.empty(5000, device="cuda")
add[(triton.cdiv(5000, 1024),)](x.cuda(), y.cuda(), out, 5000, BLOCK=1024)
verdict.close("sum", out.cpu(), x + y, 0)
a, b = torch.randn(128, 256).half(), torch.randn(256, 192).half()
out = torch.empty(128, 192, device="cuda")
multiply[(4, 6)](a.cuda(), b.cuda(), out, 256, 192, BLOCK=32)
verdict.close("matrix product", out.cpu(), a.float() @ b.float(), 1e-3)

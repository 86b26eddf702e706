# SPDX-License-Identifier: Apache-2.0
"""PyTorch: operators, products by tensor cores, attention, a training, a captured graph, and a
shared tensor, each against the CPU's results. On an H100 libraries launch the tensor cores' kernels
in clusters."""
import copy

import verdict

torch = verdict.need("torch")


def operators():
    a, b = torch.randn(300, 200), torch.randn(200, 100)
    verdict.close("matrix product", (a.cuda() @ b.cuda()).cpu(), a @ b, 1e-4)
    verdict.close("sort", a.cuda().sort(dim=1).values.cpu(), a.sort(dim=1).values, 0)
    verdict.close("Fourier transform", torch.fft.fft(a.cuda()).abs().cpu(), torch.fft.fft(a).abs(),
                  1e-4)
    square = torch.randn(64, 64) + 64 * torch.eye(64)
    verdict.close("linear solver", torch.linalg.solve(square.cuda(), a[:64].cuda()).cpu(),
                  torch.linalg.solve(square, a[:64]), 1e-4)


def exactly(*tensors):
    """The same numbers where sums lose nothing."""
    return [tensor.detach().cpu().double() for tensor in tensors]


def tensor_cores():
    functional = torch.nn.functional
    for kind in (torch.half, torch.bfloat16):
        for size in (64, 1024, 4096):
            a, b = (torch.randn(size, size, device="cuda").to(kind) for _ in range(2))
            verdict.close(f"{kind} product of {size}", (a @ b)[:64].float().cpu(),
                          exactly(a[:64])[0] @ exactly(b)[0], 0.02)
        image = torch.randn(8, 64, 28, 28, device="cuda").to(kind)
        weight = torch.randn(64, 64, 3, 3, device="cuda").to(kind)
        got = functional.conv2d(image.to(memory_format=torch.channels_last), weight)
        verdict.close(f"{kind} convolution", got.float().cpu(),
                      functional.conv2d(*exactly(image, weight)), 0.02)
    a, b = (torch.randint(-9, 9, (512, 512), dtype=torch.int8, device="cuda") for _ in range(2))
    verdict.close("product of bytes", torch._int_mm(a, b).cpu(), exactly(a)[0] @ exactly(b)[0], 0)


def attention():
    from torch.nn.attention import SDPBackend, sdpa_kernel
    query, key, value = (torch.randn(2, 8, 256, 64, device="cuda").bfloat16() for _ in range(3))
    q, k, v = exactly(query, key, value)
    expected = torch.softmax(q @ k.transpose(-1, -2) / 8, -1) @ v
    for backend in (SDPBackend.MATH, SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION,
                    SDPBackend.CUDNN_ATTENTION):
        with sdpa_kernel(backend):
            got = torch.nn.functional.scaled_dot_product_attention(query, key, value)
        verdict.close(f"attention by {backend.name}", got.float().cpu(), expected, 0.02)
    network = torch.nn.LSTM(64, 64, 2).cuda().half()
    sequence = torch.randn(20, 8, 64).half()
    got = network(sequence.cuda())[0].detach().float().cpu()
    verdict.close("LSTM", got, network.float().cpu()(sequence.float())[0].detach(), 0.02)


def train(model, x, y, device):
    model, x, y = copy.deepcopy(model).to(device), x.to(device), y.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def training():
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 6, 5), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
                                torch.nn.Flatten(), torch.nn.Linear(6 * 14 * 14, 10))
    x, y = torch.randn(64, 3, 32, 32), torch.randint(0, 10, (64,))
    verdict.close("losses of 20 steps", train(model, x, y, "cuda"), train(model, x, y, "cpu"), 1e-3)


def captured():
    x = torch.ones(1000, device="cuda")
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        y = x * 3 + 1
    x.fill_(2)
    graph.replay()
    verdict.close("captured graph", y.cpu(), torch.full((1000,), 7.0), 0)


def shared_memory():
    """A tensor that workers share is page-locked where it is."""
    runtime, expected = torch.cuda.cudart(), torch.arange(1 << 20, dtype=torch.float)
    x = torch.zeros(1 << 20).share_memory_()
    result = int(runtime.cudaHostRegister(x.data_ptr(), x.numel() * x.element_size(), 0))
    verdict.close("error of cudaHostRegister", [result], [0], 0)
    x.copy_(expected.cuda())
    verdict.close("a shared tensor", x, expected, 0)
    runtime.cudaHostUnregister(x.data_ptr())


torch.manual_seed(1)
torch.backends.cudnn.allow_tf32 = False
operators()
if torch.cuda.get_device_capability() >= (8, 0):
    tensor_cores()
    attention()
training()
captured()
shared_memory()

# SPDX-License-Identifier: Apache-2.0
"""PyTorch: operators, a training, a captured graph, and a shared tensor, each against the CPU's
results."""
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
training()
captured()
shared_memory()

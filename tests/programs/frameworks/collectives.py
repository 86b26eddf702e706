# SPDX-License-Identifier: Apache-2.0
"""NCCL by torch.distributed, one rank for each GPU: collectives, a captured one, and training with
DistributedDataParallel. Started by torchrun."""
import os

import verdict

torch = verdict.need("torch")
import torch.distributed as dist  # noqa: E402  (only where PyTorch is installed)


def collectives(rank, ranks):
    mine = torch.full((1 << 20,), float(rank + 1), device="cuda")
    total = ranks * (ranks + 1) / 2
    x = mine.clone()
    dist.all_reduce(x)
    verdict.close("all_reduce", x.cpu(), torch.full_like(x, total).cpu(), 0)
    x = mine.clone()
    dist.broadcast(x, 0)
    verdict.close("broadcast", x.cpu(), torch.ones(1 << 20), 0)
    parts = [torch.empty_like(mine) for _ in range(ranks)]
    dist.all_gather(parts, mine)
    verdict.close("all_gather", [part[0].item() for part in parts], list(range(1, ranks + 1)), 0)
    part = torch.empty((1 << 20) // ranks, device="cuda")
    dist.reduce_scatter_tensor(part, mine[:part.numel() * ranks])
    verdict.close("reduce_scatter", part.cpu(), torch.full_like(part, total).cpu(), 0)


def captured(ranks):
    x = torch.ones(1000, device="cuda")
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.cuda.graph(graph, stream=stream):
        dist.all_reduce(x)
    graph.replay()
    graph.replay()
    verdict.close("captured all_reduce", x.cpu(), torch.full((1000,), float(ranks * ranks)), 0)


def training(rank, ranks):
    """The ranks' losses add up to those of one model that sees all of the batch."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 1))
    x, y = torch.randn(32 * ranks, 64), torch.randn(32 * ranks, 1)
    alone = [parameter.detach().clone().requires_grad_() for parameter in model.parameters()]
    ddp = torch.nn.parallel.DistributedDataParallel(model.cuda(), device_ids=[rank])
    optimizer, own = torch.optim.SGD(ddp.parameters(), 0.05), torch.optim.SGD(alone, 0.05)
    part = slice(32 * rank, 32 * rank + 32)
    for _ in range(10):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(ddp(x[part].cuda()), y[part].cuda()).backward()
        optimizer.step()
        own.zero_grad()
        hidden = torch.nn.functional.linear(x, alone[0], alone[1]).relu()
        torch.nn.functional.mse_loss(torch.nn.functional.linear(hidden, alone[2], alone[3]),
                                     y).backward()
        own.step()
    for trained, expected in zip(ddp.parameters(), alone):
        verdict.close("weights after 10 steps", trained.detach().cpu(), expected.detach(), 1e-3)


rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
collectives(rank, dist.get_world_size())
captured(dist.get_world_size())
training(rank, dist.get_world_size())
dist.destroy_process_group()

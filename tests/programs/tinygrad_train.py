# SPDX-License-Identifier: Apache-2.0
"""Trains a small convolutional network with tinygrad, and prints its losses: tinygrad_train.py [STEPS]

tinygrad compiles kernels to PTX while it runs, and launches the steps of a TinyJit as CUDA graphs.
"""
import sys

from tinygrad import Context, Tensor, TinyJit, nn

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 6


class Network:
    def __init__(self):
        self.first, self.second = nn.Conv2d(1, 8, 3), nn.Linear(8 * 7 * 7, 4)

    def __call__(self, pictures):
        return self.second(self.first(pictures).relu().max_pool2d().flatten(1))


def main():
    Tensor.manual_seed(1)
    pictures, classes = Tensor.rand(16, 1, 16, 16).realize(), (Tensor.rand(16) * 4).cast("int").realize()
    network = Network()
    optimizer = nn.optim.Adam(nn.state.get_parameters(network), lr=0.01)

    @TinyJit
    def step():
        optimizer.zero_grad()
        loss = network(pictures).sparse_categorical_crossentropy(classes).backward()
        optimizer.step()
        return loss.realize()

    for _ in range(STEPS):
        with Context(TRAINING=1):
            print(f"loss {step().item():.5f}", flush=True)


if __name__ == "__main__":
    main()

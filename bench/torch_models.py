# SPDX-License-Identifier: Apache-2.0
"""The networks that benchmarks run, with random weights: nothing is downloaded."""
import torch

WIDTH, HEADS, LAYERS = 768, 12, 12  # of BERT-base and of the small GPT-2


class Bottleneck(torch.nn.Module):
    """Three convolutions beside a shortcut."""

    def __init__(self, inside, width, stride):
        super().__init__()
        nn, outside = torch.nn, 4 * width
        self.path = nn.Sequential(
            nn.Conv2d(inside, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width),
            nn.ReLU(inplace=True), nn.Conv2d(width, outside, 1, bias=False), nn.BatchNorm2d(outside))
        self.shortcut = nn.Identity() if inside == outside and stride == 1 else nn.Sequential(
            nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x):
        return torch.nn.functional.relu(self.path(x) + self.shortcut(x))


def resnet50(classes):
    nn = torch.nn
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
              nn.MaxPool2d(3, 2, 1)]
    inside = 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            layers.append(Bottleneck(inside, 64 << stage, 2 if stage and not block else 1))
            inside = 256 << stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, classes))


def bert():
    """The encoder of BERT-base."""
    layer = torch.nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, activation="gelu",
                                             batch_first=True)
    return torch.nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)


class DecoderLayer(torch.nn.Module):
    """One layer of GPT-2 that decodes one token after `past` others, whose keys and values it has."""

    def __init__(self, past):
        super().__init__()
        nn = torch.nn
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.attention, self.projection = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.feed_forward = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(),
                                          nn.Linear(4 * WIDTH, WIDTH))
        self.register_buffer("past", torch.randn(2, 1, HEADS, past, WIDTH // HEADS))

    def forward(self, x):
        query, *new = self.attention(self.norms[0](x)).view(1, 1, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        keys, values = (torch.cat((old, one), 2) for old, one in zip(self.past, new))
        found = torch.nn.functional.scaled_dot_product_attention(query, keys, values)
        x = x + self.projection(found.transpose(1, 2).reshape(1, 1, WIDTH))
        return x + self.feed_forward(self.norms[1](x))


def gpt2(past, words=50257):
    """The small GPT-2 without its embedding: from one token's vector to the next token's scores."""
    return torch.nn.Sequential(*[DecoderLayer(past) for _ in range(LAYERS)],
                               torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, words, bias=False))

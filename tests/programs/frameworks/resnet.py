# SPDX-License-Identifier: Apache-2.0
"""torchvision: ResNet-18 with random weights and non-maximum suppression against the CPU's."""
import copy

import verdict

torch, torchvision = verdict.need("torch", "torchvision")

torch.manual_seed(1)
torch.backends.cudnn.allow_tf32 = False
model = torchvision.models.resnet18(weights=None).eval()
pictures = torch.randn(4, 3, 96, 96)
with torch.no_grad():
    verdict.close("ResNet-18", copy.deepcopy(model).cuda()(pictures.cuda()).cpu(), model(pictures),
                  1e-3)
corners = torch.rand(500, 2) * 100
boxes = torch.cat([corners, corners + 1 + torch.rand(500, 2) * 20], dim=1)
scores = torch.randperm(500).float()
verdict.close("boxes that are kept", torchvision.ops.nms(boxes.cuda(), scores.cuda(), 0.5).cpu(),
              torchvision.ops.nms(boxes, scores, 0.5), 0)

# SPDX-License-Identifier: Apache-2.0
"""transformers: a small GPT-2 with random weights, its logits and generate() against the CPU's."""
import copy

import verdict

torch, transformers = verdict.need("torch", "transformers")

torch.manual_seed(1)
config = transformers.GPT2Config(n_layer=4, n_head=4, n_embd=128, vocab_size=1000, n_positions=128,
                                 bos_token_id=0, eos_token_id=999, pad_token_id=999)
model = transformers.GPT2LMHeadModel(config).eval()
tokens = torch.randint(0, 999, (2, 32))
on_gpu = copy.deepcopy(model).cuda()
with torch.no_grad():
    verdict.close("logits", on_gpu(tokens.cuda()).logits.cpu(), model(tokens).logits, 1e-3)
    half = copy.deepcopy(on_gpu).half()
    verdict.close("logits in half precision", half(tokens.cuda()).logits.float().cpu(),
                  model(tokens).logits, 5e-2)
    made = on_gpu.generate(tokens.cuda(), attention_mask=torch.ones_like(tokens).cuda(),
                           min_new_tokens=16, max_new_tokens=16, do_sample=False)
    # Each token that was made is the likeliest by the CPU's logits, as far as numbers can tell.
    logits = model(made.cpu()).logits[:, 31:-1, :999]
chosen = logits.gather(2, made.cpu()[:, 32:].unsqueeze(2)).squeeze(2)
verdict.close("16 generated tokens", chosen, logits.max(dim=2).values, 1e-3)

// SPDX-License-Identifier: Apache-2.0
// Prints what a model says to a prompt: node complete.js MODEL TOKENS
// NODE_PATH has @fugood/llama.node and @fugood/node-llama-linux-x64-cuda.
const { loadModel } = require("@fugood/llama.node");

async function main([model, tokens]) {
  const context = await loadModel({
    model, lib_variant: "cuda", n_gpu_layers: 99, n_ctx: 256, flash_attn_type: "on",
  });
  const { text, tokens_predicted } = await context.completion({
    prompt: "One, two, three: ", n_predict: Number(tokens), temperature: 0, top_k: 1, seed: 1,
    ignore_eos: true,
  });
  await context.release();
  console.log(`said ${tokens_predicted} tokens: ${Buffer.from(text).toString("hex")}`);
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error);
  process.exit(1);
});

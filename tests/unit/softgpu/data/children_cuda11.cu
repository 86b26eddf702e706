// SPDX-License-Identifier: Apache-2.0
// The device runtime by its names of CUDA 11. The .ptx is what nvcc 11.8 makes of this.
extern "C" __global__ void child(unsigned *words, unsigned by)
{
    atomicAdd(words, by);
}

extern "C" __global__ void parent(unsigned *words)
{
    cudaStream_t stream;
    cudaEvent_t event;
    unsigned *memory = nullptr;

    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    child<<<2, 3, 0, stream>>>(words, 5);
    cudaEventRecord(event, stream);
    cudaStreamWaitEvent(stream, event, 0);
    cudaMemcpyAsync(words + 1, words, sizeof(*words), cudaMemcpyDeviceToDevice, stream);
    cudaMemsetAsync(words + 2, 7, sizeof(*words), stream);
    cudaEventDestroy(event);
    cudaStreamDestroy(stream);
    words[3] = cudaMalloc(&memory, 64) == cudaSuccess && memory && cudaFree(memory) == cudaSuccess;
    words[4] = cudaGetLastError();
    words[5] = cudaPeekAtLastError();
    words[6] = cudaGetErrorString(cudaErrorInvalidValue)[0] + cudaGetErrorName(cudaSuccess)[0];
}

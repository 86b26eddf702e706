// SPDX-License-Identifier: Apache-2.0
// fork after the runtime was used: a child is told that it has no device, whatever it calls first,
// and its parent goes on.
#include "check.cuh"

#include <sys/wait.h>
#include <unistd.h>

__global__ void set(int *to, int value)
{
    *to = value;
}

static int *number;
static cudaStream_t stream;

static cudaError_t synchronize()
{
    return cudaDeviceSynchronize();
}

static cudaError_t allocate()
{
    void *memory;

    return cudaMalloc(&memory, 64);
}

static cudaError_t launch()
{
    set<<<1, 1, 0, stream>>>(number, 2);
    return cudaGetLastError();
}

static cudaError_t copy()
{
    int value;

    return cudaMemcpy(&value, number, sizeof(value), cudaMemcpyDeviceToHost);
}

static cudaError_t wait_for_stream()
{
    return cudaStreamSynchronize(stream);
}

static cudaError_t make_event()
{
    cudaEvent_t event;

    return cudaEventCreate(&event);
}

static cudaError_t choose_device()
{
    return cudaSetDevice(0);
}

// The error of the call, which is the first of a child, or what ended the child.
static int in_child(cudaError_t (*call)())
{
    int status = 0;
    pid_t child = fork();

    if (child == 0)
        exit(call());
    if (waitpid(child, &status, 0) != child)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void every_first_call_is_refused()
{
    cudaError_t (*calls[])() = {synchronize,     allocate,   launch,       copy,
                                wait_for_stream, make_event, choose_device};

    for (auto call : calls)
        IS_TRUE(in_child(call) == cudaErrorInitializationError);
}

static void the_parent_goes_on()
{
    int value = 0;

    EXPECT(cudaSuccess, launch());
    EXPECT(cudaSuccess, cudaStreamSynchronize(stream));
    EXPECT(cudaSuccess, cudaMemcpy(&value, number, sizeof(value), cudaMemcpyDeviceToHost));
    IS_TRUE(value == 2);
}

int main()
{
    setvbuf(stdout, nullptr, _IONBF, 0);
    MUST(cudaMalloc(&number, sizeof(*number)));
    MUST(cudaStreamCreate(&stream));
    RUN(every_first_call_is_refused);
    RUN(the_parent_goes_on);
    MUST(cudaStreamDestroy(stream));
    MUST(cudaFree(number));
    return check_close();
}

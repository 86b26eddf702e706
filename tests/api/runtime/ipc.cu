// SPDX-License-Identifier: Apache-2.0
// Memory and events of another process, as MPI and PyTorch share them. The producer fills, the
// consumer, which was made before CUDA was touched, adds to it when the producer's stream is there.
#include "check.cuh"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 100000 };

struct message {
    cudaIpcMemHandle_t data;
    cudaIpcEventHandle_t ready;
};

__global__ void slow_fill(int *data, int n, int value, unsigned turns)
{
    unsigned x = value;

    for (unsigned i = 0; i < turns; i++)
        x = x * 1664525 + 1013904223;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        data[i] = x == 0 && turns != 0 ? value + 1 : value;
}

__global__ void add(int *data, int n, int value)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        data[i] += value;
}

static int consume(int socket)
{
    struct message message;
    cudaStream_t stream;
    cudaEvent_t ready;
    void *data;

    if (read(socket, &message, sizeof(message)) != sizeof(message))
        return EXIT_FAILURE;
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaIpcOpenMemHandle(&data, message.data, cudaIpcMemLazyEnablePeerAccess));
    MUST(cudaIpcOpenEventHandle(&ready, message.ready));
    MUST(cudaStreamWaitEvent(stream, ready, 0));
    add<<<8, 128, 0, stream>>>((int *)data, N, 30);
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaEventDestroy(ready));
    MUST(cudaIpcCloseMemHandle(data));
    return write(socket, "x", 1) == 1 ? check_close() : EXIT_FAILURE;
}

static int consumer, consumer_pid;

static void producer_and_consumer()
{
    struct message message;
    cudaEvent_t ready;
    int *data, status = -1;
    char byte;

    MUST(cudaMalloc(&data, N * sizeof(int)));
    MUST(cudaEventCreateWithFlags(&ready, cudaEventInterprocess | cudaEventDisableTiming));
    MUST(cudaIpcGetMemHandle(&message.data, data));
    MUST(cudaIpcGetEventHandle(&message.ready, ready));
    slow_fill<<<1, 32>>>(data, N, 12, 20 * SLOW);
    MUST(cudaEventRecord(ready));
    IS_TRUE(write(consumer, &message, sizeof(message)) == sizeof(message));
    IS_TRUE(read(consumer, &byte, 1) == 1);
    IS_TRUE(take(data, N) == std::vector<int>(N, 42));
    waitpid(consumer_pid, &status, 0);
    IS_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    MUST(cudaEventDestroy(ready));
    MUST(cudaFree(data));
}

int main()
{
    int sockets[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) != 0)
        return EXIT_FAILURE;
    consumer_pid = fork();
    if (consumer_pid == 0)
        _exit(consume(sockets[1]));
    close(sockets[1]);
    consumer = sockets[0];
    RUN(producer_and_consumer);
    return check_close();
}

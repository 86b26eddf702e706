/* SPDX-License-Identifier: Apache-2.0 */
/* See error_causes.h. */
#include "error_causes.h"

#include <stddef.h>

#include "cuda_result.h"
#include "funnel_errors.h"

#define SAME_AS_CUDA(name, number, reason, remedy) \
    _Static_assert(number == CUDA_ERROR_##name, #name " has CUDA's number");
FUNNEL_ERRORS(SAME_AS_CUDA)

#define ROW_OF_FUNNEL(name, number, reason, remedy) {number, number, reason, remedy},

static const struct error_cause causes[] = {
    {1, 1, "An argument is wrong for this call: a size, a pointer or a flag.",
     "FUNNEL_TRACE=FILE lists every call with its arguments; compare with: funnel run --direct."},
    {2, 2,
     "The device has no memory left, or the program has reached its memory limit, the joint limit "
     "of "
     "its user, group or container, or a quota, which client.log names then. All programs that "
     "share a device share its memory.",
     "funnel ps shows what each program holds and its limit, funnel limits the joint limits and "
     "the "
     "quotas; funnel limit --client PID --memory SIZE|none, funnel limit --group NAME "
     "--joint-memory SIZE|none and funnel limit --quota NAME=VALUE change them."},
    {3, 4, "The program called CUDA before cuInit, or after its end had begun.",
     "Call cuInit first, and make no calls in destructors that run at exit."},
    {5, 8, "The profiler was not in the state that the call needs.",
     "Profile with NVIDIA's tools on the device itself: funnel run --direct."},
    {9, 9,
     "A launch has a shape that the device cannot run: no block, too many threads, or too much "
     "shared memory.",
     "cudaDeviceGetAttribute tells the device's limits; check the result of each launch with "
     "cudaGetLastError."},
    {12, 27,
     "An argument of a runtime call is wrong: a pitch, a symbol, a pointer, a direction or a "
     "texture.",
     "Compare the call with its documentation; FUNNEL_TRACE=FILE lists the driver's calls under "
     "it."},
    {28, 32, "The runtime does not have this, or not any more.",
     "See the documentation of the CUDA release that the program is built with."},
    {34, 36,
     "The program is linked to a stub, needs a newer driver, or found the device's version too "
     "old.",
     "Remove the stubs folder from LD_LIBRARY_PATH; nvidia-smi shows the driver's version."},
    {37, 45,
     "A surface is wrong, or two variables, textures or surfaces of the program have one name.",
     "Name each variable, texture and surface of device code once."},
    {49, 49, "The runtime cannot work with the context that the driver API made current.",
     "Make the device's primary context current: cudaSetDevice."},
    {52, 53, "A launch has no configuration, or an earlier launch failed.",
     "Launch with <<<...>>> or cudaLaunchKernel; check the result of each launch."},
    {65, 69,
     "A kernel launched kernels too deep or too many of them, or used what kernels of kernels "
     "cannot.",
     "Raise cudaLimitDevRuntimePendingLaunchCount before the first launch; pass texture objects to "
     "kernels."},
    {98, 98,
     "The program has no kernel of that kind for this device: it was compiled for others, or its "
     "library is not loaded.",
     "Compile with -gencode for the device's compute capability: funnel devices --json shows it."},
    {46, 46, "The device is busy or in a compute mode that keeps this process out.",
     "Let only Funnel's server use the device: nvidia-smi -c EXCLUSIVE_PROCESS or DEFAULT."},
    {100, 101,
     "There is no device for this program: no driver works, or CUDA_VISIBLE_DEVICES or the "
     "server's allowed devices leave none.",
     "funnel devices shows what the servers have; check CUDA_VISIBLE_DEVICES, and nvidia-smi."},
    {103, 127, "The device's software could not be verified, or the runtime could not start.",
     "Check nvidia-smi and dmesg; install the runtime and the driver again."},
    {102, 102, "The license of a virtual GPU is missing.", "Ask the administrator of the vGPU."},
    {200, 200, "An image of device code is damaged, or of a kind that the device does not know.",
     "Build it again for this device; funnel log --server says more."},
    {201, 202, "No context is current, or it has been destroyed.",
     "Call cuCtxSetCurrent or cudaSetDevice in each thread first."},
    {205, 206,
     "A range of addresses is in use, in this program or in the server, so memory cannot appear "
     "at the same address in both.",
     "Start the program again; with managed variables or large reservations, reserve less."},
    {207, 208, "An array or resource is mapped already.", "Unmap it first."},
    {209, 209, "The program has no code for this device, and no PTX that can be compiled for it.",
     "Compile with -gencode for the device's compute capability: funnel devices --json shows it."},
    {210, 213, "A graphics resource was not in the state that the call needs.",
     "Funnel does not share resources with OpenGL, Vulkan or Direct3D; use funnel run --direct."},
    {214, 214, "The device's memory has an error that could not be corrected.",
     "Look at nvidia-smi -q -d ECC; the device may have to be reset. No program is moved."},
    {215, 215, "The device or Funnel does not have this limit.", "Leave the limit as it is."},
    {216, 216, "The context is in use by another thread.", "Use one context per device."},
    {217, 217, "These two devices cannot reach each other's memory.",
     "nvidia-smi topo -p2p r shows which can."},
    {218, 218, "PTX could not be compiled for the device.",
     "funnel log --server has the compiler's message, or cuModuleLoadDataEx with an error log."},
    {219, 219, "Graphics contexts are not available.", "Use funnel run --direct."},
    {220, 220, "An NVLink has an error that could not be corrected.",
     "Look at nvidia-smi nvlink -e. No program is moved to another server."},
    {221, 223, "PTX cannot be compiled here: the compiler is missing, too old, or switched off.",
     "Install libnvidia-ptxjitcompiler of the driver's version, or ship code for the device."},
    {224, 224,
     "A context asked for a share of the multiprocessors in a static partition, where there are no "
     "shares.",
     "Leave the affinity to funnel limit."},
    {225, 225, "Code of the device synchronizes in a way that it does not support.",
     "Build without device-side cudaDeviceSynchronize."},
    {226, 226, "Another device's memory could not be reached any more, or hardware failed.",
     "Look at nvidia-smi and dmesg; run the program again."},
    {300, 303, "A file, or a symbol of a shared library, could not be found or started.",
     "Check the paths that the program gives, and its installation."},
    {304, 304, "A call of the operating system failed.",
     "Check ulimit -n, ulimit -l and free memory; userfaultfd may be forbidden in a container."},
    {400, 400,
     "A handle is stale, of another context, or of another process; events from before a move to "
     "another server have no times.",
     "Destroy nothing that is still in use, and do not use handles after fork."},
    {401, 401, "The object's state does not allow the call.", "See the call's documentation."},
    {402, 402, "The question has no exact answer.", "Ask with a newer call."},
    {500, 500, "There is no kernel, variable or function of that name.",
     "Names of C++ kernels are mangled: use extern \"C\", or cuobjdump -symbols."},
    {600, 600,
     "The work is not done yet, or a call would have had to wait for a stream that waits.",
     "Ask again or synchronize; after half a minute see: funnel log --server."},
    {700, 700,
     "A kernel read or wrote memory that does not belong to its program. The context of all "
     "programs of the server was lost; those without work in flight moved to a new server.",
     "funnel log --server names the kernel; run the program by itself under compute-sanitizer."},
    {701, 701, "A launch needs more registers, shared memory or stack than the device has.",
     "Use smaller blocks, or __launch_bounds__; funnel limit --sms leaves fewer multiprocessors."},
    {703, 703, "Texture modes do not fit together.", "Use texture objects."},
    {704, 705, "Access between these devices is enabled already, or is not.",
     "The program may ignore it."},
    {708, 708, "The device is in use already, so its flags stay.",
     "Set them before the first call that uses the device."},
    {709, 709, "The context has been destroyed.",
     "Do not use objects of a context after cuCtxDestroy or cudaDeviceReset."},
    {710, 710, "A kernel's assert() failed.", "The program's standard error has the message."},
    {711, 711, "Too many devices or memories are shared between devices.", "Enable fewer."},
    {712, 713, "The memory is registered already, or is not.",
     "Register each range once; see docs/differences.md on memory that programs register."},
    {714, 718,
     "A kernel failed: its stack, an instruction, an address or the program counter was wrong.",
     "funnel log --server names the kernel; run the program by itself under compute-sanitizer."},
    {719, 719, "A kernel failed, of this program or of another one of the same server.",
     "funnel log --server names the kernel. Programs that must not share a fault need servers of "
     "their own: funnel server create NAME."},
    {720, 720, "A cooperative launch has more blocks than can run at once.",
     "Ask cudaOccupancyMaxActiveBlocksPerMultiprocessor; a share of the multiprocessors allows "
     "fewer blocks."},
    {721, 721, "A kernel left tensor memory allocated.", "Give it back before the kernel ends."},
    {801, 801, "Funnel or the device does not have this call or this variant of it.",
     "docs/api-coverage.md lists what is there; funnel log names the call; funnel run --direct "
     "runs without Funnel."},
    {802, 804,
     "The driver does not work: not ready, of another version than its kernel module, or "
     "not for this device.",
     "Check nvidia-smi and dmesg; on systems with NVSwitch the fabric manager has to run."},
    {811, 811,
     "The driver refuses kernels that launch kernels (dynamic parallelism). Funnel runs them; "
     "NVIDIA's "
     "MPS does not, and Funnel's server has reached the GPU through it.",
     "End NVIDIA's MPS daemon on this machine, and then Funnel's (funnel stop)."},
    {812, 812, "Parts of the program use different versions of dynamic parallelism.",
     "Compile all of the program, and its libraries, with the same release of CUDA, 12 or later."},
    {900, 908, "Something is not allowed while a stream is being captured into a graph.",
     "Capture with cudaStreamCaptureModeThreadLocal, and do not synchronize meanwhile."},
    {909, 909, "A wait took too long.", "funnel top shows what the device is busy with."},
    {910, 910, "An instantiated graph cannot be changed in this way.", "Instantiate it again."},
    {911, 911, "Something outside of CUDA failed.", "See the library that signals it."},
    {912, 912, "The shape of a kernel's clusters does not fit the device or the share.",
     "Use smaller clusters, or a larger share of the multiprocessors."},
    {913, 914, "A function or resource is not of the kind that the call needs.",
     "See the call's documentation."},
    {915, 915,
     "This server has static partitions, and the program names none or one that is not there.",
     "nvidia-cuda-mps-control lspart and sm-partition list show them; set CUDA_MPS_SM_PARTITION."},
    {916, 916, "The device changes its keys.", "Try again later."},
    {999, 999, "The driver gave no reason.", "funnel log --server, and dmesg, may have one."},
    FUNNEL_ERRORS(ROW_OF_FUNNEL)};

const struct error_cause *error_cause_find(int result)
{
    for (size_t i = 0; i < sizeof(causes) / sizeof(*causes); i++)
        if (result >= causes[i].first && result <= causes[i].last)
            return &causes[i];
    return NULL;
}

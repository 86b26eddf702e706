/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface between a library that NVTX loads into a program and the NVTX functions inside the
 * program. It is tables of function pointers, which stand for nvtxRangePushA() and the others once
 * they are replaced. The layout is public: NVTX 3, nvtx3/nvtxDetail/nvtxTypes.h and
 * nvtx3/nvToolsExt.h.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define NVTX_TABLE_CALLBACKS 1u /* of NVTX's export tables */

enum nvtx_module {
    NVTX_MODULE_CORE = 1,
    NVTX_MODULE_CUDA = 2,
    NVTX_MODULE_CUDART = 4,
    NVTX_MODULE_CORE2 = 5,
};

/* Places in the table of the module NVTX_MODULE_CORE. */
enum nvtx_core {
    NVTX_MARK_EX = 1,
    NVTX_MARK_A,
    NVTX_MARK_W,
    NVTX_RANGE_START_EX,
    NVTX_RANGE_START_A,
    NVTX_RANGE_START_W,
    NVTX_RANGE_END,
    NVTX_RANGE_PUSH_EX,
    NVTX_RANGE_PUSH_A,
    NVTX_RANGE_PUSH_W,
    NVTX_RANGE_POP,
    NVTX_NAME_CATEGORY_A,
    NVTX_NAME_CATEGORY_W,
    NVTX_NAME_OS_THREAD_A,
    NVTX_NAME_OS_THREAD_W,
};

/* Places in the table of the module NVTX_MODULE_CUDA. */
enum nvtx_cuda {
    NVTX_NAME_CU_DEVICE_A = 1,
    NVTX_NAME_CU_DEVICE_W,
    NVTX_NAME_CU_CONTEXT_A,
    NVTX_NAME_CU_CONTEXT_W,
    NVTX_NAME_CU_STREAM_A,
    NVTX_NAME_CU_STREAM_W,
    NVTX_NAME_CU_EVENT_A,
    NVTX_NAME_CU_EVENT_W,
};

/* Places in the table of the module NVTX_MODULE_CUDART. */
enum nvtx_cudart {
    NVTX_NAME_CUDA_DEVICE_A = 1,
    NVTX_NAME_CUDA_DEVICE_W,
    NVTX_NAME_CUDA_STREAM_A,
    NVTX_NAME_CUDA_STREAM_W,
    NVTX_NAME_CUDA_EVENT_A,
    NVTX_NAME_CUDA_EVENT_W,
};

/* Places in the table of the module NVTX_MODULE_CORE2. */
enum nvtx_core2 {
    NVTX_DOMAIN_MARK_EX = 1,
    NVTX_DOMAIN_RANGE_START_EX,
    NVTX_DOMAIN_RANGE_END,
    NVTX_DOMAIN_RANGE_PUSH_EX,
    NVTX_DOMAIN_RANGE_POP,
    NVTX_DOMAIN_NAME_CATEGORY_A = 8,
    NVTX_DOMAIN_NAME_CATEGORY_W = 9,
    NVTX_DOMAIN_REGISTER_STRING_A = 10,
    NVTX_DOMAIN_REGISTER_STRING_W = 11,
    NVTX_DOMAIN_CREATE_A = 12,
    NVTX_DOMAIN_CREATE_W = 13,
};

typedef void (*nvtx_function)(void);

/* Each entry points to the pointer through which the program calls. */
struct nvtx_callbacks {
    size_t struct_size;
    int (*get_module_table)(enum nvtx_module module, nvtx_function ***ret_table,
                            unsigned *ret_size);
};

typedef const void *(*nvtx_get_export_table)(uint32_t table);

enum nvtx_message {
    NVTX_MESSAGE_ASCII = 1,
    NVTX_MESSAGE_UNICODE = 2,
    NVTX_MESSAGE_REGISTERED = 3,
};

enum nvtx_payload {
    NVTX_PAYLOAD_UINT64 = 1,
    NVTX_PAYLOAD_INT64,
    NVTX_PAYLOAD_DOUBLE,
    NVTX_PAYLOAD_UINT32,
    NVTX_PAYLOAD_INT32,
    NVTX_PAYLOAD_FLOAT,
};

#define NVTX_COLOR_ARGB 1

/* The program's description of a mark or a range: nvtxEventAttributes_t. */
struct nvtx_attributes {
    uint16_t version;
    uint16_t size; /* bytes that the program has filled in */
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type;
    int32_t reserved;
    uint64_t payload;
    int32_t message_type; /* enum nvtx_message */
    const void *message;  /* char *, wchar_t *, or the handle that RegisterString gave */
};

_Static_assert(offsetof(struct nvtx_attributes, message) == 40, "as NVTX 3 has it");

/* CUPTI's numbers of the functions (cupti_nvtx_cbid.h). */
enum nvtx_cbid {
    NVTX_CBID_MarkA = 1,
    NVTX_CBID_MarkW = 2,
    NVTX_CBID_MarkEx = 3,
    NVTX_CBID_RangeStartA = 4,
    NVTX_CBID_RangeStartW = 5,
    NVTX_CBID_RangeStartEx = 6,
    NVTX_CBID_RangeEnd = 7,
    NVTX_CBID_RangePushA = 8,
    NVTX_CBID_RangePushW = 9,
    NVTX_CBID_RangePushEx = 10,
    NVTX_CBID_RangePop = 11,
    NVTX_CBID_NameCategoryA = 12,
    NVTX_CBID_NameCategoryW = 13,
    NVTX_CBID_NameOsThreadA = 14,
    NVTX_CBID_NameOsThreadW = 15,
    NVTX_CBID_NameCuDeviceA = 16,
    NVTX_CBID_NameCuDeviceW = 17,
    NVTX_CBID_NameCuContextA = 18,
    NVTX_CBID_NameCuContextW = 19,
    NVTX_CBID_NameCuStreamA = 20,
    NVTX_CBID_NameCuStreamW = 21,
    NVTX_CBID_NameCuEventA = 22,
    NVTX_CBID_NameCuEventW = 23,
    NVTX_CBID_NameCudaDeviceA = 24,
    NVTX_CBID_NameCudaDeviceW = 25,
    NVTX_CBID_NameCudaStreamA = 26,
    NVTX_CBID_NameCudaStreamW = 27,
    NVTX_CBID_NameCudaEventA = 28,
    NVTX_CBID_NameCudaEventW = 29,
    NVTX_CBID_DomainMarkEx = 30,
    NVTX_CBID_DomainRangeStartEx = 31,
    NVTX_CBID_DomainRangeEnd = 32,
    NVTX_CBID_DomainRangePushEx = 33,
    NVTX_CBID_DomainRangePop = 34,
    NVTX_CBID_DomainNameCategoryA = 37,
    NVTX_CBID_DomainNameCategoryW = 38,
    NVTX_CBID_DomainRegisterStringA = 39,
    NVTX_CBID_DomainRegisterStringW = 40,
    NVTX_CBID_DomainCreateA = 41,
    NVTX_CBID_DomainCreateW = 42,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The challenge by which libcudart makes sure that the driver below it is the one that it found.
 * The answer is a keyed checksum over the process, the thread, the tables it was given and the
 * devices it saw. Without the right answer every runtime call fails with
 * cudaErrorSoftwareValidityNotEstablished.
 */
#include "md2.h"
#include "tables.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

static CUresult answer_challenge(uint32_t version, uint64_t unix_seconds, uint8_t *ret_answer);

static CUresult acknowledge(int enable)
{
    return CUDA_SUCCESS;
}

const table_word integrity_check_table[3] = {
    TABLE_SIZE(3),
    answer_challenge,
    acknowledge,
};

static const uint8_t key[MD2_BLOCK] = {0x14, 0x6a, 0xdd, 0xae, 0x53, 0xa9, 0xa7, 0x52,
                                       0xaa, 0x08, 0x41, 0x36, 0x0b, 0xf5, 0x5a, 0x9f};

/* libcudart asks three times, with its version plus 0, 1 and 2; only the last answer varies. */
static const uint8_t first_answer[MD2_BLOCK] = {0x5c, 0x67, 0xcb, 0x03, 0x1c, 0x18, 0x41, 0x33,
                                                0xe8, 0xd1, 0x4c, 0x1f, 0xaa, 0x83, 0xd3, 0x8e};
static const uint8_t second_answer[MD2_BLOCK] = {0x5c, 0x67, 0xcb, 0x03, 0x1c, 0x18, 0x41, 0x18,
                                                 0xe8, 0xd1, 0x4c, 0x1f, 0xaa, 0x83, 0xd3, 0x8e};

struct header {
    uint32_t driver_version;
    uint32_t version;
    uint32_t pid;
    uint32_t tid;
    uint64_t cudart_table;
    uint64_t integrity_table;
    uint64_t answer_function;
    uint64_t unix_seconds;
};

struct device {
    uint8_t uuid[16];
    int32_t pci_domain;
    int32_t pci_bus;
    int32_t pci_device;
};

_Static_assert(sizeof(struct header) == 48, "hashed as it lies in memory");
_Static_assert(sizeof(struct device) == 28, "hashed as it lies in memory");

/* Process and thread are read at each call, for the process may have forked since the last. */
static void hash_header(struct hmac_md2 *hmac, uint32_t version, uint64_t unix_seconds)
{
    struct header header = {
        .driver_version = cudart_ops->driver_version,
        .version = version,
        .pid = getpid(),
        .tid = (uint32_t)pthread_self(),
        .cudart_table = (uintptr_t)cudart_interface_table,
        .integrity_table = (uintptr_t)integrity_check_table,
        .answer_function = (uintptr_t)integrity_check_table[1],
        .unix_seconds = unix_seconds,
    };

    hmac_md2_update(hmac, &header, sizeof(header));
}

static CUresult hash_device(struct hmac_md2 *hmac, CUdevice id)
{
    const struct cudart_ops *ops = cudart_ops;
    struct device device;
    CUuuid uuid;
    CUresult result = ops->device_uuid(&uuid, id);

    if (result == CUDA_SUCCESS)
        result = ops->device_attribute(&device.pci_domain, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, id);
    if (result == CUDA_SUCCESS)
        result = ops->device_attribute(&device.pci_bus, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, id);
    if (result == CUDA_SUCCESS)
        result = ops->device_attribute(&device.pci_device, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, id);
    if (result != CUDA_SUCCESS)
        return result;
    memcpy(device.uuid, &uuid, sizeof(device.uuid));
    hmac_md2_update(hmac, &device, sizeof(device));
    return CUDA_SUCCESS;
}

static CUresult answer_for_devices(uint32_t version, uint64_t unix_seconds, uint8_t *ret_answer)
{
    struct hmac_md2 hmac;
    int devices;
    CUresult result = cudart_ops->device_count(&devices);

    hmac_md2_init(&hmac, key);
    hash_header(&hmac, version, unix_seconds);
    for (int i = 0; result == CUDA_SUCCESS && i < devices; i++)
        result = hash_device(&hmac, i);
    if (result == CUDA_SUCCESS)
        hmac_md2_finish(&hmac, ret_answer);
    return result;
}

static CUresult answer_challenge(uint32_t version, uint64_t unix_seconds, uint8_t *ret_answer)
{
    if (!ret_answer)
        return CUDA_ERROR_INVALID_VALUE;
    if (version % 10 >= 2)
        return answer_for_devices(version, unix_seconds, ret_answer);
    memcpy(ret_answer, version % 10 == 0 ? first_answer : second_answer, MD2_BLOCK);
    return CUDA_SUCCESS;
}

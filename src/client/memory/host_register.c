/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuMemHostRegister. The pages around the program's range become those of a host granule. The
 * program has the same addresses and contents there, and the server has page-locked that memory for
 * the device. Pages that other processes share cannot be replaced so: there the server page-locks
 * those very pages, by a descriptor of their file. Stacks are not taken, because a child of fork
 * must not run on pages of its parent.
 */
#include "host_register.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "address_map.h"
#include "cleanup.h"
#include "client_capture.h"
#include "client_log.h"
#include "client_prototypes.h"
#include "client_stream.h"
#include "client_vmm.h"
#include "cuda_pointer.h"
#include "fd.h"
#include "granule.h"
#include "host_register_table.h"
#include "page_swap.h"
#include "shared_file.h"
#include "stream_wait.h"

#define REGISTER_FLAGS                                                                          \
    (CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_IOMEMORY | \
     CU_MEMHOSTREGISTER_READ_ONLY)

struct registration_table registrations = {.lock = PTHREAD_MUTEX_INITIALIZER};

void host_register_init(void)
{
    pthread_mutex_init(&registrations.lock, NULL);
    ranges_init(&registrations.by_host);
    ranges_init(&registrations.by_window);
    registrations.live = 0;
}

/* ---- finding ---- */

/* A call need not see memory that another thread registers at the same time. */
static bool is_any_live(void)
{
    return atomic_load_explicit(&registrations.live, memory_order_relaxed) > 0;
}

static bool find_locked(uint64_t address, struct allocation *ret_allocation)
{
    const struct range *range = ranges_find(&registrations.by_host, address);
    const bool by_host = range != NULL;
    const struct registration *found;
    uint64_t start;

    if (!range)
        range = ranges_find(&registrations.by_window, address);
    if (!range)
        return false;
    found = range->value;
    start = by_host ? found->allocation.host : found->allocation.device;
    if (!found->live || address - start >= found->allocation.size)
        return false;
    *ret_allocation = found->allocation;
    ret_allocation->address = start;
    return true;
}

bool host_register_find(uint64_t address, struct allocation *ret_allocation)
{
    if (!is_any_live())
        return false;
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&registrations.lock);
    return find_locked(address, ret_allocation);
}

uint64_t host_register_on_device(uint64_t address)
{
    struct allocation allocation;

    return host_register_find(address, &allocation) ? allocation_on_device(&allocation, address)
                                                    : address;
}

/* It is page-locked in whole pages. */
static void describe_registered(const struct allocation *allocation, struct cuda_pointer *pointer)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t offset = pointer->address - allocation->address;
    const uint64_t end = (allocation->address + allocation->size + page - 1) & ~(page - 1);

    pointer->on_device = allocation->device + offset;
    pointer->on_host = allocation->host + offset;
    pointer->mapping_start = allocation->address & ~(page - 1);
    pointer->mapping_size = end - pointer->mapping_start;
    if (allocation->flags & CU_MEMHOSTREGISTER_READ_ONLY)
        pointer->access = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ;
}

/* A range that is registered only in part is the program's own. */
const struct memory_kind kind_registered = {
    .place = PLACE_PINNED,
    .beyond = PLACE_PAGEABLE,
    .describe = describe_registered,
};

/* ---- entering and leaving the table ---- */

struct registration *registration_next_locked(const struct registration *last)
{
    const struct range *range = ranges_next(&registrations.by_host, last ? last->start + 1 : 0);

    return range ? range->value : NULL;
}

static CUresult announce_registration(struct registration *registration)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&registrations.lock);
    int r =
        ranges_add(&registrations.by_host, registration->start, registration->size, registration);

    if (r == -EEXIST)
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    return r < 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

static CUresult go_live(struct registration *registration)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&registrations.lock);

    if (ranges_add(&registrations.by_window, registration->window, registration->size,
                   registration) < 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    registration->live = true;
    atomic_fetch_add_explicit(&registrations.live, 1, memory_order_relaxed);
    return CUDA_SUCCESS;
}

static void retire_locked(struct registration *registration)
{
    registration->live = false;
    atomic_fetch_sub_explicit(&registrations.live, 1, memory_order_relaxed);
    ranges_remove(&registrations.by_window, registration->window, NULL);
}

/* It is not found any more, but its pages are not free for another registration yet. */
static struct registration *retire_registration(uint64_t host)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&registrations.lock);
    const struct range *range = ranges_find(&registrations.by_host, host);
    struct registration *registration = range ? range->value : NULL;

    if (!registration || !registration->live || registration->allocation.host != host)
        return NULL;
    retire_locked(registration);
    return registration;
}

static struct registration *retire_one_of(const struct context *context)
{
    _cleanup_mutex_ pthread_mutex_t *lock = mutex_hold(&registrations.lock);
    struct registration *registration = NULL;

    while ((registration = registration_next_locked(registration))) {
        if (registration->live && registration->allocation.context == context) {
            retire_locked(registration);
            return registration;
        }
    }
    return NULL;
}

static void forget_registration(struct registration *registration)
{
    pthread_mutex_lock(&registrations.lock);
    ranges_remove(&registrations.by_host, registration->start, NULL);
    pthread_mutex_unlock(&registrations.lock);
    free(registration);
}

/* ---- taking pages over ---- */

static CUresult refuse_registration(const struct registration *registration, const char *why)
{
    client_log("cuMemHostRegister: %llu bytes: %s",
               (unsigned long long)registration->allocation.size, why);
    return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult check_area(const struct registration *registration, const struct page_area *area)
{
    const bool read_only = registration->allocation.flags & CU_MEMHOSTREGISTER_READ_ONLY;
    const bool writable = area->protection & PROT_WRITE;

    if (area->special)
        return refuse_registration(registration, "stacks cannot be registered");
    if (!(area->protection & PROT_READ) || (!writable && !read_only))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static bool any_shared(const struct page_area *areas, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (areas[i].shared && areas[i].protection & PROT_WRITE)
            return true;
    return false;
}

static CUresult look_at_pages(const struct registration *registration, struct page_area *areas,
                              unsigned *ret_count)
{
    const uint64_t end = registration->start + registration->size;
    CUresult result = CUDA_SUCCESS;
    int r = page_map_read(registration->start, end, areas, REGISTRATION_AREAS_MAX, ret_count);

    if (r < 0)
        return refuse_registration(registration, "the range consists of too many mappings");
    if (!page_map_fills(areas, *ret_count, registration->start, end))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < *ret_count && result == CUDA_SUCCESS; i++)
        result = check_area(registration, &areas[i]);
    return result;
}

static void release_granule(const struct registration *registration)
{
    int fd = registration->fd;

    host_granules.release(registration->window, registration->size);
    fd_close(&fd);
}

static CUresult replace_pages(struct registration *registration, const struct page_area *areas,
                              unsigned count)
{
    int r = pages_share(areas, count, registration->start, registration->fd,
                        (void *)(uintptr_t)registration->window);

    if (r == 0)
        return CUDA_SUCCESS;
    if (r == -EOPNOTSUPP)
        return refuse_registration(registration,
                                   "other threads could write there, and neither userfaultfd nor "
                                   "a handler of SIGSEGV can hold them back");
    return CUDA_ERROR_OUT_OF_MEMORY;
}

bool registration_find_pages(const struct registration *registration, struct page_area *areas,
                             unsigned *ret_count)
{
    const uint64_t end = registration->start + registration->size;
    unsigned count, own = 0;
    struct stat file;

    if (fstat(registration->fd, &file) < 0 ||
        page_map_read(registration->start, end, areas, REGISTRATION_AREAS_MAX, &count) < 0)
        return false;
    for (unsigned i = 0; i < count; i++)
        if (areas[i].shared && areas[i].inode == file.st_ino && areas[i].device == file.st_dev &&
            areas[i].offset == areas[i].start - registration->start)
            areas[own++] = areas[i];
    *ret_count = own;
    return true;
}

/* Puts pages of the program's own back. */
static bool give_pages_back(const struct registration *registration)
{
    struct page_area areas[REGISTRATION_AREAS_MAX];
    unsigned count;

    if (registration->of_file)
        return true;
    return registration_find_pages(registration, areas, &count) &&
           pages_unshare(areas, count, registration->start, registration->fd) == 0;
}

/* If that fails, the memory stays as it is, and the granule with it. */
static void end_registration(struct registration *registration)
{
    if (give_pages_back(registration))
        release_granule(registration);
    else
        client_log("cuMemHostUnregister: pages could not be replaced, so they stay locked");
    forget_registration(registration);
}

static CUresult swap_pages(struct registration *registration, const struct page_area *areas,
                           unsigned count)
{
    CUresult result =
        host_granules.create(0, registration->size, &registration->window, &registration->fd);

    if (result != CUDA_SUCCESS)
        return result;
    result = replace_pages(registration, areas, count);
    if (result != CUDA_SUCCESS)
        release_granule(registration);
    return result;
}

static CUresult share_file(struct registration *registration, const struct page_area *areas,
                           unsigned count)
{
    CUresult result;

    if (!shared_file_is(areas, count))
        return refuse_registration(registration,
                                   "other processes share memory there, not all of one file");
    registration->fd = shared_file_open(&areas[0]);
    if (registration->fd < 0)
        return refuse_registration(registration,
                                   "other processes share the memory there, and neither a "
                                   "descriptor nor a name leads to its file");
    registration->of_file = true;
    registration->file_offset = areas[0].offset;
    result = granule_create_of_file(registration->fd, registration->file_offset, registration->size,
                                    &registration->window);
    if (result == CUDA_ERROR_NOT_SUPPORTED)
        result = refuse_registration(registration,
                                     "other processes share the memory there, and its file is "
                                     "not one of /dev/shm or another tmpfs");
    if (result != CUDA_SUCCESS)
        fd_close(&registration->fd);
    return result;
}

static CUresult take_pages(struct registration *registration)
{
    struct page_area areas[REGISTRATION_AREAS_MAX];
    unsigned count;
    CUresult result = look_at_pages(registration, areas, &count);

    if (result != CUDA_SUCCESS)
        return result;
    result = any_shared(areas, count) ? share_file(registration, areas, count)
                                      : swap_pages(registration, areas, count);
    if (result == CUDA_SUCCESS)
        registration->allocation.device =
            registration->window + (registration->allocation.host - registration->start);
    return result;
}

/* ---- the calls ---- */

static CUresult check_place(uint64_t start, uint64_t end)
{
    if (start < client->window_end && client->window_base < end)
        return CUDA_ERROR_INVALID_VALUE;
    if (vmm_is_reserved(start) || vmm_is_reserved(end - 1))
        return CUDA_ERROR_INVALID_VALUE;
    return end - start > client->window_end - client->host_base ? CUDA_ERROR_OUT_OF_MEMORY
                                                                : CUDA_SUCCESS;
}

static struct registration *registration_create(struct context *context, uint64_t address,
                                                uint64_t size, unsigned flags)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    struct registration *registration = calloc(1, sizeof(*registration));

    if (!registration)
        return NULL;
    registration->start = address & ~(page - 1);
    registration->size = ((address + size + page - 1) & ~(page - 1)) - registration->start;
    registration->fd = -1;
    registration->allocation = (struct allocation){
        .size = size,
        .id = client_next_id(),
        .kind = &kind_registered,
        .context = context,
        .flags = flags,
        .host = address,
    };
    return registration;
}

/* Takes over the registration, also when it fails. */
static CUresult make_registration(struct registration *registration)
{
    CUresult result = check_place(registration->start, registration->start + registration->size);

    if (result == CUDA_SUCCESS)
        result = announce_registration(registration);
    if (result != CUDA_SUCCESS) {
        free(registration);
        return result;
    }
    result = take_pages(registration);
    if (result != CUDA_SUCCESS) {
        forget_registration(registration);
        return result;
    }
    result = go_live(registration);
    if (result != CUDA_SUCCESS)
        end_registration(registration);
    return result;
}

CUresult client_cuMemHostRegister_v2(void *p, size_t bytesize, unsigned Flags)
{
    struct registration *registration;
    struct context *context;
    CUresult result = context_enter_unsafe(&context);

    if (!p || bytesize == 0 || Flags & ~(unsigned)REGISTER_FLAGS ||
        bytesize > INT64_MAX - (uintptr_t)p)
        return CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    if (Flags & CU_MEMHOSTREGISTER_IOMEMORY)
        return CUDA_ERROR_NOT_PERMITTED;
    registration = registration_create(context, (uintptr_t)p, bytesize, Flags);
    return registration ? make_registration(registration) : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult client_cuMemHostUnregister(void *p)
{
    struct registration *registration;
    struct context *context;
    CUresult result = context_enter_unsafe(&context);

    if (!p || client_in_window((uintptr_t)p))
        return CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = stream_drain_all();
    if (result != CUDA_SUCCESS)
        return result;
    registration = retire_registration((uintptr_t)p);
    if (!registration)
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    end_registration(registration);
    return client_sync_error();
}

void host_register_end_all(const struct context *context)
{
    struct registration *registration;

    while ((registration = retire_one_of(context)))
        end_registration(registration);
}

static CUresult replay_registration(const struct registration *registration)
{
    if (registration->of_file)
        return granule_replay_file(registration->window, registration->size, registration->fd,
                                   registration->file_offset);
    return granule_replay_host(registration->window, registration->size, registration->fd);
}

CUresult host_register_replay(void)
{
    const struct range *range = NULL;
    CUresult result = CUDA_SUCCESS;

    while (result == CUDA_SUCCESS &&
           (range = ranges_next(&registrations.by_window, range ? range->start + 1 : 0)))
        result = replay_registration(range->value);
    return result;
}

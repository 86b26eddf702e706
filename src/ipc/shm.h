/* SPDX-License-Identifier: Apache-2.0 */
/* Memory shared by descriptor (memfd), sealed so that no peer can shrink it under a reader. Sizes
 * are bytes. The functions hold no state, and any thread may call them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHM_REPLACE (1u << 0)   /* replace mappings at the fixed address; default: refuse */
#define SHM_READ_ONLY (1u << 1) /* map for reading */

/* `size` zero bytes that can never shrink, grow or get other seals: 0 or -errno. The descriptor is
 * the caller's to close. */
int shm_create(const char *name, size_t size, int *ret_fd);

/* A copy of `data`, with a NUL behind it, that no process can write any more: 0 or -errno. The
 * descriptor is the caller's to close. */
int shm_create_read_only(const char *name, const void *data, size_t size, int *ret_fd);

/* Maps the first `size` bytes, shared, at `fixed_address` if not NULL: 0; -EEXIST when something is
 * mapped there already and SHM_REPLACE is not set; -errno. Check a peer's descriptor with
 * shm_check() first. */
int shm_map(int fd, size_t size, void *fixed_address, unsigned flags, void **ret_address);

/* Creates all pages of such a memory, which the kernel charges to the caller's cgroup: 0 or
 * -errno. */
int shm_populate(int fd, size_t size);

/* The same for an existing mapping. -EINVAL where the kernel cannot do it (Linux before 5.14).
 */
int shm_populate_mapping(void *address, size_t size);

/* Whether all pages of a peer's memory are there, so that mapping it costs no other process memory.
 */
bool shm_is_populated(int fd, size_t size);

/* Undoes shm_map(). NULL is allowed. */
void shm_unmap(void *address, size_t size);

/* Whether a descriptor from a peer is safe to map, so that reading the map cannot raise SIGBUS.
 * Returns 0 for a memory file of at least `size` bytes that is sealed against shrinking. -EINVAL:
 * it is any other file, or has huge pages, which need not be there. -EPERM: it is not sealed.
 * -EMSGSIZE: it is too small. */
int shm_check(int fd, size_t size);

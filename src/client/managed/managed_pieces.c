/* SPDX-License-Identifier: Apache-2.0 */
#include "managed_pieces.h"

#include "fd.h"
#include "granule.h"
#include "managed_exchange.h"

/* Of a larger array, a part may be on the device and the rest out. Larger pieces would leave more
 * of a device unused, smaller ones would take more calls of the driver. */
#define PIECE_SIZE (UINT64_C(32) << 20)

/* An area that is being made. */
struct row {
    const struct heap *heap;
    uint64_t start, size, done; /* start: 0 before the first piece */
    bool hosted;                /* from now on */
    void (*trim)(void);         /* NULL once that was done */
};

static uint64_t piece_size(const struct row *row)
{
    uint64_t left = row->size - row->done;

    return left < PIECE_SIZE ? left : PIECE_SIZE;
}

static CUresult create_piece(const struct row *row, uint64_t *ret_address, int *ret_fd)
{
    *ret_address = row->start ? row->start + row->done : 0;
    return granule_create_in_row(row->heap->device, row->hosted, piece_size(row),
                                 row->size - row->done, ret_address, ret_fd);
}

/* What the device has no place for is the host's, if the driver has such memory. */
static CUresult create_somewhere(struct row *row, uint64_t *ret_address, int *ret_fd)
{
    CUresult result = create_piece(row, ret_address, ret_fd);

    if (result != CUDA_ERROR_OUT_OF_MEMORY || row->hosted || row->size <= PIECE_SIZE)
        return result;
    if (row->trim) {
        row->trim();
        row->trim = NULL;
        return create_somewhere(row, ret_address, ret_fd);
    }
    row->hosted = true;
    return create_piece(row, ret_address, ret_fd) == CUDA_SUCCESS ? CUDA_SUCCESS
                                                                  : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult add_piece(struct row *row)
{
    struct exchange_piece piece = {.device = row->heap->device, .size = piece_size(row)};
    int fd;
    CUresult result = create_somewhere(row, &piece.address, &fd);

    if (result != CUDA_SUCCESS)
        return result;
    if (!row->start)
        row->start = piece.address;
    piece.area = row->start;
    piece.out = row->hosted;
    if (!exchange_enter(&piece, fd)) {
        device_granules.release(piece.address, piece.size);
        fd_close(&fd);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    row->done += piece.size;
    return CUDA_SUCCESS;
}

CUresult pieces_create(const struct heap *heap, bool hosted, uint64_t size, void (*trim)(void),
                       uint64_t *ret_address)
{
    struct row row = {.heap = heap, .size = size, .hosted = hosted, .trim = trim};
    CUresult result = CUDA_SUCCESS;

    while (row.done < size && result == CUDA_SUCCESS)
        result = add_piece(&row);
    if (result != CUDA_SUCCESS)
        pieces_release(row.start, row.done);
    else
        *ret_address = row.start;
    return result;
}

void pieces_release(uint64_t address, uint64_t size)
{
    uint64_t end = address + size, piece;
    int fd;

    for (; address < end; address += piece) {
        piece = exchange_leave(address, &fd);
        device_granules.release(address, piece);
        fd_close(&fd);
    }
}

CUresult pieces_replay(const struct heap *heap, uint64_t address, uint64_t size)
{
    uint64_t end = address + size;
    struct exchange_piece piece;
    CUresult result = CUDA_SUCCESS;
    int fd;

    for (; address < end && result == CUDA_SUCCESS; address += piece.size) {
        exchange_look(address, &piece, &fd);
        result = piece.out ? granule_replay_hosted(heap, address, piece.size, fd)
                           : granule_replay_device(heap, address, piece.size, fd);
    }
    return result;
}

#define _GNU_SOURCE
#include "clarder_storage.h"
#include <fcntl.h>
#include <malloc.h>
#include <sys/uio.h>

size_t clarder_malloc_usable_size(void *block) { return malloc_usable_size(block); }

void clarder_malloc_keep_pages(void) {
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 20);
    (void)mallopt(M_TRIM_THRESHOLD, 16 << 20);
}

ssize_t clarder_preadv(int fd, const struct iovec *vectors, int count, off_t offset, int nowait) {
    return preadv2(fd, vectors, count, offset, nowait ? RWF_NOWAIT : 0);
}

int clarder_allocate(int fd, off_t offset, off_t length) { return fallocate(fd, FALLOC_FL_KEEP_SIZE, offset, length); }

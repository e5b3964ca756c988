#define _GNU_SOURCE
#include "clarder_storage.h"
#include <fcntl.h>
#include <malloc.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

size_t clarder_malloc_usable_size(void *block) { return malloc_usable_size(block); }

void clarder_malloc_keep_pages(void) {
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 20);
    (void)mallopt(M_TRIM_THRESHOLD, 16 << 20);
}

void clarder_malloc_give_back(void) { (void)malloc_trim(0); }

ssize_t clarder_preadv(int fd, const struct iovec *vectors, int count, off_t offset, int nowait) {
    return preadv2(fd, vectors, count, offset, nowait ? RWF_NOWAIT : 0);
}

int clarder_allocate(int fd, off_t offset, off_t length) { return fallocate(fd, FALLOC_FL_KEEP_SIZE, offset, length); }

int clarder_memory_file(const char *name) { return memfd_create(name, MFD_CLOEXEC); }

int clarder_punch(int fd, off_t offset, off_t length) {
    return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, length);
}

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  /* Linux 5.14 */
#endif

void clarder_populate(void *start, size_t length) { (void)madvise(start, length, MADV_POPULATE_WRITE); }

ssize_t clarder_sendfile(int socket, int fd, off_t offset, size_t length) {
    return sendfile(socket, fd, &offset, length);
}

#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

int clarder_is_cached(int fd, off_t offset, off_t length) {
    struct { uint64_t offset, length; } range = { (uint64_t)offset, (uint64_t)length };
    struct { uint64_t cached, dirty, writeback, evicted, recently_evicted; } found;
    if (length <= 0 || syscall(SYS_cachestat, fd, &range, &found, 0) != 0) return 0;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    return found.cached >= (range.offset + range.length - 1) / page - range.offset / page + 1;
}

#define _GNU_SOURCE
#include "clarder_storage.h"
#include <fcntl.h>
#include <malloc.h>
#include <mimalloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* mimalloc, where the program is linked with it: larder is; a program that has Larder as a library may have another allocator. */
#pragma weak mi_is_in_heap_region
#pragma weak mi_good_size
#pragma weak mi_collect
#pragma weak mi_option_get
#pragma weak mi_option_set
#pragma weak mi_option_set_default

__thread unsigned char clarder_thread_number;
unsigned clarder_freed_by_others[256];

static bool is_mimalloc;
static long decommit_delay;

__attribute__((constructor)) static void find_allocator(void) {
    void *volatile block = malloc(64);
    is_mimalloc = mi_is_in_heap_region && block && mi_is_in_heap_region(block);
    if (is_mimalloc) decommit_delay = mi_option_get(mi_option_decommit_delay);
    free(block);
}

void clarder_malloc_configure(void) {
    if (!is_mimalloc) return;
    mi_option_set_default(mi_option_decommit_delay, 1);
    mi_option_set_default(mi_option_segment_decommit_delay, 0);
    mi_option_set_default(mi_option_decommit_extend_delay, 0);
    decommit_delay = mi_option_get(mi_option_decommit_delay);
}

size_t clarder_malloc_header(void) { return is_mimalloc ? 0 : 8; }

size_t clarder_malloc_size(void *block) { return malloc_usable_size(block) + clarder_malloc_header(); }

size_t clarder_malloc_usual_size(size_t bytes) {
    if (!is_mimalloc) return (bytes + 8 + 15) & ~(size_t)15;
    return bytes <= 128 << 10 ? mi_good_size(bytes) : (bytes + 65535) & ~(size_t)65535;
}

size_t clarder_malloc_most_size(size_t bytes) {
    return clarder_malloc_usual_size(bytes) + (is_mimalloc ? 0 : 16);
}

void clarder_malloc_collect(void) {
    if (!is_mimalloc) return;
    /* With a delay, what is found now would go to the system when this thread frees something later, and an idle one does not. */
    mi_option_set(mi_option_decommit_delay, 0);
    mi_collect(false);
    mi_option_set(mi_option_decommit_delay, decommit_delay);
}

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

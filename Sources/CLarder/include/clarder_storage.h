#pragma once
/* What the memory tier needs of malloc(3), and the disk tier of files. No logic. */
#include <stddef.h>
#include <sys/types.h>

size_t clarder_malloc_header(void);                  /* bytes of the allocator in front of each block */
size_t clarder_malloc_size(void *block);             /* bytes of memory that a block takes, with its header */
size_t clarder_malloc_usual_size(size_t bytes);      /* what a block for so many bytes takes, as a rule */
size_t clarder_malloc_most_size(size_t bytes);       /* what it takes at most */

/* Which thread this is, if it said so: 0 for all others. */
extern __thread unsigned char clarder_thread_number;
static inline unsigned char clarder_get_thread_number(void) { return clarder_thread_number; }
static inline void clarder_set_thread_number(unsigned char number) { clarder_thread_number = number; }
/* How many of its stored responses other threads have freed, for each number of a thread. */
extern unsigned clarder_freed_by_others[256];
static inline void clarder_note_freed(unsigned char allocator) {
    if (allocator && allocator != clarder_thread_number)
        __atomic_fetch_add(&clarder_freed_by_others[allocator], 1, __ATOMIC_RELAXED);
}
static inline unsigned clarder_count_freed_by_others(void) {
    return __atomic_load_n(&clarder_freed_by_others[clarder_thread_number], __ATOMIC_RELAXED);
}

/* The file of the memory tier (PageArena.swift). -1 and errno where they fail. */
int clarder_memory_file(const char *name);                         /* memfd_create(2), closed on exec */
int clarder_punch(int fd, off_t offset, off_t length);             /* fallocate(2) with FALLOC_FL_PUNCH_HOLE */
void clarder_populate(void *start, size_t length);                 /* madvise(2) with MADV_POPULATE_WRITE: a hint */
ssize_t clarder_sendfile(int socket, int fd, off_t offset, size_t length);  /* sendfile(2) */

/* Files of the disk tier. -1 and errno where they fail. */
struct iovec;
/* preadv2(2); nowait: RWF_NOWAIT. */
ssize_t clarder_preadv(int fd, const struct iovec *vectors, int count, off_t offset, int nowait);
/* Whether the page cache has all of a range: cachestat(2), Linux 6.5. 0 where the kernel cannot tell. */
int clarder_is_cached(int fd, off_t offset, off_t length);
int clarder_allocate(int fd, off_t offset, off_t length);  /* fallocate(2) with FALLOC_FL_KEEP_SIZE */

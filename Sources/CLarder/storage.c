#define _GNU_SOURCE
#include "clarder_storage.h"
#include <malloc.h>

size_t clarder_malloc_usable_size(void *block) { return malloc_usable_size(block); }

void clarder_malloc_keep_pages(void) {
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 20);
    (void)mallopt(M_TRIM_THRESHOLD, 16 << 20);
}

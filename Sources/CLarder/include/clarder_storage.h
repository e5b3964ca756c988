#pragma once
/* What the memory tier needs of malloc(3). No logic. */
#include <stddef.h>

size_t clarder_malloc_usable_size(void *block);  /* bytes the block really has; 0 for NULL */
void clarder_malloc_keep_pages(void);            /* body pages come from the heap, not from mmap(2), and stay mapped */

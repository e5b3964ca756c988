#!/usr/bin/env python3
"""Keeps the free memory of a virtual machine with the machine while something else is measured.

    hold-memory.py MIB

A host may take back the memory that a virtual machine has freed (free page reporting), in blocks of 2 MiB. The next program that
uses such a page waits for the host: 7 to 8 microseconds for 4 KiB, where the machine itself needs 1.4. This touches MIB of memory, frees all
but one page of each 2 MiB, so that no block is free, and holds these pages until its standard input ends. It prints a line when it is ready.
"""
import mmap
import sys

PAGE, BLOCK = 4096, 2 << 20


def main():
    if len(sys.argv) != 2 or not sys.argv[1].isdigit() or int(sys.argv[1]) < 2:
        sys.exit(__doc__.strip())
    memory = mmap.mmap(-1, int(sys.argv[1]) << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    memory[::PAGE] = b"\1" * (len(memory) // PAGE)
    for block in range(0, len(memory), BLOCK):
        memory.madvise(mmap.MADV_DONTNEED, block + PAGE, BLOCK - PAGE)
    print(f"{len(memory) >> 20} MiB are free and stay with this machine", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()

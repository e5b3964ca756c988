#!/usr/bin/env python3
"""Inclusive or exclusive tiers: hits and bytes written, for a memory tier before a disk tier of so many times its size.

    tiers.py [REQUESTS]          1,000,000 where nothing else is said; about a minute

A model, not the program: memory is S3-FIFO, the disk a log that is reclaimed from its old end, where what was used since goes to
the new end once more. Inclusive: what is stored goes to both, and nothing is written when memory gives it up. Exclusive: what is
stored goes to memory, and to the disk when memory gives it up; what comes back into memory leaves the disk. A body comes back at
its second use on the disk. Objects and their sizes are those of the bench's zipf load.
"""
import random
import sys
from bisect import bisect_left
from collections import OrderedDict, deque
from itertools import accumulate

MIB = 1 << 20
OBJECTS = 100_000


def size_of(number):
    share = (number * 7919 + 13) % 100
    return (1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10)[(share >= 20) + (share >= 50) + (share >= 80) + (share >= 95)]


class Memory:
    """S3-FIFO: a small queue of a tenth, a main queue, a ghost queue of keys."""

    def __init__(self, size, given_up):
        self.size, self.used, self.small_used = size, 0, 0
        self.small, self.main, self.ghost = OrderedDict(), OrderedDict(), OrderedDict()
        self.given_up = given_up

    def use(self, key):
        queue = self.small if key in self.small else self.main if key in self.main else None
        if queue is None:
            return False
        queue[key] = min(queue[key] + 1, 3)
        return True

    def add(self, key):
        if key in self.ghost:
            del self.ghost[key]
            self.main[key] = 0
        else:
            self.small[key] = 0
            self.small_used += size_of(key)
        self.used += size_of(key)
        while self.used > self.size:
            self.evict()

    def evict(self):
        if self.small and (self.small_used > self.size // 10 or not self.main):
            key, uses = self.small.popitem(last=False)
            self.small_used -= size_of(key)
            if uses > 1:
                self.main[key] = 0
                return
            self.ghost[key] = None
            if len(self.ghost) > len(self.main) + len(self.small):
                self.ghost.popitem(last=False)
        else:
            key, uses = self.main.popitem(last=False)
            if uses > 0:
                self.main[key] = uses - 1
                return
        self.used -= size_of(key)
        self.given_up(key)


class Disk:
    def __init__(self, size):
        self.size, self.used, self.written = size, 0, 0
        self.log, self.uses, self.turn, self.turns = deque(), {}, {}, 0

    def has(self, key):
        return key in self.uses

    def use(self, key):
        if key in self.uses:
            self.uses[key] += 1

    def add(self, key):
        self.uses[key] = 0
        self.append(key)
        while self.used > self.size:
            old, turn = self.log.popleft()
            self.used -= size_of(old)
            if self.turn.get(old) != turn:
                continue
            if self.uses[old] > 0:
                self.uses[old] = 0
                self.append(old)
            else:
                del self.uses[old], self.turn[old]

    def append(self, key):
        self.written += size_of(key)
        self.used += size_of(key)
        # Never the same again: an older place in the log is dead, also of what left the disk and came back.
        self.turns += 1
        self.turn[key] = self.turns
        self.log.append((key, self.turns))

    def remove(self, key):
        # Its bytes stay in the log until that is reclaimed.
        self.uses.pop(key, None)
        self.turn.pop(key, None)


def run(keys, memory_size, ratio, exclusive):
    disk = Disk(memory_size * ratio)
    memory = Memory(memory_size, lambda key: disk.add(key) if exclusive and not disk.has(key) else None)
    hits = from_disk = 0
    for key in keys:
        if memory.use(key):
            hits += 1
            disk.use(key)
        elif disk.has(key):
            hits += 1
            from_disk += 1
            disk.use(key)
            if disk.uses[key] > 1:
                if exclusive:
                    disk.remove(key)
                memory.add(key)
        else:
            if not exclusive:
                disk.add(key)
            memory.add(key)
    count = len(keys)
    return 100 * hits / count, 100 * from_disk / count, disk.written / count / 1024


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    dice = random.Random(1)
    weights = list(accumulate((number + 1) ** -0.9 for number in range(OBJECTS)))
    keys = [bisect_left(weights, dice.random() * weights[-1]) for _ in range(count)]
    print("memory MiB, disk  | inclusive: hits %, from disk %, KiB written a request | exclusive: the same")
    for memory, ratio in ((32, 40), (64, 10), (128, 4), (256, 2), (512, 1)):
        rows = [run(keys, memory * MIB, ratio, exclusive) for exclusive in (False, True)]
        cells = " | ".join("%6.1f %6.1f %6.2f" % row for row in rows)
        print(f"{memory:10d}, {ratio:2d} x  | {cells}")


main()

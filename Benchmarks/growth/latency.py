#!/usr/bin/env python3
"""How long hits wait while Larder does other work: latency.py LARDER [CASE ...] [--out DIR] [--seconds S] [--stored N]

A probe asks for one of 1,000 small stored responses every millisecond, while the same Larder does something else. The one worker of Larder
has processor 0, and its other threads, the load, the origin and the probe have processor 1, so that what the worker waits for can be told
apart: the probe reads from the kernel how long the worker's thread ran and how long it waited for the processor during each request.
A control burns processor time beside the worker in another program, as much as the case takes of it. BENCH_LOCK names a lock that is held during each window.
docs/growth.md has the results.
"""
import argparse
import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time

import chart
from rig import LARDER_CPUS, LOAD_CPUS, MIB, Larder, Rig, log, pinned

CASES = {}
LONG = 10_000  # µs
PRIORITY = -15


def case(title, **options):
    def register(function):
        CASES[function.__name__] = (title, options, function)
        return function
    return register


def pin_threads(larder):
    """The worker has processor 0, and all other threads have processor 1. Returns the id of the worker's thread."""
    threads = larder.threads()
    if LARDER_CPUS:
        for name, task in threads.items():
            os.sched_setaffinity(task, LARDER_CPUS if name == "larder-0" else LOAD_CPUS)
    # Where it is allowed, Larder comes before the other programs of the machine, and so does what competes with it here.
    for task in threads.values():
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, task, PRIORITY)
    return threads["larder-0"]


def worker_time(larder, task):
    with open(f"/proc/{larder.pid}/task/{task}/schedstat") as file:
        return int(file.read().split()[0]) / 1e9


class Observation:
    """What the probe saw in one window."""

    def __init__(self, rig, larder, seconds, disturb):
        task = pin_threads(larder)
        probe = rig.start(
            "probe", larder.port, rig.url("1000/probe@"), 1000, seconds, 1000, larder.pid, task, stdout=subprocess.PIPE, text=True)
        probe.stdout.readline()
        used = worker_time(larder, task)
        self.note = disturb(time.monotonic() + seconds) or ""
        line = probe.stdout.readline()
        probe.wait()
        self.worker = (worker_time(larder, task) - used) / seconds
        self.figures = json.loads(line)
        self.longs = [one for one in self.figures["long"] if one[1] >= LONG]

    def parts(self):
        """Of each long wait: what is left when the queues for both processors are taken away, and the work of the worker in it (µs)."""
        return [(took - worker_queue - probe_queue, ran) for _, took, worker_queue, probe_queue, ran in self.longs]

    def row(self, title):
        rest = [max(0, left - ran) for left, ran in self.parts()]
        figures = self.figures
        return [
            title, f"{100 * self.worker:.0f} %", figures["p50"] / 1000, figures["p99"] / 1000, figures["p999"] / 1000, figures["max"] / 1000,
            f"{len(self.longs)}", max((one[2] for one in self.longs), default=0) / 1000, max((one[3] for one in self.longs), default=0) / 1000,
            max((ran for _, ran in self.parts()), default=0) / 1000, max(rest, default=0) / 1000, f"{figures['others']}"]


HEADS = [
    "beside the hits", "worker busy", "p50", "p99", "p99.9", "max", "hits of 10 ms and more", "in these, at most: worker's queue",
    "probe's queue", "worker at work", "worker asleep",
    "answers that were no hits"]


def repeat_load(rig, larder, url, end, *options):
    """Loads until `end`."""
    process = rig.start("load", larder.port, url, "-d", max(0.1, end - time.monotonic()), *options,
                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    process.stdin.write("\n")
    process.stdin.flush()
    result = json.loads(process.stdout.readline())
    process.wait()
    return result


@case("nothing")
def alone(rig, larder, end, args):
    pass


@case("misses of 16 KiB, stored in memory and on the disk at full speed", memory="64MiB", disk="1GiB")
def storing(rig, larder, end, args):
    result = repeat_load(rig, larder, rig.url("16384/store@"), end, "-k", 10**8, "-c", 64)
    return f"{result['requests'] / result['seconds']:,.0f} stored a second"


@case("misses of 1 MiB, stored in memory and on the disk at full speed", memory="64MiB", disk="1GiB")
def storing_large(rig, larder, end, args):
    result = repeat_load(rig, larder, rig.url(f"{MIB}/store@"), end, "-k", 10**8, "-c", 16)
    return f"{result['requests'] / result['seconds']:,.0f} stored a second"


def stampede(rig, larder, end, size):
    """500 clients ask for the same response, which is not stored; again and again, with another one each time."""
    number, times = 0, []
    while time.monotonic() < end - 1:
        process = rig.start("load", larder.port, rig.url(f"{size}/stampede{number}-@"), "-q", "-c", 500, "-n", 500,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        process.stdout.readline()
        process.stdin.write("\n")
        process.stdin.flush()
        times.append(json.loads(process.stdout.readline())["seconds"])
        process.wait()
        number += 1
    return f"{number} times, each {sorted(times)[number // 2]:.2f} s"


@case("500 clients that ask for the same uncached 1 MiB")
def stampede_1m(rig, larder, end, args):
    return stampede(rig, larder, end, MIB)


@case("500 clients that ask for the same uncached 10 MiB")
def stampede_10m(rig, larder, end, args):
    return stampede(rig, larder, end, 10 * MIB)


def store_long(rig, larder, args):
    rig.fill(larder, rig.url(f"{10 * MIB}/long@"), 4, "-c", 1)


@case("8 clients that read stored bodies of 10 MiB, at full speed", prepare=store_long)
def long_readers(rig, larder, end, args):
    result = repeat_load(rig, larder, rig.url(f"{10 * MIB}/long@"), end, "-k", 4, "-c", 8)
    return f"{10 * result['requests'] / result['seconds']:,.0f} MiB a second"


@case("a client that reads 10 MiB slowly")
def slow_reader(rig, larder, end, args):
    url = rig.url(f"{10 * MIB}/slow")
    authority = url.split("/")[2]
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        connection.connect(("127.0.0.1", larder.port))
        request = f"GET {url} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode()
        for part, pause in ((1 << 20, 0), (10_000, 0.01)):  # a miss, read at once, and then the hit
            connection.sendall(request)
            left = 10 * MIB
            while left > 0 and time.monotonic() < end:
                left -= len(connection.recv(part))
                time.sleep(pause)


def ask_admin(larder, head, body=""):
    """Sends a request to the admin socket. Returns the answer's length, the end of its body, and the time."""
    begin, length, end = time.monotonic(), 0, b""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(larder.socket)
        connection.sendall(f"{head} HTTP/1.1\r\nHost: larder\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode())
        while part := connection.recv(1 << 20):
            length, end = length + len(part), (end + part)[-100:]
    return length, end.decode().rsplit("\r\n", 1)[-1].strip(), time.monotonic() - begin


def fill(rig, larder, args):
    rig.fill(larder, rig.url("64/tagged/@"), args.stored, "-c", 64)


def purge(rig, larder, condition):
    """Purges, and asks for the health of Larder at the same time."""
    time.sleep(1)
    answers = []
    purging = threading.Thread(target=lambda: answers.append(ask_admin(larder, "POST /purge", json.dumps(condition))))
    purging.start()
    time.sleep(0.1)
    _, _, health = ask_admin(larder, "GET /health")
    purging.join()
    _, answer, seconds = answers[0]
    return f"{json.loads(answer)['records']:,} in {seconds:.1f} s; GET /health was answered after {health:.1f} s"


@case("a purge of what is stored in memory, by prefix", memory="4GiB", prepare=fill)
def purge_prefix(rig, larder, end, args):
    return purge(rig, larder, {"prefix": rig.url("64/tagged/")})


@case("a purge of what is stored in memory, by tag", memory="4GiB", prepare=fill)
def purge_tag(rig, larder, end, args):
    return purge(rig, larder, {"tag": "tagged"})


@case("a soft purge of what is stored in memory, by tag", memory="4GiB", prepare=fill)
def purge_soft(rig, larder, end, args):
    return purge(rig, larder, {"tag": "tagged", "soft": True})


@case("a listing of what is stored in memory", memory="4GiB", prepare=fill)
def listing(rig, larder, end, args):
    time.sleep(1)
    length, _, seconds = ask_admin(larder, "GET /objects")
    return f"{length / MIB:,.0f} MiB in {seconds:.2f} s"


@case("a purge of what is stored in memory and on the disk, by prefix", memory="4GiB", disk="8GiB", prepare=fill, seconds=40)
def purge_disk(rig, larder, end, args):
    return purge(rig, larder, {"prefix": rig.url("64/tagged/")})


@case("a purge of what is stored on the disk alone, by tag", memory="16MiB", disk="8GiB", prepare=fill, seconds=40)
def purge_disk_tag(rig, larder, end, args):
    return purge(rig, larder, {"tag": "tagged"})


@case("the first of so many responses being stored in memory", memory="16GiB", seconds=45)
def growing(rig, larder, end, args):
    """The table of the store grows. --stored 10000000 shows more."""
    result = repeat_load(rig, larder, rig.url("64/grow@"), end, "-k", 10**9, "-n", args.stored, "-c", 8)
    return f"{result['requests']:,} in {result['seconds']:.1f} s"


BURN = """
import sys, time
share, end = float(sys.argv[1]), time.monotonic() + float(sys.argv[2])
while (now := time.monotonic()) < end:
    while time.monotonic() < now + 0.02 * share: pass
    time.sleep(0.02 * (1 - share))
"""


def burn(rig, share):
    """Returns a disturbance: another program that takes a share of the worker's processor."""
    def disturb(end):
        process = subprocess.Popen(
            [sys.executable, "-c", BURN, str(share), str(end - time.monotonic())], preexec_fn=pinned(LARDER_CPUS))
        rig.others.append(process)
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, process.pid, PRIORITY)
    return disturb


def observe(args, name):
    """The rows of a case: the case itself, and its control."""
    title, options, function = CASES[name]
    options = dict(options)
    prepare, seconds = options.pop("prepare", None), options.pop("seconds", args.seconds)
    rows = []
    with Rig(args.larder) as rig:
        larder = Larder(rig, **options)
        if prepare:
            prepare(rig, larder, args)
        rig.lock.take()
        seen = Observation(rig, larder, seconds, lambda end: function(rig, larder, end, args))
        rows.append(seen.row(f"{title} ({seen.note})" if seen.note else title))
        log(rows[-1])
        rig.lock.release()
        share = min(0.95, seen.worker - 0.02)
        if name != "alone" and share > 0.03:
            rig.lock.take()
            control = Observation(rig, Larder(rig), args.seconds / 2, burn(rig, share))
            rows.append(control.row(f"another program that takes {100 * share:.0f} % of the worker's processor"))
            log(rows[-1])
        with open(f"{args.out}/latency-{name}.json", "w") as file:
            json.dump({"rows": rows, "long": seen.figures["long"]}, file)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("larder", metavar="LARDER")
    parser.add_argument("cases", metavar="CASE", nargs="*", help=", ".join(CASES))
    parser.add_argument("--out", default=".")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--stored", type=int, default=1_000_000)
    args = parser.parse_args()
    if unknown := set(args.cases) - set(CASES):
        parser.error(f"no such case: {', '.join(unknown)}")
    os.makedirs(args.out, exist_ok=True)
    rows = [row for name in args.cases or CASES for row in observe(args, name)]
    text = chart.table(HEADS, rows)
    print(text)
    with open(f"{args.out}/latency.md", "w") as file:
        file.write(text)


main()

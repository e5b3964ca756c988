#!/usr/bin/env python3
"""How what Larder needs grows with its work: growth.py LARDER [ROW ...] [--out DIR] [--rounds N] [--seconds S] [--all]

Each row changes one thing (workers, connections, length of bodies, stored responses, rules, the log, opened hosts, pipelining) and measures
Larder's processor time for a request, and where it matters its memory and its start. Points of a row are measured in turn, in several
rounds, so that slow changes of the machine concern all of them; the medians are written to DIR as a table and a chart. --all adds
10 million stored responses, which take some 10 GiB. BENCH_LOCK names a lock that is held during each window. docs/growth.md has the results.
"""
import argparse
import http.client
import os
import ssl
import statistics
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import chart
from rig import LARDER_CPUS, LOAD_CPUS, MIB, Larder, Rig, log

KIB = 1024
ROWS = {}


def row(function):
    ROWS[function.__name__] = function
    return function


def rounds(args, points, measure):
    """Measures all points once in each round. Returns the median of each figure, by point."""
    found = {point: [] for point in points}
    for number in range(args.rounds):
        for point in points:
            result = measure(point, number)
            found[point].append(result)
            log(point, {name: round(value, 3) for name, value in result.items()})
    return {
        point: {name: statistics.median(result[name] for result in results) for name in results[0]}
        for point, results in found.items()}


def microseconds(result):
    return result["cpu"] * 1e6 / result["requests"]


def size_name(count):
    return f"{count // MIB} MiB" if count >= MIB else f"{count // KIB} KiB"


class Report:
    """What a row found: a table in Markdown, and a chart."""

    def __init__(self, args, name):
        self.path = f"{args.out}/growth-{name}"

    def table(self, heads, rows):
        text = chart.table(heads, rows)
        print(f"\n{text}", flush=True)
        with open(f"{self.path}.md", "a") as file:
            file.write(text + "\n")

    def chart(self, *arguments, part="", **options):
        with open(f"{self.path}{part}.svg", "w") as file:
            file.write(chart.chart(*arguments, **options))


@row
def workers(args, rig, report):
    """One to three workers. Pinned, all of them share processor 0: what a worker more costs. Free, they share both with load and origin."""
    counts = (1, 2, 3)
    larders = {count: Larder(rig, workers=count) for count in counts}
    url = rig.url("1024/@")

    def measure(count, number):
        larder, result = larders[count], {}
        for name, cpus in (("pinned", LARDER_CPUS), ("free", os.sched_getaffinity(0))):
            for task in larder.threads().values():
                os.sched_setaffinity(task, cpus or os.sched_getaffinity(0))
            loads = None if name == "free" else LOAD_CPUS
            options = ("-k", 100, "-c", 64, "-d", args.seconds)
            hits = rig.load(larder, url, *options, cpus=loads)
            result[f"{name} hit"] = microseconds(hits)
            if name == "free":
                result["rate"] = hits["requests"] / hits["seconds"]
            first = number * 10**7 + 10**9
            result[f"{name} store"] = microseconds(rig.load(larder, url, "-k", 10**7, "-f", first, "-c", 64, "-d", args.seconds, cpus=loads))
        return result

    medians = rounds(args, counts, measure)
    report.table(
        ["workers", "hit, all on one processor", "hit, on both", "stored miss, on one", "stored miss, on both", "hits a second, on both"],
        [[str(count), m["pinned hit"], m["free hit"], m["pinned store"], m["free store"], m["rate"]] for count, m in medians.items()])
    report.chart(
        "Processor time of a request, by workers", "workers", "µs",
        {name: [(count, medians[count][key]) for count in counts] for name, key in (
            ("hit, on one processor", "pinned hit"), ("hit, on both", "free hit"), ("stored miss, on one", "pinned store"),
            ("stored miss, on both", "free store"))})


@row
def connections(args, rig, report):
    """10 to 10,000 connections, which take turns; at most 64 have a request under way. Memory: what each adds while it is idle."""
    counts = (10, 100, 1000, 10_000)
    url = rig.url("1024/@")
    memory = {}
    for count in counts:  # each with a process that never had so many connections
        larder = Larder(rig)
        rig.load(larder, url, "-k", 100, "-c", 4, "-d", 1)
        rest = larder.memory()
        rig.load(
            larder, url, "-k", 100, "-c", count, "-w", 64, "-d", 0.1,
            before=lambda: memory.update({count: (larder.memory() - rest) / count}))
        larder.stop()
    larder = Larder(rig)

    def measure(count, _):
        result = rig.load(larder, url, "-k", 100, "-c", count, "-w", 64, "-d", args.seconds)
        return {"cpu": microseconds(result), "p99": result["p99"]}

    medians = rounds(args, counts, measure)
    report.table(
        ["connections", "CPU µs of a hit", "p99, µs", "memory of an idle connection, bytes"],
        [[f"{count:,}", m["cpu"], m["p99"], memory[count] if count >= 100 else None] for count, m in medians.items()])
    report.chart(
        "Processor time of a hit, by open connections", "connections", "µs", {"hit": [(c, medians[c]["cpu"]) for c in counts]})


@row
def bodies(args, rig, report):
    """Bodies of 1 KiB to 100 MiB, from memory and from the disk. From 1 MiB on, for a MiB."""
    sizes = [KIB, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 10 * MIB, 100 * MIB]
    larders = {"memory": Larder(rig, memory="3GiB"), "disk": Larder(rig, memory="16MiB", disk="6GiB")}
    keys = {}
    for size in sizes:
        keys[size, "memory"] = max(4, min(1000, 400 * MIB // size))
        keys[size, "disk"] = max(4, min(1 << 17, 256 * MIB // size))
        for tier, larder in larders.items():
            rig.fill(larder, rig.url(f"{size}/@"), keys[size, tier], "-c", 16 if size < MIB else 4)

    def measure(point, _):
        size, tier = point
        wide = 64 if size < MIB else 8
        result = rig.load(larders[tier], rig.url(f"{size}/@"), "-k", keys[point], "-r", "-c", wide, "-d", args.seconds)
        each = microseconds(result)
        return {"cpu": each, "for a MiB": each * MIB / size}

    medians = rounds(args, [(size, tier) for size in sizes for tier in larders], measure)
    cells = []
    for size in sizes:
        memory, disk = medians[size, "memory"], medians[size, "disk"]
        cells.append([size_name(size), memory["cpu"], memory["for a MiB"], disk["cpu"], disk["for a MiB"]])
    report.table(["body", "memory: CPU µs", "memory: µs for a MiB", "disk: CPU µs", "disk: µs for a MiB"], cells)
    report.chart(
        "Processor time of a hit, by the length of the body", "body", "µs",
        {tier: [(size, medians[size, tier]["cpu"]) for size in sizes] for tier in larders},
        label=lambda size: size_name(size).replace(" ", ""))
    report.chart(
        "Processor time for each MiB of a hit", "body", "µs for a MiB",
        {tier: [(size, medians[size, tier]["for a MiB"]) for size in sizes] for tier in larders},
        label=lambda size: size_name(size).replace(" ", ""), part="-mib")


def memory_left():
    """Bytes that programs can still take without others being swapped out or ended."""
    with open("/proc/meminfo") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable:"))


def fill_until(rig, larder, url, count, seconds):
    """Stores `count` responses in steps, for at most so many seconds and while 6 GiB of memory are left.

    Returns how many, the processor time of each, and the longest wait.
    """
    step, done, cpu, longest = min(count, 1_000_000), 0, 0.0, 0.0
    end = time.monotonic() + seconds
    while done < count and time.monotonic() < end and memory_left() > 6 << 30:
        part = min(step, count - done)
        result = rig.load(larder, url, "-k", part, "-f", done, "-n", part, "-c", 64)
        done, cpu, longest = done + part, cpu + result["cpu"], max(longest, result["max"])
    return done, cpu * 1e6 / done, longest


@row
def stored(args, rig, report):
    """A thousand to a million (with --all, 10 million) responses of 64 bytes in memory: what each takes, and what a hit at random costs."""
    counts = [1000, 10_000, 100_000, 1_000_000] + [10_000_000] * args.all
    larders, fixed = {}, {}
    url = rig.url("64/@")
    for count in counts:
        larder = larders[count] = Larder(rig, memory="18GiB")
        rig.load(larder, rig.url("64/first@"), "-k", 1, "-c", 64, "-d", 0.5)
        rest = larder.memory()
        done, cpu, longest = fill_until(rig, larder, url, count, 480)
        fixed[count] = {"done": done, "bytes": (larder.memory() - rest) / done, "store": cpu, "longest": longest / 1000}
        log(count, fixed[count])

    def measure(count, _):
        return {"cpu": microseconds(rig.load(larders[count], url, "-k", fixed[count]["done"], "-r", "-c", 64, "-d", args.seconds))}

    medians = rounds(args, counts, measure)
    report.table(
        ["stored", "memory of each, bytes", "CPU µs to store one", "longest wait while storing, ms", "CPU µs of a hit at random"],
        [[f"{f['done']:,}", f["bytes"], f["store"], f["longest"], medians[count]["cpu"]] for count, f in fixed.items()])
    report.chart(
        "Processor time, by stored responses in memory", "stored responses", "µs",
        {"hit at random": [(fixed[c]["done"], medians[c]["cpu"]) for c in counts], "to store one": [(fixed[c]["done"], fixed[c]["store"]) for c in counts]})
    report.chart(
        "Memory of a stored response of 64 bytes", "stored responses", "bytes",
        {"memory": [(fixed[c]["done"], fixed[c]["bytes"]) for c in counts]}, part="-memory")


@row
def turnover(args, rig, report):
    """How many responses of 64 bytes a memory tier of 64 MiB holds, after 50,000 to 400,000 of them were stored: by one client and by 64."""
    counts = (50_000, 100_000, 200_000, 400_000)
    url = rig.url("64/@")
    held, memory = {}, {}
    for clients in (1, 64):
        larder, done = Larder(rig, memory="64MiB"), 0
        for count in counts:
            rig.load(larder, url, "-k", count - done, "-f", done, "-n", count - done, "-c", clients)
            done = count
            zone = larder.stats()["zones"][0]
            held[clients, count], memory[clients, count] = zone["records"], larder.memory() / MIB
            log(clients, count, zone)
        larder.stop()
    report.table(
        ["stored so far", "one client: held", "memory of the process, MiB", "64 clients: held", "memory of the process, MiB"],
        [[f"{c:,}", f"{held[1, c]:,}", memory[1, c], f"{held[64, c]:,}", memory[64, c]] for c in counts])
    report.chart(
        "Responses of 64 bytes that 64 MiB hold", "stored so far", "held", {
            "one client": [(c, held[1, c]) for c in counts], "64 clients": [(c, held[64, c]) for c in counts]})


@row
def change(args, rig, report):
    """What the process takes for a memory tier of 1 GiB after responses of another length have come, and seconds later."""
    larder, done, cells = Larder(rig, memory="1GiB"), 0, []
    for size, count in ((1024, 700_000), (65_536, 16_000), (65_536, 16_000), (1024, 700_000), (300_000, 8000), (1024, 700_000)):
        rig.load(larder, rig.url(f"{size}/@"), "-k", count, "-f", done, "-n", count, "-c", 64)
        done, before = done + count, larder.memory("RssAnon", "RssShmem") / MIB
        time.sleep(10)
        cells.append([f"{count:,} of {size_name(size)}", before, larder.memory("RssAnon", "RssShmem") / MIB])
        log(cells[-1])
    report.table(["stored, one after the other", "memory of the process, MiB", "ten seconds later, MiB"], cells)


@row
def records(args, rig, report):
    """A thousand to a million (with --all, 10 million) responses of 64 bytes on the disk: storing, the start, memory of the index, a hit."""
    counts = [1000, 10_000, 100_000, 1_000_000] + [10_000_000] * args.all
    url = rig.url("64/@")
    empty = Larder(rig, memory="16MiB", disk="16MiB")
    time.sleep(2)
    rest = empty.memory("RssAnon")
    empty.stop()
    cells, points = [], {}
    for count in counts:
        store = f"{rig.work}/records-{count}"
        larder = Larder(rig, memory="16MiB", disk="24GiB", store=store)
        done, cpu, _ = fill_until(rig, larder, url, count, 420)
        larder.stop()
        ready, loaded, memory, hits = [], [], [], []
        for _ in range(args.rounds):
            larder = Larder(rig, memory="16MiB", disk="24GiB", store=store)
            while not (known := larder.stats()["zones"][0]["disk"]["objects"]) >= done * 0.99:
                if time.monotonic() - larder.begin > 60:
                    log(f"only {known} of {done} responses were loaded")
                    break
                time.sleep(0.005)
            ready.append(larder.ready * 1000)
            loaded.append((time.monotonic() - larder.begin) * 1000)
            memory.append((larder.memory("RssAnon") - rest) / done)
            hits.append(microseconds(rig.load(larder, url, "-k", done, "-r", "-c", 64, "-d", args.seconds)))
            larder.stop()
        medians = [statistics.median(values) for values in (ready, loaded, memory, hits)]
        cells.append([f"{done:,}", cpu, *medians])
        points[done] = (cpu, *medians)
        log(done, points[done])
    report.table(
        ["on the disk", "CPU µs to store one", "start until ready, ms", "start until all is known, ms", "memory of each after the start, bytes",
         "CPU µs of a hit at random"], cells)
    report.chart(
        "Start with stored responses on the disk", "stored responses", "ms",
        {"ready": [(n, p[1]) for n, p in points.items()], "all is known": [(n, p[2]) for n, p in points.items()]})
    report.chart(
        "Processor time, by stored responses on the disk", "stored responses", "µs",
        {"hit at random": [(n, p[4]) for n, p in points.items()], "to store one": [(n, p[0]) for n, p in points.items()]}, part="-hit")


def behind_rules(args, rig, report, points, access_of, heads, title, across):
    """Hits behind access rules: with one host all the time, and with another host in nearly each request of a connection."""
    plain = Larder(rig, sections='dns: { hosts: { "*.bench.test": 127.0.0.1 } }')
    same, changing = rig.url("1024/@", "h0.bench.test"), rig.url("1024/same", "h@.bench.test")
    rest = plain.memory()
    plain.stop()
    larders = {}
    for point in points:
        larder = larders[point] = Larder(
            rig, access=access_of(point) + ",", sections='dns: { hosts: { "*.bench.test": 127.0.0.1 } }')
        larder.before = larder.memory()
        rig.fill(larder, changing, 100, "-c", 4)

    def measure(point, _):
        options = ("-k", 100, "-r", "-c", 64, "-d", args.seconds)
        return {
            "same": microseconds(rig.load(larders[point], same, *options)),
            "changing": microseconds(rig.load(larders[point], changing, *options))}

    medians = rounds(args, points, measure)
    report.table(
        heads + ["CPU µs of a hit, the same host", "CPU µs, changing hosts", "start until ready, ms", "memory of each, bytes"],
        [[f"{point:,}", m["same"], m["changing"], larders[point].ready * 1000,
          (larders[point].before - rest) / point if point >= 1000 else None] for point, m in medians.items()])
    report.chart(
        title, across, "µs", {
            "the same host": [(p, medians[p]["same"]) for p in points], "changing hosts": [(p, medians[p]["changing"]) for p in points]})
    report.chart(
        f"Start, by {across}", across, "ms until ready", {"start": [(p, larders[p].ready * 1000) for p in points]}, part="-start")


@row
def rules(args, rig, report):
    """1 to 10,000 access rules, each of which denies a host of its own; the last one allows what is asked for."""

    def access(count):
        denials = " ".join(f'{{ deny: {{ host: "*.h{number}.example", port: [ 80, 443 ] }} }},' for number in range(count - 1))
        return f'rules: [ {denials} {{ allow: {{ host: "*.bench.test" }} }} ]'

    behind_rules(
        args, rig, report, (1, 10, 100, 1000, 10_000), access, ["rules"], "Processor time of a hit, by access rules", "access rules")


@row
def lists(args, rig, report):
    """A rule that denies the 1 to 500,000 hosts of a file."""

    def access(count):
        path = f"{rig.work}/hosts-{count}"
        with open(path, "w") as file:
            file.writelines(f"h{number}.listed.example\n" for number in range(count))
        return f'rules: [ {{ deny: {{ host: {{ file: {path} }} }} }}, {{ allow: {{ host: "*.bench.test" }} }} ]'

    behind_rules(
        args, rig, report, (1, 100, 1000, 10_000, 100_000, 500_000), access, ["hosts in the list"],
        "Processor time of a hit, by hosts in the list of a rule", "hosts in the list")


@row
def logging(args, rig, report):
    """The access log off and on, with 1 to 1,000 connections."""
    counts = (1, 10, 100, 1000)
    larders = {"off": Larder(rig), "on": Larder(rig, log_file="WORK/access.log")}
    points = [(count, state) for count in counts for state in larders]

    def measure(point, _):
        count, state = point
        return {"cpu": microseconds(rig.load(larders[state], rig.url("1024/@"), "-k", 100, "-c", count, "-d", args.seconds))}

    medians = rounds(args, points, measure)
    report.table(
        ["connections", "CPU µs of a hit, log off", "log on"],
        [[f"{count:,}", medians[count, "off"]["cpu"], medians[count, "on"]["cpu"]] for count in counts])
    report.chart(
        "Processor time of a hit, with and without the access log", "connections", "µs",
        {f"log {state}": [(count, medians[count, state]["cpu"]) for count in counts] for state in larders})


@row
def pipelining(args, rig, report):
    """1 to 64 requests in one piece, on 16 connections."""
    depths = (1, 4, 16, 64)
    larder = Larder(rig)

    def measure(depth, _):
        url = rig.url("1024/@")
        return {
            "hit": microseconds(rig.load(larder, url, "-k", 100, "-c", 16, "-p", depth, "-d", args.seconds)),
            "pass": microseconds(rig.load(larder, url, "-k", 10**7, "-f", next_key(), "-c", 16, "-p", depth, "-d", args.seconds))}

    keys = iter(range(10**9, 10**12, 10**7))

    def next_key():
        return next(keys)

    medians = rounds(args, depths, measure)
    report.table(
        ["requests in a piece", "CPU µs of a hit", "CPU µs of a stored miss"],
        [[str(depth), m["hit"], m["pass"]] for depth, m in medians.items()])
    report.chart(
        "Processor time of a request, by requests sent in one piece", "requests in a piece", "µs",
        {"hit": [(d, medians[d]["hit"]) for d in depths], "stored miss": [(d, medians[d]["pass"]) for d in depths]})


class TLSOrigin:
    """An origin for https://hN.bench.test:PORT/, whose only purpose is to be asked once for each host."""

    def __init__(self, work):
        self.certificate = f"{work}/origin.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=bench",
             "-addext", "subjectAltName=DNS:*.bench.test", "-keyout", f"{work}/origin.key", "-out", self.certificate],
            check=True, stderr=subprocess.DEVNULL)

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                for name, value in (("Cache-Control", "max-age=86400"), ("Content-Length", "1024"), ("Connection", "close")):
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(b"x" * 1024)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, f"{work}/origin.key")
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@row
def opened(args, rig, report):
    """1 to 1,000 hosts whose tunnels are opened: first visits, for which a certificate is made, and later ones. All are hits."""
    counts, more = (1, 10, 100, 1000), 100
    origin = TLSOrigin(rig.work)
    authority = f"{rig.work}/authority"
    subprocess.run([rig.larder, "ca", "create", "--out", authority, "--host", "*.bench.test"], check=True, stdout=subprocess.DEVNULL)
    sections = f"""
dns: {{ hosts: {{ "*.bench.test": 127.0.0.1 }} }}
tls: {{ ca_file: {origin.certificate} }}
intercept:
  ca: {{ certificate: {authority}/intermediate.pem, key: {authority}/intermediate.key }}
  hosts: [ "*.bench.test" ]
"""

    def visits(larder, first, count):
        rig.lock.take()
        before = larder.processor_time()
        process = rig.start("visits", larder.port, f"{authority}/root.pem", "h%ld.bench.test", origin.port, first, count)
        if process.wait():
            raise RuntimeError("a visit failed")
        return (larder.processor_time() - before) * 1e6 / count

    found = {count: [] for count in counts}
    for _ in range(args.rounds):
        larder = Larder(rig, sections=sections)
        connection = http.client.HTTPConnection("127.0.0.1", larder.port, timeout=30)
        for number in range(max(counts) + more):
            host = f"h{number}.bench.test:{origin.port}"
            connection.request("GET", f"https://{host}/", headers={"Host": host})
            answer = connection.getresponse()
            if answer.status != 200 or len(answer.read()) != 1024:
                raise RuntimeError(f"the answer of {host} was {answer.status}")
        known, rest = 0, larder.memory()
        for count in counts:
            if count > known:
                visits(larder, known, count - known)
            memory = (larder.memory() - rest) / count
            repeats = max(1, 100 // count)
            again = statistics.median(visits(larder, 0, count) for _ in range(repeats))
            first = visits(larder, count, more)
            known = count + more
            found[count].append({"first": first, "again": again, "memory": memory})
            log(count, found[count][-1])
        larder.stop()
    medians = {count: {name: statistics.median(one[name] for one in all_) for name in all_[0]} for count, all_ in found.items()}
    report.table(
        ["hosts opened before", "CPU µs of the first visit of one more", "CPU µs of a later visit", "memory of each, KiB"],
        [[f"{count:,}", m["first"], m["again"], m["memory"] / 1024 if count >= 100 else None] for count, m in medians.items()])
    report.chart(
        "Processor time of a visit to an opened host", "hosts opened before", "µs",
        {"first visit": [(c, medians[c]["first"]) for c in counts], "later visit": [(c, medians[c]["again"]) for c in counts]})


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("larder", metavar="LARDER")
    parser.add_argument("rows", metavar="ROW", nargs="*", help=", ".join(ROWS))
    parser.add_argument("--out", default=".")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--all", action="store_true")
    args = parser.parse_args()
    if unknown := set(args.rows) - set(ROWS):
        parser.error(f"no such row: {', '.join(unknown)}")
    os.makedirs(args.out, exist_ok=True)
    for name in args.rows or ROWS:
        log("row", name)
        with Rig(args.larder) as rig:
            report = Report(args, name)
            with open(f"{report.path}.md", "w") as file:
                file.write(ROWS[name].__doc__ + "\n\n")
            ROWS[name](args, rig, report)


main()

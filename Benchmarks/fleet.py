#!/usr/bin/env python3
"""What a fleet costs: hits from Redis and from another node, beside a pass and a hit of one node; and how many requests three nodes make to
the origin, beside one node with three times the memory.

    Benchmarks/fleet.py LARDER [--rows costs,zipf] [--requests 2000]

Starts redis-server, an origin and the nodes on loopback, and ends them. One worker each. CPU is what the kernel says of all threads of a
process (schedstat), in microseconds per request; latency is what
clients see.
"""
import argparse, bisect, http.server, os, random, shutil, signal, socket, socketserver, statistics, subprocess, sys, tempfile, threading, time

parser = argparse.ArgumentParser()
parser.add_argument("larder")
parser.add_argument("--rows", default="costs,zipf")
parser.add_argument("--requests", type=int, default=2000)
parser.add_argument("--clients", type=int, default=1, help="requests under way at a time, for costs")
options = parser.parse_args()
place = tempfile.mkdtemp(prefix="larder-fleet-")
children = []
asked = [0]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Origin(http.server.BaseHTTPRequestHandler):
    """/LENGTH/NAME, or /LENGTH/no-store/NAME."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_): pass

    def handle(self):
        try: super().handle()
        except ConnectionError: pass

    def do_GET(self):
        asked[0] += 1
        body = b"x" * int(self.path.split("/")[1])
        policy = "no-store" if "/no-store/" in self.path else "max-age=3600"
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nCache-Control: %s\r\n\r\n" % (len(body), policy.encode()) + body)


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 128


def openssl(*words):
    subprocess.run(["openssl", *words], check=True, stderr=subprocess.DEVNULL)


def certificates():
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    openssl("req", "-x509", "-subj", "/CN=fleet", "-addext", "basicConstraints=critical,CA:TRUE",
            "-keyout", f"{place}/ca.key", "-out", f"{place}/ca.pem", *key)
    openssl("req", "-x509", "-subj", "/CN=node", "-addext", "subjectAltName=IP:127.0.0.1", "-CA", f"{place}/ca.pem",
            "-CAkey", f"{place}/ca.key", "-keyout", f"{place}/node.key", "-out", f"{place}/node.pem", *key)
    os.chmod(f"{place}/node.key", 0o600)
    with open(f"{place}/secret", "w") as file: file.write("0123456789abcdef" * 4 + "\n")


class Redis:
    def __init__(self, *words):
        self.port = free_port()
        self.child = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", *words], stdout=subprocess.DEVNULL)
        children.append(self.child)


class Node:
    def __init__(self, name, memory="256MiB", redis=None, own=None, peers=None):
        self.port, admin = free_port(), free_port()
        fleet = ""
        if redis:
            peer = ""
            if own:
                peer = (f", peer: {{ address: 127.0.0.1:{own}, certificate: {place}/node.pem, key: {place}/node.key, ca: {place}/ca.pem }} }}"
                        f", peers: [ {', '.join(chr(34) + '127.0.0.1:' + str(p) + chr(34) for p in peers)} ]")
            fleet = (f"fleet: {{ redis: {{ url: 'redis://127.0.0.1:{redis.port}/0' }}, secret_file: {place}/secret, "
                     f"node: {{ name: {name}{peer or ' }'} }}\n")
        with open(f"{place}/{name}.yaml", "w") as file:
            file.write(f"""
workers: 1
listen: [ {{ address: 127.0.0.1:{self.port} }} ]
admin: {{ address: 127.0.0.1:{admin}, socket: {place}/{name}.sock }}
cache: {{ memory: {memory}, disk: {{ size: 0 }} }}
{fleet}
log: {{ access: off, level: warning }}
access: {{ rules: [ {{ allow: {{ address: [ 127.0.0.1 ], port: [ 1-65535 ] }} }} ] }}
""")
        self.child = subprocess.Popen([options.larder, "serve", "--config", f"{place}/{name}.yaml"], stdout=subprocess.PIPE, stderr=open(f"{place}/{name}.log", "w"))
        children.append(self.child)
        self.child.stdout.readline()
        self.local = threading.local()
        if redis: time.sleep(1)

    def cpu(self):
        total = 0
        for task in os.listdir(f"/proc/{self.child.pid}/task"):
            with open(f"/proc/{self.child.pid}/task/{task}/schedstat") as file: total += int(file.read().split()[0])
        return total / 1000

    @property
    def socket(self):
        """Each thread has a connection of its own."""
        if not hasattr(self.local, "socket"):
            self.local.socket = socket.create_connection(("127.0.0.1", self.port))
            self.local.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self.local.socket

    def get(self, url):
        """Returns the Cache-Status."""
        host = url.split("/")[2]
        self.socket.sendall(f"GET {url} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        data = b""
        while b"\r\n\r\n" not in data: data += self.receive()
        head, rest = data.split(b"\r\n\r\n", 1)
        fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:])
        left = int(fields[b"Content-Length"]) - len(rest)
        while left > 0: left -= len(self.receive())
        return fields[b"Cache-Status"].decode()

    def receive(self):
        data = self.socket.recv(1 << 18)
        if not data: raise SystemExit(f"{self.child.args}: the connection ended")
        return data


def row(title, node, urls, expected, others=()):
    before = [n.cpu() for n in (node, *others)]
    times, seen = [], []

    def ask(part):
        for url in part:
            start = time.perf_counter()
            seen.append(expected in node.get(url))
            times.append((time.perf_counter() - start) * 1e6)

    threads = [threading.Thread(target=ask, args=(urls[i::options.clients],)) for i in range(options.clients)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    right = sum(seen)
    cpu = [(n.cpu() - b) / len(urls) for n, b in zip((node, *others), before)]
    times.sort()
    print(f"| {title} | {cpu[0]:.1f} | {' + '.join(f'{c:.1f}' for c in cpu[1:]) or '–'} | {statistics.median(times):.0f} | {times[len(times) * 99 // 100]:.0f} | {100 * right / len(urls):.1f} % |", flush=True)
    return cpu


def costs(base):
    count = options.requests
    redis = Redis()
    time.sleep(0.5)
    alone = Node("alone")
    own = free_port()
    # All keys belong to the second node.
    asker = Node("asker", redis=redis, own=free_port(), peers=[own])
    # Its memory is full when it is measured, as that of a node is that has run for a while.
    full = Node("full", memory="64MiB", redis=redis, own=free_port(), peers=[own])
    owner = Node("owner", memory="1GiB", redis=redis, own=own, peers=[own])
    writer = Node("writer", redis=redis)
    reader = Node("reader", redis=redis)
    print("| row | CPU of the node, µs | of the other node, µs | median, µs | p99, µs | as expected |\n|---|--:|--:|--:|--:|--:|")
    for size in (1 << 10, 64 << 10):
        name = f"{size >> 10} KiB"
        def urls(kind): return [f"{base}/{size}/{kind}/{size}-{i}" for i in range(count)]
        hits = [f"{base}/{size}/hit/{size}"] * count
        alone.get(hits[0])
        asker.get(hits[0])
        row(f"hit, {name}, alone", alone, hits, "; hit")
        row(f"hit, {name}, in a fleet", asker, hits, "; hit")
        row(f"pass, {name}", alone, urls("no-store"), "detail=no-store")
        row(f"miss, {name}, stored", alone, urls("miss"), "stored")
        stored = urls("shared")
        for url in stored: writer.get(url)
        time.sleep(2)
        row(f"hit of Redis, {name}", reader, stored, "detail=shared")
    size = 64 << 10
    # Redis takes nothing of them, so that they come from the owner.
    redis.child.send_signal(signal.SIGSTOP)
    time.sleep(1)
    kept = [f"{base}/{size}/peer/{i}" for i in range(count)]
    for url in kept: owner.get(url)
    time.sleep(2)
    row("hit of another node, 64 KiB", asker, kept, "detail=peer-hit", [owner])
    row("the same again, from memory", asker, kept, "; hit", [owner])
    for i in range(1500): full.get(f"{base}/{size}/fill/{i}")
    row("hit of another node, 64 KiB, memory full", full, kept, "detail=peer-hit", [owner])
    redis.child.send_signal(signal.SIGCONT)


def zipf(base):
    """One client asks the nodes in turn for bodies whose popularity follows Zipf's law with exponent 0.9."""
    size, catalogue, count = 8 << 10, 24000, 60000
    weights, total = [], 0.0
    for rank in range(1, catalogue + 1):
        total += rank ** -0.9
        weights.append(total)
    numbers = random.Random(1)
    order = list(range(catalogue))
    numbers.shuffle(order)
    requests = [order[bisect.bisect_left(weights, numbers.random() * total)] for _ in range(count)]
    redis = Redis("--maxmemory", "2mb", "--maxmemory-policy", "noeviction")
    time.sleep(0.5)
    ports = [free_port() for _ in range(3)]
    fleet = [Node(f"zipf-{i}", memory="20MiB", redis=redis, own=ports[i], peers=ports) for i in range(3)]
    one = Node("zipf-one", memory="60MiB")
    print("\n| zipf | requests to the origin | of all |\n|---|--:|--:|")
    results = []
    for title, nodes in (("one node, 60 MiB", [one]), ("three nodes, 20 MiB each", fleet)):
        # Everything is warm after the first half.
        for number, key in enumerate(requests):
            if number == count // 2: asked[0] = 0
            nodes[number % len(nodes)].get(f"{base}/{size}/zipf/{key}")
        results.append(asked[0])
        print(f"| {title} | {asked[0]} | {100 * asked[0] / (count - count // 2):.1f} % |", flush=True)
    print(f"\nThree nodes make {results[1] / results[0]:.3f} times the requests of one.")


try:
    certificates()
    server = Server(("127.0.0.1", 0), Origin)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_port}"
    for name in options.rows.split(","): {"costs": costs, "zipf": zipf}[name](base)
finally:
    for child in children:
        child.send_signal(signal.SIGCONT)
        child.terminate()
    for child in children: child.wait()
    shutil.rmtree(place)

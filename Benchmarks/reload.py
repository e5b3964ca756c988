#!/usr/bin/env python3
"""How long the threads of Larder pause when a list of rules is read again: reload.py LARDER [NAMES]

A worker answers hits from memory, and the control thread answers requests of the admin listener, one after the other. Meanwhile a list of NAMES
(500,000) hosts changes, and then a list of two hosts beside it. Printed are the longest answers, which other work on the machine makes longer, and the
CPU time of each thread, which it does not.
"""
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time

larder, names = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 500_000
work = tempfile.mkdtemp()


def write(name, text):
    path = f"{work}/{name}"
    with open(f"{path}.new", "w") as file:
        file.write(text)
    os.rename(f"{path}.new", path)


def blocked(change):
    write("blocked", "".join(f"host-{number}.{change}.example\n" for number in range(names)))



def fail():
    raise ConnectionError("the connection was closed")


def ask(connection, request):
    connection.sendall(request)
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += connection.recv(65536) or fail()
    head, body = answer.split(b"\r\n\r\n", 1)
    length = next(int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
    while len(body) < length:
        body += connection.recv(65536) or fail()
    return head


class Origin(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def run(self):
        while True:
            connection, _ = self.listener.accept()
            connection.recv(65536)
            connection.sendall(
                b"HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: 6\r\nConnection: close\r\n\r\nstored")
            connection.close()


class Asking(threading.Thread):
    """Asks again and again, and keeps the longest answer."""

    def __init__(self, address, request):
        super().__init__(daemon=True)
        self.address, self.request, self.longest, self.count = address, request, 0, 0

    def run(self):
        family = socket.AF_UNIX if isinstance(self.address, str) else socket.AF_INET
        connection = socket.socket(family)
        connection.connect(self.address)
        while True:
            start = time.monotonic()
            try:
                ask(connection, self.request)
            except OSError:
                return  # the proxy has ended
            self.longest = max(self.longest, time.monotonic() - start)
            self.count += 1
            time.sleep(0.0005)


def cpu(process):
    """Milliseconds of CPU time by the name of the thread."""
    times = {}
    for task in os.listdir(f"/proc/{process}/task"):
        try:
            with open(f"/proc/{process}/task/{task}/comm") as file:
                name = file.read().strip()
            with open(f"/proc/{process}/task/{task}/schedstat") as file:
                times[name] = times.get(name, 0) + int(file.read().split()[0]) / 1e6
        except FileNotFoundError:
            pass  # the thread has ended
    return times


origin = Origin()
origin.start()
blocked("first")
write("small", "a.example\nb.example\n")
write(
    "larder.yaml",
    f"""
listen: [ {{ address: "127.0.0.1:0" }} ]
workers: 1
admin: {{ address: "127.0.0.1:0", socket: {work}/admin.sock }}
cache: {{ memory: 64MiB, disk: {{ path: {work}/store, size: 0 }} }}
access:
  private_destinations: allow
  rules:
    - deny: {{ host: [ {{ file: {work}/blocked }} ] }}
    - deny: {{ host: [ {{ file: {work}/small }} ] }}
    - deny: {{ host: closed.example, client: 192.0.2.1 }}
    - allow: {{ host: "*" }}
log: {{ access: off, level: info }}
""",
)
server = subprocess.Popen(
    [larder, "serve", "--config", f"{work}/larder.yaml"], stdout=subprocess.PIPE, stderr=open(f"{work}/log", "w"), text=True)
try:
    port = int(server.stdout.readline().rsplit(":", 1)[1])
    host = f"127.0.0.1:{origin.port}"
    hits = Asking(("127.0.0.1", port), f"GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    admin = Asking(f"{work}/admin.sock", b"GET /healthz HTTP/1.1\r\nHost: larder\r\n\r\n")
    hits.start()
    admin.start()
    time.sleep(3)

    def phase(title, change):
        seen = open(f"{work}/log").read().count("has changed and was read")
        hits.longest = admin.longest = 0
        before = cpu(server.pid)
        started = time.monotonic()
        if change:
            change()
        while change and open(f"{work}/log").read().count("has changed and was read") == seen:
            time.sleep(0.01)
        time.sleep(max(0, 6 - (time.monotonic() - started)))
        after = cpu(server.pid)
        spent = {name: after[name] - before.get(name, 0) for name in after}
        print(f"{title}: longest hit {hits.longest * 1e3:.1f} ms, longest answer of the control thread {admin.longest * 1e3:.1f} ms")
        print("  CPU ms: " + ", ".join(f"{name} {time:.0f}" for name, time in sorted(spent.items()) if time >= 1))

    phase("nothing changes", None)
    phase(f"a list of {names} hosts", lambda: blocked("second"))
    phase("a list of 2 hosts beside it", lambda: write("small", "a.example\nc.example\n"))
    phase("nothing changes", None)
finally:
    server.terminate()
    server.wait()

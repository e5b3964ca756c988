"""What growth.py and latency.py share: they start Larder, an origin and loads, read what Larder used, and take the lock of the machine.

With two processors or more, Larder runs on processor 0, and the load and the origin on processor 1, where a row does not say otherwise.
Every process is started here and ended by its id, and all ports are chosen by the kernel.
"""
import contextlib
import fcntl
import json
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TWO = len(os.sched_getaffinity(0)) > 1
LARDER_CPUS, LOAD_CPUS = ({0}, {1}) if TWO else (None, None)
MIB = 1 << 20


def log(*words):
    print(time.strftime("%H:%M:%S"), *words, file=sys.stderr, flush=True)


class Lock:
    """The lock that measuring jobs and builds of one machine share: the file that BENCH_LOCK names. Without it there is none."""

    held_max = 60

    def __init__(self):
        path = os.environ.get("BENCH_LOCK")
        self.file = open(path, "a") if path else None
        self.since = None

    def take(self):
        """To be called before each window. What is held stays so for some windows, and not longer than a minute."""
        if self.since and time.monotonic() - self.since > self.held_max:
            self.release()
            time.sleep(0.2)  # so that others get it
        if self.file and not self.since:
            fcntl.flock(self.file, fcntl.LOCK_EX)
        self.since = self.since or time.monotonic()

    def release(self):
        if self.file:
            fcntl.flock(self.file, fcntl.LOCK_UN)
        self.since = None


def pinned(cpus):
    return (lambda: os.sched_setaffinity(0, cpus)) if cpus else None


def processor_time(pid):
    """Seconds of user and system time of a process with all of its threads: as in /proc/PID/stat, but in nanoseconds."""
    return time.clock_gettime(~pid << 3 | 2)


def busy_time():
    """Seconds for which any program used a processor."""
    with open("/proc/stat") as file:
        user, nice, system, _, _, irq, softirq, *_ = (int(word) for word in file.readline().split()[1:])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def http_get(path, request):
    """The body of an answer of the admin socket."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(600)
        connection.connect(path)
        connection.sendall(request)
        answer = b""
        while part := connection.recv(1 << 16):
            answer += part
    return answer.split(b"\r\n\r\n", 1)[1]


class Larder:
    """A running Larder. `memory` and `disk` are sizes, `sections` further sections of the configuration."""

    def __init__(self, rig, workers=1, memory="256MiB", disk="0", access="", log_file="off", sections="", store=None, cpus=LARDER_CPUS):
        self.work = tempfile.mkdtemp(dir=rig.work)
        self.socket = f"{self.work}/admin.sock"
        with open(f"{self.work}/larder.yaml", "w") as file:
            file.write(f"""
listen: [ {{ address: "127.0.0.1:0" }} ]
workers: {workers}
admin: {{ address: "off", socket: {self.socket} }}
cache: {{ memory: {memory}, disk: {{ path: {store or self.work + '/store'}, size: {disk} }} }}
access: {{ {access} private_destinations: allow, connect_ports: [ 1-65535 ] }}
log: {{ access: {log_file.replace('WORK', self.work)}, level: error }}
{sections}
""")
        begin = time.monotonic()
        self.process = subprocess.Popen(
            [rig.larder, "serve", "--config", f"{self.work}/larder.yaml"], stdout=subprocess.PIPE,
            stderr=open(f"{self.work}/errors", "w"), text=True, preexec_fn=pinned(cpus))
        line = next((line for line in self.process.stdout if "serves on" in line), None)
        self.ready = time.monotonic() - begin
        if not line:
            self.process.wait()
            raise RuntimeError(open(f"{self.work}/errors").read())
        self.begin, self.pid, self.port = begin, self.process.pid, int(re.search(r"serves on 127.0.0.1:(\d+)", line)[1])
        rig.larders.append(self)

    def processor_time(self):
        return processor_time(self.pid)

    def memory(self, *kinds):
        """Bytes in memory: all, or of some kinds (RssAnon, RssFile, RssShmem)."""
        with open(f"/proc/{self.pid}/status") as file:
            values = dict(re.findall(r"^(\w+):\s*(\d+) kB", file.read(), re.M))
        return sum(int(values[kind]) for kind in kinds or ("VmRSS",)) * 1024

    def threads(self):
        """The ids of its threads, by their names."""
        result = {}
        for task in os.listdir(f"/proc/{self.pid}/task"):
            with contextlib.suppress(FileNotFoundError), open(f"/proc/{self.pid}/task/{task}/comm") as file:
                result[file.read().strip()] = int(task)
        return result

    def stats(self):
        return json.loads(http_get(self.socket, b"GET /stats HTTP/1.1\r\nHost: larder\r\nConnection: close\r\n\r\n"))

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(120)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdout.close()
        shutil.rmtree(self.work, ignore_errors=True)


class Rig:
    """The programs of this directory, an origin, and a directory for what runs need. Use it in a `with` statement."""

    def __init__(self, larder):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.larder = os.path.abspath(larder)
        self.larders, self.others, self.lock = [], [], Lock()

    def __enter__(self):
        self.work = tempfile.mkdtemp(prefix="growth.", dir=os.environ.get("TMPDIR", "/var/tmp"))
        for name, libraries in (("origin", []), ("load", []), ("visits", ["-lssl", "-lcrypto"]), ("probe", [])):
            subprocess.run(["cc", "-O2", "-o", f"{self.work}/{name}", f"{HERE}/{name}.c", *libraries], check=True)
        self.origin = self.start("origin", stdout=subprocess.PIPE, text=True)
        self.origin_port = int(self.origin.stdout.readline())
        return self

    def __exit__(self, *_):
        self.lock.release()
        for larder in self.larders:
            larder.stop()
        for process in self.others:
            if process.poll() is None:
                process.terminate()
                process.wait()
        shutil.rmtree(self.work, ignore_errors=True)

    def start(self, program, *arguments, cpus=LOAD_CPUS, **options):
        """Starts one of the programs of this directory."""
        process = subprocess.Popen(
            [f"{self.work}/{program}", *map(str, arguments)], preexec_fn=pinned(cpus), **options)
        self.others.append(process)
        return process

    def url(self, path, host="127.0.0.1"):
        return f"http://{host}:{self.origin_port}/{path}"

    def load(self, larder, url, *options, cpus=LOAD_CPUS, before=None):
        """One window under the lock. Returns what load.c prints, with `cpu`: seconds of Larder's processor time.

        `before` is called when all connections are open, before the load begins.
        """
        self.lock.take()  # before connections are opened: Larder closes idle ones after a minute
        process = self.start(
            "load", larder.port, url, *options, cpus=cpus, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if process.stdout.readline() != "ready\n":
            raise RuntimeError("the load did not begin")
        if before:
            before()
        busy, used = busy_time(), larder.processor_time()
        ours = processor_time(self.origin.pid) + processor_time(process.pid)
        process.stdin.write("\n")
        process.stdin.flush()
        line = process.stdout.readline()
        cpu = larder.processor_time() - used
        with contextlib.suppress(OSError):  # the load has ended, and its time with it
            ours = processor_time(self.origin.pid) + processor_time(process.pid) - ours
        busy = busy_time() - busy
        process.stdin.close()
        process.wait()
        self.others.remove(process)
        if not line:
            raise RuntimeError("the load broke off")
        result = json.loads(line)
        result["cpu"] = cpu
        foreign = (busy - cpu - ours) / max(result["seconds"], 0.1)
        if foreign > 0.15:
            log(f"other programs used {foreign:.2f} processors during this window")
        if result["refused"]:
            raise RuntimeError(f"{result['refused']} of {result['requests']} answers were not 200")
        return result

    def fill(self, larder, url, count, *options):
        """Asks for each of `count` URLs once, and returns what load.c prints."""
        return self.load(larder, url, "-k", count, "-n", count, *options)

# SPDX-License-Identifier: BSD-3-Clause
"""A server process on a free port in a directory of its own, and a small client for it."""

import ctypes
import os
import signal
import socket
import subprocess
import time

from .system import BenchError

HOST = "127.0.0.1"


class Client:
    def __init__(self, port):
        self.sock = socket.create_connection((HOST, port), timeout=600)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.sock.makefile("rb", 1 << 16)

    def close(self):
        self.file.close()
        self.sock.close()

    def reply(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server closed the connection")
        kind, text = line[:1], line[1:-2]
        if kind == b"-":
            raise BenchError("the server answered: " + text.decode(errors="replace"))
        if kind == b"$":
            size = int(text)
            return None if size < 0 else self.file.read(size + 2)[:-2]
        if kind == b"*":
            return [self.reply() for _ in range(int(text))]
        return int(text) if kind == b":" else text

    def command(self, *args):
        parts = [b"*%d\r\n" % len(args)]
        for arg in args:
            parts.append(b"$%d\r\n%b\r\n" % (len(arg.encode()), arg.encode()))
        self.sock.sendall(b"".join(parts))
        return self.reply()


def free_port():
    with socket.socket() as s:
        s.bind((HOST, 0))
        return s.getsockname()[1]


class Server:
    """One of those compared. argv may hold {port} and {dir}; without them the usual options are added."""

    def __init__(self, name, argv, base, cpu=None):
        self.name, self.cpu = name, cpu
        self.port = free_port()
        self.dir = os.path.join(base, name)
        os.mkdir(self.dir)
        self.log_path = os.path.join(base, name + ".log")
        self.argv = [word.replace("{port}", str(self.port)).replace("{dir}", self.dir) for word in argv]
        if self.argv == list(argv):
            self.argv += ["--port", str(self.port), "--dir", self.dir, "--save", ""]
        self.process = None

    def start(self, seconds=30):
        def prepare():
            # The server must not outlive this script, even when it is killed.
            ctypes.CDLL(None).prctl(1, signal.SIGTERM)
            if self.cpu is not None:
                os.sched_setaffinity(0, {self.cpu})

        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=prepare)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.check_alive()
            try:
                if self.command("PING") == b"PONG":
                    return
            except BenchError as e:
                if "LOADING" not in str(e):
                    raise
            except OSError:
                pass
            time.sleep(0.005)
        raise BenchError(f"the {self.name} server did not answer PING within {seconds} s\n{self.log_tail()}")

    def command(self, *args):
        client = Client(self.port)
        try:
            return client.command(*args)
        finally:
            client.close()

    @property
    def pid(self):
        return self.process.pid

    def log_tail(self, count=15):
        with open(self.log_path, errors="replace") as f:
            lines = f.read().splitlines()[-count:] or ["(empty)"]
        return "\n".join([f"last lines of its log ({' '.join(self.argv)}):"] + ["  | " + x for x in lines])

    def check_alive(self):
        code = self.process.poll()
        if code is None:
            return
        if code >= 0:
            how = f"exited with status {code}"
        else:
            how = f"was killed by {signal.Signals(-code).name}"
            if -code == signal.SIGBUS:
                how += " (as a rule: a huge page that was promised could not be had)"
        raise BenchError(f"the {self.name} server {how}\n{self.log_tail()}")

    def info(self, section="memory"):
        text = self.command("INFO", section).decode(errors="replace")
        return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)

    def stop(self):
        if self.process is None or self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def stop_all(servers):
    for server in servers:
        server.stop()
    servers.clear()

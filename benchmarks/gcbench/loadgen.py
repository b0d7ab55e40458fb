# SPDX-License-Identifier: BSD-3-Clause
"""Runs loadgen, the load generator in C, and returns its reports."""

import json
import os
import subprocess
import time

from .server import HOST
from .system import BenchError, EXIT_USAGE


def find_loadgen(server_path, given=None):
    """The path given, or the one of the build that made the server."""
    build = os.path.dirname(os.path.abspath(server_path))
    path = given or os.path.join(build, "benchmarks", "loadgen")
    if os.access(path, os.X_OK) and os.path.isfile(path):
        return path
    if given:
        raise BenchError(f"--loadgen {path}: no such program", EXIT_USAGE)
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    raise BenchError(f"the load generator is not built ({path}).\nBuild it with\n"
                     f"    cmake -S {root} -B {build} && cmake --build {build} --target loadgen\n"
                     f"or name one with --loadgen PATH.")


class Loadgen:
    def __init__(self, path, cpu=None):
        self.path, self.cpu = path, cpu

    def call(self, server, words, on_progress=None, **options):
        """One run. Options are loadgen's, with _ for -; those that are None are left out."""
        argv = [self.path, *words, "--host", HOST, "--port", str(server.port), "--pid", str(server.pid)]
        if self.cpu is not None:
            argv += ["--cpu", str(self.cpu)]
        for name, value in options.items():
            if value is not None:
                argv += ["--" + name.replace("_", "-"), f"{value:.3f}" if isinstance(value, float) else str(value)]
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        complaints = []
        try:
            for line in process.stderr:
                if line.startswith("progress "):
                    on_progress(int(line.split()[1]))
                else:
                    complaints.append(line.strip())
            out = process.stdout.read()
            process.wait()
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        if process.returncode != 0:
            time.sleep(0.3)  # a server that dies closes its connections before it can be waited for
            server.check_alive()
            raise BenchError(f"loadgen failed on the {server.name} server: " + ("; ".join(complaints) or "no message"))
        return json.loads(out)

    def command(self, server, command, **options):
        """`run command`: words with places, see loadgen --help."""
        return self.call(server, ["run", "command"], command=command, **options)

    def fill(self, server, command, ops, **options):
        """A command repeated, fast: what datasets are loaded with."""
        return self.command(server, command, ops=ops, connections=4, pipeline=min(50, ops), **options)

"""The services that the examples talk to: those whose addresses are given, or some that end with the program."""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[1]


@contextlib.contextmanager
def broker() -> Iterator[str]:
    """KAFKA_BROKERS, or an embedded broker that keeps everything in memory."""
    if given := os.environ.get("KAFKA_BROKERS"):
        yield given
        return
    binary = ROOT / "build" / "kfaked"
    go = shutil.which("go")
    if go is None and not binary.exists():
        raise SystemExit("the embedded broker is built with Go, which is not here: make setup, or set KAFKA_BROKERS")
    if not binary.exists():
        print("building the embedded broker (once)")
    if go is not None:
        subprocess.run([go, "build", "-o", str(binary), "./tools/kfaked"], cwd=ROOT, check=True)
    process = subprocess.Popen([str(binary)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.stdin.close()
        process.wait(10)


class Database:
    """A database of PostgreSQL, by its URL."""

    def __init__(self, url: str) -> None:
        self.url = url

    def sql(self, text: str) -> list[str]:
        """Run statements with psql and return the rows, values between bars."""
        command = ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", self.url, "-f", "-"]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"psql: {done.stderr}")
        return done.stdout.splitlines()


@contextlib.contextmanager
def database() -> Iterator[Database]:
    """POSTGRES_URL (of a server with wal_level = logical), or a server of its own in a folder that goes with it."""
    if given := os.environ.get("POSTGRES_URL"):
        yield Database(given)
        return
    programs = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    initdb = str(programs[-1]) if programs else shutil.which("initdb")
    if initdb is None:
        raise SystemExit("no PostgreSQL is installed: apt-get install postgresql, or set POSTGRES_URL")
    with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        owner = {}
        if os.geteuid() == 0:  # the server refuses to be root
            shutil.chown(folder, "postgres", "postgres")
            owner = {"user": "postgres", "group": "postgres", "extra_groups": []}
        data = f"{folder}/data"
        command = [initdb, "-D", data, "-U", "postgres", "-A", "trust", "--no-sync", "--locale=C", "-E", "UTF8"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder, **owner)
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": port,
            "unix_socket_directories": folder,
            "wal_level": "logical",
            "dynamic_shared_memory_type": "mmap",
        }
        # The server ends when our end of the pipe closes, however this program ends.
        script = '"$@" >"$0" 2>&1 & cat >/dev/null; kill -QUIT $!; wait $!'
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        process = subprocess.Popen(
            [
                "sh",
                "-c",
                script,
                f"{folder}/log",
                str(pathlib.Path(initdb).with_name("postgres")),
                "-D",
                data,
                *options,
            ],
            stdin=subprocess.PIPE,
            cwd=folder,
            **owner,
        )
        assert process.stdin is not None
        try:
            ready = [str(pathlib.Path(initdb).with_name("pg_isready")), "-q", "-h", "127.0.0.1", "-p", str(port)]
            while subprocess.run(ready, check=False).returncode:
                time.sleep(0.1)
            yield Database(f"postgres://postgres@127.0.0.1:{port}/postgres")
        finally:
            process.stdin.close()
            process.wait(30)

#!/usr/bin/env python3
"""A stand-in for llama-bench, for what a real engine cannot be made to do on demand. Marked as such; never shipped.

It speaks the arguments and JSON of ik_llama.cpp's llama-bench as far as the harness uses them. What it does besides is
said by ``standin.json`` in its folder: ``{"do": "rows" | "crash" | "hang" | "deaf" | "oom" | "nothing" | "daemon" |
"replay", "tps": 100.0, "pp_tps": 100.0, "tg_tps": 100.0, "crash_after": 1, "stdout": "", "stderr": "", "code": 0,
"signal": 0, "tell": []}``; what it replays has its rows where ``ROWS`` stands, and those cut after the first where
``CUT`` does; variables that it is to tell of go to ``environment.json`` in its folder.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

_OPTIONS = """-o -m -p -n -pg -gp -r -w -t -b -ub -ctk -ctv -ngl --n-cpu-moe -sm -mg -nkvo -fa -mla -amb -ser -gr -mmp
-embd -ts -rtr -cuda -mqkv -muge -rcache -thp -ot -fmoe -ger -no-fug -no-ooae -sas"""


def main() -> int:
    """Behave as told."""
    if "--help" in sys.argv:
        sys.stdout.write("usage: llama-bench [options]\n" + "".join(f"  {each} <value>\n" for each in _OPTIONS.split()))
        return 0
    told = json.loads((Path(sys.argv[0]).parent / "standin.json").read_text())
    asked = dict(zip(sys.argv[1:], sys.argv[2:], strict=False))
    if "tell" in told:
        seen = {name: os.environ.get(name) for name in told["tell"]}
        Path(sys.argv[0]).with_name("environment.json").write_text(json.dumps(seen))
    if told["do"] == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if told["do"] in ("hang", "deaf"):
        Path(sys.argv[0]).with_name("hanging.pid").write_text(str(os.getpid()))
        time.sleep(3600)
    if told["do"] == "daemon":
        _leave_a_daemon(Path(sys.argv[0]).with_name("daemon.pid"))
    if told["do"] == "oom":
        sys.stderr.write("ggml_cuda: CUDA error: out of memory\n")
        return 1
    if told["do"] == "nothing":
        return 0
    rows = _rows(asked, told)
    if told["do"] == "replay":
        return _replay(rows, told)
    if told["do"] == "crash":
        sys.stdout.write("[\n" + ",\n".join(json.dumps(row) for row in rows[: told.get("crash_after", 0)]))
        sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGSEGV)
    json.dump(rows, sys.stdout)
    return 0


def _replay(rows: list[dict[str, object]], told: dict[str, Any]) -> int:
    """Write what somebody reported, and end as it ended there."""
    whole = json.dumps(rows)
    cut = whole[: whole.index("}") + 2]
    sys.stdout.write(told.get("stdout", "").replace("ROWS", whole).replace("CUT", cut))
    sys.stderr.write(told.get("stderr", ""))
    sys.stdout.flush()
    sys.stderr.flush()
    if told.get("signal"):
        os.kill(os.getpid(), told["signal"])
    return int(told.get("code", 0))


def _rows(asked: dict[str, str], told: dict[str, float]) -> list[dict[str, object]]:
    lengths = [(int(n), 0) for n in asked.get("-p", "0").split(",")] + [
        (0, int(n)) for n in asked.get("-n", "0").split(",")
    ]
    tps = told.get("tps", 100.0)
    speeds = [told.get("pp_tps" if n_prompt else "tg_tps", tps) for n_prompt, _ in lengths]
    return [_row(asked, *length, speed) for length, speed in zip(lengths, speeds, strict=True) if any(length)]


def _row(asked: dict[str, str], n_prompt: int, n_gen: int, tps: float) -> dict[str, object]:
    base = (n_prompt + n_gen) / tps * 1e9
    return {
        "model_filename": asked["-m"],
        "n_threads": int(asked.get("-t", "1")),
        "n_prompt": n_prompt,
        "n_gen": n_gen,
        "samples_ns": [int(base * (1 + 0.001 * index)) for index in range(int(asked["-r"]))],
    }


def _leave_a_daemon(pid_file: Path) -> None:
    """Fork twice into a session of its own and write down who stayed."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            pid_file.write_text(str(os.getpid()))
            for descriptor in (0, 1, 2):
                os.close(descriptor)
            time.sleep(3600)
        os._exit(0)
    while not pid_file.exists():
        time.sleep(0.01)


if __name__ == "__main__":
    sys.exit(main())

"""``python -m retire.deployments.local.server``: llama.cpp's own server on a free loopback port.

One slot and one request at a time: with several, the order of requests decides how they are
batched, and with it the last bit of a sum and now and then a token. The first line of standard
input is the key that requests must carry; the program ends when standard input does.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading

NOT_INSTALLED = 3
"""Exit code where the package with llama.cpp is missing."""
PROMPT_CACHE_MIB = 256
"""Most memory for earlier prompts."""


def main() -> int:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser(prog="python -m retire.deployments.local.server")
    parser.add_argument("--weights", required=True)
    parser.add_argument("--alias", required=True, help="the model id that the server reports")
    parser.add_argument("--context-tokens", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    given = parser.parse_args()
    key = sys.stdin.readline().strip()
    try:
        import xllamacpp  # type: ignore[import-untyped]  # noqa: PLC0415  # an extra
    except ModuleNotFoundError:
        return NOT_INSTALLED
    parameters = xllamacpp.CommonParams()
    parameters.model.path = given.weights
    parameters.model_alias = {given.alias}
    parameters.port = 0
    parameters.hostnames = ["127.0.0.1"]
    parameters.api_keys = [key]
    parameters.n_parallel = 1
    parameters.n_ctx = given.context_tokens
    parameters.cpuparams.n_threads = given.threads
    parameters.cpuparams_batch.n_threads = given.threads
    parameters.n_threads_http = 2
    parameters.use_jinja = True
    # Earlier prompts are kept in memory to be taken up again; unbounded, that is gigabytes.
    parameters.cache_ram_mib = PROMPT_CACHE_MIB
    parameters.ui = False
    server = xllamacpp.Server(parameters)
    ended = threading.Event()
    threading.Thread(target=_watch, args=(ended,), daemon=True).start()
    sys.stdout.write(json.dumps({"url": server.listening_address}) + "\n")
    sys.stdout.flush()
    ended.wait()
    return 0


def _watch(ended: threading.Event) -> None:
    while sys.stdin.readline():
        pass
    ended.set()


if __name__ == "__main__":
    sys.exit(main())

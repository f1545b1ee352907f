"""Serve a model with llama.cpp's own HTTP server; prints its address when it listens.

    python serve_llama.py FILE.gguf

One thread computes and two requests run at once. It ends with this process.
"""
import signal
import sys

import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.model_alias = {"ring"}
params.hostnames = ["127.0.0.1"]
params.port = 0
params.n_ctx = 4096
params.n_parallel = 2
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
params.endpoint_metrics = True
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
signal.pause()

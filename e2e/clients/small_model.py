"""Serves a model in GGUF's form with OpenAI's API, until it is ended."""

import signal
import sys

import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.n_ctx = 4096
params.n_parallel = 1
# The same answer every time.
params.sampling.seed = 7
params.sampling.temp = 0
server = xllamacpp.Server(params)
print(f"serves at {server.listening_address}", flush=True)
signal.pause()

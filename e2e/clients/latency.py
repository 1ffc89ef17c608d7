"""What a turn costs beside the call of the model: each request goes to the provider and through Throughline, in turns.

A user has a history of several sessions, and goes through conversations that are sent again with every turn, as
clients do. Times are from sending a request to the end of its answer, which is stored by then. Prints JSON.
"""

import argparse
import http.client
import itertools
import json
import pathlib
import time
import urllib.parse

TURNS = 25
PER_SESSION = 60
ROLES = ["user", "assistant"]


class Server:
    def __init__(self, url, path, key):
        parts = urllib.parse.urlsplit(url)
        self.connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
        self.path, self.headers = path, {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

    def post(self, path, body, **headers):
        """The answer, and the milliseconds that it took."""
        body = json.dumps(body).encode()
        begun = time.perf_counter()
        self.connection.request("POST", self.path + path, body, {**self.headers, **headers})
        answer = self.connection.getresponse()
        text = answer.read().decode()
        took = (time.perf_counter() - begun) * 1e3
        if answer.status not in (200, 201):
            raise SystemExit(f"{path}: {answer.status}: {text}")
        return text, took


def spread(times):
    times = sorted(times)
    at = lambda share: round(times[min(len(times) - 1, int(len(times) * share))], 2)
    return {"p50": at(0.5), "p90": at(0.9), "p99": at(0.99)}


def said(text, streamed):
    if not streamed:
        return json.loads(text)["choices"][0]["message"]["content"]
    events = [line[6:] for line in text.splitlines() if line.startswith("data: {")]
    choices = [choice for event in events for choice in json.loads(event)["choices"]]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


def main():
    parser = argparse.ArgumentParser()
    for flag in ["--url", "--key", "--provider", "--provider-key", "--texts"]:
        parser.add_argument(flag, required=True)
    parser.add_argument("--requests", type=int, default=300)
    args = parser.parse_args()
    lines = pathlib.Path(args.texts).read_text(encoding="utf-8").splitlines()
    texts = [json.loads(line)["text"] for line in lines]
    ours, own = Server(args.url, "/openai/v1", args.key), Server(args.url, "/v1", args.key)
    provider = Server(args.provider, "/v1", args.provider_key)

    history = [{"role": role, "content": text} for role, text in zip(itertools.cycle(ROLES), texts)]
    for start in range(0, len(history), PER_SESSION):
        messages = {"messages": history[start : start + PER_SESSION]}
        own.post(f"/sessions/history-{start // PER_SESSION}/messages", messages)

    measured = {"requests": args.requests, "history": len(history), "turns_of_a_conversation": TURNS}
    for streamed in [False, True]:
        times = {"provider": [], "through": []}
        for number in range(args.requests + TURNS):
            if number % TURNS == 0:
                conversation = [{"role": "system", "content": "You are a helpful assistant."}]
            conversation.append({"role": "user", "content": f"{texts[number % len(texts)]} ({number})"})
            body = {"model": "gpt-4.1", "messages": conversation, "stream": streamed}
            session = f"{'streamed' if streamed else 'whole'}-{number // TURNS}"
            turns = [("provider", provider), ("through", ours)]
            for name, server in turns if number % 2 else turns[::-1]:
                answer, took = server.post("/chat/completions", body, **{"Throughline-Session": session})
                # The first conversation warms both up.
                if number >= TURNS:
                    times[name].append(took)
            conversation.append({"role": "assistant", "content": said(answer, streamed)})
        spreads = {f"{name}_ms": spread(all_times) for name, all_times in times.items()}
        spreads["p50_difference_ms"] = round(spreads["through_ms"]["p50"] - spreads["provider_ms"]["p50"], 2)
        spreads["p99_difference_ms"] = round(spreads["through_ms"]["p99"] - spreads["provider_ms"]["p99"], 2)
        measured["streamed" if streamed else "whole"] = spreads
    print(json.dumps(measured, indent=2))


main()

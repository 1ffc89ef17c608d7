"""The official Python client of OpenAI, and a program on LangChain, against Throughline's endpoint.

Each request also goes straight to the provider, behind which is a mock server: the answers have to be the same. What
was stored is read back over Throughline's own API.
"""

import argparse
import asyncio
import base64
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import traceback
import urllib.error
import urllib.request

import openai

MODEL = "gpt-4.1"
TOOL = {
    "type": "function",
    "function": {
        "name": "find_gate",
        "description": "The gate of a flight",
        "parameters": {"type": "object", "properties": {"flight": {"type": "string"}}, "required": ["flight"]},
    },
}
# A red dot.
PICTURE = "data:image/png;base64," + base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415408d763f8cfc0000003010100"
        "c9fe92ef0000000049454e44ae426082"
    )
).decode()
# Made anew for every answer; the mock counts tokens of what it was sent, which is not the same.
VARYING = {"id", "created", "usage", "_request_id"}
HERE = pathlib.Path(__file__).parent


def need(holds, what):
    if not holds:
        raise AssertionError(what)


def user(content):
    return {"role": "user", "content": content}


def plain(value):
    """An answer as data, without what differs between any two answers."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    return {name: part for name, part in value.model_dump(mode="json").items() if name not in VARYING}


class Run:
    """The clients of both servers, and our own API."""

    def __init__(self, args):
        self.args = args
        self.url = args.url
        options = {"max_retries": 0, "timeout": 30}
        self.ours = openai.OpenAI(base_url=f"{args.url}/openai/v1", api_key=args.key, **options)
        self.provider = openai.OpenAI(base_url=f"{args.provider}/v1", api_key=args.provider_key, **options)

    def both(self, ask):
        """What both answer, which has to be the same, as ours gave it."""
        expected, answer = ask(self.provider), ask(self.ours)
        need(plain(answer) == plain(expected), f"not the same:\n  {plain(answer)}\n  {plain(expected)}")
        return answer

    def chat(self, session, messages, **more):
        """The answer of both to a conversation of a session."""
        headers = {"Throughline-Session": session}
        create = lambda client: client.chat.completions.create(
            model=MODEL, messages=messages, extra_headers=headers, **more
        )
        return self.both(lambda client: list(create(client)) if more.get("stream") else create(client))

    def api(self, path, body=None, status=200):
        """What our own API answers, with that status."""
        code, text = self.ask(path, body)
        need(code == status, f"{path}: {code} instead of {status}: {text}")
        return text

    def ask(self, path, body=None):
        headers = {"Authorization": f"Bearer {self.args.key}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(urllib.request.Request(self.url + path, data, headers), timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def stored(self, session):
        """Roles and texts of what a session holds."""
        code, text = self.ask(f"/v1/sessions/{session}/messages")
        need(code in (200, 404), text)
        return [(message["role"], message["content"]) for message in json.loads(text).get("items", [])]

    def sent(self):
        """The last request that the mock was sent."""
        request = urllib.request.Request(f"{self.args.mock}/__aimock/journal")
        request.add_header("Authorization", f"Bearer {self.args.mock_key}")
        with urllib.request.urlopen(request, timeout=30) as journal:
            return json.loads(journal.read())[-1]

    def holds(self, session, *expected):
        found = self.stored(session)
        need(found == list(expected), f"{session} holds {found}, not {list(expected)}")


def chat(run):
    messages = [{"role": "system", "content": "Be brief."}, user("When does my flight leave?")]
    answer = run.chat("py-chat", messages)
    text = answer.choices[0].message.content
    need(text == "It leaves at 7:40." and answer.system_fingerprint == "fp_harbour", answer)
    kept = [("user", "When does my flight leave?"), ("assistant", text)]
    run.holds("py-chat", *kept)
    # What went to the provider has the client's own instructions and turn.
    sent = run.sent()["body"]["messages"]
    need(sent[0] == messages[0] and sent[-1] == messages[1], sent)

    # A client sends the conversation again with each turn, and it is stored once.
    messages += [{"role": "assistant", "content": text}, user("Is that early?")]
    for _ in range(2):
        raw = run.ours.chat.completions.with_raw_response.create(
            model=MODEL, messages=messages, extra_headers={"Throughline-Session": "py-chat"}
        )
        need(raw.parse().choices[0].message.content == "Yes.", raw.text)
        need(raw.headers["throughline-session"] == "py-chat", raw.headers)
        for name in ["throughline-context-tokens", "throughline-tokens-saved"]:
            need(raw.headers.get(name, "").isdigit(), f"{name}: {raw.headers}")
        need(int(raw.headers["throughline-context-tokens"]) > 0, raw.headers)
    run.holds("py-chat", *kept, ("user", "Is that early?"), ("assistant", "Yes."))


def memory(run):
    """What was said in one session is sent with a turn of another; a long conversation is cut to the budget."""
    said = {"messages": [{"role": "user", "content": "My ferry to Lisbon leaves from pier 9."}]}
    run.api("/v1/sessions/py-ferry/messages", said)
    run.ours.chat.completions.create(model=MODEL, messages=[user("From which pier does my ferry leave?")])
    sent = json.dumps(run.sent()["body"]["messages"])
    need("pier 9" in sent, sent)

    words = "Question {} about the weather in Bergen, with some words more to make it long."
    said = [
        turn
        for n in range(150)
        for turn in [user(words.format(n)), {"role": "assistant", "content": f"Answer {n}: it rains in Bergen again."}]
    ]
    raw = run.ours.chat.completions.with_raw_response.create(
        model=MODEL,
        messages=said + [user("So does it rain?")],
        extra_headers={"Throughline-Session": "py-long", "Throughline-Budget": "1500"},
    )
    need(int(raw.headers["throughline-context-tokens"]) <= 1500, raw.headers)
    need(int(raw.headers["throughline-tokens-saved"]) > 1500, raw.headers)
    sent = run.sent()["body"]["messages"]
    need(len(sent) < 150 and sent[-1] == user("So does it rain?"), f"{len(sent)} messages were sent")


def streaming(run):
    asked = [user("Tell me at length about the ferry.")]
    chunks = run.chat("py-stream", asked, stream=True)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    need(text.startswith("The ferry") and text.endswith("turns back."), text)
    need(len(chunks) > 3 and chunks[-1].choices[0].finish_reason == "stop", chunks)
    run.holds("py-stream", ("user", asked[0]["content"]), ("assistant", text))

    # Usage comes where a client asks for it.
    chunks = run.chat("py-stream", asked, stream=True, stream_options={"include_usage": True})
    need(chunks[-1].usage.completion_tokens > 0, chunks[-1])


def tools(run):
    messages = [user("Which gate does LH 1173 leave from?")]
    answer = run.chat("py-tools", messages, tools=[TOOL])
    call = answer.choices[0].message.tool_calls[0]
    need(call.function.name == "find_gate" and json.loads(call.function.arguments) == {"flight": "LH 1173"}, call)
    run.holds("py-tools")
    messages.append(answer.choices[0].message.model_dump(exclude_none=True))
    messages.append({"role": "tool", "tool_call_id": call.id, "content": "B12"})
    answer = run.chat("py-tools", messages, tools=[TOOL])
    text = answer.choices[0].message.content
    need(text == "It leaves from gate B12.", answer)
    need(run.sent()["body"]["messages"][-3:] == messages, run.sent())
    roles = [role for role, _ in run.stored("py-tools")]
    need(roles == ["user", "assistant", "tool", "assistant"], roles)

    # The calls of a stream come in pieces.
    streamed = run.chat("py-tools-stream", messages[:1], tools=[TOOL], stream=True)
    pieces = [piece for chunk in streamed for piece in chunk.choices[0].delta.tool_calls or []]
    need(json.loads("".join(piece.function.arguments or "" for piece in pieces)) == {"flight": "LH 1173"}, pieces)
    run.holds("py-tools-stream")


def pictures(run):
    content = [
        {"type": "text", "text": "What is in this picture?"},
        {"type": "image_url", "image_url": {"url": PICTURE, "detail": "low"}},
    ]
    need(run.chat("py-picture", [user(content)]).choices[0].message.content == "A red dot.", "it was not seen")
    need(run.sent()["body"]["messages"][-1] == user(content), run.sent())
    run.holds("py-picture", ("user", "What is in this picture?\n[image]"), ("assistant", "A red dot."))


def not_stored(run):
    secret = [user("When does my flight leave, between us?")]
    run.chat("py-secret", secret, store=False)
    run.chat("py-secret", secret, store=False, stream=True)
    run.holds("py-secret")


def unknown_fields(run):
    """What we do not know is passed on."""
    run.chat("py-fields", [user("Is it so?")], seed=7, logit_bias={"50256": -100}, extra_body={"x_new": {"a": [1]}})
    sent = run.sent()["body"]
    need((sent["seed"], sent["logit_bias"], sent["x_new"]) == (7, {"50256": -100}, {"a": [1]}), sent)


def embeddings(run):
    for encoding in ["float", "base64"]:
        answer = run.both(
            lambda client: client.embeddings.create(
                model="text-embedding-3-small", input=["A ferry.", "A gate."], encoding_format=encoding
            )
        )
        need(len(answer.data) == 2 and answer.data[0].embedding != answer.data[1].embedding, answer)


def models(run):
    listed = [model.id for model in run.ours.models.list()]
    need(MODEL in listed and "o3" in listed, listed)


def errors(run):
    def fails(client, kind, content, model=MODEL, headers={}, **more):
        try:
            session = {"Throughline-Session": "py-errors"}
            answer = client.chat.completions.create(
                model=model, messages=[user(content)], extra_headers=session | headers, **more
            )
            # A stream fails while it is read.
            answer = list(answer) if more.get("stream") else answer
        except openai.OpenAIError as error:
            need(type(error) is kind, f"{content}: {type(error).__name__} instead of {kind.__name__}: {error}")
            keys = [run.args.key, run.args.provider_key]
            need(not any(key in str(error) for key in keys), "the error has a key")
            return error
        raise AssertionError(f"{content}: no error but {answer}")

    for kind, content, model in [
        (openai.NotFoundError, "Hello?", "gpt-nonsense"),
        (openai.RateLimitError, "Are you busy?", MODEL),
        (openai.InternalServerError, "Are you broken?", MODEL),
    ]:
        for stream in [False, True]:
            direct, through = (fails(client, kind, content, model, stream=stream) for client in [run.provider, run.ours])
            need((through.code, through.type) == (direct.code, direct.type), (through, direct))
            need(through.status_code == direct.status_code, (through, direct))
    # A body that is no JSON fails in the client, as it does without us.
    for client in [run.provider, run.ours]:
        try:
            answer = client.chat.completions.create(model=MODEL, messages=[user("Is it malformed?")])
        except ValueError:
            continue
        raise AssertionError(f"what is no JSON was read: {answer}")
    # What is refused here has the same form.
    refused = fails(run.ours, openai.BadRequestError, "Hello?", headers={"Throughline-Budget": "some"})
    need(refused.code == "invalid_input", refused)
    wrong = openai.OpenAI(base_url=f"{run.url}/openai/v1", api_key="tl_wrong", max_retries=0)
    fails(wrong, openai.AuthenticationError, "Hello?")
    run.holds("py-errors")


def cut_off(run):
    """An answer that breaks off, at the provider or because its reader leaves, is not stored, nor is its question."""
    for client in [run.provider, run.ours]:
        stream = client.chat.completions.create(
            model=MODEL,
            messages=[user("Will it be cut off?")],
            stream=True,
            extra_headers={"Throughline-Session": "py-cut"},
        )
        read = []
        try:
            for chunk in stream:
                read.append(chunk)
        except Exception as error:
            need("incomplete" in str(error).lower() or isinstance(error, openai.APIConnectionError), repr(error))
        else:
            raise AssertionError("a client did not see that its answer was cut off")
    stream = run.ours.chat.completions.create(
        model=MODEL,
        messages=[user("Tell me a long story.")],
        stream=True,
        extra_headers={"Throughline-Session": "py-cut"},
    )
    next(iter(stream))
    stream.close()
    # The next turn of the session is answered, and is all that it holds.
    run.chat("py-cut", [user("Do you go on?")])
    run.holds("py-cut", ("user", "Do you go on?"), ("assistant", "Yes."))


def langchain(run):
    """A program that knows nothing of us, with either base URL."""
    told = []
    for base, key in [(f"{run.args.provider}/v1", run.args.provider_key), (f"{run.url}/openai/v1", run.args.key)]:
        env = {**os.environ, "OPENAI_BASE_URL": base, "OPENAI_API_KEY": key}
        program = [sys.executable, str(HERE / "langchain_program.py")]
        done = subprocess.run(program, env=env, capture_output=True, text=True, timeout=60)
        need(done.returncode == 0, done.stdout + done.stderr)
        told.append(done.stdout)
    need(told[0] == told[1] and "gate B12" in told[0], told)
    sessions = json.loads(run.api("/v1/sessions?limit=200"))["items"]
    derived = [session["id"] for session in sessions if session["id"].startswith("openai-")]
    held = [[text for _, text in run.stored(session)] for session in derived]
    need(any("Which gate does my flight leave from?" in texts and "It leaves from gate B12." in texts for texts in held), held)


def own_api(run):
    """A turn of our own API, whole and streamed, and of the command line."""
    turn = {"user_turn": "When does my flight leave?", "model": f"openai:{MODEL}"}
    answer = json.loads(run.api("/v1/sessions/py-own/chat", turn))
    need(answer["text"] == "It leaves at 7:40." and answer["usage"]["output_tokens"] > 0, answer)
    kept = [("user", turn["user_turn"]), ("assistant", answer["text"])]
    run.holds("py-own", *kept)
    events = run.api("/v1/sessions/py-own/chat", {**turn, "stream": True})
    names = re.findall(r"^event: (\w+)$", events, re.MULTILINE)
    need(names[0] == "context" and "delta" in names and names[-1] == "done", events)
    run.holds("py-own", *kept, *kept)

    gate = {"user_turn": "Which gate does it leave from?", "tools": [TOOL]}
    asks = json.loads(run.api("/v1/sessions/py-own-tools/chat", gate))
    need(asks["tool_calls"][0]["function"]["name"] == "find_gate" and asks["messages"] == [], asks)
    calls = {"role": "assistant", "content": None, "tool_calls": asks["tool_calls"]}
    result = {"role": "tool", "tool_call_id": asks["tool_calls"][0]["id"], "content": "B12"}
    answer = json.loads(run.api("/v1/sessions/py-own-tools/chat", {**gate, "steps": [calls, result]}))
    need(answer["text"] == "It leaves from gate B12." and len(answer["messages"]) == 4, answer)


def own_errors(run):
    for said, status, code in [
        ("Are you busy?", 429, "rate_limited"),
        ("Are you broken?", 503, "unavailable"),
        ("Is it malformed?", 503, "unavailable"),
    ]:
        refused = run.api("/v1/sessions/py-own-bad/chat", {"user_turn": said}, status)
        need(code in refused, refused)
    unknown = run.api("/v1/sessions/py-own-bad/chat", {"user_turn": "Hello?", "model": "gpt-nonsense"}, 400)
    need(f"openai:{MODEL}" in unknown, unknown)
    run.holds("py-own-bad")


def command_line(run):
    with tempfile.TemporaryDirectory() as folder:

        def ask(turn, key, *more):
            env = {"PATH": os.environ["PATH"], "HOME": folder, "OPENAI_API_KEY": key}
            env["OPENAI_BASE_URL"] = f"{run.args.provider}/v1"
            command = [run.args.program, "chat", turn, "--model", f"openai:{MODEL}", "--data-dir", folder, *more]
            return subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, timeout=60)

        done = ask("When does my flight leave?", run.args.provider_key)
        need(done.stdout.strip() == "It leaves at 7:40." and done.returncode == 0, done)
        done = ask("Tell me at length.", run.args.provider_key, "--json")
        need(json.loads(done.stdout)["text"].endswith("turns back."), done)
        refused = ask("When does my flight leave?", "sk-not-the-key")
        need(refused.returncode != 0 and "OPENAI_API_KEY" in refused.stderr, refused)
        need("sk-not-the-key" not in refused.stderr, "the error has the key")


def gemini(run):
    """Google's own client against the mock, and the same turn through our adapter."""
    from google import genai

    model = "gemini-2.5-flash"
    options = genai.types.HttpOptions(base_url=run.args.mock, api_version="v1beta")
    client = genai.Client(api_key=run.args.mock_key, http_options=options)
    question = "When does my flight leave?"
    expected = client.models.generate_content(model=model, contents=question).text
    streamed = "".join(part.text for part in client.models.generate_content_stream(model=model, contents=question))
    need(expected == streamed == "It leaves at 7:40.", (expected, streamed))
    turn = {"user_turn": question, "model": f"gemini:{model}"}
    answer = json.loads(run.api("/v1/sessions/py-gemini/chat", turn))
    need(answer["text"] == expected, answer)
    kept = [("user", question), ("assistant", expected)]
    run.holds("py-gemini", *kept)
    events = run.api("/v1/sessions/py-gemini/chat", {**turn, "stream": True})
    need(re.findall(r"^event: (\w+)$", events, re.MULTILINE)[-1] == "done", events)

    # A tool, called by either.
    function = TOOL["function"]
    declared = genai.types.FunctionDeclaration(
        name=function["name"], description=function["description"], parameters_json_schema=function["parameters"]
    )
    tools = genai.types.Tool(function_declarations=[declared])
    config = genai.types.GenerateContentConfig(tools=[tools])
    question = "Which gate does LH 1173 leave from?"
    called = client.models.generate_content(model=model, contents=question, config=config).function_calls[0]
    gate = {"user_turn": question, "model": f"gemini:{model}", "tools": [TOOL]}
    asks = json.loads(run.api("/v1/sessions/py-gemini-tools/chat", gate))
    call = asks["tool_calls"][0]
    need((call["function"]["name"], json.loads(call["function"]["arguments"])) == (called.name, called.args), asks)
    calls = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": call["id"], "content": "B12"}
    answer = json.loads(run.api("/v1/sessions/py-gemini-tools/chat", {**gate, "steps": [calls, result]}))
    need(answer["text"] == "It leaves from gate B12.", answer)
    for said, status in [("Are you busy?", 429), ("Are you broken?", 503), ("Is it malformed?", 503)]:
        run.api("/v1/sessions/py-gemini-bad/chat", {"user_turn": said, "model": f"gemini:{model}"}, status)
    run.holds("py-gemini-bad")


def files_over_mcp(run):
    """MCP's own client talks to a model about a folder: three turns, the program starts anew before the last."""
    import mcp

    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as project:
        source = pathlib.Path(project, "src")
        source.mkdir()
        (source / "pier.md").write_text("Pier nine is closed.\n")
        (source / "gate.md").write_text("Gate B12 opens at seven.\n")
        env = {"PATH": os.environ["PATH"], "HOME": home, "OPENAI_API_KEY": run.args.provider_key}
        env["OPENAI_BASE_URL"] = f"{run.args.provider}/v1"
        model = f'mcp.chat_models=["openai:{MODEL}"]'
        args = ["mcp", "--data-dir", home, "--tool-sets", "chat,files", "--set", model, "--set", "log.level=error"]
        server = mcp.StdioServerParameters(command=run.args.program, args=args, cwd=project, env=env)
        tool = f"chat_with_{MODEL.replace('.', '_')}"

        def sent():
            return [message["content"] for message in run.sent()["body"]["messages"]]

        async def turns(*asked):
            answers = []
            async with mcp.Client(server) as client:
                names = {tool.name for tool in (await client.list_tools()).tools}
                need({tool, "start_chat", "poll_chat", "cancel_chat", "plan_files"} <= names, names)
                for instructions in asked:
                    call = {"instructions": instructions, "session_id": "py-files", "context": ["src"]}
                    done = await client.call_tool(tool, call)
                    need(not done.is_error, done)
                    answers.append((done.structured_content, sent()))
            return answers

        outcomes = lambda answer: {file["path"]: file["outcome"] for file in answer["files"]["files"]}
        (first, told), (second, again) = asyncio.run(turns("When does my flight leave?", "Is that early?"))
        need(first["text"] == "It leaves at 7:40.", first)
        need(outcomes(first) == {"src/gate.md": "inline", "src/pier.md": "inline"}, first)
        need(set(outcomes(second).values()) == {"unchanged"} and second["files"]["tokens"]["sent"] == 0, second)
        files = next(text for text in told if "Gate B12 opens" in text)
        need(files in again, again)
        (source / "gate.md").write_text("Gate B12 opens at eight.\n")
        [(third, after)] = asyncio.run(turns("Is it open?"))
        need(outcomes(third) == {"src/gate.md": "changed", "src/pier.md": "unchanged"}, third)
        grown = next(text for text in after if "opens at eight" in text)
        need(grown.startswith(files) and "When does my flight leave?" in after, after)

        # A call that runs on, one that is given up, and what is wrong.
        async def running():
            async with mcp.Client(server) as client:
                call = {"model": MODEL, "instructions": "Is that early?", "session_id": "py-long"}
                begun = (await client.call_tool("start_chat", call)).structured_content
                polled = (await client.call_tool("poll_chat", begun)).structured_content
                need(polled["state"] == "done" and polled["answer"]["text"] == "Yes.", polled)
                call["instructions"] = "Tell me a long story."
                begun = (await client.call_tool("start_chat", call)).structured_content
                given_up = (await client.call_tool("cancel_chat", begun)).structured_content
                need(given_up["state"] == "cancelled", given_up)
                gone = await client.call_tool("poll_chat", begun)
                need(gone.is_error and gone.content[0].text.startswith("not_found"), gone)
                unknown = await client.call_tool("start_chat", {**call, "model": "nothing"})
                need(unknown.is_error and f"openai:{MODEL}" in unknown.content[0].text, unknown)

        asyncio.run(running())


PARTS = [
    "chat", "memory", "streaming", "tools", "pictures", "not_stored", "unknown_fields", "embeddings", "models", "errors",
    "cut_off", "langchain", "own_api", "own_errors", "command_line",
    "gemini", "files_over_mcp",
]


def main():
    parser = argparse.ArgumentParser()
    for flag in ["--program", "--url", "--key", "--provider", "--provider-key", "--mock", "--mock-key"]:
        parser.add_argument(flag, required=True)
    parser.add_argument("--parts", default=",".join(PARTS), help="names of parts, with commas between them")
    run = Run(parser.parse_args())
    failed = 0
    for part in [globals()[name] for name in run.args.parts.split(",")]:
        name = part.__name__.replace("_", " ")
        try:
            part(run)
            print(f"python, {name}: good", flush=True)
        except Exception:
            failed += 1
            print(f"python, {name}: FAILED", flush=True)
            traceback.print_exc()
    sys.exit(1 if failed else 0)


main()

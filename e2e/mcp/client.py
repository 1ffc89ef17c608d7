"""The official Python client of MCP against the binary: over standard input and over HTTP, in both eras.

Every tool that a server lists is called as calls.json says, with good arguments and with bad ones, and every resource
and prompt is read as reads.json says; one that is not there fails the run. Then the client is asked, answers, declines
and hangs, and gives calls up.
"""

import argparse
import asyncio
import json
import logging
import pathlib
import sys
import tempfile
import traceback
import warnings

warnings.simplefilter("ignore")

from mcp import Client, StdioServerParameters, types
from mcp.shared.exceptions import MCPError

# A message that comes while its client closes is told of as one that could not be read.
logging.getLogger("mcp.client.streamable_http").addFilter(
    lambda record: not record.exc_info or record.exc_info[0].__name__ != "BrokenResourceError"
)

REVISIONS = {"legacy": "2025-11-25", "auto": "2026-07-28", "2026-07-28": "2026-07-28"}
CONTEXT = {"action": "create_from_preset", "presetId": "preset-calm-counselor"}
# Longest that one part may take, and that a client waits that is meant to give up.
PATIENCE, SHORT = 60, 1.0


def need(holds, what):
    if not holds:
        raise AssertionError(what)


def filled(value, names):
    """The value with what earlier calls gave."""
    text = json.dumps(value)
    for name, known in names.items():
        text = text.replace("{" + name + "}", json.dumps(known)[1:-1])
    return json.loads(text)


def at(value, pointer):
    for part in pointer.split("/")[1:]:
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value


def text_of(result):
    return "\n".join(block.text for block in result.content if block.type == "text")


async def refused(code, call):
    try:
        await call
    except MCPError as error:
        need(error.code == code, f"expected {code}: {error}")
        return
    raise AssertionError(f"expected {code}, and it was answered")


async def answers(context, params):
    """A model that repeats what it is told."""
    said = params.messages[-1].content
    said = said[0] if isinstance(said, list) else said
    content = types.TextContent(type="text", text=f"You said {said.text}")
    return types.CreateMessageResult(role="assistant", content=content, model="m")


async def own(server, mode, calls, reads):
    """What is ours: lists, every tool, resource and prompt, and what is not there."""
    async with Client(server, mode=mode, sampling_callback=answers, read_timeout_seconds=PATIENCE) as client:
        need(client.protocol_version == REVISIONS[mode], f"speaks {client.protocol_version}")
        if mode != "2026-07-28":
            need(client.server_info.name == "throughline", f"is {client.server_info}")
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        known = {call["tool"] for call in calls}
        need(set(tools) == known, f"calls.json and the server differ by {set(tools) ^ known}")
        for tool in tools.values():
            need(tool.description and tool.output_schema and tool.annotations, f"{tool.name} is not described")
        names = {"who": f"python-{mode}"}
        for call in calls:
            name, shows = call["tool"], filled(call.get("shows", ""), names)
            done = await client.call_tool(name, filled(call["arguments"], names))
            need(not done.is_error, f"{name}: {text_of(done)}")
            need(shows in text_of(done), f"{name} does not show {shows}: {text_of(done)}")
            for kept, pointer in call.get("keep", {}).items():
                names[kept] = at(done.structured_content, pointer)
            wrong = await client.call_tool(name, filled(call["bad"], names))
            need(wrong.is_error and text_of(wrong).startswith("invalid_input: "), f"{name}: {text_of(wrong)}")
        await refused(types.INVALID_PARAMS, client.call_tool("no_such_tool", {}))
        listed = (await client.list_resources()).resources
        templates = (await client.list_resource_templates()).resource_templates
        # What is listed by itself, but for each context.
        there = {str(one.uri) for one in listed if "/context/" not in str(one.uri)}
        there |= {template.uri_template for template in templates}
        known = {read["of"] for read in reads["resources"]}
        need(there == known, f"reads.json and the server differ by {there ^ known}")
        for read in filled(reads["resources"], names):
            text = (await client.read_resource(read["uri"])).contents[0].text
            need(read["shows"] in text, f"{read['uri']} does not show {read['shows']}: {text}")
        prompts = {prompt.name for prompt in (await client.list_prompts()).prompts}
        known = {read["name"] for read in reads["prompts"]}
        need(prompts == known, f"reads.json and the server differ by {prompts ^ known}")
        for read in filled(reads["prompts"], names):
            text = (await client.get_prompt(read["name"], read["arguments"])).messages[0].content.text
            need(read["shows"] in text, f"{read['name']} does not show {read['shows']}: {text}")
        absent = -32602 if REVISIONS[mode] == "2026-07-28" else -32002
        await refused(absent, client.read_resource("memory://no-such-thing"))
        await refused(types.INVALID_PARAMS, client.get_prompt("no_such_prompt"))
        return len(tools)


async def asked(server, mode):
    """A client that answers, declines, hangs and gives up."""

    def client(sampling):
        return Client(server, mode=mode, sampling_callback=sampling, read_timeout_seconds=PATIENCE)

    async def declines(context, params):
        return types.ErrorData(code=-1, message="User rejected sampling request")

    hanging = asyncio.Event()

    async def hangs(context, params):
        hanging.set()
        await asyncio.Event().wait()

    async with client(answers) as one:
        made = await one.call_tool("context-manage", CONTEXT)
        context = made.structured_content["context"]["id"]

    async def works(one, kept):
        """The next call works, and so many messages were kept."""
        listed = await one.call_tool("conversation-manage", {"action": "list", "contextId": context})
        need(listed.structured_content["totalCount"] == kept, f"not {kept} messages: {text_of(listed)}")

    chat = ("context-chat", {"contextId": context, "message": "hello"})
    for question in [("test_sampling", {"prompt": "hello"}), chat]:
        async with client(declines) as one:
            # In revisions without sessions this client ends the call itself.
            if question == chat and mode == "legacy":
                said = await one.call_tool(*question)
                need(said.is_error and text_of(said).startswith("declined: "), text_of(said))
            else:
                await refused(-1, one.call_tool(*question))
            await works(one, 0)
        async with client(hangs) as one:
            if mode == "legacy":
                # Later revisions leave nothing open while a client makes up its mind.
                try:
                    await one.call_tool(*question, read_timeout_seconds=SHORT)
                except MCPError as error:
                    need("imed out" in str(error), f"{error}")
                else:
                    raise AssertionError("it was answered by nobody")
                await works(one, 0)
            hanging.clear()
            await given_up(hanging, lambda: one.call_tool(*question))
            await works(one, 0)
        # A client that cannot be asked is told what it would have to be able to do.
        async with Client(server, mode=mode, read_timeout_seconds=PATIENCE) as one:
            await refused(-32021, one.call_tool(*question))
            await works(one, 0)
    async with client(answers) as one:
        begun = asyncio.Event()

        async def progress(*_):
            begun.set()

        await given_up(begun, lambda: one.call_tool("test_tool_with_progress", {}, progress_callback=progress))
        for kept, question in ((0, ("test_sampling", {"prompt": "hello"})), (2, chat)):
            said = text_of(await one.call_tool(*question))
            need("You said hello" in said, f"the answer is lost: {said}")
            await works(one, kept)


async def given_up(begun, call):
    """Gives a call up that has begun."""
    call = asyncio.create_task(call())
    await begun.wait()
    call.cancel()
    try:
        await call
    except asyncio.CancelledError:
        return
    raise AssertionError("it was answered, though it was given up")


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True, help="the binary")
    parser.add_argument("--url", required=True, help="of a service")
    parser.add_argument("--fixtures", required=True, help="of a service with --mcp-fixtures")
    parser.add_argument("--tool-sets", required=True)
    asked_for = parser.parse_args()
    calls, reads = (json.loads(pathlib.Path(__file__).with_name(f"{name}.json").read_text()) for name in ("calls", "reads"))
    anywhere = [call for call in calls if call.get("only") != "standard input"]
    failed = 0
    for mode in REVISIONS:
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "timetable.md").write_text("The ferry leaves at nine.\n")
            args = ["mcp", "--data-dir", folder, "--tool-sets", asked_for.tool_sets, "--set", "log.level=error"]
            stdio = StdioServerParameters(command=asked_for.program, args=args, cwd=folder)
            fixtures = StdioServerParameters(command=asked_for.program, args=[*args, "--mcp-fixtures"], cwd=folder)
            parts = [
                ("standard input", lambda: own(stdio, mode, calls, reads)),
                ("standard input, asked", lambda: asked(fixtures, mode)),
                ("HTTP", lambda: own(asked_for.url, mode, anywhere, reads)),
                ("HTTP, asked", lambda: asked(asked_for.fixtures, mode)),
            ]
            for name, part in parts:
                try:
                    tools = await asyncio.wait_for(part(), PATIENCE)
                    print(f"python, {mode}, {name}: good" + (f", {tools} tools" if tools else ""), flush=True)
                except Exception:
                    failed += 1
                    print(f"python, {mode}, {name}: FAILED", flush=True)
                    traceback.print_exc()
    sys.exit(failed > 0)


asyncio.run(main())

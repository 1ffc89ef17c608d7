// The official TypeScript client of MCP against the binary: over standard input and over HTTP, in both eras.
//
// Every tool that a server lists is called as calls.json says, with good arguments and with bad ones, and every
// resource and prompt is read as reads.json says; one that is not there fails the run. Then the client is asked,
// answers, declines and hangs, and gives calls up.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { Client, ProtocolError, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const MODES = [
  ['legacy', 'legacy', '2025-11-25'],
  ['auto', 'auto', '2026-07-28'],
  ['2026-07-28', { pin: '2026-07-28' }, '2026-07-28'],
];
// Longest that one part may take, and that a client waits that is meant to give up, in milliseconds.
const PATIENCE = 60_000;
const SHORT = 1_000;
const CONTEXT = { action: 'create_from_preset', presetId: 'preset-calm-counselor' };
const INVALID_PARAMS = -32602;

/** The value with what earlier calls gave. */
function filled(value, names) {
  let text = JSON.stringify(value);
  for (const [name, known] of Object.entries(names)) {
    text = text.replaceAll(`{${name}}`, () => JSON.stringify(known).slice(1, -1));
  }
  return JSON.parse(text);
}

const at = (value, pointer) => pointer.split('/').slice(1).reduce((inner, part) => inner[part], value);
const textOf = result => result.content.filter(block => block.type === 'text').map(block => block.text).join('\n');

/** What a server lists is what our tables have. */
const agree = (listed, known) =>
  assert.deepEqual([...listed].sort(), [...new Set(known)].sort(), 'the tables and the server differ');

async function refused(code, call) {
  await assert.rejects(call, error => {
    assert.ok(ProtocolError.isInstance(error), `expected ${code}: ${error}`);
    assert.equal(error.code, code, error.message);
    return true;
  });
}

/** A client of a server, while it is used. */
async function using(server, mode, capabilities, prepare, use) {
  const options = { capabilities, versionNegotiation: { mode } };
  const client = new Client({ name: 'e2e', version: '1.0.0' }, options);
  prepare(client);
  await client.connect(server());
  try {
    return await use(client);
  } finally {
    await client.close();
  }
}

/** A client that has a model. */
const sampled = (server, mode, sample, use) =>
  using(server, mode, { sampling: {} }, client => client.setRequestHandler('sampling/createMessage', sample), use);

/** A model that repeats what it is told. */
const answers = ({ params }) => ({
  role: 'assistant',
  model: 'm',
  content: { type: 'text', text: `You said ${[params.messages.at(-1).content].flat()[0].text}` },
});

/** What is ours: lists, every tool, resource and prompt, and what is not there. */
async function own(server, calls, mode, revision, who) {
  return sampled(server, mode, answers, async client => {
    assert.equal(client.getNegotiatedProtocolVersion(), revision);
    assert.equal(client.getServerVersion()?.name, 'throughline');
    const { tools } = await client.listTools();
    agree(tools.map(tool => tool.name), calls.map(call => call.tool));
    for (const tool of tools) {
      assert.ok(tool.description && tool.outputSchema && tool.annotations, `${tool.name} is not described`);
    }
    const names = { who };
    for (const call of calls) {
      const name = call.tool;
      const shows = filled(call.shows ?? '', names);
      const done = await client.callTool({ name, arguments: filled(call.arguments, names) });
      assert.ok(!done.isError, `${name}: ${textOf(done)}`);
      assert.ok(textOf(done).includes(shows), `${name} does not show ${shows}: ${textOf(done)}`);
      for (const [kept, pointer] of Object.entries(call.keep ?? {})) names[kept] = at(done.structuredContent, pointer);
      const wrong = await client.callTool({ name, arguments: filled(call.bad, names) });
      assert.ok(wrong.isError && textOf(wrong).startsWith('invalid_input: '), `${name}: ${textOf(wrong)}`);
    }
    await refused(INVALID_PARAMS, client.callTool({ name: 'no_such_tool', arguments: {} }));
    const { resources } = await client.listResources();
    const { resourceTemplates } = await client.listResourceTemplates();
    // What is listed by itself, but for each context.
    const uris = resources.map(one => one.uri).filter(uri => !uri.includes('/context/'));
    agree([...uris, ...resourceTemplates.map(template => template.uriTemplate)], reads.resources.map(read => read.of));
    for (const { uri, shows } of filled(reads.resources, names)) {
      const { text } = (await client.readResource({ uri })).contents[0];
      assert.ok(text.includes(shows), `${uri} does not show ${shows}: ${text}`);
    }
    agree((await client.listPrompts()).prompts.map(prompt => prompt.name), reads.prompts.map(read => read.name));
    for (const { shows, ...prompt } of filled(reads.prompts, names)) {
      const { text } = (await client.getPrompt(prompt)).messages[0].content;
      assert.ok(text.includes(shows), `${prompt.name} does not show ${shows}: ${text}`);
    }
    // This client makes one error of both codes that revisions have for it, by the URI that comes with it.
    await refused(INVALID_PARAMS, client.readResource({ uri: 'memory://no-such-thing' }));
    await refused(INVALID_PARAMS, client.getPrompt({ name: 'no_such_prompt' }));
    return tools.length;
  });
}

/** A client that answers, declines, hangs and gives up. */
async function asked(server, mode) {
  const made = await sampled(server, mode, answers, client =>
    client.callTool({ name: 'context-manage', arguments: CONTEXT }),
  );
  const contextId = made.structuredContent.context.id;
  /** The next call works, and so many messages were kept. */
  const works = async (client, kept) => {
    const list = { name: 'conversation-manage', arguments: { action: 'list', contextId } };
    assert.equal((await client.callTool(list)).structuredContent.totalCount, kept);
  };
  const declines = () => {
    throw new ProtocolError(-1, 'User rejected sampling request');
  };
  let heard = () => {};
  const hangs = () => {
    heard();
    return new Promise(() => {});
  };

  const sampling = { name: 'test_sampling', arguments: { prompt: 'hello' } };
  const chat = { name: 'context-chat', arguments: { contextId, message: 'hello' } };
  for (const question of [sampling, chat]) {
    await sampled(server, mode, declines, async client => {
      // In revisions without sessions this client ends the call itself.
      if (question === chat && mode === 'legacy') {
        const said = await client.callTool(question);
        assert.ok(said.isError && textOf(said).startsWith('declined: '), textOf(said));
      } else {
        await assert.rejects(client.callTool(question), /rejected/);
      }
      await works(client, 0);
    });
    await sampled(server, mode, hangs, async client => {
      if (mode !== 'legacy') return;
      // Later revisions leave nothing open while a client makes up its mind.
      await assert.rejects(client.callTool(question, { timeout: SHORT, maxTotalTimeout: SHORT }), /timed out/i);
      await works(client, 0);
      await givenUp(begun => {
        heard = begun;
        return question;
      }, client);
      await works(client, 0);
    });
    // A client that cannot be asked is told what it would have to be able to do.
    await using(server, mode, {}, () => {}, async client => {
      await refused(-32021, client.callTool(question));
      await works(client, 0);
    });
  }
  await sampled(server, mode, answers, async client => {
    await givenUp(() => ({ name: 'test_tool_with_progress' }), client);
    for (const [kept, question] of [[0, sampling], [2, chat]]) {
      const said = textOf(await client.callTool(question));
      assert.ok(said.includes('You said hello'), `the answer is lost: ${said}`);
      await works(client, kept);
    }
  });
}

/** Gives a call up that has begun: its client was asked something, or told how far it is. */
async function givenUp(prepare, client) {
  const stop = new AbortController();
  let begun;
  const begins = new Promise(resolve => (begun = resolve));
  const over = assert.rejects(client.callTool(prepare(begun), { signal: stop.signal, onprogress: begun }));
  await begins;
  stop.abort('given up');
  await over;
}

function inTime(work) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done after ${PATIENCE} ms`)), PATIENCE);
  });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

const flag = { type: 'string' };
const { values } = parseArgs({ options: { program: flag, url: flag, fixtures: flag, 'tool-sets': flag } });
const [calls, reads] = ['calls', 'reads'].map(name =>
  JSON.parse(readFileSync(new URL(`${name}.json`, import.meta.url), 'utf8')),
);
const anywhere = calls.filter(call => call.only !== 'standard input');
let failed = 0;
for (const [name, mode, revision] of MODES) {
  const folder = mkdtempSync(join(tmpdir(), 'throughline-'));
  writeFileSync(join(folder, 'timetable.md'), 'The ferry leaves at nine.\n');
  const args = ['mcp', '--data-dir', folder, '--tool-sets', values['tool-sets'], '--set', 'log.level=error'];
  const stdio = more => () =>
    new StdioClientTransport({ command: values.program, args: [...args, ...more], cwd: folder });
  const http = url => () => new StreamableHTTPClientTransport(new URL(url));
  const who = `typescript-${name}`;
  const parts = [
    ['standard input', () => own(stdio([]), calls, mode, revision, who)],
    ['standard input, asked', () => asked(stdio(['--mcp-fixtures']), mode)],
    ['HTTP', () => own(http(values.url), anywhere, mode, revision, who)],
    ['HTTP, asked', () => asked(http(values.fixtures), mode)],
  ];
  for (const [part, work] of parts) {
    try {
      const tools = await inTime(work());
      console.log(`typescript, ${name}, ${part}: good${tools ? `, ${tools} tools` : ''}`);
    } catch (error) {
      failed += 1;
      console.log(`typescript, ${name}, ${part}: FAILED`);
      console.error(error);
    }
  }
  rmSync(folder, { recursive: true, force: true });
}
process.exit(failed > 0 ? 1 : 0);

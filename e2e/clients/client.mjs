// The official JavaScript client of OpenAI against Throughline's endpoint: chat, streaming and tools.
//
// Each request also goes straight to the provider, a mock server: the answers have to be the same. What was
// stored is read back over Throughline's own API.

import assert from 'node:assert/strict';
import { parseArgs } from 'node:util';

import OpenAI from 'openai';

const MODEL = 'gpt-4.1';
const TOOL = {
  type: 'function',
  function: {
    name: 'find_gate',
    description: 'The gate of a flight',
    parameters: { type: 'object', properties: { flight: { type: 'string' } }, required: ['flight'] },
  },
};
// Made anew for every answer; the mock counts tokens of what it was sent, which is not the same.
const VARYING = ['id', 'created', 'usage', '_request_id'];

const flag = { type: 'string' };
const { values } = parseArgs({ options: { url: flag, key: flag, provider: flag, 'provider-key': flag } });
const options = { maxRetries: 0, timeout: 30_000 };
const ours = new OpenAI({ baseURL: `${values.url}/openai/v1`, apiKey: values.key, ...options });
const provider = new OpenAI({ baseURL: `${values.provider}/v1`, apiKey: values['provider-key'], ...options });

const user = content => ({ role: 'user', content });

/** An answer as data, without what differs between any two answers. */
function plain(value) {
  if (Array.isArray(value)) return value.map(plain);
  const entries = Object.entries(JSON.parse(JSON.stringify(value)));
  return Object.fromEntries(entries.filter(([name]) => !VARYING.includes(name)));
}

/** What both answer to a conversation of a session, which has to be the same. */
async function chat(session, messages, more = {}) {
  const answers = [];
  for (const client of [provider, ours]) {
    const headers = { 'Throughline-Session': session };
    const answer = await client.chat.completions.create({ model: MODEL, messages, ...more }, { headers });
    answers.push(more.stream ? await Array.fromAsync(answer) : answer);
  }
  assert.deepEqual(plain(answers[1]), plain(answers[0]));
  return answers[1];
}

/** Roles and texts of what a session holds. */
async function stored(session) {
  const headers = { Authorization: `Bearer ${values.key}` };
  const answer = await fetch(`${values.url}/v1/sessions/${session}/messages`, { headers });
  if (answer.status === 404) return [];
  assert.equal(answer.status, 200);
  return (await answer.json()).items.map(message => [message.role, message.content]);
}

async function conversation() {
  const messages = [user('When does my flight leave?')];
  const { content } = (await chat('js-chat', messages)).choices[0].message;
  assert.equal(content, 'It leaves at 7:40.');
  messages.push({ role: 'assistant', content }, user('Is that early?'));
  const { response } = await ours.chat.completions
    .create({ model: MODEL, messages }, { headers: { 'Throughline-Session': 'js-chat' } })
    .withResponse();
  assert.equal(response.headers.get('throughline-session'), 'js-chat');
  assert.match(response.headers.get('throughline-context-tokens'), /^[1-9]\d*$/);
  assert.match(response.headers.get('throughline-tokens-saved'), /^\d+$/);
  await chat('js-chat', messages);
  const held = [...messages.map(message => [message.role, message.content]), ['assistant', 'Yes.']];
  assert.deepEqual(await stored('js-chat'), held);
}

async function streaming() {
  const chunks = await chat('js-stream', [user('Tell me at length about the ferry.')], { stream: true });
  assert.ok(chunks.length > 3);
  const text = chunks.map(chunk => chunk.choices[0]?.delta.content ?? '').join('');
  assert.deepEqual((await stored('js-stream')).at(-1), ['assistant', text]);

  // The client's own helper puts the pieces together, and hangs up in the middle of another answer.
  const final = await ours.chat.completions
    .stream({ model: MODEL, messages: [user('Tell me at length about the ferry.')], store: false })
    .finalContent();
  assert.equal(final, text);
  const stream = await ours.chat.completions.create(
    { model: MODEL, messages: [user('Tell me a long story.')], stream: true },
    { headers: { 'Throughline-Session': 'js-left' } },
  );
  for await (const _ of stream) break;
  stream.controller.abort();
  await chat('js-left', [user('Do you go on?')]);
  assert.deepEqual(await stored('js-left'), [['user', 'Do you go on?'], ['assistant', 'Yes.']]);
}

async function tools() {
  const messages = [user('Which gate does LH 1173 leave from?')];
  const { message } = (await chat('js-tools', messages, { tools: [TOOL] })).choices[0];
  assert.deepEqual(JSON.parse(message.tool_calls[0].function.arguments), { flight: 'LH 1173' });
  assert.deepEqual(await stored('js-tools'), []);
  messages.push(message, { role: 'tool', tool_call_id: message.tool_calls[0].id, content: 'B12' });
  await chat('js-tools', messages, { tools: [TOOL] });
  const roles = (await stored('js-tools')).map(([role]) => role);
  assert.deepEqual(roles, ['user', 'assistant', 'tool', 'assistant']);

  // The client's own loop calls the function.
  const called = [];
  const find_gate = argument => {
    called.push(JSON.parse(argument).flight);
    return 'B12';
  };
  const runnable = { type: 'function', function: { ...TOOL.function, function: find_gate } };
  const runner = ours.chat.completions.runTools({ model: MODEL, messages: messages.slice(0, 1), tools: [runnable] });
  assert.equal(await runner.finalContent(), 'It leaves from gate B12.');
  assert.deepEqual(called, ['LH 1173']);
}

async function errors() {
  const cases = [
    ['Hello?', 'gpt-nonsense', OpenAI.NotFoundError],
    ['Are you busy?', MODEL, OpenAI.RateLimitError],
    ['Are you broken?', MODEL, OpenAI.InternalServerError],
  ];
  for (const [said, model, kind] of cases) {
    const failures = [];
    for (const client of [provider, ours]) {
      const failed = client.chat.completions.create({ model, messages: [user(said)] });
      failures.push(await failed.then(() => assert.fail(`${said} was answered`), error => error));
    }
    for (const error of failures) assert.ok(error instanceof kind, error);
    assert.deepEqual([failures[1].status, failures[1].code], [failures[0].status, failures[0].code]);
  }
  const wrong = new OpenAI({ baseURL: `${values.url}/openai/v1`, apiKey: 'tl_wrong', ...options });
  await assert.rejects(wrong.models.list(), OpenAI.AuthenticationError);
}

let failed = 0;
for (const part of [conversation, streaming, tools, errors]) {
  try {
    await part();
    console.log(`javascript, ${part.name}: good`);
  } catch (error) {
    failed += 1;
    console.log(`javascript, ${part.name}: FAILED`);
    console.error(error);
  }
}
process.exit(failed > 0 ? 1 : 0);

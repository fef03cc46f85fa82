// A client of the official SDK that calls tools as tasks: `client.mjs SDK_DIR URL`. It prints one line of JSON.
const [dir, url] = process.argv.slice(2);
const load = (path) => import(`file://${dir}/dist/esm/${path}`);
const { Client } = await load('client/index.js');
const { StreamableHTTPClientTransport } = await load('client/streamableHttp.js');
const { ElicitRequestSchema, CallToolResultSchema } = await load('types.js');

const client = new Client({ name: 'peer', version: '1' }, { capabilities: { elicitation: {} } });
let asked = 0;
client.setRequestHandler(ElicitRequestSchema, async (request) => {
  asked += 1;
  return { action: 'accept', content: { name: request.params.message } };
});
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const { tools } = await client.listTools();
const support = Object.fromEntries(tools.map((tool) => [tool.name, tool.execution?.taskSupport]));

const call = async (name, args) => {
  const seen = { states: [] };
  for await (const message of client.experimental.tasks.callToolStream(
    { name, arguments: args },
    CallToolResultSchema,
    { task: { ttl: 60000 } },
  )) {
    if (message.type === 'taskCreated') seen.task = message.task.taskId;
    else if (message.type === 'taskStatus') seen.states.push(message.task.status);
    else if (message.type === 'result') seen.result = message.result;
    else seen.error = { code: message.error.code, message: message.error.message };
  }
  return seen;
};

const told = { support, capabilities: client.getServerCapabilities().tasks };
told.done = await call('job_work', { millis: 3000, text: 'done' });
told.failed = await call('job_fail', { code: 'SOLD_OUT' });
told.asked = await call('job_ask', {});
told.questions = asked;
told.forbidden = await call('job_greet', { name: 'x' });
const created = await client.request(
  { method: 'tools/call', params: { name: 'job_work', arguments: { millis: 60000, text: 'x' }, task: {} } },
  (await load('types.js')).CreateTaskResultSchema,
);
told.cancelled = (await client.experimental.tasks.cancelTask(created.task.taskId)).status;
told.again = await client.experimental.tasks.cancelTask(created.task.taskId).catch((error) => error.code);
told.got = (await client.experimental.tasks.getTask(told.done.task)).status;
told.unknown = await client.experimental.tasks.getTask('nothing').catch((error) => error.code);
told.listed = await client.experimental.tasks.listTasks().then(({ tasks }) => tasks.length).catch((error) => error.code);
console.log(JSON.stringify(told));
await client.close();

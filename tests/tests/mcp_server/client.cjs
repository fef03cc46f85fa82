// A client of the TypeScript SDK: starts the server that the arguments name, and prints what it says, a line each.
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
const { ProgressNotificationSchema } = require("@modelcontextprotocol/sdk/types.js");

const print = (value) => console.log(JSON.stringify(value));

async function main([command, ...args]) {
    const client = new Client({ name: "test", version: "1.0.0" });
    await client.connect(new StdioClientTransport({ command, args, stderr: "inherit" }));
    const { tools } = await client.listTools();
    print({ server: client.getServerVersion(), instructions: client.getInstructions(), tools });
    print(await client.callTool({ name: "shop_list_pets", arguments: { max_price: 1000 } }));
    print(await client.callTool({ name: "shop_buy_pet", arguments: { name: "Kit" } }));
    const steps = [];
    // What `onprogress` alone would be told of is forgotten when the result comes in the same piece; it asks for progress.
    client.setNotificationHandler(ProgressNotificationSchema, ({ params }) => void steps.push(params));
    const onprogress = () => {};
    const walked = await client.callTool({ name: "shop_walk", arguments: { steps: 3 } }, undefined, { onprogress });
    print({ steps, walked });
    await client.close();
}

main(process.argv.slice(2)).catch((error) => {
    console.error(error);
    process.exit(1);
});

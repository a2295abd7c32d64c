// Signs made-up deliveries with GitHub's own library: a line of JSON for each. Arguments: the folder of the library, the number.
import { pathToFileURL } from "node:url";

const [folder, count] = process.argv.slice(2);
const library = `${folder}/node_modules/@octokit/webhooks-methods/dist-node/index.js`;
const { sign, verify } = await import(pathToFileURL(library));
const secret = "made-up-for-the-senders-libraries";

for (let number = 0; number < Number(count); number += 1) {
  const event = { action: "opened", number, note: "Žluťoučký 😀".repeat(number % 5) };
  const body = JSON.stringify(event, null, number % 3 ? 0 : 2);
  const signature = await sign(secret, body);
  if (!(await verify(secret, body, signature))) throw new Error("the library refuses its own signature");
  const headers = [["X-Hub-Signature-256", signature], ["X-GitHub-Event", "issues"], ["X-GitHub-Delivery", `${number}`]];
  console.log(JSON.stringify({ scheme: "github", secret, body, headers }));
}

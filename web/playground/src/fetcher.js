import { createClient } from "graphql-ws";

// The session cookie travels by itself; this header shows that the request is ours
// and not another site's.
const csrf = { "x-countersign-csrf": "1" };

// isSubscription finds the operation that runs, by name or because it is the only one.
function isSubscription(document, operationName) {
  const operations = (document?.definitions ?? []).filter((d) => d.kind === "OperationDefinition");
  const chosen = operationName ? operations.find((o) => o.name?.value === operationName) : operations[0];
  return chosen?.operation === "subscription";
}

function authorization(headers) {
  const name = Object.keys(headers ?? {}).find((h) => h.toLowerCase() === "authorization");
  return name ? { authorization: headers[name] } : undefined;
}

async function ask(params, headers) {
  const response = await fetch("/graphql", {
    method: "POST",
    headers: { accept: "application/graphql-response+json, application/json;q=0.9", ...csrf, ...headers, "content-type": "application/json" },
    body: JSON.stringify(params),
  });
  return response.json();
}

// subscribe opens a WebSocket for one subscription, as the user of the page or with
// the token from the headers editor.
async function* subscribe(params, headers) {
  const url = new URL("/graphql", location.href);
  url.protocol = url.protocol.replace("http", "ws");
  const client = createClient({ url: url.href, connectionParams: authorization(headers), retryAttempts: 0 });
  try {
    yield* client.iterate(params);
  } catch (problem) {
    if (Array.isArray(problem)) {
      yield { errors: problem };
      return;
    }
    const reason = problem?.reason || problem?.message || "the connection was lost";
    yield { errors: [{ message: `The subscription ended: ${reason}` }] };
  } finally {
    client.dispose();
  }
}

export function fetcher(params, options) {
  const headers = options?.headers ?? {};
  return isSubscription(options?.documentAST, params.operationName) ? subscribe(params, headers) : ask(params, headers);
}

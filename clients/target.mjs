// What the tests run against, from the environment:
//   COUNTERSIGN_URL         the GraphQL endpoint, http://…/graphql
//   COUNTERSIGN_TOKEN       a token that may run the operations
//   COUNTERSIGN_OPERATIONS  JSON: {"query", "mutation", "subscription"}, each
//                           {"query", "variables"}; the subscription must send at
//                           least one event and then complete
//   COUNTERSIGN_SIGN_IN     for the browser: a sign-in code that still works
function need(name) {
  const value = process.env[name];
  if (!value) throw new Error(`set ${name}: see clients/target.mjs`);
  return value;
}

export const url = need("COUNTERSIGN_URL");
export const socketURL = url.replace(/^http/, "ws");
export const token = need("COUNTERSIGN_TOKEN");
export const operations = JSON.parse(need("COUNTERSIGN_OPERATIONS"));
export const authorization = { authorization: `Bearer ${token}` };
export const signInCode = () => need("COUNTERSIGN_SIGN_IN");

// collect reads an async iterable to its end.
export async function collect(iterable) {
  const all = [];
  for await (const one of iterable) all.push(one);
  return all;
}

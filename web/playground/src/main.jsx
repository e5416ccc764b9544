import { createRoot } from "react-dom/client";
import { GraphiQL } from "graphiql";
import "graphiql/graphiql.css";
import "./main.css";
import { fetcher } from "./fetcher.js";

async function signOut() {
  await fetch("/sign-out", { method: "POST", headers: { "x-countersign-csrf": "1" } });
  location.assign("/sign-in");
}

const welcome = `# Signed in by a link, you ask with your own rights. With a token, add a header below:
#   {"authorization": "Bearer cs_…"}

{
  __typename
}
`;

createRoot(document.getElementById("playground")).render(
  <GraphiQL fetcher={fetcher} defaultQuery={welcome} shouldPersistHeaders={false}>
    <GraphiQL.Logo>
      <span className="countersign">
        Countersign
        <button type="button" onClick={signOut}>Sign out</button>
      </span>
    </GraphiQL.Logo>
  </GraphiQL>,
);

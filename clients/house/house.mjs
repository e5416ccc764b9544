// What tests against the real server need: the demo's process, ready to run, and runs
// of it.
import assert from "node:assert/strict";
import { authorization, url } from "../target.mjs";

// ask runs an operation that must succeed.
export async function ask(query, variables) {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...authorization },
    body: JSON.stringify({ query, variables }),
  });
  const { data, errors } = await response.json();
  assert.equal(errors, undefined);
  for (const payload of Object.values(data)) assert.equal(payload?.refusal ?? null, null);
  return data;
}

// ready approves the demo's proofreading process, switches it on, and attaches it to
// a new configuration.
export async function ready() {
  const { sources, providers } = await ask("{ sources { nodes { id title } } providers { nodes { id name } } }");
  const source = sources.nodes.find((s) => s.title === "Demo skills");
  const provider = providers.nodes.find((p) => p.name === "Demo script");
  const { skills } = await ask("query($f: SkillFilter) { skills(filter: $f) { nodes { id digest } } }", {
    f: { sourceId: source.id, process: true },
  });
  const [skill] = skills.nodes;
  await ask("mutation($i: ApproveSkillVersionInput!) { approveSkillVersion(input: $i) { refusal { code } } }", {
    i: { skillId: skill.id, digest: skill.digest },
  });
  await ask("mutation($i: SetSkillEnabledInput!) { setSkillEnabled(input: $i) { refusal { code } } }", {
    i: { skillId: skill.id, enabled: true },
  });
  const { createConfiguration } = await ask(
    "mutation($i: CreateConfigurationInput!) { createConfiguration(input: $i) { configuration { id } refusal { code } } }",
    { i: { name: "Watched by clients", providerId: provider.id, model: "scripted", maxIterations: 10 } },
  );
  const configurationId = createConfiguration.configuration.id;
  await ask("mutation($i: AttachSkillInput!) { attachSkill(input: $i) { refusal { code } } }", {
    i: { skillId: skill.id, configurationId },
  });
  return { skillId: skill.id, configurationId };
}

// start starts a run of the process and returns its id at once.
export async function start({ skillId, configurationId }) {
  const { startRun } = await ask("mutation($i: StartRunInput!) { startRun(input: $i) { run { id } refusal { code message } } }", {
    i: {
      configurationId,
      prompt: "Proofread this page.",
      invocation: { skillId, subject: { table: "page", id: "home" } },
      background: true,
    },
  });
  return startRun.run.id;
}

// decide answers the card of a run that waits.
export async function decide(runId, decision, reason) {
  const { node } = await ask("query($id: ID!) { node(id: $id) { ... on Run { pendingDecision { turnDigest } } } }", { id: runId });
  const { turnDigest } = node.pendingDecision;
  await ask("mutation($i: DecideRunInput!) { decideRun(input: $i) { run { status } refusal { code message } } }", {
    i: { runId, turnDigest, decision, reason },
  });
}

// watch is the subscription to the steps of a run.
export function watch(runId, after) {
  return {
    query: `subscription Watch($runId: ID!, $after: Int) {
      runEvents(runId: $runId, after: $after) { sequence kind ... on SettledEvent { status } }
    }`,
    variables: { runId, after },
  };
}

// gapless asserts that steps are numbered one after the other and end with the run.
export function gapless(steps, first = 0) {
  assert.deepEqual(
    steps.map((s) => s.sequence),
    steps.map((_, i) => first + i),
  );
  assert.equal(steps.at(-1).kind, "SETTLED");
  assert.equal(steps.at(-1).status, "COMPLETED");
}
